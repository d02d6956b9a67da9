//! Clock, timers, processors and properties of this host.

use crate::sys::{CpuTimes, Nanos, RealtimeOffset};
use stacklab_model::HostFacts;
use std::ffi::{CStr, c_char};
use std::io;
use std::mem::size_of;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::sync::{Once, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::Media::timeBeginPeriod;
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RegGetValueW};
use windows_sys::Win32::System::SystemInformation::{
    GetSystemTimeAdjustment, GlobalMemoryStatusEx, MEMORYSTATUSEX, OSVERSIONINFOW,
};
use windows_sys::Win32::System::Threading::{
    ALL_PROCESSOR_GROUPS, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, CreateWaitableTimerExW,
    GetActiveProcessorCount, GetCurrentProcess, GetCurrentThread, GetProcessAffinityMask, GetProcessTimes,
    GetSystemTimes, INFINITE, SetThreadAffinityMask, SetWaitableTimer, TIMER_ALL_ACCESS, WaitForSingleObject,
};
use windows_sys::w;

pub(crate) fn host() -> HostFacts {
    HostFacts {
        os: "Windows".to_owned(),
        kernel: match wine() {
            // Wine's behaviour depends on the Linux kernel below it.
            Some(wine) => format!("{} (Wine {wine})", version()),
            None => version(),
        },
        machine: std::env::consts::ARCH.to_owned(),
        cpu_model: cpu_model().unwrap_or_default(),
        memory_kib: memory_kib(),
        clock_source: Some(format!("QueryPerformanceCounter, {} a second", frequency())),
        virtualised: hypervisor(),
        ..HostFacts::default()
    }
}

/// Major, minor and build number, as the kernel reports them.
fn version() -> String {
    let size = size_of::<OSVERSIONINFOW>() as u32;
    let mut version = OSVERSIONINFOW { dwOSVersionInfoSize: size, ..OSVERSIONINFOW::default() };
    // SAFETY: the call fills the structure, which states its size; it always succeeds.
    unsafe { RtlGetVersion(&raw mut version) };
    format!("{}.{}.{}", version.dwMajorVersion, version.dwMinorVersion, version.dwBuildNumber)
}

/// Wine's version, if this is Wine and not Windows.
fn wine() -> Option<String> {
    // SAFETY: the names end with a zero. The module is in every process and is not unloaded. The function exists only
    // in Wine, takes no arguments and returns static text that ends with a zero.
    unsafe {
        let module = GetModuleHandleW(w!("ntdll.dll"));
        let found = GetProcAddress(module, c"wine_get_version".as_ptr().cast())?;
        let version: unsafe extern "C" fn() -> *const c_char = std::mem::transmute(found);
        Some(CStr::from_ptr(version()).to_string_lossy().into_owned())
    }
}

fn cpu_model() -> Option<String> {
    let mut units = [0_u16; 128];
    let mut bytes = size_of_val(&units) as u32;
    // SAFETY: the names end with a zero; the call writes at most `bytes` bytes to `units`, which is that large, and one
    // integer; both outlive it.
    let result = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            w!("HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0"),
            w!("ProcessorNameString"),
            RRF_RT_REG_SZ,
            std::ptr::null_mut(),
            units.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    let length = units.iter().position(|unit| *unit == 0).unwrap_or(units.len());
    (result == 0).then(|| String::from_utf16_lossy(&units[..length]).trim().to_owned())
}

fn memory_kib() -> u64 {
    let size = size_of::<MEMORYSTATUSEX>() as u32;
    let mut memory = MEMORYSTATUSEX { dwLength: size, ..MEMORYSTATUSEX::default() };
    // SAFETY: the call fills the structure, which states its size.
    let succeeded = unsafe { GlobalMemoryStatusEx(&raw mut memory) };
    if succeeded == 0 { 0 } else { memory.ullTotalPhys / 1024 }
}

/// Whether the processor reports a hypervisor. This includes Windows' own, if Windows itself runs on it.
fn hypervisor() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::x86_64::__cpuid(1).ecx >> 31 == 1;
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Frequency of the counter, Hz.
fn frequency() -> u64 {
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
    let counts = counts as u64;
    let frequency = frequency();
    let seconds = counts / frequency;
    let rest = counts % frequency;
    seconds * 1_000_000_000 + rest * 1_000_000_000 / frequency
}

pub(crate) fn realtime_offset() -> RealtimeOffset {
    RealtimeOffset::of(now_ns(), read_realtime_ns(), now_ns())
}

fn read_realtime_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64
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
    let mut adjustment = 0;
    let mut increment = 0;
    let mut disabled = 0;
    // SAFETY: the call writes three integers, which outlive it.
    let succeeded =
        unsafe { GetSystemTimeAdjustment(&raw mut adjustment, &raw mut increment, &raw mut disabled) };
    // In units of 100 ns; the usual tick is 1/64 s.
    if succeeded != 0 && increment > 0 { u64::from(increment) * 100 } else { 15_625_000 }
}

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

pub(crate) fn peak_rss_kib() -> Option<u64> {
    let size = size_of::<PROCESS_MEMORY_COUNTERS>() as u32;
    let mut counters = PROCESS_MEMORY_COUNTERS { cb: size, ..PROCESS_MEMORY_COUNTERS::default() };
    // SAFETY: the handle stands for this process and needs no closing; the call writes `size` bytes to a structure of
    // that size, which outlives it.
    let succeeded = unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), &raw mut counters, size) };
    (succeeded != 0 && counters.PeakWorkingSetSize > 0).then_some(counters.PeakWorkingSetSize as u64 / 1024)
}

pub(crate) fn allowed_processors() -> impl Iterator<Item = usize> {
    let mut own = 0_usize;
    let mut machine = 0_usize;
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
