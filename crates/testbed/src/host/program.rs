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

/// The absolute path of a program in a folder, or as [`find`] has it without one.
pub fn find_in(folder: Option<&str>, program: &str, remedy: &str) -> Result<PathBuf, TestbedError> {
    let Some(folder) = folder else { return find(program, remedy) };
    let file = Path::new(folder).join(program);
    let found = std::path::absolute(&file).ok().filter(|file| is_program(file));
    found.ok_or_else(|| {
        TestbedError::no_program(&file.display().to_string(), "build it there: `programs` names its folder")
    })
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Finds a program in PATH and the folders of system programs.
pub fn program_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).map(|folder| folder.join(name)).find(|file| is_program(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_their_folder_alone() {
        let in_bin = find_in(Some("/bin"), "sh", "").unwrap();
        assert_eq!(in_bin, Path::new("/bin/sh"));
        let error = find_in(Some("base/src"), "sh", "").unwrap_err().to_string();
        assert!(error.contains("no program `base/src/sh`") && error.contains("`programs`"), "{error}");
        assert_eq!(find_in(None, "sh", "").unwrap(), program_in_path("sh").unwrap());
    }
}
