//! `stacklab report`, `stacklab export` and `stacklab compare`: what records hold.

use crate::failure::{Failure, NOT_COMPARABLE, WORSE};
use crate::output::{NotWritten, output, output_with, print_text, width};
use crate::quantities::{DOCUMENT, REPORT, format, parse_compared_metric};
use clap::Args;
use stacklab_analysis::{NothingInCommon, between, list_undecided_figures, not_comparable, record_loads};
use stacklab_campaign::notice::note;
use stacklab_campaign::record::{Recorded, conclude, latest};
use stacklab_campaign::runs::{read_runs_in_turn, with_reports};
use stacklab_model::{Change, Difference, Findings, Metric, MetricDiff, count, nearest, quote_file};
use stacklab_report::page::{Page, html};
use stacklab_report::{
    HAS_PARQUET, OutputFormat, WIDTH, Width, between as render_between, brief, figure, figures, paper,
    render, stage_costs, write_tidy, write_tidy_slices,
};
use stacklab_serve::page::{ROOM, document};
use stacklab_store::{Record, StoreError};
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Debug, Args)]
pub(crate) struct ReportOptions {
    /// The record
    #[arg(value_name = "RESULT")]
    pub record: PathBuf,
    /// text (the default), markdown, csv (raw-csv: without formula escaping) or
    /// json; html (one self-contained file); latex (the tables)
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

pub(crate) fn report(options: &ReportOptions) -> Result<(), Failure> {
    let out = |bytes: &[u8]| output(&options.record, options.out.as_deref(), bytes);
    if let Some(name) = &options.figure {
        return out(&a_figure(options, name)?);
    }
    let format = options.format.unwrap_or(OutputFormat::Text);
    if matches!(format, OutputFormat::Svg | OutputFormat::Pdf) {
        let name = format.name();
        return Err(Failure::usage(format!(
            "{name} is of one figure: add --figure NAME (--figure list prints the names)"
        )));
    }
    let width = if options.out.is_some() { WIDTH } else { width() };
    // The formats are checked before the record is read.
    let text = match options.difference {
        _ if options.stages => stages(options, among(format, DOCUMENT)?, width)?,
        None if is_brief(options) => brief_with_hint(&read_findings(&options.record)?, &options.record),
        None if format == OutputFormat::Html => html(&read_page(&options.record, ROOM)?)?,
        None => render(&read_findings(&options.record)?, format, width),
        Some(difference) => {
            let format = among(format, TABLES)?;
            paper(&read_findings(&options.record)?, difference, format, width)
        }
    };
    out(text.as_bytes())
}

fn read_findings(record: &Path) -> Result<Findings, Failure> {
    let found = conclude(&Record::read(record)?).map_err(|error| Failure::from(error).of_file(record))?;
    Ok(Findings { record_name: Some(record.display().to_string()), ..found })
}

fn read_page(record: &Path, room: usize) -> Result<Page, Failure> {
    document(&Record::read(record)?, room).map_err(|error| Failure::from(error).of_file(record))
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
        quote_file(record)
    )
}

fn stages(options: &ReportOptions, format: OutputFormat, width: Width) -> Result<String, Failure> {
    let record = Record::read(&options.record)?;
    let is_sampled = record.campaign()?.sample_period_ns.is_some();
    let all = latest(record.explanations()?, is_sampled);
    if all.is_empty() {
        return Err(Failure::usage(format!(
            "{} explains nothing: `stacklab explain --out FILE` and `stacklab run --explain` make records that do",
            options.record.display()
        )));
    }
    Ok(stage_costs(&all, format, true, width))
}

fn a_figure(options: &ReportOptions, name: &str) -> Result<Vec<u8>, Failure> {
    let ending = options.out.as_deref().and_then(Path::extension).and_then(OsStr::to_str);
    let format = options.format.map(OutputFormat::name).or(ending).unwrap_or("svg");
    let format = OutputFormat::among(format, &["svg", "pdf"]);
    if name == "list" {
        let all = figures(&read_page(&options.record, 0)?);
        let widest = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let lines = all.into_iter().map(|(name, title)| format!("{name:<widest$}  {title}\n"));
        return Ok(lines.collect::<String>().into_bytes());
    }
    let format = format.map_err(Failure::usage)?;
    let page = read_page(&options.record, 0)?;
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

pub(crate) fn export(options: &ExportOptions) -> Result<(), Failure> {
    if options.format == OutputFormat::Parquet && !HAS_PARQUET {
        return Err(Failure::usage("this build of stacklab leaves out Parquet: `make build` adds it"));
    }
    let record = Record::read(&options.record)?;
    output_with(&options.record, options.out.as_deref(), |to| {
        let runs = read_runs_in_turn(&record).map_err(unread)?.map(|run| run.map_err(unread));
        if options.slices {
            let whole = runs.map(|run| with_reports(&record, run?).map_err(unread));
            write_tidy_slices(whole, options.format, to)
        } else {
            write_tidy(runs, options.format, to)
        }
    })
}

fn unread(error: StoreError) -> NotWritten {
    NotWritten::Made(error.into())
}

#[derive(Debug, Args)]
pub(crate) struct CompareOptions {
    /// The baseline record
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The candidate record
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Exit with code 8 if B is worse than A by more than this: worse=5%. With code 12
    /// if other load disturbed only one of them, so that B may be worse for that
    #[arg(long, value_name = "worse=PERCENT")]
    pub fail_on: Option<FailOn>,
    /// Compare only this metric; may be repeated
    #[arg(long = "metric", value_name = "NAME", value_parser = parse_compared_metric)]
    pub metrics: Vec<Metric>,
    /// text, markdown, csv, raw-csv or json
    #[arg(long, value_name = "FORMAT", value_parser = format(DOCUMENT), default_value = "text")]
    pub format: OutputFormat,
}

/// Allowed change for the worse: `worse=5%`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FailOn {
    /// As a ratio: 0.05 is 5 %.
    pub worse: f64,
}

impl FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.strip_prefix("worse=").map(|percent| percent.strip_suffix('%').unwrap_or(percent));
        let percent = percent.and_then(|percent| percent.trim().parse::<f64>().ok());
        match percent.filter(|percent| percent.is_finite() && *percent >= 0.0) {
            Some(percent) => Ok(FailOn { worse: percent / 100.0 }),
            None => Err("expected worse=PERCENT, for example worse=5%".to_owned()),
        }
    }
}

pub(crate) fn compare(options: &CompareOptions) -> Result<(), Failure> {
    let paths = [&options.a, &options.b];
    let [a, b] = paths.map(|path| Recorded::read(&Record::read(path)?));
    let a = a?;
    let b = b?;
    let names = paths.map(|path| path.display().to_string());
    let allowed = options.fail_on.map(|fail_on| fail_on.worse);
    let campaigns = [&a.campaign(), &b.campaign()];
    let found = between(campaigns, [&names[0], &names[1]], &options.metrics, allowed)
        .map_err(|nothing| nothing_in_common(nothing, paths.map(|path| path.as_path()), &options.metrics))?;
    let loads = record_loads(campaigns);
    print_text(&render_between(&found, &loads, options.format, width()))?;
    if let Some(warning) = loads.warning() {
        note(&format!("stacklab: warning: {warning}"));
    }
    let uncertain = found.figures.iter().filter(|figure| figure.change == Change::Inconclusive).count();
    let seen = found
        .figures
        .iter()
        .filter(|figure| !matches!(figure.change, Change::Inconclusive | Change::Nothing(_)))
        .count();
    if let Some(warning) = unseen(uncertain, seen, allowed.is_some()) {
        note(&format!("stacklab: warning: {warning}"));
    }
    let failing: Vec<String> = found.figures.iter().filter(|figure| figure.fails).map(figure_name).collect();
    let spared: Vec<String> = not_comparable(&found, &loads).into_iter().map(figure_name).collect();
    let percent = 100.0 * allowed.unwrap_or_default();
    if let [first, others @ ..] = &failing[..] {
        let more = and_more(others.len());
        let text = format!(
            "B is worse than A by more than {percent} %, or lacks a figure that A has: {first}{more}"
        );
        return Err(Failure::new(WORSE, text));
    }
    if let [first, others @ ..] = &spared[..] {
        let more = and_more(others.len());
        let text = format!(
            "B and A are not comparable: B is worse by more than {percent} %, perhaps by the other load: {first}{more}"
        );
        return Err(Failure::new(NOT_COMPARABLE, text));
    }
    let undecided: Vec<String> = list_undecided_figures(&found).into_iter().map(describe_lack).collect();
    if let ([first, others @ ..], Some(_)) = (&undecided[..], allowed) {
        let more = and_more(others.len());
        let text = format!(
            "it cannot be decided whether B is worse, which lacks a figure that A has: {first}{more}"
        );
        return Err(Failure::new(NOT_COMPARABLE, text));
    }
    if found.figures.iter().all(|figure| figure.effect.is_none()) {
        return Err(Failure::nothing_valid());
    }
    Ok(())
}

fn figure_name(figure: &MetricDiff) -> String {
    format!("{} {}", figure.metric, figure.cell)
}

/// A figure without a comparison, with the reason.
fn describe_lack(figure: &MetricDiff) -> String {
    let Change::Nothing(reason) = &figure.change else { return figure_name(figure) };
    format!("{} ({reason})", figure_name(figure))
}

fn and_more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(" and {others} more") }
}

/// A warning where nothing could be seen, or where figures that are not sure cannot fail.
fn unseen(uncertain: usize, seen: usize, may_fail: bool) -> Option<String> {
    let all = uncertain + seen;
    if uncertain == 0 || (seen > 0 && !may_fail) {
        return None;
    }
    let which = if seen == 0 { "nothing could be seen: all".to_owned() } else { format!("{uncertain} of") };
    Some(format!(
        "{which} {}: too uncertain whether B is worse: measure longer in both (`run`: --set blocks.min, `measure`: -t)",
        count(all, "figure")
    ))
}

fn nothing_in_common(nothing: NothingInCommon, [a, b]: [&Path; 2], metrics: &[Metric]) -> Failure {
    let a = a.display();
    let b = b.display();
    Failure::usage(match (nothing, metrics) {
        (NothingInCommon::Cells, _) => format!(
            "{a} and {b} have no cell in common (family, transport, size_of, size and settings alike): measure the same \
             study on both"
        ),
        (NothingInCommon::Metrics, []) => {
            format!("{a} and {b} have cells in common, but no metric of them: measure the same study on both")
        }
        (NothingInCommon::Metrics, metrics) => {
            let names = metrics.iter().map(|metric| metric.name()).collect::<Vec<_>>().join(", ");
            format!("{a} and {b} do not both have {names}: leave --metric out to compare all")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allowed_is_in_per_cent() {
        for (text, worse) in
            [("worse=5%", 0.05), ("worse=5", 0.05), ("worse=0%", 0.0), ("worse=2.5 %", 0.025)]
        {
            assert_eq!(text.parse(), Ok(FailOn { worse }));
        }
        for text in
            ["", "5%", "worse", "worse=", "worse=%", "worse=-1%", "worse=nan", "better=5%", "worse=5%%"]
        {
            assert!(text.parse::<FailOn>().is_err(), "{text}");
        }
    }

    #[test]
    fn warns_where_nothing_could_be_seen() {
        assert!(unseen(42, 0, false).unwrap().starts_with("nothing could be seen: all 42 figures"));
        assert!(unseen(41, 1, true).unwrap().starts_with("41 of 42 figures"));
        assert_eq!(unseen(41, 1, false), None);
        assert_eq!(unseen(0, 3, true), None);
        // Where there are no figures, the exit code says so.
        assert_eq!(unseen(0, 0, true), None);
    }
}
