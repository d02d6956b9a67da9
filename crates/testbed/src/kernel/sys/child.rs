//! What happens in a child between fork and exec.

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpid, getppid};
use std::fs::File;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the command start in a fresh network namespace and on these processors (on any, where there are none), and be
/// killed when the thread that spawned it ends, however that ends.
pub(crate) fn die_with_parent_in_new_namespace(command: &mut Command, processors: &[usize]) {
    die_with_parent(command, None, processors);
}

/// The same in a network namespace that is there already.
pub(crate) fn die_with_parent_in(command: &mut Command, namespace: File, processors: &[usize]) {
    die_with_parent(command, Some(namespace), processors);
}

/// Has the command keep a file that is open in this process; the caller closes its own when the command was started.
pub(crate) fn keep_open(command: &mut Command, file: RawFd) {
    // SAFETY: fcntl is async-signal-safe, and the closure owns nothing but a number.
    unsafe {
        command.pre_exec(move || {
            let answer = libc::fcntl(file, libc::F_SETFD, 0);
            if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        })
    };
}

/// Has the command mount what it likes where nobody else sees it, and where it goes with the last of its processes.
pub(crate) fn mount_unseen(command: &mut Command) {
    let apart = || {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        Ok(mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?)
    };
    // SAFETY: both are system calls; nix copies the short path to its own stack, and the closure owns nothing.
    unsafe { command.pre_exec(apart) };
}

/// Has the command open few files at most: some daemons have a table for as many as they may open.
pub(crate) fn limit_open_files(command: &mut Command) {
    const FILES: libc::rlimit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
    // SAFETY: setrlimit is async-signal-safe, takes a pointer to a constant, and the closure owns nothing.
    unsafe {
        command.pre_exec(|| {
            let answer = libc::setrlimit(libc::RLIMIT_NOFILE, &FILES);
            if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        })
    };
}

fn die_with_parent(command: &mut Command, namespace: Option<File>, processors: &[usize]) {
    let parent = getpid();
    let mut allowed = CpuSet::new();
    let pinned = !processors.is_empty() && processors.iter().all(|cpu| allowed.set(*cpu).is_ok());
    let prepare = move || {
        set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have died before the signal was asked for; then nobody would send it.
        if getppid() != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        if pinned {
            sched_setaffinity(Pid::from_raw(0), &allowed)?;
        }
        match &namespace {
            Some(namespace) => setns(namespace, CloneFlags::CLONE_NEWNET)?,
            None => unshare(CloneFlags::CLONE_NEWNET)?,
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. The closure makes system calls only
    // (prctl, getppid, sched_setaffinity, setns, unshare), allocates nothing, takes no lock and owns nothing but plain
    // numbers and an open file.
    unsafe { command.pre_exec(prepare) };
}

/// Kills a process group whose leader has not been waited for yet, so that its number cannot be another's.
pub(crate) fn kill_group(leader: u32) -> io::Result<()> {
    signal_group(leader, Signal::SIGKILL)
}

/// Sends such a group a signal.
pub(crate) fn signal_group(leader: u32, signal: Signal) -> io::Result<()> {
    // A process number fits: Linux has at most 2^22.
    killpg(Pid::from_raw(leader as i32), signal).map_err(io::Error::from)
}
