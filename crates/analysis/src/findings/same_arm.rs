//! The A/A check: two arms of one cell, each with its own sockets. They differ by chance alone if the method is sound.

use crate::comparison::paired::Paired;
use crate::runs::{Runs, figure};
use crate::statistics::two_sided;
use stacklab_model::{Metric, RunRecord, SELF_ARMS, SameArm, Transport};
use std::collections::BTreeMap;

/// The figures of both arms, by block.
type Blocks = BTreeMap<u32, [Option<f64>; 2]>;

/// The checks of an interleaved campaign, by metric and transport; none where no arm was measured against itself. Their
/// labels are exchangeable, so that a check is no threshold for other comparisons: of many, one in twenty has p < 0.05.
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
        let paired = Paired::of(metric.scale(), &pairs).ok()?;
        let moments = paired.moments();
        let p = two_sided(moments.mean, moments.error(), (moments.n - 1) as f64);
        Some(SameArm { metric, transport, effect: paired.effect(), p })
    };
    by_block.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, run};
    use stacklab_model::{Cell, Family};

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
}
