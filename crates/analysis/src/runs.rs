//! An index of the record's runs.

use stacklab_model::{Cell, Metric, Probe, RunRecord};
use std::collections::HashMap;

/// Runs by cell and probe, in the order of their blocks. Built once, used by every question.
#[derive(Debug, Default)]
pub struct Runs<'a> {
    by_cell: HashMap<&'a Cell, HashMap<Probe, Vec<&'a RunRecord>>>,
}

impl<'a> Runs<'a> {
    /// Indexes runs, valid and invalid, in whatever order they come.
    pub fn new(records: impl IntoIterator<Item = &'a RunRecord>) -> Self {
        let mut by_cell: HashMap<&Cell, HashMap<Probe, Vec<&RunRecord>>> = HashMap::new();
        for record in records {
            let by_probe = by_cell.entry(&record.trial.cell).or_default();
            by_probe.entry(record.trial.probe).or_default().push(record);
        }
        for runs in by_cell.values_mut().flat_map(HashMap::values_mut) {
            runs.sort_by_key(|run| (run.trial.block, run.trial.position));
        }
        Runs { by_cell }
    }

    /// The runs of a cell that took a metric, in the order of their blocks: those of a paced stream where it was to
    /// measure the metric.
    pub fn of(&self, cell: &Cell, metric: Metric) -> &[&'a RunRecord] {
        let of_probe =
            |probe| self.by_cell.get(cell).and_then(|by_probe: &HashMap<_, Vec<_>>| by_probe.get(&probe));
        let paced = |runs: &&Vec<&RunRecord>| runs.iter().any(|run| run.paces(metric));
        let runs = of_probe(Probe::Paced).filter(paced).or_else(|| of_probe(metric.probe()));
        runs.map_or(&[], Vec::as_slice)
    }
}

/// The run's figure, if the run is valid and has one.
pub(crate) fn figure(run: &RunRecord, metric: Metric) -> Option<f64> {
    let figure = run.values.get(&metric)?.measured()?;
    (run.is_valid() && figure.is_finite()).then_some(figure)
}
