//! This program as an agent, and programs that are not part of stacklab.

use crate::TestbedError;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The arguments with which stacklab is an agent on its standard input and output.
pub const AGENT: [&str; 2] = ["agent", "--stdio"];

/// The loader of programs that an image brings along, in the folder with their libraries.
pub const LOADER: &str = "ld-linux-x86-64.so.2";

/// The command of a program that a guest's image has in this folder, with its own loader and libraries.
pub fn bundled(folder: &str, program: &str) -> io::Result<Command> {
    let own = Path::new("/").join(folder);
    let file = own.join(program);
    file.metadata().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
    let mut command = Command::new(own.join(LOADER));
    command.arg("--library-path").arg(&own).arg(file);
    Ok(command)
}

/// Finds a program that is not part of stacklab. The error says how to get it.
pub fn find(program: &str, remedy: &str) -> Result<PathBuf, TestbedError> {
    program_in_path(program).ok_or_else(|| TestbedError::no_program(program, remedy))
}

/// Finds a program in PATH and the folders of system programs.
pub fn program_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).map(|folder| folder.join(name)).find(|file| {
        file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    })
}
