//! What the arms of a finding gave in each block.

use crate::replication::arms::ComparedCells;
use stacklab_analysis::{Blocks, Paired, Runs, TwoArms, counts_events};
use stacklab_model::{ArmFigure, Cell, Factor, Metric, Scale, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The pairs of a part, arm a against arm b; or why it has no verdict.
pub(super) fn pair_part(
    part: &ComparedCells,
    metric: Metric,
    scale: Scale,
    runs: &Runs,
) -> Result<Paired, String> {
    let names = level_names(part);
    let arms = TwoArms {
        names: [&names[0], &names[1]],
        scale,
        better: metric.better(),
        counts_events: counts_events(metric),
        blocks: "blocks",
    };
    arms.pair(&add_blocks(part, metric, scale, runs))
}

/// The levels of arm b and arm a of the factor in which they differ.
fn level_names(part: &ComparedCells) -> [String; 2] {
    let Some((a, b)) = part.pairs.first() else { return Default::default() };
    let differing = Factor::ALL.iter().find(|factor| a.level(**factor) != b.level(**factor));
    let factor = differing.copied().unwrap_or(Factor::Family);
    [b, a].map(|cell| cell.level(factor))
}

/// Why no run of a part has a figure, if they say so.
pub(super) fn missing(part: &ComparedCells, metric: Metric, runs: &Runs) -> Option<String> {
    let mut values = part.pairs.iter().flat_map(|(a, b)| [a, b]).flat_map(|cell| runs.of(cell, metric));
    let first = values.next()?.values.get(&metric)?;
    let Value::Missing(reason) = first else { return None };
    values.all(|run| run.values.get(&metric) == Some(first)).then(|| reason.clone())
}

/// Arm b and arm a in each block.
fn add_blocks(part: &ComparedCells, metric: Metric, scale: Scale, runs: &Runs) -> Blocks {
    let mut baseline = Vec::new();
    let mut candidate = Vec::new();
    for (a, b) in &part.pairs {
        baseline.push(figures_by_block(b, metric, runs));
        candidate.push(figures_by_block(a, metric, runs));
    }
    let numbers: BTreeSet<u32> =
        baseline.iter().chain(&candidate).flat_map(BTreeMap::keys).copied().collect();
    let mut blocks = Blocks::default();
    for block in numbers {
        blocks.add(&[&baseline, &candidate].map(|cells| arm_figure(cells, block, scale)));
    }
    blocks
}

/// The figure of each block in which a cell was run; `None` if the run is invalid or has none.
fn figures_by_block(cell: &Cell, metric: Metric, runs: &Runs) -> BTreeMap<u32, Option<f64>> {
    let mut figures = BTreeMap::new();
    for run in runs.of(cell, metric) {
        let figure = run.values.get(&metric).and_then(Value::measured).filter(|figure| figure.is_finite());
        figures.insert(run.trial.block, figure.filter(|_| run.is_valid()));
    }
    figures
}

/// The mean over the cells of an arm, geometric if arms are compared by their ratio. The arm has lost a block in
/// which a cell has no figure; it was not run if a cell was not.
fn arm_figure(cells: &[BTreeMap<u32, Option<f64>>], block: u32, scale: Scale) -> Option<ArmFigure> {
    let mut figures = Vec::new();
    for cell in cells {
        match cell.get(&block) {
            Some(Some(figure)) => figures.push(*figure),
            Some(None) => return Some(ArmFigure::Absent { absent: "no figure".to_owned(), valid: true }),
            None => {}
        }
    }
    if figures.len() < cells.len() {
        return None;
    }
    let n = figures.len() as f64;
    Some(ArmFigure::Measured(match scale {
        Scale::Difference => figures.iter().sum::<f64>() / n,
        // Zero has no logarithm and gives no ratio: the mean stays zero, and the pair is later refused.
        Scale::Ratio if figures.iter().any(|figure| *figure <= 0.0) => 0.0,
        Scale::Ratio => (figures.iter().map(|figure| figure.ln()).sum::<f64>() / n).exp(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{Family, RunRecord, RunStatus, SizeOf, Transport, Trial};

    const METRIC: Metric = Metric::Rtt;
    const BLOCKS: u32 = 20;

    fn cell(family: Family, size: u32) -> Cell {
        Cell::new(family, Transport::Udp, SizeOf::Payload, size)
    }

    /// IPv6 against IPv4, of two sizes together.
    fn part() -> ComparedCells {
        let pairs = [128, 1024].map(|size| (cell(Family::Ipv6, size), cell(Family::Ipv4, size)));
        ComparedCells { label: String::new(), pairs: pairs.to_vec() }
    }

    fn run(block: u32, cell: &Cell, value: Value) -> RunRecord {
        let trial = Trial { block, position: 0, cell: cell.clone(), probe: METRIC.probe() };
        RunRecord::with_value(trial, METRIC, value)
    }

    /// Runs in which IPv6 has 0.8 times the round trips, and has none of 1024 B in the first blocks.
    fn runs(lost: u32) -> Vec<RunRecord> {
        let mut runs = Vec::new();
        for block in 0..BLOCKS {
            let noise = 1.0 + f64::from(block % 5) / 1000.0;
            for (six, four) in part().pairs {
                runs.push(run(block, &four, Value::Measured(10.0)));
                let has_none = block < lost && six.size == 1024;
                let value = Value::Measured(8.0 * noise);
                runs.push(run(block, &six, if has_none { Value::Missing("too late".into()) } else { value }));
            }
        }
        runs
    }

    fn pair_runs(records: &[RunRecord]) -> Result<Paired, String> {
        pair_part(&part(), METRIC, Scale::Ratio, &Runs::new(records))
    }

    #[test]
    fn arm_that_fails_is_not_the_faster_one() {
        let reason = pair_runs(&runs(3)).unwrap_err();
        assert!(reason.starts_with("ipv6 has no figure in 3 of 20 blocks"), "{reason}");
        // Two of twenty count as the worst ones, and are cut off.
        let found = pair_runs(&runs(2)).unwrap();
        assert_eq!(found.pairs(), BLOCKS as usize);
        assert!((found.estimate() - 0.8).abs() < 0.005, "{}", found.estimate());
        assert!(found.estimate() > pair_runs(&runs(0)).unwrap().estimate());
    }

    #[test]
    fn invalid_run_is_a_lost_block() {
        let mut records = runs(0);
        for record in
            records.iter_mut().filter(|run| run.trial.block < 3 && run.trial.cell.family == Family::Ipv4)
        {
            record.status = RunStatus::Invalid(vec!["wrong family".to_owned()]);
        }
        let reason = pair_runs(&records).unwrap_err();
        assert!(reason.starts_with("ipv4 has no figure in 3 of 20 blocks"), "{reason}");
    }

    #[test]
    fn arm_that_was_not_run_lost_nothing() {
        let mut records = runs(0);
        records.retain(|run| run.trial.block < 12 || run.trial.cell.family == Family::Ipv4);
        assert_eq!(pair_runs(&records).unwrap().pairs(), 12);
        records.retain(|run| run.trial.block < 10 || run.trial.cell.size == 128);
        assert_eq!(pair_runs(&records).unwrap().pairs(), 10);
    }
}
