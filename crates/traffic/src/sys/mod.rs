//! The one seam to the operating system: all platform code and all `unsafe` of the engine is below here.
//!
//! Every system has the same names: `linux` in full, `windows` by Winsock, `bsd` by POSIX alone. What the last
//! two have in common because they lack something is in `plain` (a message a call) and `lacking` (what only Linux
//! does, refused with a reason).

#[cfg(test)]
pub mod counting;

#[cfg(any(test, not(target_os = "linux")))]
mod plain;
#[cfg(unix)]
mod posix;
#[cfg(unix)]
mod unix;

#[cfg(not(target_os = "linux"))]
mod lacking;

#[cfg(not(any(target_os = "linux", windows)))]
mod bsd;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(not(any(target_os = "linux", windows)))]
pub use bsd::*;
#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(windows)]
pub use windows::*;

#[cfg(not(target_os = "linux"))]
pub use lacking::*;
#[cfg(not(target_os = "linux"))]
pub use plain::*;
#[cfg(unix)]
pub use posix::*;
#[cfg(unix)]
pub use unix::*;

use std::time::Duration;

/// Nanoseconds of a host's clock.
pub type Nanos = u64;

/// How long a receive waits before its sink may look at the time.
pub const RECEIVE_TICK: Duration = Duration::from_millis(20);
/// How long a send may block before the receiver counts as stuck.
pub const SEND_LIMIT: Duration = Duration::from_secs(30);

/// What the kernel said beside a datagram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beside {
    /// When it arrived, nanoseconds of the realtime clock, where the socket was told to say.
    pub arrived_realtime_ns: Option<Nanos>,
    /// The same by the interface's own clock, where it stamps packets itself and the socket was told to say when its sends
    /// leave.
    pub arrived_interface_ns: Option<Nanos>,
    /// Bytes of each datagram that it was joined from, where it was.
    pub segment_bytes: Option<usize>,
}

/// When a packet left, as the kernel tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// By software: handed to the interface's driver, nanoseconds of the realtime clock.
    Kernel(Nanos),
    /// By the interface itself, nanoseconds of its own clock.
    Interface(Nanos),
}

/// What a socket is to be ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// Something has arrived.
    Reading,
    /// There is room again after there was none.
    Writing,
}

/// Sends from the program's memory that the kernel is done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZerocopyDone {
    /// How many.
    pub sends: u64,
    /// Whether it copied them after all, as it does for a receiver on the same machine.
    pub copied: bool,
}

/// What the processors did so far, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// User and nice.
    pub user_ns: u64,
    /// System; with interrupts and stolen time where these are not told apart.
    pub system_ns: u64,
    /// Idle and waiting for I/O.
    pub idle_ns: u64,
    /// Hardware interrupts.
    pub irq_ns: u64,
    /// Software interrupts.
    pub softirq_ns: u64,
    /// Taken by the hypervisor.
    pub steal_ns: u64,
    /// Whether interrupts and stolen time are not told apart: then they are 0 here and unknown.
    pub undivided: bool,
}

/// What a host is. What it does not say is empty, absent or zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// Operating system.
    pub os: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Processor architecture.
    pub machine: String,
    /// Processor model.
    pub cpu_model: String,
    /// Memory, KiB.
    pub memory_kib: u64,
    /// Frequency governor.
    pub governor: Option<String>,
    /// Clock source.
    pub clock_source: Option<String>,
    /// Number of this boot of the kernel.
    pub boot_id: Option<String>,
    /// Time namespace.
    pub time_namespace: Option<String>,
    /// Whether a hypervisor is below.
    pub virtualised: bool,
}
