//! Two records side by side.

use crate::cli::quantities::{DOCUMENT, compared, format};
use clap::Args;
use stacklab_model::Metric;
use stacklab_report::OutputFormat;
use std::path::PathBuf;
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
