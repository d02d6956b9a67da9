//! Published studies.

use clap::{Args, Subcommand};

/// The verbs of `reference`.
#[derive(Debug, Subcommand)]
pub enum ReferenceCommand {
    /// List the studies with the number of figures, stated differences and findings
    List,
    /// Print a study's figures as its tables, the differences that it states and its findings
    Show(ShowOptions),
    /// Recompute every stated difference by each formula, and say which one gives what is printed
    Audit(AuditOptions),
}

/// Options of `reference show`.
#[derive(Debug, Args)]
pub struct ShowOptions {
    /// The study; see: stacklab reference list
    #[arg(value_name = "STUDY")]
    pub study: String,
}

/// Options of `reference audit`.
#[derive(Debug, Args)]
pub struct AuditOptions {
    /// text, or json: an object for each stated difference
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: TextOrJson,
}

/// What an answer that is no report of a record is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TextOrJson {
    /// For a terminal.
    Text,
    /// For programs.
    Json,
}
