//! Actions in a child process between fork and exec.

use crate::unshare_mounts;
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpid, getppid};
use std::fs::File;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

pub(crate) enum Network {
    New,
    /// This process's own, which an ordinary user may not enter, being in it.
    Own,
    Of(File),
}

/// Makes the command keep this process's file open. The caller closes its own copy after starting the command.
pub fn keep_open(command: &mut Command, file: RawFd) {
    // SAFETY: fcntl is async-signal-safe, and the closure owns nothing but a number.
    unsafe {
        command.pre_exec(move || {
            let answer = libc::fcntl(file, libc::F_SETFD, 0);
            if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        })
    };
}

/// Gives the command a private mount namespace, whose mounts vanish with the last of its processes.
pub fn mount_unseen(command: &mut Command) {
    // SAFETY: it makes system calls only; nix copies the short path to its own stack.
    unsafe { command.pre_exec(|| Ok(unshare_mounts()?)) };
}

/// Limits the open files of the command to 1024: some daemons allocate a table as large as the limit.
pub(crate) fn limit_open_files(command: &mut Command) {
    limit(command, Resource::RLIMIT_NOFILE, 1024);
}

/// Limits the files that the command writes to a gigabyte each. The kernel kills it if it writes more.
pub(crate) fn limit_file_size(command: &mut Command) {
    limit(command, Resource::RLIMIT_FSIZE, 1 << 30);
}

fn limit(command: &mut Command, of: Resource, most: u64) {
    // SAFETY: setrlimit is async-signal-safe, and the closure owns nothing but numbers.
    unsafe { command.pre_exec(move || Ok(setrlimit(of, most, most)?)) };
}

/// Makes the command start in a network namespace and on these processors (empty: on any). The kernel kills it when
/// the thread that spawned it ends, however that ends.
pub(crate) fn die_with_parent(command: &mut Command, namespace: Network, processors: &[usize]) {
    let parent = getpid();
    let mut allowed = CpuSet::new();
    let pinned = !processors.is_empty() && processors.iter().all(|cpu| allowed.set(*cpu).is_ok());
    let prepare = move || {
        set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have died before the signal was requested. The signal would then never be sent.
        if getppid() != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        if pinned {
            sched_setaffinity(Pid::from_raw(0), &allowed)?;
        }
        match &namespace {
            Network::Of(namespace) => setns(namespace, CloneFlags::CLONE_NEWNET)?,
            Network::New => unshare(CloneFlags::CLONE_NEWNET)?,
            Network::Own => {}
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. The closure makes system calls only
    // (prctl, getppid, sched_setaffinity, setns, unshare), allocates nothing, takes no lock and owns nothing but
    // plain numbers and an open file.
    unsafe { command.pre_exec(prepare) };
}

/// Kills a process group. Its leader has not been waited for yet, so its process ID cannot be reused.
pub fn kill_group(leader: u32) -> io::Result<()> {
    signal_group(leader, Signal::SIGKILL)
}

/// Sends a signal to such a process group.
pub fn signal_group(leader: u32, signal: Signal) -> io::Result<()> {
    // A process ID fits: Linux allows at most 2^22.
    Ok(killpg(Pid::from_raw(leader as i32), signal)?)
}
