//! Notes below the figures: cautions, invalid runs, warnings.

use crate::findings::heading::count;
use crate::rendering::document::Block;
use crate::rendering::numbers::{DisplayUnit, fixed, signed};
use stacklab_model::{Effect, Findings, SameArm, StopReason, Warning};
use std::collections::BTreeMap;

/// Maximum number of listed kinds of invalid runs, warnings and the like; the rest is counted.
const LISTED: usize = 10;

/// Comparisons cut short, the A/A check, headers that explain nothing, invalid runs, warnings.
pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let points = points(findings);
    if points.is_empty() { vec![] } else { vec![Block::Heading("Notes".to_owned()), Block::List(points)] }
}

/// The same as sentences.
pub(crate) fn points(findings: &Findings) -> Vec<String> {
    let mut points = stop_reasons(findings);
    points.extend(outlook(findings));
    points.extend(same_arm(findings));
    points.extend(headers(findings));
    points.extend(listed(&findings.invalid_runs, |(n, reason)| {
        format!("{} not counted: {reason}", count(*n, "invalid run"))
    }));
    points.extend(warnings(findings));
    points
}

fn stop_reasons(findings: &Findings) -> Vec<String> {
    let total = findings.comparisons.len();
    let why = [
        (StopReason::Cap, "at the most blocks allowed"),
        (StopReason::Budget, "when the time allowed was used up"),
        (StopReason::Unfinished, "because the campaign ended before (interrupted, or still running)"),
    ];
    let stopped = |stop_reason: StopReason| {
        findings.comparisons.iter().filter(|c| c.stop_reason == stop_reason).count()
    };
    let sentence = |(stop_reason, why)| match stopped(stop_reason) {
        0 => None,
        n => {
            Some(format!("{n} of {} stopped {why}, before a verdict was settled", count(total, "comparison")))
        }
    };
    why.into_iter().filter_map(sentence).collect()
}

/// How many more blocks would settle what is open.
fn outlook(findings: &Findings) -> Option<String> {
    let mut more: Vec<u32> =
        findings.comparisons.iter().filter_map(|comparison| comparison.more_blocks).collect();
    more.sort_unstable();
    let (half, all) = (*more.get((more.len().max(1) - 1) / 2)?, *more.last()?);
    let what = match more.len() {
        1 => "the open comparison".to_owned(),
        _ if half == all => format!("{} open comparisons", more.len()),
        n => format!("half of {n} open comparisons, {all} all of them"),
    };
    Some(format!(
        "at the current variance, about {half} more blocks would settle {what} (--set runs.max, runs.budget)"
    ))
}

/// The A/A check: an arm against itself in each compared metric, and how often its p is below 5 %.
fn same_arm(findings: &Findings) -> Option<String> {
    let asked = |check: &&SameArm| {
        findings.comparisons.iter().any(|comparison| comparison.question.metric == check.metric)
    };
    let checks: Vec<&SameArm> = findings.same_arm.iter().filter(asked).collect();
    let said: Vec<String> = checks
        .iter()
        .map(|check| {
            let unit = DisplayUnit::of(check.metric);
            let Effect { scale, estimate, interval95, .. } = &check.effect;
            let [estimate, low, high] =
                [*estimate, interval95.low, interval95.high].map(|figure| unit.difference(*scale, figure));
            let half = (high - low) / 2.0;
            let decimals = if half < 0.1 { 2 } else { 1 };
            format!(
                "{} {} {} ± {} {}",
                check.metric,
                check.transport,
                signed(estimate, decimals),
                fixed(half, decimals),
                unit.difference_unit
            )
        })
        .collect();
    let low = checks.iter().filter(|check| check.p < 0.05).count();
    (!said.is_empty()).then(|| {
        format!(
            "A/A check, one arm against itself: {}; {low} of {} have p below 0.05, and one in twenty is expected",
            said.join(", "),
            said.len()
        )
    })
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
    listed(&reasons, |(because, n)| format!("{because} ({})", count(*n, "comparison")))
}

/// One point for each kind of warning, with its most frequent text.
fn warnings(findings: &Findings) -> Vec<String> {
    let mut kinds: Vec<(usize, usize, &Warning)> = Vec::new();
    for (n, warning) in &findings.warnings {
        let same = |known: &Warning| (&known.code, &known.advice) == (&warning.code, &warning.advice);
        match kinds.iter_mut().find(|(_, _, known)| same(known)) {
            Some((runs, texts, _)) => (*runs, *texts) = (*runs + n, *texts + 1),
            None => kinds.push((*n, 1, warning)),
        }
    }
    listed(&kinds, |(runs, texts, warning)| {
        let alike = if *texts > 1 { " and the like" } else { "" };
        let said = count(*runs, if *texts > 1 { "time" } else { "run" });
        format!("warning `{}`: {}{alike} ({said}); {}", warning.code, warning.text, warning.advice)
    })
}

fn listed<T>(items: &[T], write: impl Fn(&T) -> String) -> Vec<String> {
    let mut points: Vec<String> = items.iter().take(LISTED).map(write).collect();
    if items.len() > LISTED {
        points.push(format!("{} more of this kind; the JSON report has them all", items.len() - LISTED));
    }
    points
}
