//! The A/A check: two arms of one cell, each with its own sockets. They differ by chance alone if the method is sound.

use crate::comparison::distance::{back, to_distance};
use crate::comparison::paired::Paired;
use crate::runs::{Runs, figure};
use crate::statistics::mean;
use stacklab_model::{
    ArmOrder, Cell, Factor, Metric, Question, RunRecord, SELF_ARMS, SameArm, Scale, Transport,
};
use std::collections::{BTreeMap, BTreeSet};

/// The figures of both arms, by block.
type Blocks = BTreeMap<u32, [Option<f64>; 2]>;
/// Figures of first and second arms, by block.
type Ordered = BTreeMap<u32, Vec<[f64; 2]>>;

/// The checks of an interleaved campaign, by metric and transport; none where no arm was measured against itself. Their
/// labels are exchangeable, so of many checks one in twenty has p < 0.05. A check is not a threshold for comparisons.
pub(super) fn same_arm(runs: &[RunRecord]) -> Vec<SameArm> {
    let index = Runs::new(runs);
    let mut by_block: BTreeMap<(Metric, Transport), Blocks> = BTreeMap::new();
    for run in runs {
        let cell = &run.trial.cell;
        let Some(arm) = SELF_ARMS.iter().position(|label| *label == cell.replica) else { continue };
        let is_of_its_probe =
            |metric| index.of(cell, metric).first().is_some_and(|of| of.trial.probe == run.trial.probe);
        for metric in run.values.keys().copied().filter(|metric| is_of_its_probe(*metric)) {
            let blocks = by_block.entry((metric, cell.transport)).or_default();
            blocks.entry(run.trial.block).or_default()[arm] = figure(run, metric);
        }
    }
    let of = |((metric, transport), blocks): ((Metric, Transport), Blocks)| {
        let pairs: Vec<(f64, f64)> =
            blocks.values().filter_map(|[one, other]| Some(((*one)?, (*other)?))).collect();
        check(metric, transport, metric.scale(), &pairs)
    };
    by_block.into_iter().filter_map(of).collect()
}

pub(super) fn check(
    metric: Metric,
    transport: Transport,
    scale: Scale,
    pairs: &[(f64, f64)],
) -> Option<SameArm> {
    let paired = Paired::of(scale, pairs).ok()?;
    Some(SameArm { metric, transport, effect: paired.effect(), p: paired.moments().student().p() })
}

/// What the order of two arms of one cell makes, by metric and transport: of the arms of the A/A check, and of replicas
/// that are compared and interleaved. The pairs of a block were measured side by side, so their mean is the unit.
pub(super) fn arm_order(runs: &[RunRecord], questions: &[Question]) -> Vec<ArmOrder> {
    let index = Runs::new(runs);
    let mut in_order: BTreeMap<(Metric, Transport), Ordered> = BTreeMap::new();
    for ([one, other], metric) in pairs_of_one_cell(runs, questions) {
        let other: BTreeMap<u32, &RunRecord> =
            index.of(&other, metric).iter().map(|run| (run.trial.block, *run)).collect();
        for run in index.of(&one, metric) {
            let block = run.trial.block;
            let Some(other) = other.get(&block) else { continue };
            let mut pair = [*run, *other];
            pair.sort_by_key(|run| run.trial.position);
            if let [Some(first), Some(second)] = pair.map(|run| figure(run, metric)) {
                let blocks = in_order.entry((metric, one.transport)).or_default();
                blocks.entry(block).or_default().push([first, second]);
            }
        }
    }
    let of = |((metric, transport), blocks): ((Metric, Transport), Ordered)| {
        let means: Vec<(f64, f64)> =
            blocks.values().filter_map(|pairs| mean_pair(metric.scale(), pairs)).collect();
        let SameArm { effect, p, .. } = check(metric, transport, metric.scale(), &means)?;
        Some(ArmOrder { metric, transport, pairs: blocks.values().map(Vec::len).sum(), effect, p })
    };
    in_order.into_iter().filter_map(of).collect()
}

/// Two arms of one cell, with a metric that was measured of both.
type OneCell = ([Cell; 2], Metric);

/// The arms of the A/A check and the interleaved replicas that are compared.
fn pairs_of_one_cell(runs: &[RunRecord], questions: &[Question]) -> Vec<OneCell> {
    let mut all: Vec<OneCell> = Vec::new();
    let of_check = runs.iter().filter(|run| run.trial.cell.replica == SELF_ARMS[0]);
    let mut seen: BTreeSet<(Metric, Transport)> = BTreeSet::new();
    for run in of_check {
        let one = &run.trial.cell;
        let other = Cell { replica: SELF_ARMS[1].to_owned(), ..one.clone() };
        for metric in run.values.keys().filter(|metric| seen.insert((**metric, one.transport))) {
            all.push(([one.clone(), other.clone()], *metric));
        }
    }
    let interleaved: BTreeSet<&str> = runs
        .iter()
        .filter(|run| !run.spec.schedule.is_alone())
        .map(|run| run.trial.cell.replica.as_str())
        .collect();
    let are_interleaved = |question: &&Question| {
        let arms = [&question.baseline, &question.candidate];
        question.factor == Factor::Replica && arms.iter().all(|arm| interleaved.contains(&*arm.replica))
    };
    let of_question =
        |question: &Question| ([question.baseline.clone(), question.candidate.clone()], question.metric);
    all.extend(questions.iter().filter(are_interleaved).map(of_question));
    all
}

/// The mean of pairs, of their logarithms on the ratio scale. Pairs that have no ratio are left out, which favours
/// neither of two like arms.
fn mean_pair(scale: Scale, pairs: &[[f64; 2]]) -> Option<(f64, f64)> {
    let has_ratio = |pair: &&[f64; 2]| scale == Scale::Difference || pair.iter().all(|figure| *figure > 0.0);
    let of = |arm: usize| {
        let distances = pairs.iter().filter(has_ratio).map(|pair| to_distance(scale, pair[arm]));
        Some(back(scale, mean(&distances.collect::<Vec<f64>>())?))
    };
    Some((of(0)?, of(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, run};
    use stacklab_model::{ArmSchedule, Family};

    fn arm(number: usize) -> Cell {
        Cell { replica: SELF_ARMS[number].to_owned(), ..cell(Family::Ipv4, 128) }
    }

    #[test]
    fn two_arms_of_one_cell_are_checked() {
        let runs: Vec<RunRecord> = [1.002, 0.999, 1.001, 1.0, 0.998]
            .iter()
            .zip(0..)
            .flat_map(|(ratio, block)| {
                [(0, 100.0), (1, 100.0 * ratio)]
                    .map(|(number, figure)| run(block, &arm(number), Metric::Throughput, figure))
            })
            .collect();
        let found = same_arm(&runs);
        let [check] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (check.metric, check.transport, check.effect.pairs),
            (Metric::Throughput, Transport::Udp, 5)
        );
        assert!(check.p > 0.5, "{check:?}");
        // Exchanging the labels changes the sign alone.
        let swapped: Vec<RunRecord> = runs
            .iter()
            .map(|run| {
                let mut run = run.clone();
                let own = SELF_ARMS.iter().position(|label| *label == run.trial.cell.replica).unwrap();
                run.trial.cell.replica = SELF_ARMS[1 - own].to_owned();
                run
            })
            .collect();
        let back = same_arm(&swapped).remove(0);
        assert!((back.p - check.p).abs() < 1e-12);
        assert!((back.effect.estimate * check.effect.estimate - 1.0).abs() < 1e-12);
        assert!(same_arm(&[run(0, &cell(Family::Ipv4, 128), Metric::Throughput, 1.0)]).is_empty());
    }

    /// Two arms of a cell in five blocks, the second of which by position has a figure that is larger by 1 %, with the
    /// labels in either order.
    fn in_order(one: &Cell, other: &Cell) -> Vec<RunRecord> {
        let of = |(block, noise): (u32, f64)| {
            let mut arms = [one, other];
            if block % 2 == 0 {
                arms.reverse();
            }
            [(0, 1.0), (1, 1.01 * noise)].map(|(position, times)| {
                let mut run = run(block, arms[position as usize], Metric::Throughput, 100.0 * times);
                run.trial.position = 10 * block + position;
                run.spec.schedule = ArmSchedule::TokenPassing(None);
                run
            })
        };
        (0..).zip([1.0001, 0.9999, 1.0, 1.0002, 0.9998]).flat_map(of).collect()
    }

    #[test]
    fn second_arm_is_compared_with_the_first() {
        let found = arm_order(&in_order(&arm(0), &arm(1)), &[]);
        let [order] = &found[..] else { panic!("{found:?}") };
        assert_eq!((order.metric, order.transport, order.pairs), (Metric::Throughput, Transport::Udp, 5));
        assert!((order.effect.estimate - 1.01).abs() < 1e-6 && order.p < 0.001, "{order:?}");
        // The labels do not matter.
        let swapped = arm_order(&in_order(&arm(1), &arm(0)), &[]);
        assert_eq!(swapped, found);
    }

    #[test]
    fn pairs_of_a_block_count_as_one() {
        let replica = |label: &str, size| Cell { replica: label.to_owned(), ..cell(Family::Ipv4, size) };
        let (mut runs, mut questions) = (Vec::new(), Vec::new());
        for size in [128, 256, 512] {
            let (baseline, candidate) = (replica("a", size), replica("b", size));
            runs.extend(in_order(&baseline, &candidate));
            let metric = Metric::Throughput;
            questions.push(Question { factor: Factor::Replica, metric, baseline, candidate, margin: 0.01 });
        }
        let found = arm_order(&runs, &questions);
        let [order] = &found[..] else { panic!("{found:?}") };
        assert_eq!((order.pairs, order.effect.pairs), (15, 5));
        // Replicas that were measured one after the other are not meant.
        runs.iter_mut().for_each(|run| run.spec.schedule = ArmSchedule::Alone);
        assert_eq!(arm_order(&runs, &questions), []);
    }
}
