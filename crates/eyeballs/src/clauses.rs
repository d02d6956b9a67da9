//! What RFC 8305 asks of a client, each with what the client does. Of the draft of its successor: HTTPS records.

use crate::reaction::other_family;
use crate::run::Run;
use crate::runs::{Delay, ScenarioRuns, format_delay, runs_of};
use crate::scenario::{BOTH, family_label, path_scenario, record_scenario, record_type};
use crate::times::format_time;
use serde::Serialize;
use stacklab_analysis::statistics::median;
use stacklab_model::Family;

/// Limits of the connection attempt delay, ms (RFC 8305, section 8).
const MIN_DELAY_MS: f64 = 100.0;
const MAX_DELAY_MS: f64 = 2_000.0;
/// The delay that it must not fall below.
const LOWEST_DELAY_MS: f64 = 10.0;
/// Queries that are so close were made one right after the other, ms.
const MAX_QUERY_GAP_MS: f64 = 10.0;
/// An attempt that follows a late answer by less waited for it, ms.
const CLOCK_MARGIN_MS: f64 = 5.0;
const RFC: &str = "RFC 8305";
/// draft-ietf-happy-happyeyeballs-v3-04.
const DRAFT: &str = "draft v3-04";
const NOT_RUN: &str = "not measured: --scenarios all has it";

/// A clause, and what a client does about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Clause {
    /// The document, and its section if it has one.
    pub source: String,
    /// What it asks.
    pub asks: &'static str,
    /// Whether the client does that.
    pub verdict: ClauseVerdict,
    /// What it does.
    pub found: String,
}

/// Whether a client does what a clause asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClauseVerdict {
    /// In all runs.
    Yes,
    /// In a run it did not.
    No,
    /// The runs do not show it.
    NotShown,
}

impl ClauseVerdict {
    /// The verdict in a word or two.
    pub fn words(self) -> &'static str {
        match self {
            ClauseVerdict::Yes => "yes",
            ClauseVerdict::No => "no",
            ClauseVerdict::NotShown => "not shown",
        }
    }
}

/// A verdict with its reason.
struct Found(ClauseVerdict, String);

impl Found {
    fn of(does_it: bool, text: String) -> Self {
        Found(if does_it { ClauseVerdict::Yes } else { ClauseVerdict::No }, text)
    }

    fn not_shown(text: &str) -> Self {
        Found(ClauseVerdict::NotShown, text.to_owned())
    }
}

/// Judges a client by its runs.
pub(crate) fn judge(scenarios: &[ScenarioRuns], first: Option<Family>, delay: &Delay) -> Vec<Clause> {
    let both = runs_of(scenarios, BOTH);
    let late_a = runs_of(scenarios, &record_scenario(Family::Ipv4, "late"));
    let late_aaaa = runs_of(scenarios, &record_scenario(Family::Ipv6, "late"));
    let dead = runs_of(scenarios, &path_scenario(Family::Ipv6, "first-dead"));
    let nat64 = runs_of(scenarios, "nat64");
    vec![
        clause(RFC, "3", "query AAAA, and A right after it", judge_queries(both)),
        clause(RFC, "3", "do not wait for A when AAAA is there", judge_wait(late_a, Family::Ipv6)),
        clause(RFC, "3", "wait 50 ms for AAAA when A is there", judge_wait(late_aaaa, Family::Ipv4)),
        clause(RFC, "4", "try IPv6 first", judge_first(both, first)),
        clause(RFC, "4", "alternate the families of addresses", judge_order(dead)),
        clause(RFC, "5", "start the next attempt after 100 ms to 2 s", judge_delay(delay)),
        clause(RFC, "7", "reach IPv4 servers through NAT64", judge_success(nat64)),
        clause(DRAFT, "", "query HTTPS records too", judge_https(both)),
    ]
}

fn clause(document: &str, section: &str, asks: &'static str, found: Found) -> Clause {
    let source = if section.is_empty() { document.to_owned() } else { format!("{document}, {section}") };
    let Found(verdict, found) = found;
    Clause { source, asks, verdict, found }
}

/// When a record was first asked for.
fn query_ms(run: &Run, record: &str) -> Option<f64> {
    run.queries.iter().find(|query| query.record == record).map(|query| query.at_ms)
}

/// When a record was first answered.
fn answer_ms(run: &Run, family: Family) -> Option<f64> {
    let record = record_type(family);
    run.queries.iter().find(|query| query.record == record)?.answered_ms
}

fn judge_queries(runs: &[Run]) -> Found {
    let mut gaps = Vec::new();
    for run in runs {
        match (query_ms(run, "AAAA"), query_ms(run, "A")) {
            (Some(aaaa), Some(a)) => gaps.push(a - aaaa),
            (Some(_), None) => return Found(ClauseVerdict::No, "A is not queried".to_owned()),
            (None, Some(_)) => return Found(ClauseVerdict::No, "AAAA is not queried".to_owned()),
            (None, None) => return Found::not_shown("neither was queried"),
        }
    }
    let Some(middle) = median(&gaps) else { return Found::not_shown(NOT_RUN) };
    let is_right = gaps.iter().all(|gap| (0.0..=MAX_QUERY_GAP_MS).contains(gap));
    let text = match middle {
        0.0.. => format!("A {} after AAAA", format_time(middle)),
        _ => format!("A first, AAAA {} after it", format_time(-middle)),
    };
    Found::of(is_right, text)
}

/// Whether a family, whose address is known, is tried before the late answer for the other.
fn judge_wait(runs: &[Run], family: Family) -> Found {
    if runs.is_empty() {
        return Found::not_shown(NOT_RUN);
    }
    let late = other_family(family);
    let mut waits = Vec::new();
    for run in runs {
        let end = answer_ms(run, late).map_or(f64::INFINITY, |late| late - CLOCK_MARGIN_MS);
        let attempt = run.first_attempt(family).filter(|attempt| attempt.at_ms < end);
        if let (Some(attempt), Some(answered)) = (attempt, answer_ms(run, family)) {
            waits.push(attempt.at_ms - answered);
        }
    }
    let label = family_label(family);
    let known = record_type(family);
    let late = record_type(late);
    match median(&waits) {
        None => Found(ClauseVerdict::No, format!("waits for {late}, which came 1 s late")),
        Some(wait) if waits.len() == runs.len() => {
            Found(ClauseVerdict::Yes, format!("{label} SYN {} after the {known} answer", format_time(wait)))
        }
        Some(_) => {
            let waited = runs.len() - waits.len();
            Found(ClauseVerdict::No, format!("waits for {late} in {waited} of {} runs", runs.len()))
        }
    }
}

fn judge_first(runs: &[Run], first: Option<Family>) -> Found {
    match first {
        Some(family) => Found::of(family == Family::Ipv6, format!("{} first", family_label(family))),
        None if runs.iter().all(|run| run.attempts.is_empty()) => {
            Found::not_shown("no TCP connection was tried")
        }
        None => Found(ClauseVerdict::No, "the first family differs between runs".to_owned()),
    }
}

/// Whether the other family is tried before the second address of the first.
fn judge_order(runs: &[Run]) -> Found {
    if runs.is_empty() {
        return Found::not_shown(NOT_RUN);
    }
    let mut alternating = 0;
    let mut tried = 0;
    for run in runs {
        let [first, second, ..] = &run.attempts[..] else { continue };
        tried += 1;
        alternating += usize::from(first.family != second.family);
    }
    match (tried, alternating) {
        (0, _) => Found::not_shown("one address was tried"),
        (_, 0) => Found(ClauseVerdict::No, "the second attempt is of the same family".to_owned()),
        _ => Found::of(
            alternating == tried,
            format!("the other family second in {alternating} of {tried} runs"),
        ),
    }
}

fn judge_delay(delay: &Delay) -> Found {
    let Delay { low_ms: Some(low), high_ms: Some(high), .. } = *delay else {
        return match delay.of {
            0 => Found::not_shown(NOT_RUN),
            _ => Found(ClauseVerdict::No, "the other family is not tried within the limit".to_owned()),
        };
    };
    let text = format_delay(delay);
    let is_right = low >= MIN_DELAY_MS && high <= MAX_DELAY_MS && delay.runs == delay.of;
    let remark = match (low, high) {
        (..LOWEST_DELAY_MS, _) => ": at the same time, less than 10 ms",
        (..MIN_DELAY_MS, _) => ": more than 10 ms, less than is recommended",
        (_, MAX_DELAY_MS..) => ": longer than is recommended",
        _ => "",
    };
    Found::of(is_right, format!("{text}{remark}"))
}

fn judge_success(runs: &[Run]) -> Found {
    if runs.is_empty() {
        return Found::not_shown(NOT_RUN);
    }
    let connected = runs.iter().filter(|run| run.first_byte.is_some()).count();
    Found::of(connected == runs.len(), format!("data in {connected} of {} runs", runs.len()))
}

fn judge_https(runs: &[Run]) -> Found {
    let asked = runs.iter().filter(|run| query_ms(run, "HTTPS").is_some()).count();
    Found::of(asked == runs.len(), format!("queried in {asked} of {} runs", runs.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples::{query, run};
    use Family::{Ipv4, Ipv6};

    fn delay(figures: &[Option<f64>]) -> Found {
        judge_delay(&Delay::of(figures))
    }

    #[test]
    fn a_delay_is_judged_by_its_limits() {
        assert_eq!(delay(&[Some(250.0), Some(251.0)]).0, ClauseVerdict::Yes);
        assert_eq!(delay(&[Some(250.0), None]).0, ClauseVerdict::No);
        assert_eq!(delay(&[None]).0, ClauseVerdict::No);
        assert_eq!(delay(&[]).0, ClauseVerdict::NotShown);
        let Found(verdict, text) = delay(&[Some(3_000.0)]);
        assert!(verdict == ClauseVerdict::No && text.contains("longer"), "{text}");
        let Found(verdict, text) = delay(&[Some(50.0)]);
        assert!(verdict == ClauseVerdict::No && text.contains("more than 10 ms"), "{text}");
        assert!(delay(&[Some(1.0)]).1.contains("at the same time"));
    }

    #[test]
    fn knows_the_order_of_queries() {
        let mut six_first = run(&[(Ipv6, 1.0)], Some(Ipv6));
        six_first.queries = vec![query("AAAA", 0.0, 0.1), query("A", 0.2, 0.3)];
        assert_eq!(judge_queries(&[six_first.clone()]).0, ClauseVerdict::Yes);
        let mut four_first = six_first.clone();
        four_first.queries = vec![query("A", 0.0, 0.1), query("AAAA", 0.2, 0.3)];
        let Found(verdict, text) = judge_queries(&[four_first.clone()]);
        assert_eq!((verdict, text.as_str()), (ClauseVerdict::No, "A first, AAAA 0.2 ms after it"));
        four_first.queries.pop();
        assert_eq!(judge_queries(&[six_first, four_first]).1, "AAAA is not queried");
    }

    #[test]
    fn knows_who_waits_for_a_late_answer() {
        let mut prompt = run(&[(Ipv4, 51.0), (Ipv6, 1_002.0)], Some(Ipv4));
        prompt.queries = vec![query("AAAA", 0.0, 1_000.0), query("A", 0.2, 0.5)];
        let Found(verdict, text) = judge_wait(&[prompt.clone()], Ipv4);
        assert_eq!((verdict, text.as_str()), (ClauseVerdict::Yes, "IPv4 SYN 50 ms after the A answer"));
        let mut patient = run(&[(Ipv6, 1_001.0), (Ipv4, 1_200.0)], Some(Ipv6));
        patient.queries.clone_from(&prompt.queries);
        assert_eq!(judge_wait(&[patient.clone()], Ipv4).1, "waits for AAAA, which came 1 s late");
        assert_eq!(judge_wait(&[prompt, patient], Ipv4).1, "waits for AAAA in 1 of 2 runs");
    }

    #[test]
    fn knows_the_order_of_families() {
        let alternating = run(&[(Ipv6, 1.0), (Ipv4, 251.0), (Ipv6, 501.0)], Some(Ipv4));
        let same = run(&[(Ipv6, 1.0), (Ipv6, 251.0)], Some(Ipv6));
        assert_eq!(judge_order(std::slice::from_ref(&alternating)).0, ClauseVerdict::Yes);
        assert_eq!(judge_order(&[alternating, same]).0, ClauseVerdict::No);
        assert_eq!(judge_order(&[run(&[(Ipv6, 1.0)], None)]).0, ClauseVerdict::NotShown);
    }
}
