//! Runs the programs that fetch and build images.

use stacklab_testbed::TestbedError;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The number of output lines to keep from a failed program. A compiler prints many lines before its errors.
const LAST_LINES: usize = 12;
/// How often a slow program is said to run.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// Called with the description of each step before the step starts.
pub type Step<'a> = dyn FnMut(&str) + 'a;

pub(crate) struct ImageInfo {
    pub version: String,
    pub source: String,
    pub jool: Option<String>,
}

pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// As [`run`], of a program that takes minutes: says every few seconds that it still runs.
pub(crate) fn run_slowly(
    command: Command,
    attempted: &str,
    advice: &str,
    what: &str,
    step: &mut Step<'_>,
) -> Result<String, TestbedError> {
    thread::scope(|scope| {
        let (sender, done) = mpsc::channel();
        scope.spawn(move || sender.send(run(command, attempted, advice)));
        let began = Instant::now();
        loop {
            match done.recv_timeout(SIGN_OF_LIFE) {
                Ok(ended) => return ended,
                Err(_) => step(&format!("{what}: {} s so far", began.elapsed().as_secs())),
            }
        }
    })
}

/// Runs a program to its end, and returns its output.
pub(crate) fn run(mut command: Command, attempted: &str, advice: &str) -> Result<String, TestbedError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let missing = |error| failed(attempted, format!("{name}: {error}"), &format!("; install {name}"));
    let done = command.output().map_err(missing)?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let lines: Vec<&str> = said.trim().lines().collect();
    let said = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
    let said = if said.is_empty() { format!("{name} failed ({})", done.status) } else { said };
    Err(failed(attempted, said, advice))
}

/// An error: a step failed. The advice follows the reason, after a semicolon; it may be empty.
pub(crate) fn failed(attempted: &str, reason: impl fmt::Display, advice: &str) -> TestbedError {
    TestbedError(format!("could not {attempted}: {reason}{advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_program_gives_its_output_or_why_it_failed() {
        let mut said = Vec::new();
        let mut step = |what: &str| said.push(what.to_owned());
        let mut shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            run_slowly(command, "try it", "", "trying", &mut step)
        };
        assert_eq!(shell("echo done").unwrap(), "done\n");
        assert!(shell("echo no >&2; exit 3").unwrap_err().to_string().contains("no"));
    }
}
