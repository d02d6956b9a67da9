//! Types and limits that all systems share.

use std::time::Duration;

/// Nanoseconds of a host's clock.
pub(crate) type Nanos = u64;

/// How long a receive waits before its sink is called to check the time.
pub(crate) const RECEIVE_TICK: Duration = Duration::from_millis(20);
/// How long a send blocks before it is looked whether its time is over.
pub(crate) const SEND_TICK: Duration = Duration::from_millis(100);
/// How long a send may find no room before the receiver counts as stuck.
pub(crate) const SEND_LIMIT: Duration = Duration::from_secs(20);

/// A reading of the realtime clock between two of the monotonic one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RealtimeOffset {
    /// How far it is ahead of the monotonic clock, nanoseconds.
    pub offset_ns: i64,
    /// Maximum error, nanoseconds: half of the time between the two readings.
    pub bound_ns: Nanos,
}

impl RealtimeOffset {
    /// The offset by readings of the monotonic, the realtime and the monotonic clock, in this order.
    pub(crate) fn of(before: Nanos, realtime: i64, after: Nanos) -> Self {
        let bound_ns = (after - before) / 2;
        RealtimeOffset { offset_ns: realtime - (before + bound_ns) as i64, bound_ns }
    }
}

/// The readiness to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Data has arrived.
    Readable,
    /// There is room again after the buffer was full.
    Writable,
}

/// Completed zero-copy sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ZerocopyCompletion {
    /// How many.
    pub sends: u64,
    /// Whether the kernel copied them anyway, as it does for a receiver on the same machine.
    pub copied: bool,
}

/// Processor times, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    /// User and nice.
    pub user_ns: u64,
    /// System; including interrupts and stolen time if these are not counted separately.
    pub system_ns: u64,
    /// Idle and waiting for I/O.
    pub idle_ns: u64,
    /// Hardware interrupts.
    pub irq_ns: u64,
    /// Software interrupts.
    pub softirq_ns: u64,
    /// Taken by the hypervisor.
    pub steal_ns: u64,
    /// Whether interrupts and stolen time are not counted separately: then they are 0 here and unknown.
    pub undivided: bool,
    /// What is known of the idle time, if the kernel measures it instead of counting ticks that find nothing running.
    pub measured_idle: Option<MeasuredIdle>,
}

/// How exactly idle time is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MeasuredIdle {
    /// Number of processors.
    pub processors: u32,
    /// By how much [`CpuTimes::idle_ns`] may be too small, since it is counted in ticks.
    pub step_ns: u64,
    /// Time of the processors in idle states, without the periods under way, if the system tells it.
    pub residency_ns: Option<u64>,
}

/// Properties of a host. Unknown ones are empty, absent or zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SystemInfo {
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
    /// Boot id of the kernel.
    pub boot_id: Option<String>,
    /// Time namespace.
    pub time_namespace: Option<String>,
    /// Whether the host runs under a hypervisor.
    pub virtualised: bool,
}
