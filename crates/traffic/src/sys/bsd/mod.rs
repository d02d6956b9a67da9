//! The BSDs, by POSIX and sysctl. FreeBSD compiles and links, but has not been run.

mod interfaces;

pub use interfaces::{counters, interface_mtu};

use crate::sys::types::{CpuTimes, SystemInfo};
use crate::sys::unsupported::unsupported;
use nix::sys::utsname::uname;
use socket2::Socket;
use stacklab_model::{Family, TcpInfo};
use std::ffi::{CStr, OsStr, c_int, c_long};
use std::io;
use std::mem::{MaybeUninit, size_of};

/// No effect: the kernel decides when sleeps end.
pub fn precise_timers() {}

/// TCP_INFO: not supported, FreeBSD's structure differs from Linux's.
pub fn tcp_info(_socket: &Socket) -> io::Result<TcpInfo> {
    unsupported("reading of TCP_INFO")
}

/// Path MTU of a connected socket.
pub fn path_mtu(_socket: &Socket, _family: Family) -> io::Result<u32> {
    unsupported("path MTU of a socket")
}

/// Reads a sysctl value that consists only of integers.
fn sysctl<T: Copy>(name: &CStr) -> Option<T> {
    let (mut value, mut length) = (MaybeUninit::<T>::zeroed(), size_of::<T>());
    // SAFETY: the name ends with a zero; the kernel writes at most `length` bytes to `value`, which is that large.
    let result = unsafe {
        let place = value.as_mut_ptr().cast();
        libc::sysctlbyname(name.as_ptr(), place, &raw mut length, std::ptr::null(), 0)
    };
    // SAFETY: integers are valid whatever their bytes; they were zeroed and perhaps overwritten.
    (result == 0 && length == size_of::<T>()).then(|| unsafe { value.assume_init() })
}

fn sysctl_text(name: &CStr) -> Option<String> {
    let (mut text, mut length) = ([0_u8; 256], 256);
    // SAFETY: the name ends with a zero; the kernel writes at most `length` bytes to `text`, which is that large.
    let result = unsafe {
        libc::sysctlbyname(name.as_ptr(), text.as_mut_ptr().cast(), &raw mut length, std::ptr::null(), 0)
    };
    let text = CStr::from_bytes_until_nul(&text).ok()?;
    (result == 0).then(|| text.to_string_lossy().into_owned())
}

/// Nanoseconds per tick, the unit of CPU time.
pub fn tick_ns() -> u64 {
    // struct clockinfo: hz, tick, spare, stathz, profhz.
    let rates: Option<[c_int; 5]> = sysctl(c"kern.clockrate");
    1_000_000_000 / rates.map_or(128, |rates| rates[3]).max(1) as u64
}

/// Online processors of the machine, whether or not this process may use them.
pub fn processors_online() -> u32 {
    sysctl::<c_int>(c"hw.ncpu").map_or(1, |count| count.max(1) as u32)
}

/// Reads processor times (kern.cp_time).
pub struct CpuReader {
    all: bool,
}

impl CpuReader {
    /// A reader for these processors; an empty list means all together.
    pub fn new(processors: Vec<usize>) -> Self {
        CpuReader { all: processors.is_empty() }
    }

    /// The times so far; `None` for a subset of the processors.
    pub fn read(&mut self) -> Option<CpuTimes> {
        let [user, nice, system, interrupt, idle]: [c_long; 5] =
            if self.all { sysctl(c"kern.cp_time")? } else { return None };
        let ns = |ticks: c_long| ticks as u64 * tick_ns();
        Some(CpuTimes {
            user_ns: ns(user + nice),
            system_ns: ns(system + interrupt),
            idle_ns: ns(idle),
            undivided: true,
            ..CpuTimes::default()
        })
    }
}

/// Properties of this host.
pub fn host() -> SystemInfo {
    let name = uname().ok();
    let text = |value: Option<&OsStr>| value.unwrap_or_default().to_string_lossy().into_owned();
    SystemInfo {
        os: text(name.as_ref().map(|name| name.sysname())),
        kernel: text(name.as_ref().map(|name| name.release())),
        machine: text(name.as_ref().map(|name| name.machine())),
        cpu_model: sysctl_text(c"hw.model").unwrap_or_default(),
        memory_kib: sysctl::<u64>(c"hw.physmem").map_or(0, |bytes| bytes / 1024),
        governor: None,
        clock_source: sysctl_text(c"kern.timecounter.hardware"),
        boot_id: None,
        time_namespace: None,
        virtualised: sysctl_text(c"kern.vm_guest").is_some_and(|guest| guest != "none"),
    }
}
