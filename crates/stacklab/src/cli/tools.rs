//! Guests, other machines, and texts made from the program itself.

use clap::Args;
use std::path::PathBuf;

/// Options of `guest`.
#[derive(Debug, Args)]
pub(crate) struct GuestOptions {
    /// The device of the coordinator's channel; default: the virtual machine's port named stacklab
    #[arg(long, value_name = "DEVICE")]
    pub channel: Option<PathBuf>,
}

/// Options of `ssh-clean`.
#[derive(Debug, Args)]
pub(crate) struct SshCleanOptions {
    /// The machines, as ssh or a study names them (USER@HOST, ssh:USER@HOST)
    #[arg(value_name = "HOST", required = true)]
    pub hosts: Vec<String>,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManOptions {
    /// The folder, which must exist
    pub folder: PathBuf,
}
