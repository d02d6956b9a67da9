//! Which processes belong to a host: those in its network namespace, and those that its programs have started in
//! namespaces that they made.

use crate::kernel::namespace::end;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// The variable that names a host's network namespace in the environment of its programs. A process that a program
/// starts in another namespace inherits it.
const VARIABLE: &str = "STACKLAB_NAMESPACE";
const TIMEOUT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Makes what a command starts belong to the host of a process, wherever it goes.
pub(crate) fn bind_to_host(command: &mut Command, host: u32) -> io::Result<()> {
    command.env(VARIABLE, namespace_of(&host.to_string())?);
    Ok(())
}

/// Ends all other processes that belong to the hosts of these processes, but none that are the machine's own.
pub fn clear(processes: &[u32]) {
    let own = namespace_of("self").ok();
    let spaces: Vec<PathBuf> = processes
        .iter()
        .filter_map(|pid| namespace_of(&pid.to_string()).ok())
        .filter(|space| Some(space) != own.as_ref())
        .collect();
    let others = || list_others(&spaces, processes);
    let start = Instant::now();
    for pid in others() {
        let _ = end(pid);
    }
    while !others().is_empty() && start.elapsed() < TIMEOUT {
        thread::sleep(POLL_INTERVAL);
    }
    for pid in others() {
        let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
    }
}

/// The processes that belong to hosts with these network namespaces, without some.
pub(crate) fn list_others(spaces: &[PathBuf], without: &[u32]) -> Vec<u32> {
    let others = list_processes().filter(|pid| !without.contains(pid));
    others.filter(|pid| belongs(*pid, spaces)).collect()
}

fn belongs(pid: u32, spaces: &[PathBuf]) -> bool {
    let is_inside = namespace_of(&pid.to_string()).is_ok_and(|space| spaces.contains(&space));
    is_inside || origin_of(pid).is_some_and(|space| spaces.contains(&space))
}

/// The namespace of the host whose program started a process, as far as its environment says so.
fn origin_of(pid: u32) -> Option<PathBuf> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let space = variables.find_map(|variable| variable.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="));
    space.map(|space| PathBuf::from(OsString::from_vec(space.to_vec())))
}

pub(crate) fn list_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Identifies the network namespace of a process.
pub(crate) fn namespace_of(process: &str) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/net"))
}
