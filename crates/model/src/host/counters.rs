//! What a host counted: CPU time, TCP_INFO, kernel counters, drops, and the slices of interleaved arms.

use crate::{CpuScope, CpuSource, LinkBucket};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// System-wide CPU time of a host over its measured window ([`CpuScope::Outside`]: over a whole trial).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    pub scope: CpuScope,
    /// What busy time was computed from; `None` in older records. Ticks divide it into its parts in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<CpuSource>,
    pub window_ns: u64,
    pub user_ns: u64,
    pub system_ns: u64,
    pub irq_ns: u64,
    pub softirq_ns: u64,
    pub idle_ns: u64,
    pub steal_ns: u64,
    /// Whether interrupts are part of `system_ns`, and `irq_ns`, `softirq_ns` and `steal_ns` are unknown, as on
    /// Windows. Of threads: whether all of their time is in `system_ns`.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub undivided: bool,
    /// The agent's own (rusage), and below.
    pub own_user_ns: u64,
    pub own_system_ns: u64,
}

impl CpuTime {
    /// That of processes in a window, in user mode and in the kernel.
    pub fn of_processes(
        (scope, source): (CpuScope, CpuSource),
        window_ns: u64,
        [user_ns, system_ns]: [u64; 2],
    ) -> Self {
        CpuTime {
            scope,
            source: Some(source),
            window_ns,
            user_ns,
            system_ns,
            irq_ns: 0,
            softirq_ns: 0,
            idle_ns: 0,
            steal_ns: 0,
            undivided: false,
            own_user_ns: 0,
            own_system_ns: 0,
        }
    }

    pub fn busy_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.kernel_ns())
    }

    pub fn kernel_ns(&self) -> u64 {
        self.system_ns.saturating_add(self.irq_ns).saturating_add(self.softirq_ns)
    }
}

/// The TCP_INFO fields in use; `None` if the stack does not fill them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpInfo {
    pub snd_mss: Option<u64>,
    pub rtt_us: Option<u64>,
    pub snd_cwnd: Option<u64>,
    pub total_retrans: Option<u64>,
    /// Data segments sent, retransmissions included.
    pub data_segs_out: Option<u64>,
    pub data_segs_in: Option<u64>,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: Option<u64>,
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
/// `ip6.*`, `udp.*`, `udp6.*`, `tcp.*` (/proc/net/snmp, snmp6), `socket.drops`, and [`Counters::THROTTLED_US`] and
/// `cgroup.throttled_periods` where a control group has a CPU quota. The host that sends requests to services also has
/// `services.NAME.asked` and `services.NAME.answered`. Counters without an increment are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counters(pub BTreeMap<String, u64>);

impl Counters {
    /// Microseconds for which control groups with a CPU quota kept the host from running.
    pub const THROTTLED_US: &str = "cgroup.throttled_us";

    /// The increment of a counter; 0 if it did not change or does not exist.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Adds what another host, or another interface, has counted.
    pub fn add(&mut self, more: Counters) {
        for (name, count) in more.0 {
            let sum = self.0.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
    }
}

/// Where the messages of a stream were lost, warm-up included. `network` is what the counters leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Rejected by the sender's socket or queue.
    pub sender_queue: u64,
    pub interface: u64,
    /// Dropped at the receiver because a socket buffer was full.
    pub socket_buffer: u64,
    pub network: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Round of the trial, from 0. Every arm has one slice in each round.
    pub round: u32,
    /// Messages that this host sent or received, duplicates not counted.
    pub messages: u64,
    /// Part of them that the slice's first receive returned, from which a rate counts; 0 for a sender.
    pub at_first: u64,
    pub first_ns: u64,
    /// Nanoseconds of the host's clock at the last arrival, or after the last send.
    pub last_ns: u64,
    /// Median of the slice's delays. An unanswered round trip counts as infinite: `None` if half or more are, and
    /// without any delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
    /// Mean absolute difference of consecutive delays within a flow; `None` with fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<f64>,
    /// Of the arm's threads; `None` if the system does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Time for which the arm's threads waited for a processor (run delay), from the slice's first message until the
    /// arm's next slice, at a sender until its last message; `None` if the system does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
}

impl Slice {
    /// A slice whose threads waited for more than this share of its time counts as held up.
    pub const MAX_WAITED: f64 = 0.1;

    pub fn seconds(&self) -> f64 {
        self.last_ns.saturating_sub(self.first_ns) as f64 / 1e9
    }

    /// Messages per second after the first receive, without a token bucket's burst; `None` if all arrived at once.
    pub fn arrival_rate(&self, bucket: Option<LinkBucket>) -> Option<f64> {
        let messages = self.messages.saturating_sub(self.at_first) as f64;
        let seconds = self.seconds();
        if seconds <= 0.0 {
            return None;
        }
        Some(match bucket {
            Some(bucket) => bucket.find_sustained_rate(messages, seconds),
            None => messages / seconds,
        })
    }

    /// `None` without messages, or if the system does not count waiting.
    pub fn held_up(&self) -> Option<bool> {
        let waited = self.waited_ns.filter(|_| self.messages > 0)? as f64;
        Some(waited > Self::MAX_WAITED * self.seconds() * 1e9)
    }

    pub fn cpu_per_message(&self) -> Option<f64> {
        self.cpu_ns.filter(|_| self.messages > 0).map(|ns| ns as f64 / self.messages as f64)
    }
}
