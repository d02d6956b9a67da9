//! `stacklab eyeballs`.

use crate::commands::report::FailOn;
use crate::failure::{Failure, INTERRUPTED, TESTBED, WORSE, interrupt_flag};
use crate::output::{print_text, width};
use crate::quantities::{format, some_time};
use clap::{Args, ValueEnum};
use stacklab_campaign::notice::note;
use stacklab_campaign::sources::new_seed;
use stacklab_eyeballs::{
    EyeballsError, MeasurementSettings, ScenarioSet, compare, comparison_to_html, comparison_to_json,
    describe, describe_comparison, measure, to_html, to_json,
};
use stacklab_report::OutputFormat;
use stacklab_testbed::Privilege;
use std::time::Duration;

/// Separates two commands.
const AGAINST: &str = "--against";

#[derive(Debug, Clone, Args)]
pub(crate) struct EyeballsOptions {
    /// quick: the networks that show how a client decides; all: also slow paths, black holes, lost answers and NAT64
    #[arg(long, value_name = "SET", default_value = "quick", hide_possible_values = true)]
    pub scenarios: Scenarios,
    /// Runs of each scenario
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Time limit of each run, in seconds or with a unit (500ms)
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = some_time)]
    pub limit: u64,
    /// Seed of the order of runs; default: a new one
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// text, markdown, json, or html: a page with a timeline of each network
    #[arg(long, value_name = "FORMAT", value_parser = format(&["text", "markdown", "json", "html"]), default_value = "text")]
    pub format: OutputFormat,
    /// With `--against -- COMMAND` at the end: exit with code 8 if the second command is slower than the first by more
    /// than this, and by more than 5 ms: worse=5%
    #[arg(long, value_name = "worse=PERCENT")]
    pub fail_on: Option<FailOn>,
    /// The command, with {host} in the place of the name that it connects to; `--against -- COMMAND` behind it compares
    /// it with a second one
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenarios {
    Quick,
    All,
}

pub(crate) fn eyeballs(options: &EyeballsOptions) -> Result<(), Failure> {
    let commands = split_commands(&options.command)?;
    if options.fail_on.is_some() && commands.candidate.is_none() {
        return Err(Failure::usage("--fail-on compares two commands: -- COMMAND --against -- COMMAND"));
    }
    // Before a thread exists.
    if stacklab_testbed::enter()? == Privilege::UserNamespace {
        note("stacklab: not root: building the network in a user namespace");
    }
    let settings = MeasurementSettings {
        command: commands.baseline,
        scenarios: match options.scenarios {
            Scenarios::Quick => ScenarioSet::Quick,
            Scenarios::All => ScenarioSet::All,
        },
        repeat: options.repeat,
        limit: Duration::from_nanos(options.limit),
        seed: options.seed.unwrap_or_else(new_seed),
        interrupted: interrupt_flag()?,
    };
    if let Some(candidate) = commands.candidate {
        return compare_with(&settings, candidate, options);
    }
    let measurement = measure(&settings).map_err(failure)?;
    print_text(&match options.format {
        OutputFormat::Json => to_json(&measurement),
        OutputFormat::Html => to_html(&measurement),
        format => describe(&measurement, format == OutputFormat::Markdown, width()),
    })
}

/// The words behind `--`.
struct Commands<'a> {
    baseline: &'a [String],
    candidate: Option<&'a [String]>,
}

/// Splits `COMMAND --against -- COMMAND`.
fn split_commands(words: &[String]) -> Result<Commands<'_>, Failure> {
    let Some(place) = words.windows(2).position(|pair| pair == [AGAINST, "--"]) else {
        return Ok(Commands { baseline: words, candidate: None });
    };
    let baseline = &words[..place];
    let candidate = &words[place + 2..];
    if baseline.is_empty() || candidate.is_empty() {
        return Err(Failure::usage(
            "--against needs a command on both sides: -- COMMAND --against -- COMMAND",
        ));
    }
    Ok(Commands { baseline, candidate: Some(candidate) })
}

fn compare_with(
    settings: &MeasurementSettings<'_>,
    candidate: &[String],
    options: &EyeballsOptions,
) -> Result<(), Failure> {
    let comparison = compare(settings, candidate).map_err(failure)?;
    print_text(&match options.format {
        OutputFormat::Json => comparison_to_json(&comparison),
        OutputFormat::Html => comparison_to_html(&comparison),
        format => describe_comparison(&comparison, format == OutputFormat::Markdown, width()),
    })?;
    let Some(FailOn { worse }) = options.fail_on else { return Ok(()) };
    let mut failing = Vec::new();
    for delay in comparison.delays.iter().filter(|delay| delay.is_worse(worse)) {
        failing.push(delay.label.clone());
    }
    if failing.is_empty() {
        return Ok(());
    }
    let percent = 100.0 * worse;
    let text = format!(
        "the second command is slower by more than {percent} % and 5 ms, or gets no data where the first does: {}",
        failing.join("; ")
    );
    Err(Failure::new(WORSE, text))
}

fn failure(error: EyeballsError) -> Failure {
    match error {
        EyeballsError::Usage(_) | EyeballsError::Client(_) => Failure::usage(error),
        EyeballsError::Testbed(_) => Failure::new(TESTBED, error),
        EyeballsError::Interrupted => Failure::new(INTERRUPTED, error),
        EyeballsError::Step { .. } => Failure::new(crate::failure::OTHER, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Result<Vec<String>, Failure> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let Commands { baseline, candidate } = split_commands(&words)?;
        Ok(vec![baseline.join(" "), candidate.unwrap_or_default().join(" ")])
    }

    #[test]
    fn two_commands_are_split() {
        assert_eq!(split("curl {host} --against -- wget {host}").unwrap(), ["curl {host}", "wget {host}"]);
        assert_eq!(split("a --against b -- {host}").unwrap(), ["a --against b -- {host}", ""]);
        assert!(split("a --against --").unwrap_err().printable_reason().contains("on both sides"));
    }
}
