//! Counters of a host: CPU time, TCP_INFO, kernel counters, and drops.

use crate::host::facts::{CpuScope, CpuSource};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// System-wide CPU time of a host over its measured window, nanoseconds. If the host's kernel does not
/// count CPU time ([`CpuScope::Outside`]), it is the CPU time of the host's processes over a whole trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// The scope of the CPU time.
    pub scope: CpuScope,
    /// What busy time was computed from; `None` in older records. Ticks divide it into user, system and so on in any
    /// case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<CpuSource>,
    /// The window.
    pub window_ns: u64,
    /// User and nice.
    pub user_ns: u64,
    /// System.
    pub system_ns: u64,
    /// Hardware interrupts.
    pub irq_ns: u64,
    /// Software interrupts.
    pub softirq_ns: u64,
    /// Idle and waiting for I/O.
    pub idle_ns: u64,
    /// Taken by the hypervisor.
    pub steal_ns: u64,
    /// Whether the host reports only user, system and idle time, as Windows does. Interrupts are then part of
    /// `system_ns`, and `irq_ns`, `softirq_ns` and `steal_ns` are unknown. Of threads: whether all of their time is in
    /// `system_ns`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undivided: bool,
    /// The agent's own user time in it (rusage).
    pub own_user_ns: u64,
    /// The agent's own system time in it (rusage).
    pub own_system_ns: u64,
}

impl CpuTime {
    /// User, system, irq and softirq.
    pub fn busy_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.kernel_ns())
    }

    /// System, irq and softirq.
    pub fn kernel_ns(&self) -> u64 {
        self.system_ns.saturating_add(self.irq_ns).saturating_add(self.softirq_ns)
    }
}

/// The TCP_INFO fields in use; `None` if the stack does not fill them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpInfo {
    /// Sending maximum segment size, bytes.
    pub snd_mss: Option<u64>,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: Option<u64>,
    /// Congestion window, segments.
    pub snd_cwnd: Option<u64>,
    /// Retransmitted segments.
    pub total_retrans: Option<u64>,
    /// Data segments sent, retransmissions included.
    pub data_segs_out: Option<u64>,
    /// Data segments received.
    pub data_segs_in: Option<u64>,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: Option<u64>,
    /// Payload bytes retransmitted.
    pub bytes_retrans: Option<u64>,
    /// Minimum round-trip time of the last five minutes, microseconds.
    #[serde(default)]
    pub min_rtt_us: Option<u64>,
    /// Mean of the smoothed round-trip time, sampled every 10 ms, microseconds.
    pub srtt_mean_us: Option<f64>,
}

impl TcpInfo {
    /// Payload bytes and data segments sent; `None` if the stack does not count them.
    pub fn sent_segments(&self) -> Option<(u64, u64)> {
        Some((self.bytes_sent?, self.data_segs_out.filter(|segments| *segments > 0)?))
    }
}

/// Counter increments over a trial, by name: `interface.*` (bytes, packets and drops from /proc/net/dev), `ip.*`,
/// `ip6.*`, `udp.*`, `udp6.*`, `tcp.*` (/proc/net/snmp, snmp6) and `socket.drops`. The host that sends requests to
/// services also has `services.NAME.asked` and `services.NAME.answered`. Counters without an increment are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counters(pub BTreeMap<String, u64>);

impl Counters {
    /// The increment of a counter; 0 if it did not change or does not exist.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// Where the messages of a stream were lost, warm-up included. Counters give the other parts; `network` is the
/// remainder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Rejected by the sender's socket or queue.
    pub sender_queue: u64,
    /// Dropped at an interface of either host.
    pub interface: u64,
    /// Dropped at the receiver because a socket buffer was full.
    pub socket_buffer: u64,
    /// Lost elsewhere.
    pub network: u64,
}
