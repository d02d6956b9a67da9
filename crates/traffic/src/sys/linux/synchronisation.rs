//! What the kernel says of the realtime clock.

use crate::sys::types::Nanos;
use std::mem::MaybeUninit;

/// The largest error of the realtime clock, nanoseconds, as its synchronisation reports it to the kernel; `None` if
/// nothing synchronises it.
pub fn clock_error_ns() -> Option<Nanos> {
    // SAFETY: `timex` is plain data, for which all zeros is valid; with no modes nothing is changed.
    let mut clock: libc::timex = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the kernel writes one `timex` to the exclusive reference.
    let state = unsafe { libc::adjtimex(&raw mut clock) };
    let synchronised = state >= 0 && state != libc::TIME_ERROR && clock.status & libc::STA_UNSYNC == 0;
    let error_us = u64::try_from(clock.maxerror).ok()?;
    synchronised.then(|| error_us.saturating_mul(1_000))
}
