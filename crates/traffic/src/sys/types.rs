//! Types and limits that all systems share.

use std::time::Duration;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Readable,
    /// There is room again after the buffer was full.
    Writable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ZerocopyCompletion {
    pub sends: u64,
    /// Whether the kernel copied them anyway, as it does for a receiver on the same machine.
    pub copied: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    pub user_ns: u64,
    /// System; including interrupts and stolen time if these are not counted separately.
    pub system_ns: u64,
    pub idle_ns: u64,
    pub irq_ns: u64,
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
    pub processors: u32,
    /// By how much [`CpuTimes::idle_ns`] may be too small, since it is counted in ticks.
    pub step_ns: u64,
    /// Time of the processors in idle states, without the periods under way, if the system tells it.
    pub residency_ns: Option<u64>,
}

/// The control messages (cmsg) of a received datagram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecvMeta {
    /// Software receive timestamp, nanoseconds of the realtime clock, where enabled.
    pub software_rx_ns: Option<Nanos>,
    /// Hardware receive timestamp, nanoseconds of the interface's own clock, where the interface takes it.
    pub hardware_rx_ns: Option<Nanos>,
    /// Segment size of datagrams that GRO coalesced, bytes.
    pub gro_segment_bytes: Option<usize>,
    /// TTL, or hop limit, with which it arrived, where enabled.
    pub ttl: Option<u8>,
}

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "other systems give none"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxTimestamp {
    /// Software timestamp: handed to the driver, nanoseconds of the realtime clock.
    Software(Nanos),
    /// Hardware timestamp, nanoseconds of the interface's own clock.
    Hardware(Nanos),
}
