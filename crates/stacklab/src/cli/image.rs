//! What other systems boot from.

use clap::{Args, Subcommand};
use stacklab_model::System;
use std::path::PathBuf;

/// The subcommands of `image`.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// List the systems, and the versions that are installed
    List,
    /// Fetch the newest image of a system
    Get(ImageGetOptions),
    /// Build user-mode Linux: from Debian's stable source, with all transition mechanisms and Jool, or from your kernel
    /// tree
    Build(ImageBuildOptions),
    /// Compare all files of the installed images with the sums taken when they were fetched
    Check,
}

/// Options of `image get`.
#[derive(Debug, Args)]
pub(crate) struct ImageGetOptions {
    /// gvisor, uml, or a kernel series: linux-5.10, linux-6.1, linux-6.12, linux-7.2; may be repeated
    #[arg(value_name = "SYSTEM", required = true)]
    pub systems: Vec<System>,
}

/// Options of `image build`.
#[derive(Debug, Args)]
pub(crate) struct ImageBuildOptions {
    /// uml-NAME: its name in studies and for --in-vm
    #[arg(value_name = "uml-NAME")]
    pub system: System,
    /// A folder with Linux source, which is not modified; default: Debian's stable source, fetched
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,
}
