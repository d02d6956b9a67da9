//! Programs of packages that configure a namespace's kernel.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a program that reads commands from its standard input. An error has the program's first line.
pub(super) fn run_with_input(program: &Path, arguments: &[&str], input: &str) -> io::Result<()> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().expect("it is a pipe").write_all(input.as_bytes())?;
    let done = child.wait_with_output()?;
    if done.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&done.stderr);
    let first = errors.lines().next().map_or_else(|| done.status.to_string(), str::to_owned);
    Err(io::Error::other(format!("{}: {first}", program.display())))
}
