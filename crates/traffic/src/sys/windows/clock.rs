//! The clock: QueryPerformanceCounter.

use crate::sys::types::{Nanos, RealtimeOffset};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::sync::{Once, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use windows_sys::Win32::Media::timeBeginPeriod;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::SystemInformation::GetSystemTimeAdjustment;
use windows_sys::Win32::System::Threading::{
    CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, CreateWaitableTimerExW, INFINITE, SetWaitableTimer,
    TIMER_ALL_ACCESS, WaitForSingleObject,
};

/// Frequency of the counter, Hz.
pub(super) fn frequency() -> u64 {
    static FREQUENCY: OnceLock<u64> = OnceLock::new();
    *FREQUENCY.get_or_init(|| {
        let mut counts = 0;
        // SAFETY: the call writes one integer, which outlives it. It cannot fail since Windows XP.
        unsafe { QueryPerformanceFrequency(&raw mut counts) };
        u64::try_from(counts).unwrap_or(1).max(1)
    })
}

pub(crate) fn now_ns() -> Nanos {
    let mut counts = 0;
    // SAFETY: the call writes one integer, which outlives it. It cannot fail since Windows XP.
    unsafe { QueryPerformanceCounter(&raw mut counts) };
    let (counts, frequency) = (counts as u64, frequency());
    let (seconds, rest) = (counts / frequency, counts % frequency);
    seconds * 1_000_000_000 + rest * 1_000_000_000 / frequency
}

pub(crate) fn realtime_offset() -> RealtimeOffset {
    let realtime = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64;
    RealtimeOffset::of(now_ns(), realtime(), now_ns())
}

/// Sets this process's timer resolution to one millisecond instead of a tick of 15.6 ms.
pub(crate) fn precise_timers() {
    static ONCE: Once = Once::new();
    // SAFETY: the call takes a number. A refusal makes pacing coarser, which the pacing error shows.
    ONCE.call_once(|| {
        let _ = unsafe { timeBeginPeriod(1) };
    });
}

/// Sleeps for this time, plus at most half a millisecond since Windows 10 version 1803. Earlier versions sleep in
/// whole milliseconds.
pub(crate) fn sleep(time: Duration) {
    thread_local! {
        static TIMER: Option<OwnedHandle> = timer();
    }
    // In units of 100 ns; negative means relative to now.
    let due = -(time.as_nanos().div_ceil(100).min(i64::MAX as u128) as i64);
    let slept = TIMER.with(|timer| {
        let Some(timer) = timer else { return false };
        // SAFETY: the handle is open for as long as the thread runs; the call reads one integer, which outlives it.
        unsafe {
            let set = SetWaitableTimer(timer.as_raw_handle(), &raw const due, 0, None, std::ptr::null(), 0);
            set != 0 && WaitForSingleObject(timer.as_raw_handle(), INFINITE) == 0
        }
    });
    if !slept {
        std::thread::sleep(time);
    }
}

fn timer() -> Option<OwnedHandle> {
    // Systems before Windows 10 version 1803 refuse the unknown flag.
    [CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, 0].into_iter().find_map(|flags| {
        // SAFETY: the call takes no attributes and no name, and gives a handle that is this thread's alone, or null.
        unsafe {
            let handle = CreateWaitableTimerExW(std::ptr::null(), std::ptr::null(), flags, TIMER_ALL_ACCESS);
            (!handle.is_null()).then(|| OwnedHandle::from_raw_handle(handle))
        }
    })
}

/// Nanoseconds per tick, the unit of CPU time.
pub(crate) fn tick_ns() -> u64 {
    let (mut adjustment, mut increment, mut disabled) = (0, 0, 0);
    // SAFETY: the call writes three integers, which outlive it.
    let succeeded =
        unsafe { GetSystemTimeAdjustment(&raw mut adjustment, &raw mut increment, &raw mut disabled) };
    // In units of 100 ns; the usual tick is 1/64 s.
    if succeeded != 0 && increment > 0 { u64::from(increment) * 100 } else { 15_625_000 }
}
