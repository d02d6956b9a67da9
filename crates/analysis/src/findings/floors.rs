//! The difference of an arm from itself, by metric and transport.

use crate::comparison::paired::Paired;
use crate::comparison::verdict::verdict;
use crate::runs::{Runs, figure};
use stacklab_model::{Effect, Floor, Metric, Question, RunRecord, SELF_ARMS, Transport, Verdict};
use std::collections::BTreeMap;

/// The figures of both arms, by block.
type Blocks = BTreeMap<u32, [Option<f64>; 2]>;

/// The floors of an interleaved campaign; none where no arm was measured against itself. A metric's floor is of the
/// probe that its figures are of.
pub(super) fn floors(runs: &[RunRecord]) -> Vec<Floor> {
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
        let paired = Paired::of(metric.scale(), &pairs).ok()?.trimmed();
        Some(Floor { metric, transport, effect: paired.effect() })
    };
    by_block.into_iter().filter_map(of).collect()
}

/// The verdict on an effect, or on the reason why there is none. A difference that an arm has from itself is no arm's.
pub(super) fn verdict_above(question: &Question, effect: Result<&Effect, &str>, floors: &[Floor]) -> Verdict {
    match verdict(question, effect) {
        Verdict::Better(_) if effect.is_ok_and(|effect| hidden(question, effect, floors)) => {
            Verdict::Inconclusive
        }
        verdict => verdict,
    }
}

/// Whether an effect is smaller than what the method adds to it.
fn hidden(question: &Question, effect: &Effect, floors: &[Floor]) -> bool {
    let transports = [question.baseline.transport, question.candidate.transport];
    floors
        .iter()
        .filter(|floor| floor.metric == question.metric && transports.contains(&floor.transport))
        .any(|floor| floor.hides(effect))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, run};
    use stacklab_model::{Cell, Family, Probe, Value};

    #[test]
    fn a_floor_is_the_difference_of_two_arms_of_one_cell_and_hides_smaller_ones() {
        let arm = |number: usize| Cell { replica: SELF_ARMS[number].to_owned(), ..cell(Family::Ipv4, 128) };
        let runs: Vec<RunRecord> = [1.002, 0.999, 1.001, 1.0, 1.003]
            .iter()
            .zip(0..)
            .flat_map(|(ratio, block)| {
                [(0, 100.0), (1, 100.0 * ratio)]
                    .map(|(number, figure)| run(block, &arm(number), Metric::Throughput, figure))
            })
            .collect();
        let found = floors(&runs);
        let [floor] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (floor.metric, floor.transport, floor.effect.pairs),
            (Metric::Throughput, Transport::Udp, 5)
        );
        assert!((floor.effect.estimate - 1.001).abs() < 1e-6, "{floor:?}");
        let effect = |estimate| Effect { estimate, ..floor.effect.clone() };
        assert!(floor.hides(&effect(1.0005)) && floor.hides(&effect(0.9995)) && !floor.hides(&effect(0.99)));
        assert!(floors(&[run(0, &cell(Family::Ipv4, 128), Metric::Throughput, 1.0)]).is_empty());
    }

    #[test]
    fn where_a_paced_stream_measures_a_metric_its_floor_is_of_that_stream() {
        let arm = |number: usize| Cell { replica: SELF_ARMS[number].to_owned(), ..cell(Family::Ipv4, 128) };
        let paced = |run: &RunRecord| {
            let mut run = run.clone();
            (run.trial.probe, run.spec.probe.probe) = (Probe::Paced, Probe::Paced);
            run.values.insert(Metric::Jitter, Value::Measured(1.0));
            run
        };
        let mut runs: Vec<RunRecord> = (0..4)
            .flat_map(|block| {
                [(0, 5.0), (1, 9.0)].map(|(number, figure)| run(block, &arm(number), Metric::Jitter, figure))
            })
            .collect();
        // The flood's come last.
        runs.splice(0..0, runs.iter().map(paced).collect::<Vec<_>>());
        let found = floors(&runs);
        assert_eq!((found.len(), found[0].metric, found[0].effect.estimate), (1, Metric::Jitter, 1.0));
    }
}
