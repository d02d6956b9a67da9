//! Processor times, this process's CPU time, and processor affinity.

use crate::sys::types::CpuTimes;
use std::io;
use std::mem::size_of;
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{
    ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetCurrentProcess, GetCurrentThread,
    GetProcessAffinityMask, GetProcessTimes, GetSystemTimes, SetThreadAffinityMask,
};

fn ns(time: FILETIME) -> u64 {
    // In units of 100 ns.
    ((u64::from(time.dwHighDateTime) << 32) | u64::from(time.dwLowDateTime)) * 100
}

/// Reads processor times (GetSystemTimes).
pub(crate) struct CpuReader {
    all: bool,
}

impl CpuReader {
    pub(crate) fn new(processors: Vec<usize>) -> Self {
        CpuReader { all: processors.is_empty() }
    }

    /// The times so far; `None` for a subset of the processors, which GetSystemTimes does not report.
    pub(crate) fn read(&mut self) -> Option<CpuTimes> {
        if !self.all {
            return None;
        }
        let [mut idle, mut kernel, mut user] = [FILETIME::default(); 3];
        // SAFETY: the call writes three structures, which outlive it.
        let succeeded = unsafe { GetSystemTimes(&raw mut idle, &raw mut kernel, &raw mut user) };
        let [idle_ns, kernel_ns, user_ns] = [idle, kernel, user].map(ns);
        if succeeded == 0 || kernel_ns + user_ns == 0 {
            return None;
        }
        // Kernel time includes idle time.
        let system_ns = kernel_ns.saturating_sub(idle_ns);
        Some(CpuTimes { user_ns, system_ns, idle_ns, undivided: true, ..CpuTimes::default() })
    }
}

pub(crate) fn own_cpu_ns() -> (u64, u64) {
    let [mut created, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle stands for this process and needs no closing; the call writes four structures, which outlive
    // it.
    let succeeded = unsafe {
        GetProcessTimes(GetCurrentProcess(), &raw mut created, &raw mut ended, &raw mut kernel, &raw mut user)
    };
    if succeeded == 0 { (0, 0) } else { (ns(user), ns(kernel)) }
}

/// This thread's CPU time so far: Windows counts it in ticks, too coarse for a slice.
pub(crate) fn thread_cpu_ns() -> Option<u64> {
    None
}

/// This thread's user and kernel time so far: in ticks, too.
pub(crate) fn thread_cpu_parts() -> Option<(u64, u64)> {
    None
}

pub(crate) fn peak_rss_kib() -> Option<u64> {
    let size = size_of::<PROCESS_MEMORY_COUNTERS>() as u32;
    let mut counters = PROCESS_MEMORY_COUNTERS { cb: size, ..PROCESS_MEMORY_COUNTERS::default() };
    // SAFETY: the handle stands for this process and needs no closing; the call writes `size` bytes to a structure of
    // that size, which outlives it.
    let succeeded = unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), &raw mut counters, size) };
    (succeeded != 0 && counters.PeakWorkingSetSize > 0).then_some(counters.PeakWorkingSetSize as u64 / 1024)
}

pub(crate) fn allowed_processors() -> impl Iterator<Item = usize> {
    let (mut own, mut machine) = (0_usize, 0_usize);
    // SAFETY: the handle stands for this process and needs no closing; the call writes two integers, which outlive it.
    unsafe { GetProcessAffinityMask(GetCurrentProcess(), &raw mut own, &raw mut machine) };
    (0..usize::BITS as usize).filter(move |processor| (own >> processor) & 1 == 1)
}

pub(crate) fn pin_thread(processor: usize) -> io::Result<()> {
    let mask = 1_usize.checked_shl(processor as u32).unwrap_or(0);
    // SAFETY: the handle stands for this thread and needs no closing; the call takes a number.
    let before = unsafe { SetThreadAffinityMask(GetCurrentThread(), mask) };
    if before == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Online processors of the machine, whether or not this process may use them.
pub(crate) fn processors_online() -> u32 {
    // SAFETY: the call takes a number.
    unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) }.max(1)
}
