//! What other systems boot from.

use clap::{Args, Subcommand};
use stacklab_model::System;
use std::path::PathBuf;

/// The verbs of `image`.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// List the systems, and which of them are here in which version
    List,
    /// Fetch the newest image of a system
    Get(ImageGetOptions),
    /// Build a user-mode Linux: of Debian's stable source with all transition mechanisms and Jool, or of a tree of your
    /// own
    Build(ImageBuildOptions),
    /// Read all files of the images that are here and compare them with what was fetched
    Check,
}

/// Options of `image get`.
#[derive(Debug, Args)]
pub(crate) struct ImageGetOptions {
    /// gvisor, uml, or linux- with a series: linux-5.10, linux-6.1, linux-6.12, linux-7.2; several may be given
    #[arg(value_name = "SYSTEM", required = true)]
    pub systems: Vec<System>,
}

/// Options of `image build`.
#[derive(Debug, Args)]
pub(crate) struct ImageBuildOptions {
    /// uml- and a name: what studies and --in-vm call it
    #[arg(value_name = "uml-NAME")]
    pub system: System,
    /// A folder with the source of a Linux kernel (not modified); without it, Debian's stable source is fetched
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,
}
