//! Studies run by the real program, and their records as read by the typed store.

use super::program::{Outcome, Program, code};
use stacklab_model::{HostReport, Metric, Role, RunRecord};
use stacklab_store::Record;
use std::path::Path;

/// Runs a study until it ends. Returns the program's output, and every run with both hosts' reports.
pub(crate) fn measure(study: &str) -> (Outcome, Vec<RunRecord>) {
    let program = Program::new();
    program.write("study.toml", study);
    let outcome = program.run(&["run", "study.toml", "--out", "study.stacklab", "--seed", "1"]);
    let outcome = outcome.expect(code::DONE);
    (outcome, runs(&program.work().join("study.stacklab")))
}

/// Every run of a record, with its host reports; fails if a run is not valid.
pub(crate) fn runs(path: &Path) -> Vec<RunRecord> {
    let record = Record::read(path).unwrap_or_else(|error| panic!("{error}"));
    let mut runs = record.runs().unwrap();
    for run in &mut runs {
        assert!(run.is_valid(), "{}: {:?}", run.trial, run.status);
        run.host_reports = record.host_reports(&run.trial).unwrap();
    }
    runs
}

/// One host's report of a run.
pub(crate) fn side(run: &RunRecord, role: Role) -> &HostReport {
    let found = run.host_reports.iter().find(|side| side.role == role);
    found.unwrap_or_else(|| panic!("{}: the record has no {role}", run.trial))
}

/// A figure of a run; fails if the run has no such figure.
pub(crate) fn figure(run: &RunRecord, metric: Metric) -> f64 {
    let value = run.values.get(&metric).unwrap_or_else(|| panic!("{}: no {metric}", run.trial));
    value.measured().unwrap_or_else(|| panic!("{}: {metric} is {value:?}", run.trial))
}

/// Whether a run has a warning.
pub(crate) fn warns(run: &RunRecord, warning: &str) -> bool {
    run.warnings.iter().any(|given| given.code == warning)
}

/// The mean of figures with weights, without a share of the weight at each end.
pub(crate) fn trim_mean(mut weighted: Vec<(f64, f64)>, share: f64) -> f64 {
    weighted.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let whole: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    let mut mean = 0.0;
    let mut end = 0.0;
    for (figure, weight) in weighted {
        end += weight / whole;
        mean += figure * (end.min(1.0 - share) - share.max(end - weight / whole)).max(0.0);
    }
    mean / (1.0 - 2.0 * share)
}
