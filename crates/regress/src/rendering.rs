//! Comparisons and searches as text, Markdown, JSON, KTAP and JUnit.

use crate::NOTICEABLE;
use crate::bisect::{BisectResult, Bisection};
use crate::change::{CellChange, FunctionChange, Quantity};
use crate::comparison::KernelComparison;
use stacklab_model::{count, is_control};
use stacklab_report::{Block, Table, Width, document_text, versioned_json};
use std::fmt::{self, Write as _};
use std::str::FromStr;

/// Version of the JSON's shape.
const FORMAT_VERSION: u32 = 1;

/// A format of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegressFormat {
    /// For a terminal.
    Text,
    /// For a mail or a pull request.
    Markdown,
    /// Everything, unrounded.
    Json,
    /// The kernel's Test Anything Protocol, version 1.
    Ktap,
    /// For continuous integration.
    Junit,
}

const NAMES: [(&str, RegressFormat); 5] = [
    ("text", RegressFormat::Text),
    ("markdown", RegressFormat::Markdown),
    ("json", RegressFormat::Json),
    ("ktap", RegressFormat::Ktap),
    ("junit", RegressFormat::Junit),
];

impl FromStr for RegressFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, format)| *format)
            .ok_or_else(|| format!("unknown format `{text}`: use {}", NAMES.map(|(name, _)| name).join(", ")))
    }
}

impl fmt::Display for RegressFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES[*self as usize].0)
    }
}

/// Renders a comparison.
pub fn comparison(comparison: &KernelComparison, format: RegressFormat, width: Width) -> String {
    match format {
        RegressFormat::Json => versioned_json(FORMAT_VERSION, comparison),
        RegressFormat::Ktap => ktap(comparison),
        RegressFormat::Junit => junit(comparison),
        RegressFormat::Text | RegressFormat::Markdown => {
            document_text(&comparison_blocks(comparison), format == RegressFormat::Markdown, width)
        }
    }
}

/// Renders a search: as text, Markdown or JSON.
pub fn bisection(bisection: &Bisection, format: RegressFormat, width: Width) -> String {
    match format {
        RegressFormat::Json => versioned_json(FORMAT_VERSION, bisection),
        _ => document_text(&bisection_blocks(bisection), format == RegressFormat::Markdown, width),
    }
}

/// Most functions of a cell in a table, and their least change, instructions per message. Timers cause smaller ones.
const MAX_FUNCTIONS: usize = 8;
const MIN_SHOWN_CHANGE: f64 = 2.0;

fn comparison_blocks(comparison: &KernelComparison) -> Vec<Block> {
    let KernelComparison { baseline, candidate, .. } = comparison;
    let mut blocks = vec![
        Block::Title("Instructions per message: candidate against baseline".to_owned()),
        Block::Facts(vec![
            ("baseline", format!("{} (Linux {})", baseline.name, baseline.release)),
            ("candidate", format!("{} (Linux {})", candidate.name, candidate.release)),
        ]),
        Block::Text(describe_outcome(comparison)),
    ];
    blocks.extend(tabulate(comparison));
    blocks
}

/// The outcome and the conditions that are met.
fn describe_outcome(comparison: &KernelComparison) -> String {
    let changed = comparison.outcome.name();
    let mut bad = Vec::new();
    for check in comparison.checks.iter().filter(|check| check.is_bad) {
        bad.push(format!("{} in {} ({:+.1})", check.condition, check.cell, check.change));
    }
    let verdict = match bad.is_empty() {
        true => "good".to_owned(),
        false => format!("bad: {}", bad.join(", ")),
    };
    format!("Changed by more than {NOTICEABLE} instructions: {changed}. The candidate is {verdict}.")
}

/// A table of the cells, and one of the functions that changed, if any did.
fn tabulate(comparison: &KernelComparison) -> Vec<Block> {
    let mut blocks = vec![Block::Table(tabulate_cells(&comparison.cells))];
    let mut rows = Vec::new();
    for cell in &comparison.cells {
        let large = cell.functions.iter().filter(|row| row.largest() >= MIN_SHOWN_CHANGE);
        rows.extend(large.take(MAX_FUNCTIONS).map(|row| (cell, row)));
    }
    if !rows.is_empty() {
        blocks.push(Block::Table(tabulate_functions(&rows)));
    }
    blocks
}

fn tabulate_cells(cells: &[CellChange]) -> Table {
    let mut table = Table::default();
    table.push("cell", false, cells.iter().map(|cell| cell.name.clone()).collect());
    for (title, family) in [("IPv4", 0), ("IPv6", 1)] {
        table.push(title, true, cells.iter().map(|cell| format!("{:.1}", cell.candidate[family])).collect());
    }
    for (title, quantity) in
        [("IPv4 change", Quantity::Ipv4), ("IPv6 change", Quantity::Ipv6), ("gap change", Quantity::Gap)]
    {
        let mut changes = Vec::new();
        for cell in cells {
            let change = format_with_sign(cell.change(quantity), 1);
            changes.push(format!("{change} ({} %)", format_with_sign(cell.percent(quantity), 2)));
        }
        table.push(title, true, changes);
    }
    table
}

fn tabulate_functions(rows: &[(&CellChange, &FunctionChange)]) -> Table {
    let mut table = Table::default();
    table.push("cell", false, rows.iter().map(|(cell, _)| cell.name.clone()).collect());
    table.push("function that changed", false, rows.iter().map(|(_, row)| row.name.clone()).collect());
    for (title, family) in [("IPv4", 0), ("IPv6", 1)] {
        let changes = rows.iter().map(|(_, row)| format_with_sign(row.change()[family], 1)).collect();
        table.push(title, true, changes);
    }
    table
}

/// Without a minus before a zero.
fn format_with_sign(figure: f64, decimals: usize) -> String {
    let scale = 10_f64.powi(decimals as i32);
    format!("{:+.decimals$}", (figure * scale).round() / scale + 0.0)
}

fn bisection_blocks(bisection: &Bisection) -> Vec<Block> {
    let Bisection { conditions, ends, found, steps, built: [of_ends, built], known } = bisection;
    let mut blocks = vec![Block::Title("The commit that changed the counts".to_owned())];
    match found {
        BisectResult::Commit(commit, verified) => {
            let facts = vec![("commit", commit.hash.clone()), ("subject", commit.subject.clone())];
            blocks.push(Block::Facts(facts));
            match verified {
                Some(step) => {
                    blocks.push(Block::Text(describe_share(ends, step)));
                    blocks.extend(tabulate(step));
                }
                None => blocks.push(Block::Text(
                    "Its parent cannot be built or booted, so the result is not verified.".to_owned(),
                )),
            }
        }
        BisectResult::Among(commits) => {
            blocks.push(Block::Text("One of these commits, which cannot all be built or booted:".to_owned()));
            blocks.push(Block::List(commits.iter().map(crate::Commit::short).collect()));
        }
    }
    let verdicts = steps.iter().map(|(_, is_bad)| match is_bad {
        Some(true) => "bad".to_owned(),
        Some(false) => "good".to_owned(),
        None => "skipped".to_owned(),
    });
    let mut table = Table::default();
    table.push("step", true, (1..=steps.len()).map(|step| step.to_string()).collect());
    table.push("commit", false, steps.iter().map(|(commit, _)| commit.short()).collect());
    table.push("verdict", false, verdicts.collect());
    blocks.push(Block::Heading(format!("{} to {}", ends.baseline.name, ends.candidate.name)));
    blocks.push(Block::Text(format!(
        "Bad means, against {}: {}. Built: {}, {of_ends} of them for the ends; the counts of {known} were known.",
        ends.baseline.name,
        conditions.join(", "),
        count(*built, "kernel")
    )));
    blocks.push(Block::Table(table));
    blocks
}

/// How much of the change between the ends a commit accounts for.
fn describe_share(ends: &KernelComparison, step: &KernelComparison) -> String {
    let bad = ends.checks.iter().filter(|check| check.is_bad);
    let Some(end) = bad.max_by(|a, b| a.change.total_cmp(&b.change)) else { return describe_outcome(step) };
    let of_step = step.checks.iter().find(|check| check.cell == end.cell && check.condition == end.condition);
    let Some(check) = of_step else { return describe_outcome(step) };
    format!(
        "Against its parent, {}: {} changes by {:+.1} of the {:+.1} between the ends. Changed by more than {NOTICEABLE} instructions: {}.",
        check.cell,
        check.condition.split(" >").next().unwrap_or_default().split(' ').next_back().unwrap_or_default(),
        check.change,
        end.change,
        step.outcome.name()
    )
}

/// KTAP, version 1 (the kernel's Documentation/dev-tools/ktap.rst).
fn ktap(comparison: &KernelComparison) -> String {
    let KernelComparison { baseline, candidate, checks, .. } = comparison;
    let mut text = format!("KTAP version 1\n1..{}\n", checks.len());
    let _ = writeln!(text, "# baseline {}, candidate {}", baseline.name, candidate.name);
    let _ = writeln!(text, "# changed: {}", comparison.outcome.name());
    for (number, check) in checks.iter().enumerate() {
        let _ = writeln!(text, "# {} changed by {:+.1}", check.cell, check.change);
        let is_bad = if check.is_bad { "not ok" } else { "ok" };
        let _ = writeln!(text, "{is_bad} {} {} {}", number + 1, check.cell, check.condition);
    }
    text
}

/// JUnit's XML, as continuous integration reads it.
fn junit(comparison: &KernelComparison) -> String {
    let KernelComparison { baseline, candidate, checks, .. } = comparison;
    let failures = checks.iter().filter(|check| check.is_bad).count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"stacklab regress\" tests=\"{}\" failures=\"{failures}\">\n",
        checks.len()
    );
    for check in checks {
        let cell = escape(&check.cell);
        let _ = write!(text, "  <testcase classname=\"{cell}\" name=\"{}\"", escape(&check.condition));
        let message = format!("{:+.1} against {} in {}", check.change, baseline.name, candidate.name);
        let _ = match check.is_bad {
            true => writeln!(text, "><failure message=\"{}\"/></testcase>", escape(&message)),
            false => writeln!(text, "/>"),
        };
    }
    text + "</testsuite>\n"
}

/// As text of an XML attribute.
fn escape(text: &str) -> String {
    let text = text.replace(is_control, " ");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Condition;
    use crate::comparison::tests::make_counts;
    use crate::git::Commit;
    use stacklab_report::WIDTH;

    fn compare_with_baseline() -> KernelComparison {
        let baseline = make_counts("v1", [1000, 2000], [3000, 4000]);
        KernelComparison::new(&baseline, &make_counts("v2", [999, 2500], [3000, 4000]), &Condition::usual())
    }

    #[test]
    fn text_has_outcome_cells_and_functions() {
        let text = comparison(&compare_with_baseline(), RegressFormat::Text, WIDTH);
        assert!(
            text.contains("instructions: IPv6 only. The candidate is bad: ipv6 > 8 in udp/128 (+50.0)."),
            "{text}"
        );
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let row = [
            "udp/128", "99.9", "250.0", "-0.1", "(-0.10", "%)", "+50.0", "(+25.00", "%)", "+50.1", "(+25.05",
            "%)",
        ];
        assert!(words.contains(&row.to_vec()), "{text}");
        assert!(words.contains(&vec!["udp/128", "ip_output", "/", "ip6_output", "-0.1", "+50.0"]), "{text}");
        assert_eq!(format_with_sign(-0.04, 1), "+0.0");
    }

    fn make_commit(subject: &str) -> Commit {
        Commit { hash: format!("{subject:0>40}"), tree: String::new(), subject: subject.to_owned() }
    }

    #[test]
    fn a_search_has_the_commit_its_share_and_the_builds() {
        let found = Bisection {
            conditions: vec!["udp/128 ipv6 > 25".to_owned()],
            ends: compare_with_baseline(),
            found: BisectResult::Commit(make_commit("slow"), Some(Box::new(compare_with_baseline()))),
            steps: vec![(make_commit("fine"), Some(false)), (make_commit("broken"), None)],
            built: [2, 5],
            known: 1,
        };
        let text = bisection(&found, RegressFormat::Text, WIDTH);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("ipv6 changes by +50.0 of the +50.0 between the ends"), "{text}");
        assert!(
            flat.contains("Built: 5 kernels, 2 of them for the ends; the counts of 1 were known"),
            "{text}"
        );
        assert!(flat.contains("subject slow") && flat.contains("2 000000000000 broken skipped"), "{text}");
    }

    fn judged() -> KernelComparison {
        let baseline = make_counts("v1", [1000, 2000], [3000, 4000]);
        let conditions: Vec<Condition> = vec!["udp ipv6 > 8".parse().unwrap(), "gap > 1 %".parse().unwrap()];
        KernelComparison::new(&baseline, &make_counts("\"v2\"", [1000, 2500], [3000, 4000]), &conditions)
    }

    #[test]
    fn ktap_has_a_plan_and_a_line_for_each_check() {
        let text = ktap(&judged());
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "KTAP version 1",
            "1..3",
            "not ok 1 udp/128 udp ipv6 > 8",
            "not ok 2 udp/128 gap > 1 %",
            "ok 3 tcp/128 gap > 1 %",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn junit_is_escaped_and_counts_failures() {
        let text = junit(&judged());
        assert!(text.contains("tests=\"3\" failures=\"2\""), "{text}");
        assert!(text.contains("<testcase classname=\"tcp/128\" name=\"gap &gt; 1 %\"/>"), "{text}");
        assert!(text.contains("<failure message=\"+25.0 against v1 in &quot;v2&quot;\"/>"), "{text}");
    }
}
