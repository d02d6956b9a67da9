//! The programs that fetch and build images, and what they report.

use crate::error::TestbedError;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Of what a program said when it failed; a compiler says much before that.
const LAST_LINES: usize = 12;

/// Is told each step before it is done.
pub type Step<'a> = dyn FnMut(&str) + 'a;

/// What an image was made of.
pub(crate) struct ImageInfo {
    /// Its exact version.
    pub version: String,
    /// Where it came from.
    pub source: String,
    /// The version of Jool in it.
    pub jool: Option<String>,
}

/// Removes a folder with all that is in it, where it is there.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Runs a program to its end and gives what it printed.
///
/// # Errors
/// What it said when it failed, or that it is not there.
pub(crate) fn run(mut command: Command, attempted: &str, advice: &str) -> Result<String, TestbedError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |reason: String, advice: &str| TestbedError::Get {
        attempted: attempted.to_owned(),
        reason,
        advice: advice.to_owned(),
    };
    let done = match command.output() {
        Ok(done) => done,
        Err(error) => return Err(failed(format!("{name}: {error}"), &format!("; install {name}"))),
    };
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let lines: Vec<&str> = said.trim().lines().collect();
    let said = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
    Err(failed(if said.is_empty() { format!("{name} failed ({})", done.status) } else { said }, advice))
}
