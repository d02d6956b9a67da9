//! Notes below the figures: cautions, invalid runs, warnings.

use crate::findings::heading::{OTHER_LOAD, once};
use crate::findings::instructions::list_missing_counts;
use crate::rendering::document::Block;
use crate::rendering::numbers::{DisplayUnit, Distance};
use stacklab_model::{
    Effect, Findings, Metric, StopReason, Transport, Warning, count, quote_file, read_other_load, write_time,
};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of listed kinds of invalid runs, warnings and the like; the rest is counted.
const LISTED: usize = 10;

pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    list_notes(points(findings))
}

/// What decides how far the answer goes: what was cut short, what was not counted, and the commonest warnings.
pub(crate) fn short(findings: &Findings) -> Vec<Block> {
    const MAX_SHORT: usize = 3;
    let kinds = [invalid(findings), warnings(findings)].map(|kind| kind.into_iter().take(MAX_SHORT));
    let mut points = stop_reasons(findings);
    points.extend(outlook(findings));
    points.extend(list_missing_counts(findings));
    points.extend(once(&findings.constraints));
    points.extend(kinds.into_iter().flatten());
    list_notes(points)
}

fn list_notes(points: Vec<String>) -> Vec<Block> {
    if points.is_empty() { vec![] } else { vec![Block::Heading("Notes".to_owned()), Block::List(points)] }
}

pub(crate) fn list_uncounted_runs(findings: &Findings) -> Vec<Block> {
    let points = [invalid(findings), warnings(findings)].concat();
    if points.is_empty() { vec![] } else { vec![Block::List(points)] }
}

fn invalid(findings: &Findings) -> Vec<String> {
    list_first(&findings.invalid_runs, |(n, reason)| {
        format!("{} not counted: {reason}", count(*n, "invalid run"))
    })
}

pub(crate) fn points(findings: &Findings) -> Vec<String> {
    let outlook = outlook(findings).into_iter().collect();
    let uncounted = list_missing_counts(findings);
    let cut_short = [stop_reasons(findings), outlook, uncounted, same_arm(findings), headers(findings)];
    let constraints = once(&findings.constraints);
    [cut_short.concat(), constraints, invalid(findings), warnings(findings)].concat()
}

fn stop_reasons(findings: &Findings) -> Vec<String> {
    let reasons = [
        (StopReason::Cap, "at the most blocks allowed: the test at the end decides"),
        (StopReason::Budget, "when the time allowed was used up: the test at the end decides"),
        (
            StopReason::Unfinished,
            "because the campaign ended before (interrupted, or still running): nothing is claimed of",
        ),
    ];
    let all = count(findings.comparisons.len(), "comparison");
    let mut points = Vec::new();
    for (reason, why) in reasons {
        let n = findings.comparisons.iter().filter(|one| one.stop_reason == reason).count();
        if n > 0 {
            points.push(format!("{n} of {all} stopped {why} {}", if n == 1 { "it" } else { "them" }));
        }
    }
    points
}

/// A time whose length no longer matters: the study is too large.
const LONG: &str = "more than a day";

/// The longest time that is advised, seconds, unless the campaign has taken as long.
const MAX_ADVISED_S: f64 = 1800.0;

/// How much more time would settle what is open: half of it, and all of it.
fn outlook(findings: &Findings) -> Option<String> {
    let [half, all] = more_blocks(findings)?;
    let open = findings.comparisons.iter().filter(|comparison| comparison.more_blocks.is_some()).count();
    let which = match open {
        1 => "the open comparison".to_owned(),
        _ if half == all => format!("{open} open comparisons"),
        _ => format!("half of {open} open comparisons"),
    };
    let has_ended = findings.comparisons.iter().all(|one| one.stop_reason != StopReason::Unfinished);
    if has_ended && seconds(findings, half) > MAX_ADVISED_S.max(seconds(findings, findings.blocks)) {
        return Some(format!(
            "at the current variance, {which} would need more than half an hour: measure again when this machine and the \
             path are quieter"
        ));
    }
    let half_time = more_time(findings, half);
    let what = match half_time.as_str() {
        LONG => format!("{LONG} would settle {which}"),
        time if half == all => format!("about {time} more would settle {which}"),
        time => format!("about {time} more would settle {which}, {} all of them", more_time(findings, all)),
    };
    let how = if has_ended { advise_longer_run(findings, half) } else { advise_resuming(findings) };
    Some(format!("at the current variance, {what}{how}"))
}

/// Settings of a new run with this many more blocks.
fn advise_longer_run(findings: &Findings, more: u32) -> String {
    let blocks = findings.blocks.saturating_add(more);
    let time = write_time((seconds(findings, blocks) * 1e9).ceil() as u64);
    format!("; a new run with --set blocks.budget={time} --set blocks.max={blocks}")
}

/// Nothing for a campaign that cannot be resumed.
fn advise_resuming(findings: &Findings) -> String {
    if !findings.is_resumable {
        return String::new();
    }
    let record = findings.record_name.as_deref().map_or_else(|| "RECORD".to_owned(), quote_file);
    format!("; resume with: stacklab run --resume --out {record}")
}

/// How many more blocks would settle half of the open comparisons, and all of them; `None` without open ones.
fn more_blocks(findings: &Findings) -> Option<[u32; 2]> {
    let mut more: Vec<u32> =
        findings.comparisons.iter().filter_map(|comparison| comparison.more_blocks).collect();
    more.sort_unstable();
    Some([*more.get((more.len().max(1) - 1) / 2)?, *more.last()?])
}

/// Seconds that a campaign like this needs in all to settle half of its open comparisons, at the current variance.
pub fn estimate_seconds_to_settle(findings: &Findings) -> Option<f64> {
    let [half, _] = more_blocks(findings)?;
    Some(seconds(findings, findings.blocks.saturating_add(half)))
}

fn seconds(findings: &Findings, blocks: u32) -> f64 {
    findings.measured_ns as f64 / 1e9 / f64::from(findings.blocks.max(1)) * f64::from(blocks)
}

/// `6 minutes`: no more precise than a forecast is. Many days need a smaller study, whatever their number.
fn more_time(findings: &Findings, blocks: u32) -> String {
    let seconds = seconds(findings, blocks);
    let (number, unit) = match seconds {
        ..90.0 => (seconds, "second"),
        ..5400.0 => (seconds / 60.0, "minute"),
        ..86_400.0 => (seconds / 3600.0, "hour"),
        _ => return LONG.to_owned(),
    };
    count(number.round().max(1.0) as usize, unit)
}

/// The A/A check: two arms of one cell in each compared metric, by their labels and by their order, and how often p is
/// below 5 %: `RTT TCP -0.2 ± 0.6 %; 0 of 1 have p below 0.05, and one in twenty is expected`.
fn same_arm(findings: &Findings) -> Vec<String> {
    let compared: BTreeSet<Metric> = findings.comparisons.iter().map(|one| one.question.metric).collect();
    let by_label =
        findings.same_arm.iter().map(|one| SameArmCheck::new(one.metric, one.transport, &one.effect, one.p));
    let by_slice = findings
        .carry_over
        .iter()
        .map(|one| SameArmCheck::new(one.metric, one.transport, &one.effect, one.p));
    let by_order =
        findings.arm_order.iter().map(|one| SameArmCheck::new(one.metric, one.transport, &one.effect, one.p));
    let all_checks: [(&str, Vec<SameArmCheck>); 3] = [
        ("A/A check, one arm against itself", by_label.collect()),
        ("A/A check by order, the arm that is set up second against the first", by_order.collect()),
        (
            "A/A check by slices, a slice behind one of the same arm against one behind the other's",
            by_slice.collect(),
        ),
    ];
    let mut points = Vec::new();
    for (what, mut checks) in all_checks {
        checks.retain(|check| compared.contains(&check.metric));
        if checks.is_empty() {
            continue;
        }
        let low = checks.iter().filter(|check| check.p < 0.05).count();
        let all = checks.len();
        let texts = checks.iter().map(SameArmCheck::describe).collect::<Vec<_>>().join(", ");
        points.push(format!(
            "{what}: {texts}; {low} of {all} have p below 0.05, and one in twenty is expected"
        ));
    }
    points
}

/// An A/A check in one metric.
struct SameArmCheck<'a> {
    metric: Metric,
    transport: Transport,
    effect: &'a Effect,
    p: f64,
}

impl<'a> SameArmCheck<'a> {
    fn new(metric: Metric, transport: Transport, effect: &'a Effect, p: f64) -> Self {
        SameArmCheck { metric, transport, effect, p }
    }

    /// `RTT TCP -0.2 ± 0.6 %`.
    fn describe(&self) -> String {
        let unit = DisplayUnit::of(self.metric);
        let distance = Distance::from(self.effect);
        let label = self.metric.label();
        let transport = self.transport.name().to_uppercase();
        let text = distance.describe(&unit, &format!(" {}", unit.difference_unit));
        format!("{label} {transport} {text}")
    }
}

/// Why headers or airtime explain nothing, although they could have.
fn headers(findings: &Findings) -> Vec<String> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for explained in findings.comparisons.iter().filter_map(|comparison| comparison.explained.as_ref()) {
        if explained.ratio.is_none() {
            *reasons.entry(&explained.because).or_default() += 1;
        }
    }
    let reasons: Vec<_> = reasons.into_iter().collect();
    list_first(&reasons, |(because, n)| format!("{because} ({})", count(*n, "comparison")))
}

/// One point for each kind of warning, with its most frequent text.
fn warnings(findings: &Findings) -> Vec<String> {
    list_first(&group_warnings(&findings.warnings), |kind| {
        if kind.texts > 1 && kind.first.code == OTHER_LOAD {
            return describe_load(findings, kind.runs, kind.first);
        }
        describe_kind(kind)
    })
}

/// A line for each kind of warning of runs, with its most frequent text: what notes say of them, without a report.
pub fn list_warnings(counted: &[(usize, Warning)]) -> Vec<String> {
    list_first(&group_warnings(counted), describe_kind)
}

/// Warnings with one code and one advice.
struct WarningKind<'a> {
    runs: usize,
    texts: usize,
    first: &'a Warning,
}

fn group_warnings(counted: &[(usize, Warning)]) -> Vec<WarningKind<'_>> {
    let mut kinds: Vec<WarningKind> = Vec::new();
    for (runs, warning) in counted {
        let known = kinds
            .iter_mut()
            .find(|kind| kind.first.code == warning.code && kind.first.advice == warning.advice);
        match known {
            Some(kind) => {
                kind.runs += runs;
                kind.texts += 1;
            }
            None => kinds.push(WarningKind { runs: *runs, texts: 1, first: warning }),
        }
    }
    kinds
}

fn describe_kind(kind: &WarningKind) -> String {
    let Warning { code, text, advice } = kind.first;
    let runs = count(kind.runs, "run");
    match kind.texts {
        1 => format!("warning `{code}`: {text} ({runs}); {advice}"),
        _ => format!("warning `{code}` in {runs}, for example: {text}; {advice}"),
    }
}

/// Other load in many runs: how much of the processors it used in half of them.
fn describe_load(findings: &Findings, runs: usize, warning: &Warning) -> String {
    let of_load = findings.warnings.iter().filter(|(_, one)| one.code == OTHER_LOAD);
    let mut shares: Vec<(u32, usize)> =
        of_load.filter_map(|(n, one)| Some((read_other_load(one)?, *n))).collect();
    shares.sort_unstable();
    let known: usize = shares.iter().map(|(_, n)| n).sum();
    let mut below = 0;
    let median = shares.iter().find(|(_, n)| {
        below += n;
        2 * below >= known
    });
    let used = median.map_or_else(String::new, |(share, _)| format!(", most often about {share} % of them"));
    let runs = format!("{runs} of {}", count(findings.valid_runs.max(runs), "run"));
    format!(
        "warning `{OTHER_LOAD}`: busy machine: other programs used the CPUs in {runs}{used}; {}",
        warning.advice
    )
}

fn list_first<T>(items: &[T], write: impl Fn(&T) -> String) -> Vec<String> {
    let mut points: Vec<String> = items.iter().take(LISTED).map(write).collect();
    if items.len() > LISTED {
        points.push(format!("{} more of this kind; the JSON report has them all", items.len() - LISTED));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::{control, findings};
    use stacklab_model::{ArmOrder, Interval, Scale};

    #[test]
    fn other_load_of_many_runs_is_one_plain_line() {
        let texts = [
            (3, "other load used 9 % of the CPUs (exe used 14 % of one)"),
            (20, "other load used 74 % of the CPUs (steal 2 %, python used 17 % of one)"),
            (9, "other load used 80 % of the CPUs (exe used 15 % of one)"),
        ];
        let texts = texts.map(|(n, text)| {
            let advice = "stop other load".to_owned();
            (n, Warning { code: OTHER_LOAD.to_owned(), text: text.to_owned(), advice })
        });
        let findings = Findings { warnings: texts.to_vec(), valid_runs: 32, ..findings() };
        assert_eq!(
            warnings(&findings),
            [
                "warning `other_load`: busy machine: other programs used the CPUs in 32 of 32 runs, most often about 74 % of \
              them; stop other load"
            ]
        );
        let one = Findings { warnings: texts[..1].to_vec(), ..findings };
        assert!(warnings(&one)[0].contains("(exe used 14 % of one) (3 runs)"), "{:?}", warnings(&one));
    }

    #[test]
    fn outlook_is_in_time() {
        let mut findings =
            Findings { measured_ns: 20_000_000_000, blocks: 10, is_resumable: true, ..findings() };
        assert_eq!(outlook(&findings), None);
        findings.comparisons[1].more_blocks = Some(180);
        assert_eq!(
            outlook(&findings).unwrap(),
            "at the current variance, about 6 minutes more would settle the open comparison; a new run with --set \
             blocks.budget=380s --set blocks.max=190"
        );
        findings.comparisons[6].more_blocks = Some(8073);
        findings.comparisons[0].stop_reason = StopReason::Unfinished;
        assert_eq!(
            outlook(&findings).unwrap(),
            "at the current variance, about 6 minutes more would settle half of 2 open comparisons, 4 hours all of them; resume with: stacklab run --resume --out RECORD"
        );
        findings.record_name = Some("lan.stacklab".to_owned());
        assert!(outlook(&findings).unwrap().ends_with("stacklab run --resume --out lan.stacklab"));
        findings.comparisons[6].more_blocks = Some(80_730);
        assert!(outlook(&findings).unwrap().contains("2 open comparisons, more than a day all of them;"));
        findings.comparisons[1].more_blocks = Some(50_000);
        assert!(
            outlook(&findings)
                .unwrap()
                .starts_with("at the current variance, more than a day would settle half of 2")
        );
    }

    #[test]
    fn advice_is_by_what_was_measured() {
        let mut findings =
            Findings { measured_ns: 20_000_000_000, blocks: 10, is_resumable: true, ..findings() };
        findings.comparisons[1].more_blocks = Some(8400);
        assert_eq!(
            outlook(&findings).unwrap(),
            "at the current variance, the open comparison would need more than half an hour: measure again when this \
             machine and the path are quieter"
        );
        // What took hours may take as long again.
        findings.measured_ns = 10_000_000_000_000;
        findings.comparisons[1].more_blocks = Some(6);
        assert!(outlook(&findings).unwrap().ends_with("--set blocks.budget=267min --set blocks.max=16"));
        findings.comparisons[0].stop_reason = StopReason::Unfinished;
        findings.record_name = Some("my pair.stacklab".to_owned());
        let resumed = outlook(&findings).unwrap();
        assert!(resumed.ends_with("run --resume --out 'my pair.stacklab'"), "{resumed}");
        findings.is_resumable = false;
        let left_out = outlook(&findings).unwrap();
        assert!(left_out.ends_with("would settle the open comparison"), "{left_out}");
    }

    #[test]
    fn like_arms_are_said_by_label_and_by_order() {
        let metric = Metric::Throughput;
        let transport = Transport::Udp;
        let effect = Effect {
            scale: Scale::Ratio,
            pairs: 9,
            estimate: 0.997,
            error: 0.001,
            degrees_of_freedom: 8.0,
            interval90: Interval { low: 0.997, high: 0.997 },
            interval95: Interval { low: 0.997 - 0.002, high: 0.997 + 0.002 },
        };
        let findings = Findings {
            same_arm: vec![control(transport, 128, metric, 57.3, (1.001, 0.002))],
            arm_order: vec![ArmOrder { metric, transport, pairs: 9, effect, p: 0.01 }],
            ..findings()
        };
        let expected = [
            "A/A check, one arm against itself: throughput UDP +0.1 ± 0.2 %; 0 of 1 have p below 0.05, and one in \
             twenty is expected",
            "A/A check by order, the arm that is set up second against the first: throughput UDP -0.3 ± 0.2 %; 1 of 1 \
             have p below 0.05, and one in twenty is expected",
        ];
        assert_eq!(same_arm(&findings), expected);
        assert_eq!(same_arm(&Findings { comparisons: vec![], ..findings }), [""; 0]);
    }
}
