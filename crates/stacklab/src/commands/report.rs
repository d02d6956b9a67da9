//! `stacklab report`.

use crate::cli::report::ReportOptions;
use crate::commands::output::{output, print_text, width};
use crate::failure::Failure;
use stacklab_campaign::record::{conclude, latest};
use stacklab_model::{Difference, Findings, UnknownName, nearest};
use stacklab_report::page::html;
use stacklab_report::{
    FigureFormat, Format, PaperFormat, WIDTH, brief, figure, figures, paper, render, stage_costs,
};
use stacklab_serve::page::{ROOM, document};
use stacklab_store::Record;
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::Path;

/// The formats of a report, for an error.
const FORMATS: &[&str] = &["text", "markdown", "csv", "raw-csv", "json", "html", "latex"];

/// The format with this name.
fn format(name: &str) -> Result<Format, Failure> {
    name.parse()
        .map_err(|error: UnknownName| Failure::Usage(UnknownName { valid: FORMATS, ..error }.to_string()))
}

/// Prints the findings of a record.
pub(crate) fn report(options: &ReportOptions) -> Result<(), Failure> {
    // The options are parsed before the record is read.
    let wrong = |error: UnknownName| Failure::Usage(error.to_string());
    if options.stages {
        return stages(options);
    }
    if let Some(name) = &options.figure {
        return a_figure(options, name);
    }
    let named = options.format.as_deref();
    if named == Some("html") && options.difference.is_none() {
        let page = document(&Record::read(&options.record)?, ROOM)?;
        return output(&options.record, options.out.as_deref(), html(&page)?.as_bytes());
    }
    let width = if options.out.is_some() { WIDTH } else { width() };
    let render: Box<dyn Fn(&Findings) -> String> = match (&options.difference, named.unwrap_or("text")) {
        (None, _) if is_brief(options) => Box::new(|findings| brief_with_hint(findings, &options.record)),
        (None, name) if name != "latex" => {
            let format = format(name)?;
            Box::new(move |findings| render(findings, format, width))
        }
        (difference, name) => {
            let difference = difference.as_deref().unwrap_or(Difference::Symmetric.name());
            let difference: Difference = difference.parse().map_err(wrong)?;
            let format: PaperFormat = name.parse().map_err(wrong)?;
            Box::new(move |findings| paper(findings, difference, format, width))
        }
    };
    let text = render(&conclude(&Record::read(&options.record)?)?);
    output(&options.record, options.out.as_deref(), text.as_bytes())
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

/// Writes what explains the record's differences.
fn stages(options: &ReportOptions) -> Result<(), Failure> {
    let format = format(options.format.as_deref().unwrap_or("text"))?;
    let all = latest(Record::read(&options.record)?.explanations()?);
    if all.is_empty() {
        return Err(Failure::Usage(format!(
            "{} explains nothing: `stacklab explain --out FILE` and `stacklab run --explain` make records that do",
            options.record.display()
        )));
    }
    let text = stage_costs(&all, format, true, width());
    output(&options.record, options.out.as_deref(), text.as_bytes())
}

/// Writes one figure, or lists them.
fn a_figure(options: &ReportOptions, name: &str) -> Result<(), Failure> {
    let wrong = |error: UnknownName| Failure::Usage(error.to_string());
    if name == "list" {
        let page = document(&Record::read(&options.record)?, 0)?;
        let all = figures(&page);
        let widest = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let lines = all.into_iter().map(|(name, title)| format!("{name:<widest$}  {title}\n"));
        return output(&options.record, options.out.as_deref(), lines.collect::<String>().as_bytes());
    }
    let ending = options.out.as_deref().and_then(Path::extension).and_then(OsStr::to_str);
    let format: FigureFormat =
        options.format.as_deref().or(ending).unwrap_or("svg").parse().map_err(wrong)?;
    let page = document(&Record::read(&options.record)?, 0)?;
    let bytes = figure(&page, name, format).ok_or_else(|| {
        let known = figures(&page);
        let meant = nearest(name, known.iter().map(|(name, _)| name.as_str()));
        let meant = meant.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        Failure::Usage(format!(
            "there is no figure `{name}` of this record (--figure list names them){meant}"
        ))
    })?;
    output(&options.record, options.out.as_deref(), &bytes)
}

/// Prints findings on standard output: on a terminal the answer, elsewhere everything.
pub(crate) fn print(findings: &Findings, record: &Path) -> Result<(), Failure> {
    match std::io::stdout().is_terminal() {
        true => print_text(&brief_with_hint(findings, record)),
        false => print_text(&render(findings, Format::Text, width())),
    }
}
