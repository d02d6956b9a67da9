//! Judges a finding by the runs.

use crate::replication::arms::{ComparedCells, parts};
use crate::replication::published::{PublishedPair, published_pairs};
use serde::Serialize;
use stacklab_analysis::{Paired, Runs, significance};
use stacklab_model::{Cell, Effect, Factor, Interval, Metric, Scale, Value};
use stacklab_reference::{Finding, FindingDirection, Reference, Sizes, Systems};
use stacklab_study::Study;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The outcome of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Outcome {
    /// The runs confirm the finding.
    #[serde(rename = "holds")]
    Holds,
    /// The runs contradict the finding.
    #[serde(rename = "does not hold")]
    DoesNotHold,
    /// The intervals are too wide, or there are no runs.
    #[serde(rename = "cannot tell")]
    CannotTell,
}

impl Outcome {
    /// The printed name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Outcome::Holds => "holds",
            Outcome::DoesNotHold => "does not hold",
            Outcome::CannotTell => "cannot tell",
        }
    }
}

/// A judged part of a finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct JudgedPart {
    /// Label of the part; empty if there is only one part.
    pub part: String,
    /// The outcome.
    pub outcome: Outcome,
    /// Arm a against arm b: `None` with fewer than two blocks.
    pub effect: Option<Effect>,
    /// The reason in a few words.
    pub because: String,
}

/// A judged finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Judged {
    /// Its name, such as `S1`.
    pub id: String,
    /// Location in the publication.
    pub location: String,
    /// The finding in words.
    pub statement: String,
    /// Its conditions.
    pub scope: String,
    /// The metric.
    pub metric: Metric,
    /// The outcome.
    pub outcome: Outcome,
    /// Why there is no answer, or how several parts were combined into one answer.
    pub because: String,
    /// What was judged instead of the study's subject; empty if nothing was replaced.
    pub instead: String,
    /// The parts that were judged separately.
    pub parts: Vec<JudgedPart>,
    /// The published figures.
    pub published: Vec<PublishedPair>,
}

/// Judges a finding by the runs of a study.
pub(super) fn judge(finding: &Finding, own: &Reference, study: &Study, runs: &Runs) -> Judged {
    let (outcome, because, judged, instead) = match parts(finding, &own.limits, study) {
        Err(reason) => (Outcome::CannotTell, reason, Vec::new(), String::new()),
        Ok(parts) => {
            let judged: Vec<_> = parts.iter().map(|part| judge_part(finding, part, study, runs)).collect();
            let (outcome, because) = together(&judged, finding.scope.sizes == Sizes::Most);
            (outcome, because, judged, instead(finding, own))
        }
    };
    Judged {
        id: finding.id.clone(),
        location: finding.location.clone(),
        statement: finding.statement.clone(),
        scope: finding.scope_text.clone(),
        metric: finding.metric,
        outcome,
        because,
        instead,
        parts: judged,
        published: published_pairs(finding, &own.figures),
    }
}

/// States what was judged instead of the finding's subject.
fn instead(finding: &Finding, own: &Reference) -> String {
    use stacklab_reference::LimitKind::{Router, System, Wifi};
    let system = match &finding.scope.systems {
        Systems::Named(system) => format!("on this kernel, which is not {system}"),
        Systems::All => "on this kernel alone, which is none of the study's systems".to_owned(),
        _ => "on this kernel, which is not the study's".to_owned(),
    };
    let has = |kind| own.limits.iter().any(|limit| limit.kind == kind);
    let mut words = if has(System) { vec![system] } else { Vec::new() };
    if has(Router) {
        words.push("all hosts on one kernel".to_owned());
    }
    if has(Wifi) {
        words.push("over simulated Wi-Fi, which is no radio".to_owned());
    }
    words.join(", ")
}

/// All parts must hold, or more than half of them if the study says "most".
fn together(parts: &[JudgedPart], most: bool) -> (Outcome, String) {
    if let [part] = parts {
        return (part.outcome, part.because.clone());
    }
    let count = |outcome| parts.iter().filter(|part| part.outcome == outcome).count();
    let (hold, fail) = (count(Outcome::Holds), count(Outcome::DoesNotHold));
    let outcome = if most {
        match (2 * hold > parts.len(), 2 * fail >= parts.len()) {
            (true, _) => Outcome::Holds,
            (false, true) => Outcome::DoesNotHold,
            (false, false) => Outcome::CannotTell,
        }
    } else if hold == parts.len() {
        Outcome::Holds
    } else if fail > 0 {
        Outcome::DoesNotHold
    } else {
        Outcome::CannotTell
    };
    let asked = if most { "more than half must hold" } else { "all must hold" };
    let unsure = parts.len() - hold - fail;
    (outcome, format!("{asked}: {hold} of {} do, {fail} do not, {unsure} cannot tell", parts.len()))
}

fn judge_part(finding: &Finding, part: &ComparedCells, study: &Study, runs: &Runs) -> JudgedPart {
    let metric = finding.metric;
    let scale = metric.scale();
    let (outcome, effect, because) = match Paired::of(scale, &blocks(part, metric, scale, runs)) {
        Err(reason) => (Outcome::CannotTell, None, missing(part, metric, runs).unwrap_or(reason)),
        Ok(paired) => {
            let effect = if is_interleaved(part, metric, runs) { paired.trimmed() } else { paired }.effect();
            let (mut outcome, mut because) =
                compare(finding.direction, &effect, margin(finding, part, study));
            if let (Outcome::Holds, Some(most)) = (outcome, finding.scope.within_points) {
                (outcome, because) = within(most, part, metric, runs);
            }
            (outcome, Some(effect), because)
        }
    };
    JudgedPart { part: part.label.clone(), outcome, effect, because }
}

/// Why no run of a part has a figure, if they say so.
fn missing(part: &ComparedCells, metric: Metric, runs: &Runs) -> Option<String> {
    let mut values = part.pairs.iter().flat_map(|(a, b)| [a, b]).flat_map(|cell| runs.of(cell, metric));
    let first = values.next()?.values.get(&metric)?;
    let Value::Missing(reason) = first else { return None };
    values.all(|run| run.values.get(&metric) == Some(first)).then(|| reason.clone())
}

/// Whether all runs of a part are arms of interleaved trials: as in every comparison, trials in which the machine did
/// something else then have no weight.
fn is_interleaved(part: &ComparedCells, metric: Metric, runs: &Runs) -> bool {
    let mut cells = part.pairs.iter().flat_map(|(a, b)| [a, b]);
    cells.all(|cell| runs.of(cell, metric).iter().all(|run| run.spec.slicing.is_some()))
}

/// Arm b and arm a in each block in which all cells of a part have a figure: the mean over the cells, geometric if
/// arms are compared by their ratio.
fn blocks(part: &ComparedCells, metric: Metric, scale: Scale, runs: &Runs) -> Vec<(f64, f64)> {
    let of = |cell: &Cell| -> BTreeMap<u32, f64> {
        let figure = |run: &&stacklab_model::RunRecord| {
            let figure = run.is_valid().then(|| run.values.get(&metric)?.measured())??;
            Some((run.trial.block, figure))
        };
        runs.of(cell, metric).iter().filter_map(figure).collect()
    };
    let side = |side: fn(&(Cell, Cell)) -> &Cell| part.pairs.iter().map(|pair| of(side(pair))).collect();
    let (a, b): (Vec<_>, Vec<_>) = (side(|pair| &pair.0), side(|pair| &pair.1));
    let mean = |cells: &[BTreeMap<u32, f64>], block: u32| -> Option<f64> {
        let figures: Option<Vec<f64>> = cells.iter().map(|cell| cell.get(&block).copied()).collect();
        let figures = figures?;
        let n = figures.len() as f64;
        Some(match scale {
            Scale::Difference => figures.iter().sum::<f64>() / n,
            // Zero has no logarithm and gives no ratio: the mean stays zero, and the pair is later refused.
            Scale::Ratio if figures.iter().any(|figure| *figure <= 0.0) => 0.0,
            Scale::Ratio => (figures.iter().map(|figure| figure.ln()).sum::<f64>() / n).exp(),
        })
    };
    let Some(first) = a.first() else { return Vec::new() };
    first.keys().filter_map(|block| Some((mean(&b, *block)?, mean(&a, *block)?))).collect()
}

/// The equivalence margin: that of the study's comparison of the same arms, else 2 %.
fn margin(finding: &Finding, part: &ComparedCells, study: &Study) -> f64 {
    let metric = finding.metric;
    let (a, b) = &part.pairs[0];
    let differs = |factor: Factor| a.level(factor) != b.level(factor);
    let asked = study
        .comparisons
        .iter()
        .find(|comparison| differs(comparison.factor) && comparison.metrics.contains(&metric));
    match metric.scale() {
        Scale::Ratio => asked.map_or(0.02, |comparison| comparison.margin),
        Scale::Difference => metric.difference_margin(),
    }
}

/// Applies the rule of every verdict ([`significance`]). A direction holds if the effect is significant in that
/// direction; it does not hold if the effect is significant in the opposite direction, or equivalent. Sameness holds
/// if the effect is equivalent; it does not hold if the effect is significant and not equivalent.
fn compare(direction: FindingDirection, effect: &Effect, margin: f64) -> (Outcome, String) {
    let found = significance(effect.scale, &effect.interval90, &effect.interval99, margin);
    let same = found.is_equivalent;
    let (above, below) = (found.side.is_some_and(Ordering::is_gt), found.side.is_some_and(Ordering::is_lt));
    let (claimed, opposite) = match direction {
        FindingDirection::Higher => (above, below),
        FindingDirection::Lower => (below, above),
        FindingDirection::Equal => (same, (above || below) && !same),
    };
    let slight = if same { ", by less than the margin" } else { "" };
    match (claimed, opposite, same) {
        (true, _, _) if direction == FindingDirection::Equal => {
            (Outcome::Holds, "the same within the margin".to_owned())
        }
        (true, _, _) => (Outcome::Holds, format!("the 99 % interval is on this side{slight}")),
        (false, true, _) if direction == FindingDirection::Equal => {
            (Outcome::DoesNotHold, "the 99 % interval leaves out no difference".to_owned())
        }
        (false, true, _) => (Outcome::DoesNotHold, format!("the 99 % interval is on the other side{slight}")),
        (false, false, true) => (Outcome::DoesNotHold, "the same within the margin".to_owned()),
        (false, false, false) => (Outcome::CannotTell, "the interval is too wide to tell".to_owned()),
    }
}

/// Whether the difference of the arms also stays within the study's limit, in the metric's unit.
fn within(most: f64, part: &ComparedCells, metric: Metric, runs: &Runs) -> (Outcome, String) {
    match Paired::of(Scale::Difference, &blocks(part, metric, Scale::Difference, runs)) {
        Err(reason) => (Outcome::CannotTell, reason),
        Ok(paired) => {
            let found = paired.interval(0.95);
            let unit = metric.unit().symbol();
            let text = format!("{:.2} to {:.2} {unit} apart (95 %), {most} allowed", found.low, found.high);
            let allowed = Interval { low: -most, high: most };
            if found.is_within(&allowed) {
                (Outcome::Holds, text)
            } else if found.low > most || found.high < -most {
                (Outcome::DoesNotHold, text)
            } else {
                (Outcome::CannotTell, text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FindingDirection::{Equal, Higher, Lower};
    use Outcome::{CannotTell, DoesNotHold, Holds};

    fn outcome(direction: FindingDirection, pairs: &[(f64, f64)]) -> Outcome {
        let effect = Paired::of(Scale::Ratio, pairs).unwrap().effect();
        compare(direction, &effect, 0.02).0
    }

    #[test]
    fn a_direction_is_judged_by_its_interval() {
        let more = [(100.0, 110.0), (100.0, 111.0), (100.0, 109.0), (100.0, 110.0)];
        let slightly = [(100.0, 101.0), (100.0, 101.1), (100.0, 100.9), (100.0, 101.0)];
        let same = [(100.0, 100.1), (100.0, 99.9), (100.0, 100.1), (100.0, 99.9)];
        let wide = [(100.0, 130.0), (100.0, 80.0), (100.0, 115.0), (100.0, 90.0)];
        let of = |pairs| [Higher, Lower, Equal].map(|direction| outcome(direction, pairs));
        assert_eq!(of(&more), [Holds, DoesNotHold, DoesNotHold]);
        assert_eq!(of(&slightly), [Holds, DoesNotHold, Holds]);
        assert_eq!(of(&same), [DoesNotHold, DoesNotHold, Holds]);
        assert_eq!(of(&wide), [CannotTell, CannotTell, CannotTell]);
    }

    #[test]
    fn all_parts_must_hold_or_most_of_them() {
        let parts = |outcomes: &[Outcome]| -> Vec<JudgedPart> {
            let part = |outcome: &Outcome| JudgedPart {
                part: String::new(),
                outcome: *outcome,
                effect: None,
                because: String::new(),
            };
            outcomes.iter().map(part).collect()
        };
        let all = |outcomes: &[Outcome]| together(&parts(outcomes), false).0;
        let most = |outcomes: &[Outcome]| together(&parts(outcomes), true).0;
        assert_eq!(all(&[Holds, Holds]), Holds);
        assert_eq!(all(&[Holds, CannotTell]), CannotTell);
        assert_eq!(all(&[Holds, CannotTell, DoesNotHold]), DoesNotHold);
        assert_eq!(most(&[Holds, Holds, DoesNotHold]), Holds);
        assert_eq!(most(&[Holds, DoesNotHold]), DoesNotHold);
        assert_eq!(most(&[Holds, CannotTell, CannotTell]), CannotTell);
    }
}
