//! A counter of one processor that samples what it does.

use super::{now_ns, thread_ns};
use perf_event_open_sys::{bindings, ioctls, perf_event_open};
use stacklab_model::SampleEvent;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// For how long cycles are counted to know how many a nanosecond has.
const MEASURED_NS: u64 = 3_000_000;
/// Cycles of a nanosecond, at the least and at the most: outside, nothing counts them.
const CYCLES: [f64; 2] = [0.1, 10.0];

/// An event, and how often it is counted in a nanosecond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    pub event: SampleEvent,
    pub per_ns: f64,
}

impl Rate {
    /// The software clock's, which every machine has.
    pub(crate) const CPU_CLOCK: Rate = Rate { event: SampleEvent::CpuClock, per_ns: 1.0 };

    /// What this machine may be sampled by, the best first: cycles reach functions that run without interrupts.
    pub(crate) fn all() -> Vec<Rate> {
        Rate::among(cycles_per_ns())
    }

    fn among(cycles: io::Result<f64>) -> Vec<Rate> {
        let counted = cycles.ok().filter(|per_ns| (CYCLES[0]..=CYCLES[1]).contains(per_ns));
        let cycles = counted.map(|per_ns| Rate { event: SampleEvent::Cycles, per_ns });
        cycles.into_iter().chain([Rate::CPU_CLOCK]).collect()
    }
}

/// Cycles of a nanosecond that this thread runs.
fn cycles_per_ns() -> io::Result<f64> {
    let attr = attr(SampleEvent::Cycles);
    let counter = Counter { file: opened(attr, 0, -1)?, rate: Rate::CPU_CLOCK };
    counter.run(true)?;
    let (began_ns, end_ns) = (thread_ns(), now_ns() + MEASURED_NS);
    while now_ns() < end_ns {}
    let ran_ns = thread_ns().saturating_sub(began_ns);
    Ok(counter.counted_ns()? as f64 / ran_ns.max(1) as f64)
}

fn attr(event: SampleEvent) -> bindings::perf_event_attr {
    let mut attr = bindings::perf_event_attr::default();
    (attr.type_, attr.config) = match event {
        SampleEvent::CpuClock => (bindings::PERF_TYPE_SOFTWARE, u64::from(bindings::PERF_COUNT_SW_CPU_CLOCK)),
        SampleEvent::Cycles => (bindings::PERF_TYPE_HARDWARE, u64::from(bindings::PERF_COUNT_HW_CPU_CYCLES)),
    };
    attr.size = size_of::<bindings::perf_event_attr>() as u32;
    attr.set_disabled(1);
    attr
}

/// Opens what counts a thread, 0 for this one, or a processor.
fn opened(mut attr: bindings::perf_event_attr, thread: i32, cpu: i32) -> io::Result<OwnedFd> {
    // SAFETY: the structure is whole, and lives during the call.
    let file = unsafe { perf_event_open(&mut attr, thread, cpu, -1, bindings::PERF_FLAG_FD_CLOEXEC.into()) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// A counter of one processor. Each period it samples the function that runs, with its callers in the kernel.
pub(crate) struct Counter {
    file: OwnedFd,
    rate: Rate,
}

impl Counter {
    /// A counter of this processor that is not running yet; period in nanoseconds.
    ///
    /// # Errors
    /// EACCES and EPERM without the right to sample the kernel (CAP_PERFMON); ENOSYS where the kernel has no sampling;
    /// others where the processor does not sample this event.
    pub(crate) fn open(cpu: usize, rate: Rate, period_ns: u64) -> io::Result<Self> {
        let mut attr = attr(rate.event);
        attr.sample_type = u64::from(
            bindings::PERF_SAMPLE_IP
                | bindings::PERF_SAMPLE_TID
                | bindings::PERF_SAMPLE_TIME
                | bindings::PERF_SAMPLE_CPU
                | bindings::PERF_SAMPLE_CALLCHAIN,
        );
        attr.__bindgen_anon_1.sample_period = events(rate, period_ns);
        // Not `exclude_user`: what happens with interrupts off lands where they are on again.
        attr.set_exclude_callchain_user(1);
        attr.set_use_clockid(1);
        attr.clockid = libc::CLOCK_MONOTONIC;
        Ok(Counter { file: opened(attr, -1, cpu as i32)?, rate })
    }

    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Sets the period of the samples to come, nanoseconds.
    pub(crate) fn set_period(&self, period_ns: u64) -> io::Result<()> {
        let period = events(self.rate, period_ns);
        let place = &raw const period;
        // SAFETY: the kernel reads eight bytes at this address during the call.
        done(unsafe { ioctls::PERIOD(self.file.as_raw_fd(), place as u64) })
    }

    /// What it has counted, nanoseconds.
    pub(crate) fn counted_ns(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        nix::unistd::read(&self.file, &mut count)?;
        Ok((u64::from_ne_bytes(count) as f64 / self.rate.per_ns) as u64)
    }

    pub(crate) fn run(&self, on: bool) -> io::Result<()> {
        let file = self.file.as_raw_fd();
        // SAFETY: the descriptor is open.
        done(unsafe { if on { ioctls::ENABLE(file, 0) } else { ioctls::DISABLE(file, 0) } })
    }
}

fn done(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn events(rate: Rate, ns: u64) -> u64 {
    (ns as f64 * rate.per_ns) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_sampled_where_they_are_counted_and_time_elsewhere() {
        let none = Rate::among(Err(io::Error::from_raw_os_error(libc::ENOENT)));
        assert_eq!(none, [Rate::CPU_CLOCK]);
        // A counter that stands still.
        assert_eq!(Rate::among(Ok(0.0)), [Rate::CPU_CLOCK]);
        let cycles = Rate { event: SampleEvent::Cycles, per_ns: 3.2 };
        assert_eq!(Rate::among(Ok(3.2)), [cycles, Rate::CPU_CLOCK]);
        assert_eq!((events(cycles, 200_000), events(Rate::CPU_CLOCK, 200_000)), (640_000, 200_000));
    }
}
