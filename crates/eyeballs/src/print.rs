//! What was measured, as a document and as JSON.

use crate::clauses::Clause;
use crate::compare::{ClientComparison, DelayDiff, MARGIN_MS};
use crate::measurement::{MAX_REFERENCE_ERROR_MS, Measurement, ReferenceCheck};
use crate::run::Run;
use crate::runs::{Delay, ScenarioRuns, format_delay};
use crate::scenario::family_label;
use crate::summary::Summary;
use crate::times::{NONE, format_time};
use stacklab_analysis::statistics::median;
use stacklab_model::{Family, Verdict, count, printable_lines, printable_text};
use stacklab_report::{Block, Table, Width, document_text, verdict_name, versioned_json};

/// Version of the JSON's shape, its field `format`.
const FORMAT_VERSION: u32 = 1;

/// The measurement as JSON, unrounded.
pub fn to_json(measurement: &Measurement) -> String {
    versioned_json(FORMAT_VERSION, measurement)
}

/// The measurement as text for a terminal of this width, or as Markdown.
pub fn describe(measurement: &Measurement, is_markdown: bool, width: Width) -> String {
    let mut blocks = vec![Block::Title(describe_command(measurement))];
    blocks.extend(list_summary(measurement));
    blocks.extend(list_tables(measurement));
    document_text(&blocks, is_markdown, width)
}

/// The command on one line.
pub(crate) fn describe_command(measurement: &Measurement) -> String {
    printable_text(&measurement.command.join(" "))
}

/// What a client does in a few figures and sentences.
pub(crate) fn list_summary(measurement: &Measurement) -> Vec<Block> {
    vec![
        Block::Text(describe_reference(&measurement.reference)),
        Block::Facts(list_facts(&measurement.summary)),
        Block::List(list_reactions(&measurement.summary)),
    ]
}

/// The clauses and the networks, and how they were measured.
pub(crate) fn list_tables(measurement: &Measurement) -> Vec<Block> {
    vec![
        Block::Table(table_clauses(&measurement.summary.clauses)),
        Block::Table(table_scenarios(&measurement.scenarios)),
        Block::Text(describe_method(measurement)),
    ]
}

/// A comparison as JSON, unrounded.
pub fn comparison_to_json(comparison: &ClientComparison) -> String {
    versioned_json(FORMAT_VERSION, comparison)
}

/// A comparison as text for a terminal of this width, or as Markdown.
pub fn describe_comparison(comparison: &ClientComparison, is_markdown: bool, width: Width) -> String {
    document_text(&list_comparison(comparison), is_markdown, width)
}

/// Both commands, and the difference of each delay.
pub(crate) fn list_comparison(comparison: &ClientComparison) -> Vec<Block> {
    let ClientComparison { baseline, candidate, delays } = comparison;
    let mut blocks = vec![
        Block::Facts(vec![
            ("baseline", describe_command(baseline)),
            ("candidate", describe_command(candidate)),
        ]),
        Block::Text(describe_reference(&baseline.reference)),
        Block::Table(table_delays(delays)),
    ];
    let reasons = list_open(delays);
    if !reasons.is_empty() {
        blocks.push(Block::List(reasons));
    }
    blocks.push(Block::Text(format!(
        "Differences are candidate minus baseline, with 95 % intervals; below {MARGIN_MS:.0} ms they are equivalent, which \
         needs 14 runs (--repeat). {}",
        describe_method(baseline)
    )));
    blocks
}

fn table_delays(delays: &[DelayDiff]) -> Table {
    let mut table = Table::default();
    table.push("delay", false, delays.iter().map(|delay| delay.label.clone()).collect());
    table.push("baseline", true, delays.iter().map(|delay| format_or_none(delay.baseline_ms)).collect());
    table.push("candidate", true, delays.iter().map(|delay| format_or_none(delay.candidate_ms)).collect());
    table.push("difference, ms", true, delays.iter().map(format_effect).collect());
    table.push("verdict", false, delays.iter().map(format_verdict).collect());
    table
}

fn format_or_none(ms: Option<f64>) -> String {
    ms.map_or(NONE.to_owned(), format_time)
}

fn format_effect(delay: &DelayDiff) -> String {
    let Some(effect) = &delay.effect else { return NONE.to_owned() };
    let interval = effect.interval95;
    format!("{:+.1} [{:+.1}, {:+.1}]", effect.estimate, interval.low, interval.high)
}

fn format_verdict(delay: &DelayDiff) -> String {
    match &delay.verdict {
        Verdict::Better(arm) => format!("{arm} faster"),
        Verdict::Nothing(_) => NONE.to_owned(),
        verdict => verdict_name(verdict).to_owned(),
    }
}

/// Why delays have no verdict, each reason once.
fn list_open(delays: &[DelayDiff]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for delay in delays {
        if let Verdict::Nothing(reason) = &delay.verdict {
            reasons.push(format!("no verdict on {}: {reason}", delay.label));
        }
    }
    reasons
}

/// The check of the tool with its own client.
fn describe_reference(reference: &ReferenceCheck) -> String {
    let ReferenceCheck { set_ms, median_ms, measured_ms } = reference;
    let Some(median_ms) = median_ms else {
        return format!(
            "Check: the built-in client, whose attempt delay is {set_ms:.0} ms, did not try both families. \
             Do not trust the figures below."
        );
    };
    let all = format_range(measured_ms);
    let check = format!(
        "Check: the built-in client's attempt delay of {set_ms:.0} ms was measured as {median_ms:.1} ms{all}."
    );
    let error = (median_ms - set_ms).abs();
    if error <= MAX_REFERENCE_ERROR_MS {
        return check;
    }
    format!(
        "{check} This machine is busy: times below may be wrong by {error:.0} ms. Run it again when it is quiet."
    )
}

fn list_facts(summary: &Summary) -> Vec<(&'static str, String)> {
    let first = summary.first_family.map_or("differs between runs", family_label);
    let delay = match summary.attempt_delay {
        Delay { runs: 0, .. } => "none: the other family is not tried".to_owned(),
        ref delay => format_delay(delay),
    };
    vec![("first family", first.to_owned()), ("attempt delay", delay)]
}

fn list_reactions(summary: &Summary) -> Vec<String> {
    summary.reactions.iter().map(|reaction| format!("{}: {}", reaction.label, reaction.does)).collect()
}

fn table_clauses(clauses: &[Clause]) -> Table {
    let mut table = Table::default();
    table.push("asked by", false, clauses.iter().map(|clause| clause.source.clone()).collect());
    table.push("what", false, clauses.iter().map(|clause| clause.asks.to_owned()).collect());
    table.push("does", false, clauses.iter().map(|clause| clause.verdict.words().to_owned()).collect());
    table.footnotes.0.push("draft v3-04: draft-ietf-happy-happyeyeballs-v3-04".to_owned());
    table.push("found", false, clauses.iter().map(|clause| clause.found.clone()).collect());
    table
}

/// ` (201 to 204 in 5 runs)`, or nothing of one figure.
fn format_range(figures: &[f64]) -> String {
    if figures.len() < 2 {
        return String::new();
    }
    let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let high = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!(" ({low:.1} to {high:.1} in {})", count(figures.len(), "run"))
}

fn table_scenarios(scenarios: &[ScenarioRuns]) -> Table {
    let mut table = Table::default();
    table.push("network", false, scenarios.iter().map(|scenario| scenario.label.clone()).collect());
    table.push("IPv6 SYN", true, list_cells(scenarios, |runs| format_first_syn(runs, Family::Ipv6)));
    table.push("IPv4 SYN", true, list_cells(scenarios, |runs| format_first_syn(runs, Family::Ipv4)));
    table.push("first byte", true, list_cells(scenarios, format_first_byte));
    table.push("over", false, list_cells(scenarios, format_winner));
    table.push("end", false, list_cells(scenarios, format_end));
    table
}

fn list_cells(scenarios: &[ScenarioRuns], cell: fn(&[Run]) -> String) -> Vec<String> {
    scenarios.iter().map(|scenario| cell(&scenario.runs)).collect()
}

fn format_first_syn(runs: &[Run], family: Family) -> String {
    let times: Vec<f64> =
        runs.iter().filter_map(|run| run.first_attempt(family)).map(|attempt| attempt.at_ms).collect();
    format_median(&times)
}

fn format_first_byte(runs: &[Run]) -> String {
    let times: Vec<f64> =
        runs.iter().filter_map(|run| run.first_byte.as_ref()).map(|first| first.at_ms).collect();
    format_median(&times)
}

/// The median, or that there is none.
pub(crate) fn format_median(times: &[f64]) -> String {
    median(times).map_or(NONE.to_owned(), format_time)
}

fn format_winner(runs: &[Run]) -> String {
    let mut parts = Vec::new();
    for family in [Family::Ipv6, Family::Ipv4] {
        let over =
            runs.iter().filter(|run| run.first_byte.as_ref().is_some_and(|first| first.family == family));
        let number = over.count();
        if number == runs.len() && number > 0 {
            return family_label(family).to_owned();
        }
        if number > 0 {
            parts.push(format!("{} {number}/{}", family_label(family), runs.len()));
        }
    }
    if parts.is_empty() { NONE.to_owned() } else { parts.join(", ") }
}

/// Each end of runs, with how often it was unless it was the only one.
fn format_end(runs: &[Run]) -> String {
    let mut ends: Vec<(String, usize)> = Vec::new();
    for run in runs {
        let end = describe_end(run);
        match ends.iter_mut().find(|(known, _)| *known == end) {
            Some((_, number)) => *number += 1,
            None => ends.push((end, 1)),
        }
    }
    match &ends[..] {
        [(end, _)] => end.clone(),
        _ => ends
            .iter()
            .map(|(end, number)| format!("{end} {number}/{}", runs.len()))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// How a run ended, in a few words.
pub(crate) fn describe_end(run: &Run) -> String {
    match (run.end.exit_code, run.end.signal) {
        (Some(0), _) => "done".to_owned(),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "killed at the limit".to_owned(),
    }
}

fn describe_method(measurement: &Measurement) -> String {
    let runs = measurement.scenarios.iter().map(|scenario| scenario.runs.len()).max().unwrap_or(0);
    format!(
        "Times are medians of {} after the first DNS query. SYNs are the first of each family, where they enter the wire; \
         the first byte is where it reaches the client. A run may take {} s. Seed {}.",
        count(runs, "run"),
        measurement.limit_s,
        measurement.seed
    )
}

/// Why a command that asked for no name cannot be measured.
pub(crate) fn describe_silence(command: &[String], run: &Run, output: &str) -> String {
    let program = printable_text(&command[0]);
    let mut text = format!("`{program}` did not ask DNS for the name in the place of {{host}}");
    if let Some(code) = run.end.exit_code.filter(|code| *code != 0) {
        text.push_str(&format!(" and ended with exit code {code}"));
    }
    text.push_str(
        ". Run it outside to see whether it works; a program with its own resolver (DNS over HTTPS) cannot be measured.",
    );
    if !output.is_empty() {
        text.push_str(&format!(" Its last output:\n{}", printable_lines(output)));
    }
    text
}
