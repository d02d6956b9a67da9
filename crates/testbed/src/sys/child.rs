//! What happens in a child between fork and exec.

use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpid, getppid};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the command start in a fresh network namespace and on these processors (on any, where there are none), and be
/// killed when the thread that spawned it ends, however that ends.
pub(crate) fn die_with_parent_in_new_namespace(command: &mut Command, processors: &[usize]) {
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
        unshare(CloneFlags::CLONE_NEWNET)?;
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. The closure makes system calls only
    // (prctl, getppid, sched_setaffinity, unshare), allocates nothing, takes no lock and owns nothing but plain
    // numbers.
    unsafe { command.pre_exec(prepare) };
}

/// Kills a process group whose leader has not been waited for yet, so that its number cannot be another's.
pub(crate) fn kill_group(leader: u32) -> io::Result<()> {
    // A process number fits: Linux has at most 2^22.
    killpg(Pid::from_raw(leader as i32), Signal::SIGKILL).map_err(io::Error::from)
}
