//! A process that outlives this one if this one is killed (SIGKILL), and then ends what hosts' programs
//! have started: programs of others may have gone into the background, where no signal of the kernel's reaches them.

use crate::host::workdir::remove_leftovers;
use crate::kernel::belonging::list_others;
use crate::kernel::namespace::open_other;
use crate::{AtHost, Attempt, Host, Process, TestbedError};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{process, thread};

/// The command of this program that watches.
pub const WATCH: &str = "watch";
/// How long it goes through the processes: a program may start others meanwhile.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How much is read of why it has ended.
const MAX_REASON_BYTES: u64 = 1000;
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A process that watches. Dropping it ends it, and then it does nothing.
pub struct Watch {
    // The drop order: it is killed before the pipe is closed, which would be the sign for it.
    _process: Process,
    _pipe: Box<dyn Write + Send>,
}

impl Watch {
    /// Starts one for two hosts. `program` is this program's file.
    pub fn start(program: &Path, hosts: [&Host; 2]) -> Result<Self, TestbedError> {
        let mut command = Command::new(program);
        command.arg(WATCH).args(hosts.map(|host| host.pid().to_string()));
        let attempted = "start what ends programs if stacklab is killed";
        let node = hosts[0].node();
        let errors = tempfile::tempfile().attempt(attempted).at(node)?;
        let written = errors.try_clone().attempt(attempted).at(node)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(written);
        let started = Process::spawn(&mut command).attempt(format!("start {}", program.display()));
        let mut process = started.at(node)?;
        let (output, pipe) = process.streams().expect("both are pipes");
        await_ready(output, errors).attempt(attempted).at(node)?;
        Ok(Watch { _process: process, _pipe: pipe })
    }
}

/// Waits until a watching process knows the namespaces. If it has ended before, its last words are the reason.
fn await_ready(mut output: impl Read, mut errors: File) -> io::Result<()> {
    let Err(ended) = output.read_exact(&mut [0]) else { return Ok(()) };
    let mut bytes = Vec::new();
    errors.seek(SeekFrom::Start(0))?;
    errors.take(MAX_REASON_BYTES).read_to_end(&mut bytes)?;
    let reason = String::from_utf8_lossy(&bytes).trim().to_owned();
    if reason.is_empty() {
        return Err(ended);
    }
    Err(io::Error::new(ended.kind(), reason))
}

/// Waits until standard input ends, which the kernel closes with the process that has the other end, and ends all
/// processes that belong to the hosts of these, whose network namespaces are not this one's own.
pub fn watch(hosts: &[u32]) -> io::Result<()> {
    let mut spaces = Vec::new();
    for host in hosts {
        // As long as they are open, no other namespace has their numbers.
        spaces.push(open_other(*host)?);
    }
    let mut output = io::stdout();
    output.write_all(b"\n")?;
    output.flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    kill_all(&spaces)?;
    remove_leftovers();
    Ok(())
}

/// Kills what belongs to hosts with these namespaces until there is nothing.
fn kill_all(spaces: &[File]) -> io::Result<()> {
    let known = name_all(spaces)?;
    let until = Instant::now() + TIMEOUT;
    loop {
        let found = list_others(&known, &[process::id()]);
        if found.is_empty() || Instant::now() > until {
            return Ok(());
        }
        for pid in found {
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// The names of open namespaces, as /proc has them for processes.
fn name_all(spaces: &[File]) -> io::Result<Vec<PathBuf>> {
    spaces.iter().map(|space| fs::read_link(format!("/proc/self/fd/{}", space.as_raw_fd()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_new_namespace;
    use std::slice;

    fn count_inside(space: &File) -> usize {
        // A thread of this process is there, too, but no process is.
        list_others(&name_all(slice::from_ref(space)).unwrap(), &[]).len()
    }

    #[test]
    fn a_watch_that_fails_says_why() {
        let mut errors = tempfile::tempfile().unwrap();
        errors.write_all(b"stacklab: namespace: no such file\n").unwrap();
        let failed = await_ready(io::empty(), errors.try_clone().unwrap()).unwrap_err();
        assert_eq!(failed.to_string(), "stacklab: namespace: no such file");
        assert!(await_ready(&b"\n"[..], errors).is_ok());
        let silent = await_ready(io::empty(), tempfile::tempfile().unwrap()).unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn ends_what_belongs_to_a_host_alone() {
        let mut outside = Command::new("sleep").arg("60").spawn().unwrap();
        in_new_namespace(|| {
            // It has left its session, and its parent has ended.
            let mut inside =
                Command::new("sh").args(["-c", "setsid sleep 60 & exec sleep 60"]).spawn().unwrap();
            let space = File::open(format!("/proc/{}/ns/net", inside.id())).unwrap();
            while count_inside(&space) < 2 {
                thread::sleep(POLL_INTERVAL);
            }
            kill_all(&[space.try_clone().unwrap()]).unwrap();
            assert!(!inside.wait().unwrap().success());
            assert_eq!(count_inside(&space), 0);
        })
        .unwrap();
        assert!(outside.try_wait().unwrap().is_none());
        outside.kill().unwrap();
        outside.wait().unwrap();
    }
}
