//! The versions of programs: the first line of what they print when they are asked for it.

use crate::host::program::SHELL;
use crate::kernel::sys::{kill_group, limit as set_limit};
use crate::services::program::with_own_libraries;
use nix::sys::resource::Resource;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// What a program that is asked for its version may write, bytes, and how much of that is read.
const MAX_FILE_BYTES: u64 = 1 << 24;
const MAX_READ_BYTES: u64 = 1 << 16;

/// What a program prints when it is asked for its version: the first line; its name if it prints nothing within a
/// second. Then it is killed with what it started, which may hold its output open.
pub fn first_line(file: &Path, arguments: &[String]) -> String {
    let mut command = Command::new(file);
    command.args(arguments);
    with_own_libraries(&mut command, file);
    let ran = run_for(command, Duration::from_secs(1), || false);
    let printed = ran.map(|ran| ran.printed).unwrap_or_default();
    find_first_line(&printed)
        .unwrap_or_else(|| file.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

/// The first line that a command for a shell prints. The error says why it has none. It is killed once `stop` says so.
pub fn first_line_of_command(
    command: &str,
    limit: Duration,
    stop: impl Fn() -> bool,
) -> Result<String, String> {
    let mut shell = Command::new(SHELL);
    shell.args(["-c", command]);
    let ran = run_for(shell, limit, stop).map_err(|error| error.to_string())?;
    let line = find_first_line(&ran.printed);
    match line {
        _ if ran.is_killed => Err(format!("it did not end within {} s", limit.as_secs())),
        Some(line) if !ran.status.success() => Err(format!("{}: {line}", ran.status)),
        Some(line) => Ok(line),
        None => Err(format!("it printed nothing ({})", ran.status)),
    }
}

fn find_first_line(printed: &str) -> Option<String> {
    let line = printed.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(80).collect())
}

/// A command that has ended.
struct Ran {
    printed: String,
    status: ExitStatus,
    /// Whether it was killed at its limit, or since it was to stop.
    is_killed: bool,
}

/// Runs a command to its end. It prints to files, not to pipes: these would have to be read meanwhile, and what it has
/// left in the background could hold them open. That is killed with it.
fn run_for(mut command: Command, limit: Duration, stop: impl Fn() -> bool) -> io::Result<Ran> {
    let mut output = tempfile::tempfile()?;
    let mut errors = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(errors.try_clone()?);
    command.process_group(0);
    set_limit(&mut command, Resource::RLIMIT_FSIZE, MAX_FILE_BYTES);
    let mut child = command.spawn()?;
    let until = Instant::now() + limit;
    let mut is_killed = false;
    let status = loop {
        // It stays a child that can be waited for, so that no other group has its number.
        if is_over(&child)? {
            let _ = kill_group(child.id());
            break child.wait()?;
        }
        if !is_killed && (Instant::now() > until || stop()) {
            is_killed = true;
            kill_group(child.id())?;
        }
        thread::sleep(POLL_INTERVAL);
    };
    let printed = read_start(&mut output)? + &read_start(&mut errors)?;
    Ok(Ran { printed, status, is_killed })
}

fn is_over(child: &Child) -> io::Result<bool> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    let waited = waitid(Id::Pid(Pid::from_raw(child.id() as i32)), flags)?;
    Ok(waited != WaitStatus::StillAlive)
}

fn read_start(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn run_script(script: &str) -> String {
        first_line(Path::new("/bin/sh"), &["-c".to_owned(), script.to_owned()])
    }

    #[test]
    fn the_first_line_of_a_program_is_its_version() {
        assert_eq!(run_script("echo; echo tool 1.2; echo more; exit 1"), "tool 1.2");
        assert_eq!(run_script("echo other >&2"), "other");
        let began = Instant::now();
        assert_eq!(run_script("sleep 60; true"), "sh");
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        assert_eq!(first_line(Path::new("/nonexistent/tool"), &[]), "tool");
    }

    fn ask(command: &str) -> Result<String, String> {
        first_line_of_command(command, Duration::from_millis(300), || false)
    }

    #[test]
    fn a_version_command_is_not_waited_for_in_vain() {
        // More than a pipe holds.
        let long = "i=0; while [ $i -lt 3000 ]; do echo 'a line of a long text about all of its options'; i=$((i+1)); done";
        let limit = Duration::from_secs(60);
        assert!(first_line_of_command(long, limit, || false).unwrap().starts_with("a line"));
        let began = Instant::now();
        // Its child has the output open, and ends with it.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid").display().to_string();
        let background = format!("sleep 300 & echo $! > {file}; echo tool");
        assert_eq!(first_line_of_command(&background, limit, || false), Ok("tool".to_owned()));
        let pid = fs::read_to_string(&file).unwrap();
        let status = format!("/proc/{}/cmdline", pid.trim());
        while fs::read(&status).is_ok_and(|words| words.starts_with(b"sleep")) {
            assert!(began.elapsed() < limit, "{pid} was not killed");
            thread::sleep(POLL_INTERVAL);
        }
        assert!(first_line_of_command("sleep 300", limit, || true).is_err());
        assert!(began.elapsed() < limit, "{:?}", began.elapsed());
    }

    #[test]
    fn a_version_command_says_why_it_has_none() {
        assert_eq!(ask("echo 'tool 1.2' >&2"), Ok("tool 1.2".to_owned()));
        assert_eq!(ask("true"), Err("it printed nothing (exit status: 0)".to_owned()));
        assert_eq!(ask("echo no tool; exit 3"), Err("exit status: 3: no tool".to_owned()));
        assert!(ask("echo tool; sleep 60").unwrap_err().contains("did not end"));
    }
}
