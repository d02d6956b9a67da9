//! A manual testbed.

use crate::cli::run::{PlacementOptions, StudyOptions};
use clap::{Args, Subcommand};
use stacklab_model::Mechanism;
use std::path::PathBuf;

/// The subcommands of `lab`.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Build a study's testbed and leave it up
    Up(LabUpOptions),
    /// Run a command, or a shell, on a host of the running testbed: sender, receiver, and router1, router2 between
    /// them
    Enter(LabEnterOptions),
    /// Remove the running testbed
    Down,
    /// Hold a testbed (used by stacklab itself)
    #[command(hide = true)]
    Hold(LabUpOptions),
    /// Become a command on a host, inside a guest (used by stacklab itself)
    #[command(hide = true)]
    Inside(LabInsideOptions),
}

/// Options of `lab up`.
#[derive(Debug, Args)]
pub(crate) struct LabUpOptions {
    /// Which study.
    #[command(flatten)]
    pub study: StudyOptions,
    /// The mechanism between the routers; default: the study's first
    #[arg(long, value_name = "NAME")]
    pub mechanism: Option<Mechanism>,
    #[command(flatten)]
    pub placement: PlacementOptions,
}

/// Options of `lab inside`.
#[derive(Debug, Args)]
pub(crate) struct LabInsideOptions {
    /// A process in the host's network namespace
    pub host: u32,
    /// Where the command starts
    pub folder: PathBuf,
    /// The command with its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

/// Options of `lab enter`.
#[derive(Debug, Args)]
pub(crate) struct LabEnterOptions {
    /// The host
    #[arg(value_name = "HOST")]
    pub host: String,
    /// The command with its arguments; without one, your shell
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}
