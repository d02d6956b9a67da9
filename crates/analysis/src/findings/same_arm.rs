//! The A/A check: two arms of one cell, each with its own sockets. They differ by chance alone if the method is sound.

use crate::comparison::{Paired, back};
use crate::runs::{Runs, estimate, figure};
use crate::statistics::{Moments, mean};
use stacklab_model::{
    ArmOrder, Cell, Control, Factor, Metric, Probe, Question, Role, RunRecord, SELF_ARMS, SameArm, Scale,
    Slice, Transport, Trial,
};
use std::collections::{BTreeMap, BTreeSet};

type ArmFigures = BTreeMap<u32, [Option<f64>; 2]>;
type Ordered = BTreeMap<u32, Vec<[f64; 2]>>;

/// The checks of an interleaved campaign, by metric and transport; none where no arm was measured against itself. Their
/// labels are exchangeable, so of many checks one in twenty has p < 0.05. A check is not a threshold for comparisons.
pub(super) fn same_arm(runs: &[RunRecord]) -> Vec<Control> {
    let index = Runs::new(runs);
    let mut by_block: BTreeMap<(Metric, Transport), (&Cell, ArmFigures)> = BTreeMap::new();
    for run in runs {
        let cell = &run.trial.cell;
        let Some(arm) = SELF_ARMS.iter().position(|label| *label == cell.replica) else { continue };
        for metric in run.values.keys().copied() {
            let first = index.of(cell, metric).first();
            let has_no_figure = first.is_none_or(|first| first.trial.probe != run.trial.probe);
            // Arms of one testbed have one figure of its tables.
            if has_no_figure || metric.table().is_some() {
                continue;
            }
            let (_, blocks) =
                by_block.entry((metric, cell.transport)).or_insert_with(|| (cell, ArmFigures::new()));
            blocks.entry(run.trial.block).or_default()[arm] = figure(run, metric);
        }
    }
    let mut controls = Vec::new();
    for ((metric, transport), (cell, blocks)) in by_block {
        let pairs: Vec<(f64, f64)> =
            blocks.values().filter_map(|[one, other]| Some(((*one)?, (*other)?))).collect();
        let Ok(paired) = Paired::of(metric.scale(), &pairs) else { continue };
        let estimates = SELF_ARMS.map(|label| {
            let arm = Cell { replica: label.to_owned(), ..cell.clone() };
            estimate(index.of(&arm, metric), metric)
        });
        controls.push(Control {
            metric,
            transport,
            cell: Cell { replica: String::new(), ..cell.clone() },
            estimates,
            fitted: paired.arms(),
            effect: paired.effect().clip_to_possible(metric),
            p: paired.moments.student().p(),
        });
    }
    controls
}

fn check(metric: Metric, transport: Transport, scale: Scale, pairs: &[(f64, f64)]) -> Option<SameArm> {
    let paired = Paired::of(scale, pairs).ok()?;
    let effect = paired.effect().clip_to_possible(metric);
    Some(SameArm { metric, transport, effect, p: paired.moments.student().p() })
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
    let mut orders = Vec::new();
    for ((metric, transport), blocks) in in_order {
        let mut means = Vec::new();
        for pairs in blocks.values() {
            means.extend(mean_pair(metric.scale(), pairs));
        }
        if let Some(SameArm { effect, p, .. }) = check(metric, transport, metric.scale(), &means) {
            let pairs = blocks.values().map(Vec::len).sum();
            orders.push(ArmOrder { metric, transport, pairs, effect, p });
        }
    }
    orders
}

/// The arms of the A/A check and the interleaved replicas that are compared, with a metric of both.
fn pairs_of_one_cell(runs: &[RunRecord], questions: &[Question]) -> Vec<([Cell; 2], Metric)> {
    let mut all = Vec::new();
    let of_check = runs.iter().filter(|run| run.trial.cell.replica == SELF_ARMS[0]);
    let mut seen: BTreeSet<(Metric, Transport)> = BTreeSet::new();
    for run in of_check {
        let one = &run.trial.cell;
        let other = Cell { replica: SELF_ARMS[1].to_owned(), ..one.clone() };
        for metric in run.values.keys().filter(|metric| seen.insert((**metric, one.transport))) {
            all.push(([one.clone(), other.clone()], *metric));
        }
    }
    let interleaved = runs.iter().filter(|run| !run.spec.schedule.is_alone());
    let interleaved: BTreeSet<&str> = interleaved.map(|run| run.trial.cell.replica.as_str()).collect();
    for question in questions.iter().filter(|question| question.factor == Factor::Replica) {
        if question.cells().iter().all(|arm| interleaved.contains(&*arm.replica)) {
            all.push((question.cells().map(Cell::clone), question.metric));
        }
    }
    all
}

/// The mean of pairs, of their logarithms on the ratio scale. Pairs that have no ratio are left out, which favours
/// neither of two like arms.
fn mean_pair(scale: Scale, pairs: &[[f64; 2]]) -> Option<(f64, f64)> {
    let mut first = Vec::new();
    let mut second = Vec::new();
    for pair in pairs {
        if scale == Scale::Difference || pair.iter().all(|figure| *figure > 0.0) {
            first.push(scale.to_distance(pair[0]));
            second.push(scale.to_distance(pair[1]));
        }
    }
    Some((back(scale, mean(&first)?), back(scale, mean(&second)?)))
}

const METRICS: [Metric; 3] = [Metric::Throughput, Metric::SenderCpuPerMessage, Metric::Rtt];

/// By metric and transport, of the A/A check's trials: the figure of slices that follow their own arm's, against the
/// other arm's slice of the same round. The arms are of one cell, so nothing else differs. A trial is the unit.
pub(super) fn carry_over(runs: &[RunRecord]) -> Vec<SameArm> {
    let mut trials: BTreeMap<(u32, Probe, Transport), [Option<&RunRecord>; 2]> = BTreeMap::new();
    for run in runs {
        let Trial { block, probe, .. } = &run.trial;
        let cell = &run.trial.cell;
        let Some(arm) = SELF_ARMS.iter().position(|label| *label == cell.replica) else { continue };
        trials.entry((*block, *probe, cell.transport)).or_default()[arm] = Some(run);
    }
    let mut pairs: BTreeMap<(Metric, Transport), Vec<(f64, f64)>> = BTreeMap::new();
    for ((_, probe, transport), arms) in trials {
        let [Some(one), Some(other)] = arms else { continue };
        for metric in METRICS.into_iter().filter(|metric| metric.probe() == probe) {
            if let Some(ratio) = of_trial([one, other], metric) {
                pairs.entry((metric, transport)).or_default().push((1.0, ratio));
            }
        }
    }
    let checks = pairs.into_iter();
    checks.filter_map(|((metric, transport), pairs)| check(metric, transport, Scale::Ratio, &pairs)).collect()
}

/// The ratio of own to other over the rounds of a trial, by their trimmed mean.
fn of_trial(arms: [&RunRecord; 2], metric: Metric) -> Option<f64> {
    let rounds = arms.map(|run| slices(run, Role::Sender).len());
    let mut ratios = Vec::new();
    for round in 1..rounds[0].min(rounds[1]) {
        let first = find_first(arms, round);
        if first == find_first(arms, round - 1) {
            continue;
        }
        // The arm that was second in the round before is the first in this one.
        let own = read_figure(arms[first], metric, round);
        let rest = read_figure(arms[1 - first], metric, round);
        if let Some(own) = own
            && let Some(rest) = rest
            && own > 0.0
            && rest > 0.0
        {
            ratios.push((own / rest).ln());
        }
    }
    Some(Moments::of_trimmed_mean(&ratios)?.mean.exp())
}

/// The number of the arm that was first in a round.
fn find_first(arms: [&RunRecord; 2], round: usize) -> usize {
    let [one, other] = arms.map(|run| slices(run, Role::Sender)[round].first_ns);
    if one < other { 0 } else { 1 }
}

fn read_figure(run: &RunRecord, metric: Metric, round: usize) -> Option<f64> {
    match metric {
        Metric::Throughput => slices(run, Role::Receiver).get(round)?.arrival_rate(run.spec.bucket),
        Metric::SenderCpuPerMessage => slices(run, Role::Sender)[round].cpu_per_message(),
        _ => slices(run, Role::Sender)[round].delay_ns.map(|ns| ns as f64),
    }
}

fn slices(run: &RunRecord, role: Role) -> &[Slice] {
    run.host_reports.iter().find(|report| report.role == role).map_or(&[], |report| &report.slices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, empty_report, run};
    use stacklab_model::{ArmSchedule, Family, HostReport};

    fn arm(number: usize) -> Cell {
        label_cell(SELF_ARMS[number], 128)
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
        assert_eq!(check.cell, cell(Family::Ipv4, 128), "without the labels of its arms");
        let [one, other] = &check.estimates;
        assert_eq!((one.mean, one.n, other.n), (Some(100.0), 5, 5));
        assert!((other.mean.unwrap() - 100.0).abs() < 1e-9, "{other:?}");
        assert!((check.fitted[1] / check.fitted[0] - check.effect.estimate).abs() < 1e-12, "{check:?}");
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
        let mut runs = Vec::new();
        for (block, noise) in (0..).zip([1.0001, 0.9999, 1.0, 1.0002, 0.9998]) {
            let mut arms = [one, other];
            if block % 2 == 0 {
                arms.reverse();
            }
            for (position, times) in [(0, 1.0), (1, 1.01 * noise)] {
                let mut run = run(block, arms[position as usize], Metric::Throughput, 100.0 * times);
                run.trial.position = 10 * block + position;
                run.spec.schedule = ArmSchedule::TokenPassing(None);
                runs.push(run);
            }
        }
        runs
    }

    fn label_cell(label: &str, size: u32) -> Cell {
        Cell { replica: label.to_owned(), ..cell(Family::Ipv4, size) }
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
        let mut runs = Vec::new();
        let mut questions = Vec::new();
        for size in [128, 256, 512] {
            let baseline = label_cell("a", size);
            let candidate = label_cell("b", size);
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

    /// An arm's report: slices that begin at these times, each with 100 messages in this many nanoseconds.
    fn report(role: Role, slices: &[(u64, u64)]) -> HostReport {
        let slices = (0..).zip(slices).map(|(round, (first_ns, took))| Slice {
            round,
            messages: 101,
            at_first: 1,
            first_ns: *first_ns,
            last_ns: first_ns + took,
            ..Slice::default()
        });
        HostReport { slices: slices.collect(), ..empty_report(role) }
    }

    #[test]
    fn slices_after_own_arm_are_compared_with_the_others() {
        let mut runs = Vec::new();
        for block in 0..5 {
            // One, other; other, one; one, other; ..: from the second round on, the first slice follows its own
            // arm's, and takes 5 % longer.
            let mut of = [Vec::new(), Vec::new()];
            for round in 0..8_u64 {
                let first = (round % 2) as usize;
                of[first].push((round * 1000, if round > 0 { 105 } else { 100 }));
                of[1 - first].push((round * 1000 + 500, 100));
            }
            for (number, slices) in of.iter().enumerate() {
                let mut arm = run(block, &arm(number), Metric::Throughput, 1.0);
                arm.host_reports = [Role::Sender, Role::Receiver].map(|role| report(role, slices)).to_vec();
                runs.push(arm);
            }
        }
        let found = carry_over(&runs);
        let [check] = &found[..] else { panic!("{found:?}") };
        assert_eq!((check.metric, check.effect.pairs), (Metric::Throughput, 5));
        assert!((check.effect.estimate - 1.0 / 1.05).abs() < 1e-9 && check.p == 0.0, "{check:?}");
        runs.iter_mut().for_each(|run| run.host_reports.clear());
        assert_eq!(carry_over(&runs), []);
    }
}
