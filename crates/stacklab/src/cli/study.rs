//! `stacklab study`.

use clap::Subcommand;
use std::path::PathBuf;

/// Studies that are built in, and what study files may contain.
#[derive(Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// List the built-in studies
    List,
    /// Print a built-in study with its comments, as a template
    Show {
        /// Its name, as `list` prints it
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Write a small study to change
    New {
        /// The file, which must not exist
        #[arg(value_name = "FILE", default_value = "study.toml")]
        file: PathBuf,
    },
    /// Print the reference of study files (docs/study.md): every key, level, probe and metric
    Reference,
}
