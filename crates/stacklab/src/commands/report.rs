//! `stacklab report`.

use crate::cli::ReportOptions;
use crate::conclude::conclude;
use crate::failure::Failure;
use stacklab_model::Findings;
use stacklab_report::{Format, WIDTH, render};
use stacklab_store::Record;
use std::io::{self, Write};

/// Prints the findings of a record.
pub fn report(options: &ReportOptions) -> Result<(), Failure> {
    let record = Record::read(&options.record)?;
    print(&conclude(&record)?, options.format)
}

/// Prints findings on standard output.
pub fn print(findings: &Findings, format: Format) -> Result<(), Failure> {
    print_text(&render(findings, format, WIDTH))
}

/// Prints a text on standard output. A reader that has seen enough (`| head`) is no failure.
pub fn print_text(text: &str) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(reason) if reason.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Output { what: "to standard output".to_owned(), reason })
        }
        _ => Ok(()),
    }
}
