//! This program as an agent, and programs that are not part of stacklab.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The arguments with which stacklab is an agent on its standard input and output.
pub const AGENT: [&str; 2] = ["agent", "--stdio"];

/// Finds a program in PATH and the folders of system programs.
pub(crate) fn program_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).map(|folder| folder.join(name)).find(|file| {
        file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    })
}
