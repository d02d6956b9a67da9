//! What was measured, when, where and how often.

use crate::findings::answer::answer;
use crate::findings::groups::{fixed_settings, group_by_key};
use crate::rendering::document::Block;
use jiff::Timestamp;
use stacklab_model::{Findings, count, once_each};

pub(crate) const LEGEND: &str = "± is half the 95 % interval of a mean over runs; a difference is paired within blocks and has its 95 % interval. The figures of both arms fit that difference. At most one in twenty of the claims of \
     this report (better, equivalent) is expected to be false, whenever it was stopped.";

pub(crate) const TERMS: &str = "arm: one side of a comparison. block: each arm measured once, in random order. n: blocks in which both arms have \
     a figure. margin: the largest difference that does not matter. equivalent: the difference is within the margin, and fewer than a fifth of all blocks are otherwise. inconclusive: neither can be claimed yet, for all comparisons of the report together; a single interval without zero is not enough. (time was up), (most blocks) and (unfinished) state why the measurement ended. headers, rest: the difference that header sizes explain, and the rest. A/A check: an arm against itself, which shows the error of the method.";

/// How the description of an imported record's testbed begins.
const IMPORTED: &str = "imported, ";

pub(crate) const OTHER_LOAD: &str = "other_load";
/// The largest share of such runs that the heading does not tell.
const MAX_DISTURBED: f64 = 0.1;

pub(crate) fn answer_text(findings: &Findings) -> Vec<Block> {
    answer(findings).map(Block::Text).into_iter().collect()
}

/// Title, answer, and the facts that a reader needs beside it.
pub(crate) fn short(findings: &Findings) -> Vec<Block> {
    let testbed = findings.testbed_description.lines().next().unwrap_or_default().to_owned();
    let runs = facts(findings).into_iter().filter(|(name, _)| matches!(*name, "runs" | "other load"));
    let facts = Block::Facts(std::iter::once(("testbed", testbed)).chain(runs).collect());
    [vec![Block::Title(findings.title.clone())], answer_text(findings), vec![facts]].concat()
}

pub(crate) fn technical(findings: &Findings) -> Vec<Block> {
    let facts = [Block::Heading("Measurement".to_owned()), Block::Facts(facts(findings))];
    let terms = [Block::Heading("Terms".to_owned()), Block::Text(LEGEND.to_owned())];
    let words = (!findings.comparisons.is_empty()).then(|| Block::Text(TERMS.to_owned()));
    facts.into_iter().chain(terms).chain(words).collect()
}

pub(crate) fn facts(findings: &Findings) -> Vec<(&'static str, String)> {
    let invalid: usize = findings.invalid_runs.iter().map(|(count, _)| count).sum();
    let by = format!("{} by stacklab {}", time(findings.started_unix_ns), findings.version);
    let mut facts = vec![match findings.testbed_description.starts_with(IMPORTED) {
        true => ("imported", by),
        false => ("measured", format!("{by}, seed {}", findings.seed)),
    }];
    // A study of many testbeds has a line for each.
    let mut testbeds = findings.testbed_description.lines();
    facts.push(("testbed", testbeds.next().unwrap_or_default().to_owned()));
    facts.extend(testbeds.map(|line| ("", line.to_owned())));
    let fixed = fixed_settings(findings);
    if !fixed.is_empty() {
        facts.push(("settings", fixed.join(", ")));
    }
    facts.extend(once(&findings.hosts).into_iter().map(|host| ("host", host)));
    facts.extend(once(&findings.instruments).into_iter().map(|floor| ("instrument", floor)));
    let [runs, blocks] = [count(findings.valid_runs, "valid run"), count(findings.blocks as usize, "block")];
    facts.push(("runs", format!("{runs} in {blocks}, {invalid} invalid")));
    facts.extend(describe_disturbance(findings).map(|text| ("other load", text)));
    facts
}

/// Sentences `NAME: WHAT`, each said once with the names of all that it holds for: `sender, receiver: WHAT`.
pub(crate) fn once(sentences: &[String]) -> Vec<String> {
    let parts = sentences.iter().map(|sentence| sentence.split_once(": ").unwrap_or(("", sentence)));
    let mut joined = Vec::new();
    for (what, names) in group_by_key(parts.map(|(name, what)| (what, name))) {
        let names = once_each(names.into_iter()).join(", ");
        joined.push(if names.is_empty() { what.to_owned() } else { format!("{names}: {what}") });
    }
    joined
}

/// How many runs others disturbed, if these are more than a tenth.
fn describe_disturbance(findings: &Findings) -> Option<String> {
    let of_others = findings.warnings.iter().filter(|(_, warning)| warning.code == OTHER_LOAD);
    let runs: usize = of_others.map(|(runs, _)| runs).sum();
    (runs as f64 > MAX_DISTURBED * findings.valid_runs as f64)
        .then(|| format!("disturbed {}, which widens intervals (Notes)", count(runs, "run")))
}

/// RFC 3339, UTC, whole seconds.
pub fn time(unix_ns: u64) -> String {
    let seconds = i64::try_from(unix_ns / 1_000_000_000).ok();
    let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "at an unknown time".to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imported_record_has_no_seed() {
        assert_eq!(read_first_fact("two namespaces").1, "2023-11-14T22:13:20Z by stacklab 0.1.0, seed 42");
        let imported = ("imported", "2023-11-14T22:13:20Z by stacklab 0.1.0".to_owned());
        assert_eq!(read_first_fact("imported, not measured by this program: a.json"), imported);
    }

    fn read_first_fact(testbed: &str) -> (&'static str, String) {
        let findings =
            Findings { testbed_description: testbed.to_owned(), ..crate::tests::fixtures::findings() };
        facts(&findings).remove(0)
    }

    #[test]
    fn equal_hosts_have_one_line() {
        let hosts = [
            "sender: Linux 6.1, 2 cores",
            "router1: Linux 6.6",
            "receiver: Linux 6.1, 2 cores",
            "sender: Linux 6.1, 2 cores",
        ];
        let hosts = hosts.map(str::to_owned);
        assert_eq!(once(&hosts), ["sender, receiver: Linux 6.1, 2 cores", "router1: Linux 6.6"]);
        assert_eq!(once(&["a host".to_owned()]), ["a host"]);
    }

    #[test]
    fn time_is_utc_in_whole_seconds() {
        assert_eq!(time(1_700_000_000_999_999_999), "2023-11-14T22:13:20Z");
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(u64::MAX), "2554-07-21T23:34:33Z");
    }
}
