//! What the medium of a network has counted.

use serde::{Deserialize, Serialize};
use stacklab_model::wifi::{Airtime, NodeAirtime};

/// Counts of a medium since its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediumReport {
    /// The time since then by the network's clock.
    pub elapsed_ns: u64,
    /// Where it went. It may reach into the exchange in progress.
    pub airtime: Airtime,
    /// Sender, access point, receiver, other stations. A receiver on a wire has nothing.
    pub nodes: Vec<NodeAirtime>,
    /// Frames and the kernel.
    pub frames: FrameCounts,
    /// Whether exchanges were reported in time.
    pub lateness: Lateness,
    /// A hash of all events with their times and frames. Two equal courses have the same.
    pub digest: u64,
}

/// Numbers of frames between the kernel and the medium.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameCounts {
    /// Frames that radios sent.
    pub sent: u64,
    /// Frames for which the medium had no room.
    pub dropped: u64,
    /// Receptions: a group's frame has several.
    pub delivered: u64,
    /// Receptions and statuses that the kernel refused: of a radio that listens elsewhere, or of a frame that it gave
    /// up.
    pub refused: u64,
    /// How often the kernel dropped frames before the medium took them.
    pub overruns: u64,
}

/// How late the kernel got exchanges whose frames were received.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Such exchanges.
    pub exchanges: u64,
    /// Part of these that were late by more than a tenth of their time.
    pub late: u64,
    /// The sum of all delays.
    pub total_ns: u64,
    /// The longest delay.
    pub longest_ns: u64,
}

impl Lateness {
    /// Notes an exchange of this length, and by how much it was late.
    pub(super) fn note(&mut self, exchange_ns: u64, delay_ns: u64) {
        self.exchanges += 1;
        self.late += u64::from(delay_ns > exchange_ns / 10);
        self.total_ns += delay_ns;
        self.longest_ns = self.longest_ns.max(delay_ns);
    }

    /// What was counted since then. The longest delay is that of all of the time.
    pub fn since(&self, before: &Self) -> Self {
        Lateness {
            exchanges: self.exchanges.saturating_sub(before.exchanges),
            late: self.late.saturating_sub(before.late),
            total_ns: self.total_ns.saturating_sub(before.total_ns),
            longest_ns: self.longest_ns,
        }
    }

    /// The share of late exchanges; `None` without any exchange.
    pub fn share(&self) -> Option<f64> {
        (self.exchanges > 0).then(|| self.late as f64 / self.exchanges as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_is_late_after_a_tenth_of_its_time() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.share(), None);
        for delay_ns in [0, 40_000, 40_001, 900_000] {
            lateness.note(400_000, delay_ns);
        }
        assert_eq!((lateness.share(), lateness.longest_ns), (Some(0.5), 900_000));
        assert_eq!(lateness.total_ns, 980_001);
        let before = Lateness { exchanges: 2, late: 0, total_ns: 40_000, longest_ns: 40_000 };
        assert_eq!(lateness.since(&before).share(), Some(1.0));
    }
}
