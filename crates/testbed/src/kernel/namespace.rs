//! Doing something inside a network namespace: on a thread of its own, which ends there, so that no other thread ever leaves
//! the machine's namespace; or as the whole process, before it runs another program there ([`join`]).

use crate::error::{Attempt, Fault};
use crate::kernel::sys::die_with_parent_in;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// Runs `work` on a new thread in the network namespace of a living process, and waits for it. Sockets made there
/// stay in that namespace wherever they are used.
///
/// # Errors
/// The process is gone, or its namespace is not to be entered (neither root nor [`crate::enter`]).
///
/// # Panics
/// When `work` panics.
pub fn in_namespace<T: Send>(pid: u32, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    on_a_thread(work, || enter_namespace(pid))
}

/// Takes the calling thread, which must end there, into the network namespace of a living process.
pub(crate) fn enter_namespace(pid: u32) -> io::Result<()> {
    let path = format!("/proc/{pid}/ns/net");
    let enter = || setns(File::open(&path)?, CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
    enter().map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
}

/// Starts a program in the network namespace of a living process, on these processors (on any, where there are none), in a
/// process group of its own. It is killed when the calling thread ends.
pub(crate) fn spawn_in_namespace(
    pid: u32,
    command: &mut Command,
    processors: &[usize],
) -> Result<Child, Fault> {
    let program = command.get_program().to_string_lossy().into_owned();
    let path = format!("/proc/{pid}/ns/net");
    let namespace = File::open(&path).attempt(format!("open {path}"))?;
    command.process_group(0);
    die_with_parent_in(command, namespace, processors);
    command.spawn().attempt(format!("start {program}"))
}

/// Takes this process into the network namespace of another, and into its user namespace where that is not the same. It
/// must have one thread, as a program has that is about to run another.
///
/// # Errors
/// The other process is gone, or is another user's.
pub fn join(pid: u32) -> io::Result<()> {
    let path = |of: &str, name: &str| format!("/proc/{of}/ns/{name}");
    let pid = pid.to_string();
    let user = path(&pid, "user");
    // Both are opened before the first is entered: what may be opened changes with it.
    let (network, other) = (File::open(path(&pid, "net"))?, File::open(&user)?);
    if std::fs::read_link(&user)? != std::fs::read_link(path("self", "user"))? {
        setns(other, CloneFlags::CLONE_NEWUSER)?;
    }
    Ok(setns(network, CloneFlags::CLONE_NEWNET)?)
}

/// Asks a process to end.
///
/// # Errors
/// It is gone, or another user's.
pub fn end(pid: u32) -> io::Result<()> {
    // A process number fits: Linux has at most 2^22.
    Ok(kill(Pid::from_raw(pid as i32), Signal::SIGTERM)?)
}

/// How long a process may take to end that is asked to, and how often it is looked.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);

/// Ends what else runs in the network namespaces of these processes, which would otherwise keep them: it is asked to, and killed
/// where it does not. The machine's own namespace is left alone.
pub fn clear(processes: &[u32]) {
    let own = namespace_of("self");
    let spaces: Vec<PathBuf> = processes
        .iter()
        .filter_map(|pid| namespace_of(&pid.to_string()))
        .filter(|space| Some(space) != own.as_ref())
        .collect();
    let others = || {
        let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
        let pids = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
        let others = pids.filter(|pid| !processes.contains(pid));
        let inside = |pid: &u32| namespace_of(&pid.to_string()).is_some_and(|space| spaces.contains(&space));
        others.filter(inside).collect::<Vec<u32>>()
    };
    let start = Instant::now();
    for pid in others() {
        // One that has ended meanwhile needs it no more.
        let _ = end(pid);
    }
    while !others().is_empty() && start.elapsed() < PATIENCE {
        thread::sleep(LOOK);
    }
    for pid in others() {
        let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
    }
}

/// What the network namespace of a process is called; `None` where it is gone, or another user's.
fn namespace_of(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/net")).ok()
}

/// Runs `work` on a new thread in a fresh network namespace, which vanishes with the thread.
pub(crate) fn in_new_namespace<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    on_a_thread(work, || unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from))
}

fn on_a_thread<T: Send>(
    work: impl FnOnce() -> T + Send,
    enter: impl FnOnce() -> io::Result<()> + Send,
) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("namespace".into()).spawn_scoped(scope, || {
            enter()?;
            Ok(work())
        })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
