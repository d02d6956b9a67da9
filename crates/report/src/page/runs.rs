//! Every run, by column.

use crate::page::cells::Index;
use crate::page::document::{FigureColumn, Remark, RunsView};
use crate::page::rounded;
use stacklab_model::{RunRecord, RunStatus, Value};
use std::collections::BTreeMap;

/// Digits of a single run's figures.
const DIGITS: i32 = 6;

pub(super) fn runs(runs: &[RunRecord], started_unix_ns: u64, index: &Index) -> RunsView {
    let mut view = RunsView::default();
    let mut remarks: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
    for (number, run) in runs.iter().enumerate() {
        let trial = &run.trial;
        let name = trial.probe.name();
        let probe = view.probes.iter().position(|known| known == name).unwrap_or_else(|| {
            view.probes.push(name.to_owned());
            view.probes.len() - 1
        });
        view.block.push(trial.block);
        view.position.push(trial.position);
        view.cell.push(index.cell(&trial.cell).unwrap_or_default());
        view.probe.push(probe);
        let after = run.started_unix_ns.saturating_sub(started_unix_ns);
        view.started_s.push((after as f64 / 1e8).round() / 10.0);
        if let RunStatus::Invalid(reasons) = &run.status {
            remarks.entry(("invalid", reasons.join("; "))).or_default().push(number);
        }
        for warning in &run.warnings {
            // Texts may name the run's own figures; the kind of a warning does not.
            let runs = remarks.entry((&warning.code, warning.advice.clone())).or_default();
            if runs.last() != Some(&number) {
                runs.push(number);
            }
        }
    }
    view.remarks = remarks
        .into_iter()
        .map(|((code, text), runs)| Remark { code: code.to_owned(), text, runs })
        .collect();
    for (number, metric) in index.numbered_metrics() {
        let of_probe = runs.iter().filter(|run| run.trial.probe == index.probe(metric));
        let figure = |run: &RunRecord| {
            let figure = run.values.get(&metric).and_then(Value::measured).filter(|_| run.is_valid())?;
            rounded(index.shown(metric).factor * figure, DIGITS)
        };
        view.figures.push(FigureColumn { metric: number, values: of_probe.map(figure).collect() });
    }
    view
}
