//! `stacklab report`.

use crate::cli::ReportOptions;
use crate::conclude::conclude;
use crate::failure::Failure;
use stacklab_model::{Difference, Findings, UnknownName};
use stacklab_report::{Format, PaperFormat, WIDTH, paper, render};
use stacklab_store::Record;
use std::io::{self, Write};

/// Prints the findings of a record.
pub fn report(options: &ReportOptions) -> Result<(), Failure> {
    // What is asked for is understood before the record is read.
    let wrong = |error: UnknownName| Failure::Usage(error.to_string());
    let render: Box<dyn Fn(&Findings) -> String> = match (&options.difference, options.format.as_str()) {
        (None, format) if format != "latex" => {
            let format: Format = format.parse().map_err(wrong)?;
            Box::new(move |findings| render(findings, format, WIDTH))
        }
        (difference, format) => {
            let difference = difference.as_deref().unwrap_or(Difference::Symmetric.name());
            let difference: Difference = difference.parse().map_err(wrong)?;
            let format: PaperFormat = format.parse().map_err(wrong)?;
            Box::new(move |findings| paper(findings, difference, format, WIDTH))
        }
    };
    print_text(&render(&conclude(&Record::read(&options.record)?)?))
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
