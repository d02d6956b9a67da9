//! A clock of one processor that samples what it does.

use super::processors::cpus;
use perf_event_open_sys::{bindings, ioctls, perf_event_open};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A software clock of one processor. Each period it samples the function that runs, with its callers in the kernel.
pub struct Counter {
    file: OwnedFd,
}

impl Counter {
    /// A clock of this processor that is not running yet; period in nanoseconds.
    ///
    /// # Errors
    /// EACCES and EPERM without the right to sample the kernel (CAP_PERFMON); ENOSYS where the kernel has no sampling.
    pub fn open(cpu: usize, period_ns: u64) -> io::Result<Self> {
        let mut attr = bindings::perf_event_attr::default();
        attr.type_ = bindings::PERF_TYPE_SOFTWARE;
        attr.size = size_of::<bindings::perf_event_attr>() as u32;
        attr.config = u64::from(bindings::PERF_COUNT_SW_CPU_CLOCK);
        attr.sample_type = u64::from(
            bindings::PERF_SAMPLE_IP
                | bindings::PERF_SAMPLE_TID
                | bindings::PERF_SAMPLE_TIME
                | bindings::PERF_SAMPLE_CPU
                | bindings::PERF_SAMPLE_CALLCHAIN,
        );
        attr.__bindgen_anon_1.sample_period = period_ns;
        attr.set_disabled(1);
        // Not `exclude_user`: what happens with interrupts off lands where they are on again.
        attr.set_exclude_callchain_user(1);
        attr.set_use_clockid(1);
        attr.clockid = libc::CLOCK_MONOTONIC;
        // SAFETY: the structure is whole, and lives during the call.
        let file =
            unsafe { perf_event_open(&mut attr, -1, cpu as i32, -1, bindings::PERF_FLAG_FD_CLOEXEC.into()) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nobody else has it.
        Ok(Counter { file: unsafe { OwnedFd::from_raw_fd(file) } })
    }

    /// The descriptor, for its ring.
    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Sets the period of the samples to come, nanoseconds.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_period(&self, period_ns: u64) -> io::Result<()> {
        let place = &raw const period_ns;
        // SAFETY: the kernel reads eight bytes at this address during the call.
        done(unsafe { ioctls::PERIOD(self.file.as_raw_fd(), place as u64) })
    }

    /// Lets it run, or stops it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn run(&self, on: bool) -> io::Result<()> {
        let file = self.file.as_raw_fd();
        // SAFETY: the descriptor is open.
        done(unsafe { if on { ioctls::ENABLE(file, 0) } else { ioctls::DISABLE(file, 0) } })
    }
}

fn done(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether this process may sample the kernel here.
///
/// # Errors
/// The kernel's reason.
pub fn check() -> io::Result<()> {
    let cpu = cpus().first().copied().unwrap_or(0);
    Counter::open(cpu, 1_000_000).map(|_| ())
}
