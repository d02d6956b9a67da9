//! When a thread gets its processor.

use std::io;

/// Has the calling thread run as soon as it can, before all that have no such priority (SCHED_FIFO, the least of its
/// priorities).
///
/// # Errors
/// The kernel's: a privilege is missing.
pub(crate) fn run_first() -> io::Result<()> {
    let least = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call reads the parameter, which lives until it returns.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const least) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
