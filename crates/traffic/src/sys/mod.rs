//! The interface to the operating system: all platform code and all `unsafe` of the engine is in this module.
//!
//! Both systems have the same names. `linux` is complete; `windows` uses Winsock, with `plain` (one message per call)
//! and errors for what only Linux has. On Linux a process may carry a TCP/IP stack itself (`stack`), whose sockets
//! then stand in place of the kernel's.
#![allow(unsafe_code)]

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(target_os = "linux")]
pub(crate) mod linux;
mod plain;
#[cfg(target_os = "linux")]
pub(crate) mod stack;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(windows)]
pub(crate) use plain::{Batch, Ready};
#[cfg(windows)]
pub(crate) use windows::*;

use stacklab_model::Family;
use std::io;
use std::mem::MaybeUninit;
use std::net::Ipv6Addr;
use std::time::Duration;
/// A trial's socket.
#[cfg(windows)]
pub(crate) use {peek_kernel as peek, socket2::Socket};

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

/// An option of a socket that not every system has, or that Linux sets beyond a limit for those who may.
#[cfg_attr(windows, expect(dead_code, reason = "Windows refuses most of them, whatever their values"))]
#[derive(Debug, Clone, Copy)]
pub(crate) enum SocketOption<'a> {
    /// Bytes, above net.core.wmem_max if permitted (SO_SNDBUF).
    SendBuffer(usize),
    /// Bytes, above net.core.rmem_max if permitted (SO_RCVBUF).
    ReceiveBuffer(usize),
    /// Bytes of each message, which shares no segment. Kernels need not know; a stack whose buffer is a ring splits
    /// what lies across its end.
    WholeMessages(usize),
    /// Maximum segment size of a future connection, in both directions.
    Mss(u32),
    CongestionControl(&'a str),
    /// DSCP and ECN of sent packets.
    TrafficClass(Family, u8),
    /// Microseconds; raising it above the default requires CAP_NET_ADMIN (SO_BUSY_POLL).
    BusyPoll(u32),
    /// Sends and receives at this interface alone (SO_BINDTODEVICE).
    Device(&'a str),
    /// Leases a flow label (not 0) for packets to a destination, which is required before connecting with it.
    FlowLabel(Ipv6Addr, u32),
    /// Reflects the flow label of incoming connections (IPV6_FL_F_REFLECT).
    ReflectFlowLabel,
    /// Turns automatic flow labels off (IPV6_AUTOFLOWLABEL).
    NoFlowLabel,
    /// Paces a TCP socket at this many bytes of payload per second, and limits the bytes queued in the socket.
    Pacing {
        bytes_per_second: u64,
        waiting: usize,
    },
    /// Receive timestamps of the realtime clock, taken when the driver passes the packet to the stack (SO_TIMESTAMPNS).
    RxTimestamps,
    /// Transmit timestamps ([`read_tx_timestamp`]), with sends numbered from 0: software timestamps, and hardware
    /// timestamps if the interface is configured to take them. Does not change the interface's configuration.
    TxTimestamps,
    /// Receives tell the TTL, or hop limit, of each datagram.
    RxTtl(Family),
    /// One send leaves as datagrams of this many bytes (UDP_SEGMENT).
    Gso(usize),
    Gro,
    /// Enables sends with [`SEND_ZEROCOPY`].
    Zerocopy,
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
    /// Time of the processors in idle states, without the periods under way, if the system reports it.
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

#[cfg_attr(windows, expect(dead_code, reason = "Windows gives none"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxTimestamp {
    /// Software timestamp: handed to the driver, nanoseconds of the realtime clock.
    Software(Nanos),
    /// Hardware timestamp, nanoseconds of the interface's own clock.
    Hardware(Nanos),
}

/// Reads what waits at a system's socket, and leaves it there. Returns how many bytes it wrote.
pub(crate) fn peek_kernel(socket: &socket2::Socket, room: &mut [u8]) -> io::Result<usize> {
    let room: *mut [u8] = room;
    // SAFETY: both have the same layout, and the call writes initialised bytes alone.
    socket.peek(unsafe { &mut *(room as *mut [MaybeUninit<u8>]) })
}
