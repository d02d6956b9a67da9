//! `stacklab report`.

use crate::campaign::record::{conclude, latest};
use crate::cli::report::ReportOptions;
use crate::commands::output::{output, print_text};
use crate::failure::Failure;
use crate::page::{ROOM, document};
use stacklab_model::{Difference, Findings, UnknownName, nearest};
use stacklab_report::page::html;
use stacklab_report::{
    FigureFormat, Format, PaperFormat, WIDTH, figure, figures, paper, render, stage_costs,
};
use stacklab_store::Record;

/// Prints the findings of a record.
pub(crate) fn report(options: &ReportOptions) -> Result<(), Failure> {
    // The options are parsed before the record is read.
    let wrong = |error: UnknownName| Failure::Usage(error.to_string());
    if options.stages {
        return stages(options);
    }
    if options.format == "html" && options.difference.is_none() && options.figure.is_none() {
        let page = document(&Record::read(&options.record)?, ROOM)?;
        return output(&options.record, options.out.as_deref(), html(&page)?.as_bytes());
    }
    if let Some(name) = &options.figure {
        return a_figure(options, name);
    }
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
    let text = render(&conclude(&Record::read(&options.record)?)?);
    output(&options.record, options.out.as_deref(), text.as_bytes())
}

/// Writes what explains the record's differences.
fn stages(options: &ReportOptions) -> Result<(), Failure> {
    let format: Format =
        options.format.parse().map_err(|error: UnknownName| Failure::Usage(error.to_string()))?;
    let all = latest(Record::read(&options.record)?.explanations()?);
    if all.is_empty() {
        return Err(Failure::Usage(format!(
            "{} explains nothing: `stacklab explain --out FILE` and `stacklab run --explain` make records that do",
            options.record.display()
        )));
    }
    let text = stage_costs(&all, format, true, WIDTH);
    output(&options.record, options.out.as_deref(), text.as_bytes())
}

/// Writes one figure, or lists them.
fn a_figure(options: &ReportOptions, name: &str) -> Result<(), Failure> {
    let wrong = |error: UnknownName| Failure::Usage(error.to_string());
    if name == "list" {
        let page = document(&Record::read(&options.record)?, 0)?;
        let lines = figures(&page).into_iter().map(|(name, title)| format!("{name}  {title}\n"));
        return output(&options.record, options.out.as_deref(), lines.collect::<String>().as_bytes());
    }
    let format: FigureFormat = options.format.parse().map_err(wrong)?;
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

/// Prints findings on standard output.
pub(crate) fn print(findings: &Findings, format: Format) -> Result<(), Failure> {
    print_text(&render(findings, format, WIDTH))
}
