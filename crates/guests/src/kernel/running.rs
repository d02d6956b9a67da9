//! Programs that run for minutes, such as make: with signs of life, and nothing of them outlives an interruption.

use stacklab_testbed::kernel::sys::{kill_group, signal_group};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(20);
/// Time to remove incomplete files after a termination signal.
const LEAVING: Duration = Duration::from_secs(5);
/// Period of signs of life.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

/// A process group that does not outlive this value.
struct ProcessGroup(Child);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let until = Instant::now() + LEAVING;
        // Compilers and make remove incomplete files when they are terminated.
        let _ = signal_group(self.0.id(), nix::sys::signal::Signal::SIGTERM);
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(LOOK);
        }
        let _ = kill_group(self.0.id());
        let _ = self.0.wait();
    }
}

/// Runs a program in a process group to its end; its messages go to a file. `None` if the user interrupted: the group
/// is then terminated. Otherwise whether the program succeeded. `alive` is called every half minute with the seconds
/// so far.
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
        thread::sleep(LOOK);
    }
}

/// The first error among the messages of a program, else their last line.
pub fn first_error(messages: &Path) -> String {
    let text = fs::read(messages).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_error = |line: &&str| {
        let line = line.to_lowercase();
        ["error:", "fatal:", "undefined reference", "no space left"].iter().any(|word| line.contains(word))
    };
    let reason = lines().find(is_error).or_else(|| lines().rfind(|line| !line.starts_with("make")));
    reason.or_else(|| lines().next_back()).unwrap_or("it gave no reason").chars().take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn messages_give_the_first_error() {
        let folder = tempfile::tempdir().unwrap();
        let messages = folder.path().join("messages");
        let run = |script: &str| {
            let done =
                run_interruptibly(shell(script), &messages, &AtomicBool::new(false), &mut |_| {}).unwrap();
            (done, first_error(&messages))
        };
        assert_eq!(run("true"), (Some(true), "it gave no reason".to_owned()));
        let script = "echo a warning; echo 'a.c:1:2: error: no b' >&2; echo 'make: *** [x] Error 1'; exit 2";
        assert_eq!(run(script), (Some(false), "a.c:1:2: error: no b".to_owned()));
        assert_eq!(run("echo one; echo two; echo make: done; exit 1").1, "two");
    }

    #[test]
    fn an_interruption_ends_the_whole_group() {
        let folder = tempfile::tempdir().unwrap();
        let (messages, pid) = (folder.path().join("messages"), folder.path().join("pid"));
        let script = format!("sleep 600 & echo $! > {0}.part; mv {0}.part {0}; wait", pid.display());
        let interrupted = AtomicBool::new(false);
        let ended = thread::scope(|scope| {
            scope.spawn(|| {
                while !pid.exists() {
                    thread::sleep(LOOK);
                }
                interrupted.store(true, Ordering::Relaxed);
            });
            run_interruptibly(shell(&script), &messages, &interrupted, &mut |_| {}).unwrap()
        });
        assert_eq!(ended, None);
        let sleeper = fs::read_to_string(&pid).unwrap();
        // Gone, or a zombie that nobody has waited for.
        let state = fs::read_to_string(format!("/proc/{}/stat", sleeper.trim())).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }
}
