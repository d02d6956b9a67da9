//! `stacklab export`.

use crate::cli::report::ExportOptions;
use crate::commands::output::output;
use crate::failure::Failure;
use stacklab_report::{TidyFormat, tidy};
use stacklab_store::Record;

/// Writes a record's runs as rows.
pub fn export(options: &ExportOptions) -> Result<(), Failure> {
    let format: TidyFormat = options
        .format
        .parse()
        .map_err(|error: stacklab_model::UnknownName| Failure::Usage(error.to_string()))?;
    let runs = Record::read(&options.record)?.runs()?;
    output(&options.record, options.out.as_deref(), &tidy(&runs, format))
}
