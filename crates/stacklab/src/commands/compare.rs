//! `stacklab compare`.

use crate::failure::{Failure, WORSE};
use crate::output::{print_text, width};
use crate::quantities::{DOCUMENT, compared, format};
use clap::Args;
use stacklab_analysis::{NothingInCommon, between};
use stacklab_campaign::record::Recorded;
use stacklab_model::{Change, Metric};
use stacklab_report::{OutputFormat, between as render};
use stacklab_store::Record;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Options of `compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareOptions {
    /// The baseline record
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The candidate record
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Exit with code 8 if B is worse than A by more than this: worse=5%
    #[arg(long, value_name = "worse=PERCENT")]
    pub fail_on: Option<FailOn>,
    /// Compare only this metric; may be repeated
    #[arg(long = "metric", value_name = "NAME", value_parser = compared)]
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

/// Puts two records side by side.
pub(crate) fn compare(options: &CompareOptions) -> Result<(), Failure> {
    let paths = [&options.a, &options.b];
    let [a, b] = paths.map(|path| Recorded::read(&Record::read(path)?));
    let (a, b) = (a?, b?);
    let names = paths.map(|path| path.display().to_string());
    let allowed = options.fail_on.map(|fail_on| fail_on.worse);
    let campaigns = [&a.campaign(), &b.campaign()];
    let found = between(campaigns, [&names[0], &names[1]], &options.metrics, allowed)
        .map_err(|nothing| nothing_in_common(nothing, paths.map(|path| path.as_path()), &options.metrics))?;
    print_text(&render(&found, options.format, width()))?;
    let uncertain = found.figures.iter().filter(|figure| figure.change == Change::Inconclusive).count();
    let seen = found
        .figures
        .iter()
        .filter(|figure| !matches!(figure.change, Change::Inconclusive | Change::Nothing(_)))
        .count();
    if let Some(warning) = unseen(uncertain, seen, allowed.is_some()) {
        eprintln!("stacklab: warning: {warning}");
    }
    let failing: Vec<String> = found
        .figures
        .iter()
        .filter(|figure| figure.fails)
        .map(|figure| format!("{} {}", figure.metric, figure.cell))
        .collect();
    match (&failing[..], found.figures.iter().any(|figure| figure.effect.is_some())) {
        ([], true) => Ok(()),
        ([], false) => Err(Failure::nothing_valid()),
        ([first, others @ ..], _) => {
            let percent = 100.0 * allowed.unwrap_or_default();
            let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
            let text = format!(
                "B is worse than A by more than {percent} %, or lacks a figure that A has: {first}{more}"
            );
            Err(Failure::new(WORSE, text))
        }
    }
}

/// A warning where nothing could be seen, or where figures that are not sure cannot fail.
fn unseen(uncertain: usize, seen: usize, may_fail: bool) -> Option<String> {
    let all = uncertain + seen;
    if uncertain == 0 || (seen > 0 && !may_fail) {
        return None;
    }
    let which = if seen == 0 { "nothing could be seen: all".to_owned() } else { format!("{uncertain} of") };
    Some(format!(
        "{which} {all} figures are too uncertain whether B is worse: measure more blocks (--set blocks.min) in both"
    ))
}

fn nothing_in_common(nothing: NothingInCommon, [a, b]: [&Path; 2], metrics: &[Metric]) -> Failure {
    let (a, b) = (a.display(), b.display());
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
