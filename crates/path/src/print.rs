//! Output of a path's findings.

use crate::findings::{ComparedMetric, FamilyState, OfFamily, Rounds, StateKind};
use crate::metric::PathMetric;
use crate::probe::RoundFigures;
use crate::target::Target;
use serde_json::{Value, json};
use stacklab_model::{Family, Verdict, count, printable_lines};
use stacklab_report::verdict_name;
use std::fmt::Write;

const FORMAT_VERSION: u32 = 1;

/// A host's findings. `planned` is the number of rounds of a measurement that did not get there.
pub(crate) fn text(rounds: &Rounds, all: &[ComparedMetric], margin: f64, planned: Option<u64>) -> String {
    let mut text = format!("{}\n", rounds.target.name);
    for &family in Family::ALL {
        let address = rounds.target.address(family).map_or_else(|_| String::new(), |to| format!(" {to}"));
        let _ = writeln!(text, "  {family}{address}: {}", state_text(&rounds.state(family)));
    }
    text.push_str(&refused_text(&rounds.target, "  "));
    let _ = writeln!(text, "\n  {:>31}{:>9}  {:<23}verdict", "IPv4", "IPv6", "IPv6 / IPv4 (95 %)");
    let mut undecided: Vec<(&str, &str)> = Vec::new();
    for ComparedMetric { metric, families, effect, fitted, verdict, remark } in all {
        let medians = [Family::Ipv4, Family::Ipv6].map(|family| families[&family].median);
        let figures = fitted.map_or(medians, |fitted| fitted.map(Some));
        let (unit, factor) = metric.choose_unit(figures.into_iter().flatten());
        let [four, six] = figures.map(|figure| figure_text(*metric, figure.map(|figure| factor * figure)));
        let verdict = match verdict {
            // The reason is below, once.
            _ if families.values().any(|of| of.count == 0) => "-".to_owned(),
            Verdict::Better(_) if metric.is_fact() => "differs".to_owned(),
            Verdict::Equivalent if metric.is_fact() => "the same".to_owned(),
            Verdict::Better(family) => format!("{family} better"),
            Verdict::Nothing(reason) => {
                undecided.push((metric.label(), reason.as_str()));
                "-".to_owned()
            }
            verdict => verdict_name(verdict).to_owned(),
        };
        undecided.extend(remark.as_deref().map(|remark| (metric.label(), remark)));
        let ratio = effect.as_ref().map_or_else(String::new, |effect| {
            let interval = effect.interval95;
            let [estimate, low, high] = [effect.estimate, interval.low, interval.high].map(ratio_text);
            format!("{estimate} ({low} to {high})")
        });
        let label = metric.label();
        let _ = writeln!(text, "  {label:<15}{unit:>7}{four:>9}{six:>9}  {ratio:<22} {verdict}");
    }
    text.push_str(&missing_text(rounds, all));
    for (metric, reason) in undecided {
        let _ = writeln!(text, "  no verdict on {metric}: {reason}");
    }
    let done = rounds.count;
    let margin = margin * 100.0;
    let rounds = match planned {
        Some(planned) => format!("{done} of {}", count(planned, "round")),
        None => count(done, "round"),
    };
    let turns = format!("{rounds}, both families in turn; margin {margin:.0} %");
    let _ = writeln!(text, "\n  {turns}.\n  Verdicts hold for these minutes. The AS path is unknown.");
    if planned.is_some() {
        let _ = writeln!(text, "  Interrupted: the test at the end was not made.");
    }
    printable_lines(&text)
}

/// The addresses of a name that were tried before those that are measured, and why they failed.
pub(crate) fn refused_text(target: &Target, indent: &str) -> String {
    let mut text = String::new();
    for &family in Family::ALL {
        for (address, reason) in target.refusals(family) {
            let _ = writeln!(text, "{indent}{} at {address} accepts no connection: {reason}", target.host);
        }
    }
    printable_lines(&text)
}

/// Why metrics have no figure, each reason once. Those of a family's state are above the table.
fn missing_text(rounds: &Rounds, all: &[ComparedMetric]) -> String {
    let states: Vec<FamilyState> = Family::ALL.iter().map(|family| rounds.state(*family)).collect();
    // Families and metrics that have a reason.
    let mut reasons: Vec<(&str, Vec<Family>, Vec<&str>)> = Vec::new();
    for ComparedMetric { metric, families, .. } in all {
        for ((family, of), state) in families.iter().zip(&states) {
            let Some(why) = of.missing.as_deref() else { continue };
            if of.count > 0 || state.reason.as_deref() == Some(why) {
                continue;
            }
            let place = reasons.iter().position(|(reason, ..)| *reason == why).unwrap_or_else(|| {
                reasons.push((why, Vec::new(), Vec::new()));
                reasons.len() - 1
            });
            reasons[place].1.push(*family);
            reasons[place].2.push(metric.label());
        }
    }
    let mut text = String::new();
    for (reason, mut families, mut metrics) in reasons {
        families.sort_unstable();
        families.dedup();
        metrics.dedup();
        let families: Vec<String> = families.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "  no {} ({}): {reason}", metrics.join(", "), families.join(", "));
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Three significant digits, or a whole number of hops and bytes.
fn figure_text(metric: PathMetric, figure: Option<f64>) -> String {
    match figure {
        Some(figure) if metric.is_fact() || figure >= 100.0 => format!("{figure:.0}"),
        Some(figure) if figure >= 10.0 => format!("{figure:.1}"),
        Some(figure) => format!("{figure:.2}"),
        None => "-".to_owned(),
    }
}

/// Four significant digits, which are three decimals of a usual ratio.
fn ratio_text(ratio: f64) -> String {
    match ratio {
        10.0..100.0 => format!("{ratio:.2}"),
        100.0.. => format!("{ratio:.0}"),
        _ => format!("{ratio:.3}"),
    }
}

fn state_text(state: &FamilyState) -> String {
    let FamilyState { kind, failed, of, reason } = state;
    let reason = reason.as_deref().unwrap_or("?");
    match kind {
        StateKind::Absent => format!("absent: {reason}"),
        StateKind::Unresolved => format!("unresolved: {reason}"),
        StateKind::Unreachable => format!("cannot be reached: {reason}"),
        StateKind::Broken => format!("broken after connect: {reason}"),
        StateKind::Works => format!("works ({of} of {of} requests answered)"),
        StateKind::Lossy => format!("{failed} of {of} requests failed, the last one: {reason}"),
    }
}

pub(crate) fn json_of(rounds: &Rounds, compared: &[ComparedMetric], is_interrupted: bool) -> Value {
    let mut families = serde_json::Map::new();
    for family in Family::ALL {
        families.insert(family.to_string(), describe_family(rounds, *family));
    }
    let metrics: Vec<Value> = compared.iter().map(describe_metric).collect();
    json!({ "format": FORMAT_VERSION, "target": rounds.target.name, "rounds": rounds.count, "interrupted": is_interrupted, "families": families, "metrics": metrics })
}

fn describe_family(rounds: &Rounds, family: Family) -> Value {
    let state = rounds.state(family);
    let address = rounds.target.address(family).ok().map(ToString::to_string);
    let mut refused = Vec::new();
    for (address, reason) in rounds.target.refusals(family) {
        refused.push(json!({ "address": address.to_string(), "reason": reason }));
    }
    json!({ "address": address, "state": state.name(), "reason": state.reason, "refused": refused })
}

fn describe_metric(
    ComparedMetric { metric, families, effect, verdict, remark, .. }: &ComparedMetric,
) -> Value {
    let (better, nothing) = match verdict {
        Verdict::Better(family) => (Some(family), None),
        Verdict::Nothing(reason) => (None, Some(reason)),
        _ => (None, remark.as_ref()),
    };
    json!({
        "metric": metric.name(),
        "unit": metric.unit(),
        "ipv4": describe_median(&families[&Family::Ipv4]),
        "ipv6": describe_median(&families[&Family::Ipv6]),
        "ratio": effect.as_ref().map(|effect| json!({
            "estimate": effect.estimate,
            "low95": effect.interval95.low,
            "high95": effect.interval95.high,
            "pairs": effect.pairs,
        })),
        "verdict": verdict_name(verdict),
        "better": better,
        "reason": nothing,
    })
}

fn describe_median(OfFamily { median, count, missing }: &OfFamily) -> Value {
    json!({ "median": median, "count": count, "missing": missing })
}

pub(crate) const CSV_HEADER: &str = "unix_s,target,round,family,metric,unit,value,missing\n";

pub(crate) fn csv(target: &str, round: u64, unix_s: u64, figures: &RoundFigures) -> String {
    let mut rows = String::new();
    for ((metric, family), figure) in figures {
        let (value, missing) = match figure {
            Ok(value) => (value.to_string(), String::new()),
            Err(reason) => (String::new(), field(reason)),
        };
        let name = metric.name();
        let unit = metric.unit();
        let _ = writeln!(rows, "{unix_s},{},{round},{family},{name},{unit},{value},{missing}", field(target));
    }
    printable_lines(&rows)
}

/// A text of CSV: quoted, and no formula of a spreadsheet.
fn field(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\"").replace(['\n', '\r'], " "))
}

pub(crate) fn line(rounds: &Rounds) -> String {
    let Some(figures) = rounds.last() else { return String::new() };
    let shown = [PathMetric::IcmpRtt, PathMetric::TcpConnect, PathMetric::FirstByte].map(|metric| {
        let [four, six] =
            [Family::Ipv4, Family::Ipv6].map(|family| write_figure(figures.get(&(metric, family))));
        format!("{} {four} / {six} {}", metric.name(), metric.unit())
    });
    format!("{} round {}: {}\n", printable_lines(&rounds.target.name), rounds.count, shown.join(", "))
}

fn write_figure(figure: Option<&Result<f64, String>>) -> String {
    match figure {
        Some(Ok(figure)) => format!("{figure:.3}"),
        _ => "-".to_owned(),
    }
}
