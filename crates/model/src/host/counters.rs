//! Counters of a host: CPU time, TCP_INFO, kernel counters, and drops.

use crate::host::facts::CpuScope;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// CPU time of a host over its measured window, system-wide (/proc/stat), nanoseconds; of one whose kernel does not count it
/// ([`CpuScope::Outside`]), of the processes that it is, over a whole trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Whose CPU it is.
    pub scope: CpuScope,
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
    /// Whether the host tells only user, system and idle time apart, as Windows does: interrupts are then part of
    /// `system_ns`, and `irq_ns`, `softirq_ns` and `steal_ns` are unknown.
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

/// The fields of TCP_INFO that are used; `None` where the stack does not fill them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpInfo {
    /// Sending maximum segment size, bytes.
    pub snd_mss: Option<u64>,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: Option<u64>,
    /// Congestion window, segments.
    pub snd_cwnd: Option<u64>,
    /// Segments sent again.
    pub total_retrans: Option<u64>,
    /// Segments with data sent, those sent again included.
    pub data_segs_out: Option<u64>,
    /// Segments with data received.
    pub data_segs_in: Option<u64>,
    /// Payload bytes sent, those sent again included.
    pub bytes_sent: Option<u64>,
    /// Payload bytes sent again.
    pub bytes_retrans: Option<u64>,
    /// Least round-trip time of the last five minutes, microseconds.
    #[serde(default)]
    pub min_rtt_us: Option<u64>,
    /// Mean of the smoothed round-trip time sampled every 10 ms, microseconds.
    pub srtt_mean_us: Option<f64>,
}

impl TcpInfo {
    /// Payload bytes and data segments sent; `None` where the stack does not count them.
    pub fn sent_segments(&self) -> Option<(u64, u64)> {
        Some((self.bytes_sent?, self.data_segs_out.filter(|segments| *segments > 0)?))
    }
}

/// Counter increments over a trial, by name: `interface.*` (bytes, packets, drops of /proc/net/dev), `ip.*`,
/// `ip6.*`, `udp.*`, `udp6.*`, `tcp.*` (/proc/net/snmp, snmp6), `socket.drops`; of services `services.NAME.asked` and
/// `services.NAME.answered` at the host that asks. Counters without an increment are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counters(pub BTreeMap<String, u64>);

impl Counters {
    /// The increment of a counter; 0 where it did not change or does not exist.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// Where the messages of a stream were lost, warm-up included. The parts are what the counters show; `network` is the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Refused by the sender's socket or queue.
    pub sender_queue: u64,
    /// Dropped at an interface of either host.
    pub interface: u64,
    /// Dropped for a full socket buffer at the receiver.
    pub socket_buffer: u64,
    /// Elsewhere.
    pub network: u64,
}
