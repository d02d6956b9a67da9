//! The kernel's sampling interface: counters of processors, and the memory into which the kernel writes samples.
#![allow(unsafe_code)]

use nix::sched::{CpuSet, sched_getaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use perf_event_open_sys::{bindings, ioctls, perf_event_open};
use stacklab_model::SampleEvent;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds of the monotonic clock, which samples and slices have.
pub(crate) fn now_ns() -> u64 {
    ns(ClockId::CLOCK_MONOTONIC)
}

fn thread_ns() -> u64 {
    ns(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock).expect("Linux has the clocks of POSIX");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// The processors that this process may run on, by number.
pub(crate) fn cpus() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect()
}

/// For how long cycles are counted to know how many a nanosecond has.
const MEASURED_NS: u64 = 3_000_000;
/// Cycles of a nanosecond, at the least and at the most: outside, nothing counts them.
const CYCLES: [f64; 2] = [0.1, 10.0];

/// An event, and how often it is counted in a nanosecond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct EventRate {
    pub event: SampleEvent,
    pub per_ns: f64,
}

impl EventRate {
    /// The software clock's, which every machine has.
    pub(crate) const CPU_CLOCK: EventRate = EventRate { event: SampleEvent::CpuClock, per_ns: 1.0 };

    /// What this machine may be sampled by, the best first: cycles reach functions that run without interrupts.
    pub(crate) fn all() -> Vec<EventRate> {
        EventRate::among(cycles_per_ns())
    }

    fn among(cycles: io::Result<f64>) -> Vec<EventRate> {
        let counted = cycles.ok().filter(|per_ns| (CYCLES[0]..=CYCLES[1]).contains(per_ns));
        let cycles = counted.map(|per_ns| EventRate { event: SampleEvent::Cycles, per_ns });
        cycles.into_iter().chain([EventRate::CPU_CLOCK]).collect()
    }
}

/// Cycles of a nanosecond that this thread runs.
fn cycles_per_ns() -> io::Result<f64> {
    let attr = attr(SampleEvent::Cycles);
    let counter = Counter { file: open_counter(attr, 0, -1)?, rate: EventRate::CPU_CLOCK };
    counter.run(true)?;
    let began_ns = thread_ns();
    let end_ns = now_ns() + MEASURED_NS;
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
fn open_counter(mut attr: bindings::perf_event_attr, thread: i32, cpu: i32) -> io::Result<OwnedFd> {
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
    rate: EventRate,
}

impl Counter {
    /// A counter of this processor that is not running yet; period in nanoseconds.
    pub(crate) fn open(cpu: usize, rate: EventRate, period_ns: u64) -> io::Result<Self> {
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
        Ok(Counter { file: open_counter(attr, -1, cpu as i32)?, rate })
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

fn events(rate: EventRate, ns: u64) -> u64 {
    (ns as f64 * rate.per_ns) as u64
}

/// Pages of a ring's data: 1 MiB.
const PAGES: usize = 256;
const PAGE: usize = 4096;
/// Bytes of a record's header: type, flags, length.
const HEADER: usize = 8;

pub(crate) struct Ring {
    base: *mut u8,
}

// SAFETY: the memory is this value's alone, and the kernel's, which orders its accesses by the head.
unsafe impl Send for Ring {}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Sample {
        /// Process; 0 if the processor is idle.
        pid: u32,
        /// Nanoseconds of the monotonic clock.
        time_ns: u64,
        cpu: u32,
        /// Whether it was a program's own code.
        is_user: bool,
        /// Addresses in the kernel: what ran, then return addresses of its callers.
        chain: Vec<u64>,
    },
    /// This many samples found no room.
    Lost(u64),
    /// The kernel left samples out, for they took too much time.
    Throttled,
}

impl Ring {
    pub(crate) fn of(counter: &Counter) -> io::Result<Self> {
        // SAFETY: the kernel chooses the place, and nothing else is there.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                (PAGES + 1) * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                counter.file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring { base: base.cast() })
    }

    /// Takes what was written since the last call.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(Record)) {
        let page = self.base.cast::<bindings::perf_event_mmap_page>();
        // SAFETY: the first page is this structure, both fields are eight bytes and aligned, and the kernel reads and
        // writes them as atomics.
        let (head, tail) = unsafe {
            (AtomicU64::from_ptr(&raw mut (*page).data_head), AtomicU64::from_ptr(&raw mut (*page).data_tail))
        };
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        let mut bytes = Vec::new();
        while at + (HEADER as u64) <= end {
            self.copy(at, HEADER, &mut bytes);
            let length = usize::from(u16::from_ne_bytes([bytes[6], bytes[7]]));
            if length < HEADER || at + length as u64 > end {
                break;
            }
            self.copy(at, length, &mut bytes);
            if let Some(record) = parse(&bytes) {
                take(record);
            }
            at += length as u64;
        }
        tail.store(at, Ordering::Release);
    }

    /// Copies bytes of the data from this place on, which wraps.
    fn copy(&self, at: u64, length: usize, bytes: &mut Vec<u8>) {
        const DATA: usize = PAGES * PAGE;
        bytes.clear();
        let start = at as usize % DATA;
        let first = length.min(DATA - start);
        // SAFETY: both parts are within the data, and the kernel does not write there before the tail is moved.
        unsafe {
            let data = self.base.add(PAGE);
            bytes.extend_from_slice(std::slice::from_raw_parts(data.add(start), first));
            bytes.extend_from_slice(std::slice::from_raw_parts(data, length - first));
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this size, and nobody has it after this.
        unsafe { libc::munmap(self.base.cast(), (PAGES + 1) * PAGE) };
    }
}

/// A record with its header; `None` if it is of another kind, or shorter than it says.
fn parse(bytes: &[u8]) -> Option<Record> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let flags = u16::from_ne_bytes([bytes[4], bytes[5]]);
    match word(0)? {
        bindings::PERF_RECORD_LOST => Some(Record::Lost(long(HEADER + 8)?)),
        bindings::PERF_RECORD_THROTTLE => Some(Record::Throttled),
        bindings::PERF_RECORD_SAMPLE => {
            let count = usize::try_from(long(40)?).ok()?;
            let all = bytes.get(48..)?.chunks_exact(8).take(count);
            let chain = all.map(|each| u64::from_ne_bytes(each.try_into().expect("eight bytes")));
            Some(Record::Sample {
                pid: word(16)?,
                time_ns: long(24)?,
                cpu: word(32)?,
                is_user: u32::from(flags) & bindings::PERF_RECORD_MISC_CPUMODE_MASK
                    == bindings::PERF_RECORD_MISC_USER,
                // Marks of where the kernel's part begins are no addresses.
                chain: chain.filter(|value| *value < bindings::PERF_CONTEXT_MAX).collect(),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_cycles_where_counted_and_time_elsewhere() {
        let none = EventRate::among(Err(io::Error::from_raw_os_error(libc::ENOENT)));
        assert_eq!(none, [EventRate::CPU_CLOCK]);
        // A counter that stands still.
        assert_eq!(EventRate::among(Ok(0.0)), [EventRate::CPU_CLOCK]);
        let cycles = EventRate { event: SampleEvent::Cycles, per_ns: 3.2 };
        assert_eq!(EventRate::among(Ok(3.2)), [cycles, EventRate::CPU_CLOCK]);
        assert_eq!((events(cycles, 200_000), events(EventRate::CPU_CLOCK, 200_000)), (640_000, 200_000));
    }

    #[test]
    fn a_sample_is_read_and_a_short_one_is_not() {
        let mut bytes = Vec::new();
        for value in [bindings::PERF_RECORD_SAMPLE, 1 | 64 << 16] {
            bytes.extend(value.to_ne_bytes());
        }
        bytes.extend(0xffff_ffff_8100_0000_u64.to_ne_bytes());
        for value in [7_u32, 8] {
            bytes.extend(value.to_ne_bytes());
        }
        bytes.extend(1_000_u64.to_ne_bytes());
        for value in [1_u32, 0] {
            bytes.extend(value.to_ne_bytes());
        }
        for value in [2, bindings::PERF_CONTEXT_KERNEL, 0xffff_ffff_8100_0000] {
            bytes.extend(value.to_ne_bytes());
        }
        let chain = vec![0xffff_ffff_8100_0000];
        let sample = Record::Sample { pid: 7, time_ns: 1_000, cpu: 1, is_user: false, chain };
        assert_eq!(parse(&bytes), Some(sample));
        assert_eq!(parse(&bytes[..46]), None);
    }
}
