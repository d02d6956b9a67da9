//! `stacklab report` and `stacklab export`.

use crate::failure::Failure;
use crate::output::{output, print_text, width};
use crate::quantities::{DOCUMENT, REPORT, format};
use clap::Args;
use stacklab_campaign::record::{conclude, latest};
use stacklab_model::{Difference, Findings, RunRecord, nearest};
use stacklab_report::page::html;
use stacklab_report::{
    OutputFormat, WIDTH, Width, brief, figure, figures, paper, render, stage_costs, tidy, tidy_slices,
};
use stacklab_serve::page::{ROOM, document};
use stacklab_store::Record;
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Options of `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportOptions {
    /// The record
    #[arg(value_name = "RESULT")]
    pub record: PathBuf,
    /// text (the default), markdown, csv (raw-csv: without formula escaping) or
    /// json; html (one self-contained file); latex (only tables of --difference)
    #[arg(long, value_name = "FORMAT", value_parser = format(REPORT))]
    pub format: Option<OutputFormat>,
    /// Print tables, hosts, checks and terms on a terminal too; files and pipes always get them
    #[arg(long, conflicts_with_all = ["figure", "difference", "stages"])]
    pub full: bool,
    /// Write one figure, as svg or pdf (by --format or the extension of --out; default: svg); `list` prints the names
    #[arg(long, value_name = "NAME", conflicts_with = "difference")]
    pub figure: Option<String>,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print tables as papers do: both arms with their difference by this formula (symmetric, lower, higher or points),
    /// and the standard deviations; as text, markdown, latex or csv
    #[arg(long, value_name = "FORMULA")]
    pub difference: Option<Difference>,
    /// Print only the explanation, with the functions that differ most
    #[arg(long, conflicts_with_all = ["difference", "figure"])]
    pub stages: bool,
}

/// Options of `export`.
#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// The record
    #[arg(value_name = "RESULT")]
    pub record: PathBuf,
    /// csv (raw-csv: without formula escaping) or parquet
    #[arg(long, value_name = "FORMAT", value_parser = format(&["csv", "raw-csv", "parquet"]), default_value = "csv")]
    pub format: OutputFormat,
    /// Export the slices of interleaved trials instead of metrics: a row for each slice and host
    #[arg(long)]
    pub slices: bool,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// The formats of published tables.
const TABLES: &[&str] = &["text", "markdown", "latex", "csv"];

/// The format of this output; `--format` may name one that another output has.
fn among(format: OutputFormat, valid: &'static [&'static str]) -> Result<OutputFormat, Failure> {
    OutputFormat::among(format.name(), valid).map_err(Failure::usage)
}

/// Prints the findings of a record.
pub(crate) fn report(options: &ReportOptions) -> Result<(), Failure> {
    let out = |bytes: &[u8]| output(&options.record, options.out.as_deref(), bytes);
    if let Some(name) = &options.figure {
        return out(&a_figure(options, name)?);
    }
    let format = options.format.unwrap_or(OutputFormat::Text);
    // The formats are checked before the record is read.
    let findings = || conclude(&Record::read(&options.record)?);
    let width = if options.out.is_some() { WIDTH } else { width() };
    let text = match options.difference {
        _ if options.stages => stages(options, among(format, DOCUMENT)?, width)?,
        None if is_brief(options) => brief_with_hint(&findings()?, &options.record),
        None if format == OutputFormat::Html => html(&document(&Record::read(&options.record)?, ROOM)?)?,
        None if format != OutputFormat::Latex => {
            let format = among(format, DOCUMENT)?;
            render(&findings()?, format, width)
        }
        difference => {
            let (format, difference) = (among(format, TABLES)?, difference.unwrap_or(Difference::Symmetric));
            paper(&findings()?, difference, format, width)
        }
    };
    out(text.as_bytes())
}

/// Whether a person asks at a terminal, and for nothing in particular.
fn is_brief(options: &ReportOptions) -> bool {
    let ReportOptions { format, out, full, .. } = options;
    format.is_none() && out.is_none() && !full && std::io::stdout().is_terminal()
}

fn brief_with_hint(findings: &Findings, record: &Path) -> String {
    format!(
        "{}\nTables, hosts, checks and terms: stacklab report --full {}\n",
        brief(findings, width()),
        record.display()
    )
}

/// The explanations of the record's differences.
fn stages(options: &ReportOptions, format: OutputFormat, width: Width) -> Result<String, Failure> {
    let all = latest(Record::read(&options.record)?.explanations()?);
    if all.is_empty() {
        return Err(Failure::usage(format!(
            "{} explains nothing: `stacklab explain --out FILE` and `stacklab run --explain` make records that do",
            options.record.display()
        )));
    }
    Ok(stage_costs(&all, format, true, width))
}

/// One figure, or the list of all.
fn a_figure(options: &ReportOptions, name: &str) -> Result<Vec<u8>, Failure> {
    let ending = options.out.as_deref().and_then(Path::extension).and_then(OsStr::to_str);
    let format = options.format.map(OutputFormat::name).or(ending).unwrap_or("svg");
    let format = OutputFormat::among(format, &["svg", "pdf"]);
    let page = || document(&Record::read(&options.record)?, 0);
    if name == "list" {
        let all = figures(&page()?);
        let widest = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let lines = all.into_iter().map(|(name, title)| format!("{name:<widest$}  {title}\n"));
        return Ok(lines.collect::<String>().into_bytes());
    }
    let format = format.map_err(Failure::usage)?;
    let page = page()?;
    figure(&page, name, format).ok_or_else(|| {
        let known = figures(&page);
        let meant = nearest(name, known.iter().map(|(name, _)| name.as_str()));
        let meant = meant.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        Failure::usage(format!(
            "there is no figure `{name}` of this record (--figure list names them){meant}"
        ))
    })
}

/// Prints findings on standard output: on a terminal the answer, elsewhere everything.
pub(crate) fn print(findings: &Findings, record: &Path) -> Result<(), Failure> {
    match std::io::stdout().is_terminal() {
        true => print_text(&brief_with_hint(findings, record)),
        false => print_text(&render(findings, OutputFormat::Text, width())),
    }
}

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
