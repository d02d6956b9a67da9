//! `stacklab export`.

use crate::cli::report::ExportOptions;
use crate::commands::output::output;
use crate::failure::Failure;
use stacklab_model::RunRecord;
use stacklab_report::{tidy, tidy_slices};
use stacklab_store::Record;

/// Writes a record's runs, or their slices, as rows.
pub(crate) fn export(options: &ExportOptions) -> Result<(), Failure> {
    let record = Record::read(&options.record)?;
    let runs = record.runs()?;
    let rows = if options.slices {
        let whole = |run: RunRecord| Ok(RunRecord { host_reports: record.host_reports(&run.trial)?, ..run });
        tidy_slices(&runs.into_iter().map(whole).collect::<Result<Vec<_>, Failure>>()?, options.format)
    } else {
        tidy(&runs, options.format)
    };
    output(&options.record, options.out.as_deref(), &rows)
}
