//! The priority of a thread.

use std::io;

/// While it lives, the calling thread runs before all others of its processor that do not have such a priority
/// (SCHED_FIFO). Threads that it starts meanwhile do not.
pub(crate) struct RealtimePriority(());

impl RealtimePriority {
    /// `None` without the right to it (CAP_SYS_NICE, or a limit of RLIMIT_RTPRIO): the thread keeps what it had.
    pub(crate) fn take() -> Option<Self> {
        set_scheduler(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1).ok().map(|()| RealtimePriority(()))
    }
}

impl Drop for RealtimePriority {
    fn drop(&mut self) {
        // It is always permitted to give a priority back.
        let _ = set_scheduler(libc::SCHED_OTHER, 0);
    }
}

fn set_scheduler(policy: libc::c_int, sched_priority: libc::c_int) -> io::Result<()> {
    let param = libc::sched_param { sched_priority };
    // SAFETY: the parameter outlives the call, which reads it; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, policy, &param) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_policy() -> libc::c_int {
        // SAFETY: the call takes a number; 0 is the calling thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn a_priority_is_given_back() {
        assert_eq!(read_policy(), libc::SCHED_OTHER);
        let taken = RealtimePriority::take();
        let realtime = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        assert_eq!(read_policy(), if taken.is_some() { realtime } else { libc::SCHED_OTHER });
        drop(taken);
        assert_eq!(read_policy(), libc::SCHED_OTHER);
    }
}
