//! Runs programs that fetch and build images and kernels, some for minutes: with signs of life, and nothing of them
//! outlives an interruption.

use serde::{Deserialize, Serialize};
use stacklab_model::{Mechanism, once_each};
use stacklab_testbed::kernel::sys::{kill_group, signal_group};
use stacklab_testbed::mechanism::nat;
use stacklab_testbed::{TestbedError, program_in_path};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

/// The number of output lines to keep from a failed program. A compiler prints many lines before its errors.
const LAST_LINES: usize = 12;
/// How often a slow program is said to run.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// The end of what is said of a step that still runs.
pub const STILL_RUNS: &str = " s so far";

/// Called with the description of each step before the step starts.
pub type Step<'a> = dyn FnMut(&str) + 'a;

/// What an image's label says of its origin.
#[derive(Serialize, Deserialize)]
pub(crate) struct ImageInfo {
    pub version: String,
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jool: Option<String>,
    /// The modules that this program has packed, if it has chosen among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packed: Option<String>,
}

/// What ends long waits, once a command has named it.
static INTERRUPTED: OnceLock<&'static AtomicBool> = OnceLock::new();

/// Has programs that fetch and build end when this flag is set, with all that they have started, and guests that boot.
pub fn interrupt_by(flag: &'static AtomicBool) {
    // The first one stays: a process has one such flag.
    let _ = INTERRUPTED.set(flag);
}

pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Waits for a program that leads a process group, and for its output. If the user interrupts, the group is terminated.
fn wait_for(child: Child, interrupted: Option<&AtomicBool>) -> io::Result<Output> {
    let group = child.id();
    thread::scope(|scope| {
        let waiting = scope.spawn(move || child.wait_with_output());
        let mut ending: Option<Instant> = None;
        while !waiting.is_finished() {
            if interrupted.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                match ending {
                    None => {
                        let _ = signal_group(group, nix::sys::signal::Signal::SIGTERM);
                        ending = Some(Instant::now());
                    }
                    Some(since) if since.elapsed() > LEAVING => drop(kill_group(group)),
                    Some(_) => {}
                }
            }
            thread::sleep(POLL_INTERVAL);
        }
        let done = waiting.join().unwrap_or_else(|_| Err(io::Error::other("its output was not read")))?;
        match ending {
            Some(_) => Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted")),
            None => Ok(done),
        }
    })
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
                Err(_) => step(&format!("{what}: {}{STILL_RUNS}", began.elapsed().as_secs())),
            }
        }
    })
}

/// Runs a program to its end, and returns its output.
pub(crate) fn run(mut command: Command, attempted: &str, advice: &str) -> Result<String, TestbedError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let interrupted = INTERRUPTED.get().copied();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if interrupted.is_some() {
        // A signal of the terminal reaches this process alone, which then ends the group.
        command.process_group(0);
    }
    let child = command.spawn().map_err(|error| {
        let advice = format!("; install {name}");
        describe_failure(attempted, format!("{name}: {error}"), &advice)
    })?;
    let done = wait_for(child, interrupted)
        .map_err(|error| describe_failure(attempted, format!("{name}: {error}"), ""))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let lines: Vec<&str> = said.trim().lines().collect();
    let said = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
    let said = if said.is_empty() { format!("{name} failed ({})", done.status) } else { said };
    Err(describe_failure(attempted, said, advice))
}

/// An error: a step failed. The advice follows the reason, after a semicolon; it may be empty.
pub(crate) fn describe_failure(attempted: &str, reason: impl fmt::Display, advice: &str) -> TestbedError {
    TestbedError(format!("could not {attempted}: {reason}{advice}"))
}

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time to remove incomplete files after a termination signal.
const LEAVING: Duration = Duration::from_secs(5);

/// A process group that does not outlive this value.
struct ProcessGroup(Child);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let until = Instant::now() + LEAVING;
        // Compilers and make remove incomplete files when they are terminated.
        let _ = signal_group(self.0.id(), nix::sys::signal::Signal::SIGTERM);
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(POLL_INTERVAL);
        }
        let _ = kill_group(self.0.id());
        let _ = self.0.wait();
    }
}

/// Runs a program in a process group to its end; its messages go to a file. `None` if the user interrupted: the group
/// is then terminated. Otherwise whether the program succeeded. `alive` is called every five seconds with the
/// seconds so far.
///
/// # Errors
/// The program cannot be started, or the file cannot be written.
pub fn run_interruptibly(
    mut command: Command,
    messages: &Path,
    interrupted: &AtomicBool,
    alive: &mut dyn FnMut(u64),
) -> io::Result<Option<bool>> {
    let file = File::create(messages)?;
    command.stdout(file.try_clone()?).stderr(file).process_group(0).env("LC_ALL", "C");
    let mut group = ProcessGroup(command.spawn()?);
    let began = Instant::now();
    let mut next = SIGN_OF_LIFE;
    loop {
        if let Some(status) = group.0.try_wait()? {
            return Ok(Some(status.success()));
        }
        if interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if began.elapsed() > next {
            next += SIGN_OF_LIFE;
            alive(began.elapsed().as_secs());
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// The first error among the messages of a program, else their last line.
pub fn first_error(messages: &Path) -> String {
    let text = fs::read(messages).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let error = lines.iter().find(|line| reports_error(line));
    let last = lines.iter().rfind(|line| !line.starts_with("make"));
    match error.or(last).or(lines.last()) {
        Some(line) => line.chars().take(400).collect(),
        None => "it gave no reason".to_owned(),
    }
}

fn reports_error(line: &str) -> bool {
    let line = line.to_lowercase();
    ["error:", "fatal:", "undefined reference", "no space left"].iter().any(|word| line.contains(word))
}

pub(crate) fn check_programs(programs: &[&str], library: &str, remedy: &str) -> Result<(), TestbedError> {
    if let Some(program) = programs.iter().find(|program| program_in_path(program).is_none()) {
        return Err(TestbedError::no_program(program, remedy));
    }
    let found = Command::new("pkg-config").args(["--exists", library]).status();
    if !found.is_ok_and(|status| status.success()) {
        return Err(TestbedError(format!("there is no library {library} to build kernels with: {remedy}")));
    }
    Ok(())
}

/// The first option of a configuration, or of a mechanism, that a kernel's configuration lacks and must have.
pub(crate) fn first_missing(config: &str, may_lack: &[&str], has: &str) -> Option<String> {
    let config = with_mechanisms(config);
    let mut wanted = config.lines().filter(|line| line.starts_with("CONFIG_") && !may_lack.contains(line));
    wanted.find(|wanted| !has.lines().any(|line| line == *wanted)).map(str::to_owned)
}

/// A configuration with the options that mechanisms need.
pub(crate) fn with_mechanisms(config: &str) -> String {
    let devices = Mechanism::devices();
    let of_devices = devices.iter().flat_map(|(_, device)| device.options).copied();
    let options = once_each(of_devices.chain(nat::OPTIONS));
    format!("{config}\n{}\n", options.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_program_gives_its_output_or_why_it_failed() {
        let done = run_slowly(shell("echo done"), "try it", "", "trying", &mut |_| {});
        assert_eq!(done.unwrap(), "done\n");
        let done = run_slowly(shell("echo no >&2; exit 3"), "try it", "", "trying", &mut |_| {});
        assert!(done.unwrap_err().to_string().contains("no"));
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn names_a_program_that_is_missing() {
        let reason =
            check_programs(&["sh", "no-such-program"], "libelf", "install it").unwrap_err().to_string();
        assert!(reason.contains("`no-such-program`") && reason.contains("install it"), "{reason}");
    }

    #[test]
    fn messages_give_the_first_error() {
        let folder = tempfile::tempdir().unwrap();
        let messages = folder.path().join("messages");
        for (script, succeeds, error) in [
            ("true", true, "it gave no reason"),
            (
                "echo a warning; echo 'a.c:1:2: error: no b' >&2; echo 'make: *** [x] Error 1'; exit 2",
                false,
                "a.c:1:2: error: no b",
            ),
            ("echo one; echo two; echo make: done; exit 1", false, "two"),
        ] {
            let never = AtomicBool::new(false);
            let done = run_interruptibly(shell(script), &messages, &never, &mut |_| {}).unwrap();
            assert_eq!(done, Some(succeeds), "{script}");
            assert_eq!(first_error(&messages), error, "{script}");
        }
    }

    #[test]
    fn interrupted_program_ends_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! > {0}.part; mv {0}.part {0}; wait", pid.display());
        let mut command = shell(&script);
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        while !pid.exists() {
            thread::sleep(POLL_INTERVAL);
        }
        // The output is the sleeper's too: it has ended if this ends.
        let ended = wait_for(child, Some(&AtomicBool::new(true))).unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn an_interruption_ends_the_whole_group() {
        let folder = tempfile::tempdir().unwrap();
        let messages = folder.path().join("messages");
        let pid = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! > {0}.part; mv {0}.part {0}; wait", pid.display());
        let interrupted = AtomicBool::new(false);
        let ended = thread::scope(|scope| {
            scope.spawn(|| {
                while !pid.exists() {
                    thread::sleep(POLL_INTERVAL);
                }
                interrupted.store(true, Ordering::Relaxed);
            });
            run_interruptibly(shell(&script), &messages, &interrupted, &mut |_| {}).unwrap()
        });
        assert_eq!(ended, None);
        let sleeper = fs::read_to_string(&pid).unwrap();
        // Gone, or a zombie that nobody has waited for, once it has had a processor to end on.
        let began = Instant::now();
        loop {
            let state = fs::read_to_string(format!("/proc/{}/stat", sleeper.trim())).unwrap_or_default();
            if state.is_empty() || state.contains(") Z ") {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{state}");
            thread::sleep(POLL_INTERVAL);
        }
    }
}
