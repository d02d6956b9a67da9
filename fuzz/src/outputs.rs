//! What the program makes of a record.

use stacklab_campaign::record::conclude;
use stacklab_model::{Difference, RunRecord, printable_lines};
use stacklab_report::page::{Page, html};
use stacklab_report::{OutputFormat, WIDTH, figure, figures, paper, render, tidy, tidy_slices};
use stacklab_serve::page::{ROOM, document};
use stacklab_store::{Record, fuzzing};
use std::error::Error;

/// What the program makes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// `stacklab report`; of HTML, the page if the program was built with it, and its document.
    Report(OutputFormat),
    /// The page's document as `stacklab serve` gives it, from a record that may be damaged.
    Served,
    /// `stacklab report --figure`: all figures.
    Figures(OutputFormat),
    /// `stacklab export`.
    Runs(OutputFormat),
    /// `stacklab export --slices`.
    Slices(OutputFormat),
}

impl Output {
    /// All of them, but for formats that are compressed.
    pub(crate) const ALL: [Output; 13] = [
        Output::Report(OutputFormat::Json),
        Output::Report(OutputFormat::Text),
        Output::Report(OutputFormat::Markdown),
        Output::Report(OutputFormat::Csv),
        Output::Report(OutputFormat::RawCsv),
        Output::Report(OutputFormat::Latex),
        Output::Report(OutputFormat::Html),
        Output::Served,
        Output::Figures(OutputFormat::Svg),
        Output::Figures(OutputFormat::Pdf),
        Output::Runs(OutputFormat::Csv),
        Output::Runs(OutputFormat::RawCsv),
        Output::Slices(OutputFormat::Csv),
    ];
}

/// Makes one output of a record: its files.
///
/// # Errors
/// Why there is none, as the program prints it.
pub(crate) fn output_of(record: &[u8], output: Output) -> Result<Vec<Vec<u8>>, String> {
    files(record, output).map_err(format_error)
}

/// An error as the program prints it.
fn format_error(error: Box<dyn Error>) -> String {
    printable_lines(&error.to_string())
}

fn files(bytes: &[u8], output: Output) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let record = || fuzzing::read(bytes);
    Ok(match output {
        Output::Report(OutputFormat::Html) => {
            let document = document(&record()?, ROOM)?;
            let page = html(&document).ok().map(String::into_bytes);
            page.into_iter().chain([to_json(&document)]).collect()
        }
        Output::Report(OutputFormat::Latex) => {
            let findings = conclude(&record()?)?;
            vec![paper(&findings, Difference::Symmetric, OutputFormat::Latex, WIDTH).into_bytes()]
        }
        Output::Report(format) => vec![render(&conclude(&record()?)?, format, WIDTH).into_bytes()],
        Output::Served => vec![to_json(&document(&fuzzing::open_unchecked(bytes)?, ROOM)?)],
        Output::Figures(format) => {
            let page = document(&record()?, 0)?;
            let all = figures(&page).into_iter();
            all.filter_map(|(name, _)| figure(&page, &name, format)).collect()
        }
        Output::Runs(format) => vec![tidy(&record()?.runs()?, format)],
        Output::Slices(format) => vec![tidy_slices(&whole_runs(&record()?)?, format)],
    })
}

fn to_json(page: &Page) -> Vec<u8> {
    serde_json::to_vec(page).expect("names and finite numbers become JSON")
}

/// Reads all that a record has.
///
/// # Errors
/// Why that cannot be done, as the program prints it.
pub(crate) fn read_all(record: &[u8]) -> Result<(), String> {
    fuzzing::read(record).map_err(Into::into).and_then(|record| all_of(&record)).map_err(format_error)
}

/// Reads all that a record has, as the page does of one that may be damaged.
///
/// # Errors
/// Why that cannot be done, as the program prints it.
pub(crate) fn read_all_unchecked(record: &[u8]) -> Result<(), String> {
    fuzzing::open_unchecked(record)
        .map_err(Into::into)
        .and_then(|record| all_of(&record))
        .map_err(format_error)
}

fn all_of(record: &Record) -> Result<(), Box<dyn Error>> {
    record.campaign()?;
    record.hosts()?;
    record.run_count()?;
    record.explanations()?;
    whole_runs(record).map(drop)
}

/// The runs with their host reports.
fn whole_runs(record: &Record) -> Result<Vec<RunRecord>, Box<dyn Error>> {
    let mut runs = record.runs()?;
    for run in &mut runs {
        run.host_reports = record.host_reports(&run.trial)?;
    }
    Ok(runs)
}
