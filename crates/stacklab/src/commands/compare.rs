//! `stacklab compare`.

use crate::cli::CompareOptions;
use crate::commands::output::print_text;
use crate::conclude::Recorded;
use crate::failure::Failure;
use stacklab_analysis::{NothingInCommon, between};
use stacklab_model::Metric;
use stacklab_report::{WIDTH, between as render};
use stacklab_store::Record;
use std::path::Path;
use std::str::FromStr;

/// How much worse the second record may be than the first: `worse=5%`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailOn {
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
pub fn compare(options: &CompareOptions) -> Result<(), Failure> {
    let paths = [&options.a, &options.b];
    let [a, b] = paths.map(|path| Recorded::read(&Record::read(path)?));
    let (a, b) = (a?, b?);
    let names = paths.map(|path| path.display().to_string());
    let allowed = options.fail_on.map(|fail_on| fail_on.worse);
    let campaigns = [&a.campaign(), &b.campaign()];
    let found = between(campaigns, [&names[0], &names[1]], &options.metrics, allowed)
        .map_err(|nothing| nothing_in_common(nothing, paths.map(|path| path.as_path()), &options.metrics))?;
    print_text(&render(&found, options.format, WIDTH))?;
    let failing: Vec<String> = found
        .figures
        .iter()
        .filter(|figure| figure.fails)
        .map(|figure| format!("{} {}", figure.metric, figure.cell))
        .collect();
    match (&failing[..], found.figures.iter().any(|figure| figure.effect.is_some())) {
        ([], true) => Ok(()),
        ([], false) => Err(Failure::NothingValid),
        ([first, others @ ..], _) => Err(Failure::Worse {
            percent: 100.0 * allowed.unwrap_or_default(),
            first: first.clone(),
            others: others.len(),
        }),
    }
}

fn nothing_in_common(nothing: NothingInCommon, [a, b]: [&Path; 2], metrics: &[Metric]) -> Failure {
    let (a, b) = (a.display(), b.display());
    Failure::Usage(match (nothing, metrics) {
        (NothingInCommon::Cells, _) => format!(
            "{a} and {b} have no cell in common (family, transport, framing, size and settings alike): measure the same \
             study on both"
        ),
        (NothingInCommon::Metrics, []) => {
            format!("{a} and {b} have cells in common, but no metric of them: measure the same study on both")
        }
        (NothingInCommon::Metrics, metrics) => {
            let names = metrics.iter().map(|metric| metric.name()).collect::<Vec<_>>().join(", ");
            format!("{a} and {b} do not both have {names}: leave --metric out to see what they have")
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
}
