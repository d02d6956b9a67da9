//! `stacklab eyeballs`.

use crate::failure::{Failure, INTERRUPTED, TESTBED, interrupt_flag};
use crate::output::{print_text, width};
use crate::quantities::{format, some_time};
use clap::{Args, ValueEnum};
use stacklab_campaign::notice::note;
use stacklab_campaign::sources::new_seed;
use stacklab_eyeballs::{EyeballsError, ScenarioSet, Settings, describe, measure, to_json};
use stacklab_report::OutputFormat;
use stacklab_testbed::Privilege;
use std::time::Duration;

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
    /// text, markdown or json
    #[arg(long, value_name = "FORMAT", value_parser = format(&["text", "markdown", "json"]), default_value = "text")]
    pub format: OutputFormat,
    /// The command, with {host} in the place of the name that it connects to
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenarios {
    Quick,
    All,
}

pub(crate) fn eyeballs(options: &EyeballsOptions) -> Result<(), Failure> {
    // Before a thread exists.
    if stacklab_testbed::enter()? == Privilege::UserNamespace {
        note("stacklab: not root: building the network in a user namespace");
    }
    let settings = Settings {
        command: &options.command,
        scenarios: match options.scenarios {
            Scenarios::Quick => ScenarioSet::Quick,
            Scenarios::All => ScenarioSet::All,
        },
        repeat: options.repeat,
        limit: Duration::from_nanos(options.limit),
        seed: options.seed.unwrap_or_else(new_seed),
        interrupted: interrupt_flag()?,
    };
    let measurement = measure(&settings).map_err(failure)?;
    print_text(&match options.format {
        OutputFormat::Json => to_json(&measurement),
        format => describe(&measurement, format == OutputFormat::Markdown, width()),
    })
}

fn failure(error: EyeballsError) -> Failure {
    match error {
        EyeballsError::Usage(_) | EyeballsError::Client(_) => Failure::usage(error),
        EyeballsError::Testbed(_) => Failure::new(TESTBED, error),
        EyeballsError::Interrupted => Failure::new(INTERRUPTED, error),
        EyeballsError::Step { .. } => Failure::new(crate::failure::OTHER, error),
    }
}
