//! The kernel's sampling interface. All `unsafe` of this crate is here.
#![allow(unsafe_code)]

mod counter;
mod ring;

pub(crate) use counter::{Counter, Rate};
pub(crate) use ring::{Record, Ring};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

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
