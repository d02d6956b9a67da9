//! The runs of each scenario, and a time in several runs.

use crate::run::Run;
use crate::times::{MAX_EXACT_MS, NONE};
use serde::Serialize;
use stacklab_analysis::statistics::median;

/// The runs of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScenarioRuns {
    /// Its name: `ipv6-drop`.
    pub name: String,
    /// What it is: `IPv6 is dropped`.
    pub label: String,
    /// Its runs, in the order in which they were.
    pub runs: Vec<Run>,
}

/// The runs of a scenario; none if it was not run.
pub(crate) fn runs_of<'a>(scenarios: &'a [ScenarioRuns], name: &str) -> &'a [Run] {
    scenarios.iter().find(|scenario| scenario.name == name).map_or(&[], |scenario| &scenario.runs)
}

/// A time in several runs, milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Delay {
    /// The median; absent if no run has the time.
    pub median_ms: Option<f64>,
    /// The shortest.
    pub low_ms: Option<f64>,
    /// The longest.
    pub high_ms: Option<f64>,
    /// Runs that have it.
    pub runs: usize,
    /// All runs.
    pub of: usize,
}

impl Delay {
    pub(crate) fn of(figures: &[Option<f64>]) -> Self {
        let known: Vec<f64> = figures.iter().flatten().copied().collect();
        Delay {
            median_ms: median(&known),
            low_ms: known.iter().copied().reduce(f64::min),
            high_ms: known.iter().copied().reduce(f64::max),
            runs: known.len(),
            of: figures.len(),
        }
    }
}

/// `201 ms (201 to 204)`, and in how many runs if not in all.
pub(crate) fn format_delay(delay: &Delay) -> String {
    let Delay { median_ms: Some(median), low_ms: Some(low), high_ms: Some(high), runs, of } = delay else {
        return NONE.to_owned();
    };
    let mut text =
        if *high < MAX_EXACT_MS { format!("{median:.1} ms") } else { format!("{:.2} s", median / 1e3) };
    if *runs > 1 && *high < MAX_EXACT_MS {
        text.push_str(&format!(" ({low:.1} to {high:.1})"));
    } else if *runs > 1 {
        text.push_str(&format!(" ({:.2} to {:.2})", low / 1e3, high / 1e3));
    }
    if runs < of {
        text.push_str(&format!(" in {runs} of {of} runs"));
    }
    text
}
