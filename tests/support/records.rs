//! Studies run by the real program, and their records as the typed store reads them.

use super::program::{Outcome, Program, code};
use stacklab_model::{HostReport, Metric, Role, RunRecord};
use stacklab_store::Record;
use std::path::Path;

/// Runs a study to its end. Gives what the program said, and every run with what both hosts saw.
pub fn measure(study: &str) -> (Outcome, Vec<RunRecord>) {
    let program = Program::new();
    program.write("study.toml", study);
    let outcome = program.run(&["run", "study.toml", "--out", "study.stacklab", "--seed", "1"]);
    let outcome = outcome.expect(code::DONE);
    (outcome, runs(&program.work().join("study.stacklab")))
}

/// Every run of a record, with its sides; fails where one is not valid.
pub fn runs(path: &Path) -> Vec<RunRecord> {
    let record = Record::read(path).unwrap_or_else(|error| panic!("{error}"));
    let mut runs = record.runs().unwrap();
    for run in &mut runs {
        assert!(run.is_valid(), "{}: {:?}", run.trial, run.status);
        run.host_reports = record.host_reports(&run.trial).unwrap();
    }
    runs
}

/// What one host saw of a run.
pub fn side(run: &RunRecord, role: Role) -> &HostReport {
    let found = run.host_reports.iter().find(|side| side.role == role);
    found.unwrap_or_else(|| panic!("{}: the record has no {role}", run.trial))
}

/// A figure of a run; fails where it has none.
pub fn figure(run: &RunRecord, metric: Metric) -> f64 {
    let value = run.values.get(&metric).unwrap_or_else(|| panic!("{}: no {metric}", run.trial));
    value.measured().unwrap_or_else(|| panic!("{}: {metric} is {value:?}", run.trial))
}

/// Whether a run carries a warning.
pub fn warns(run: &RunRecord, warning: &str) -> bool {
    run.warnings.iter().any(|given| given.code == warning)
}
