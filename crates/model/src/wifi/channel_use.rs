//! The use of a radio channel in the windows that a host measured.

use crate::wifi::airtime::{Airtime, NodeAirtime};
use serde::{Deserialize, Serialize};

/// The use of a radio channel in the windows of one host: the measured one, or the slices of an arm.
///
/// An exchange is in the window in which it begins, in full. A window begins when the exchange before it has ended. So
/// the parts of the airtime add up to the windows' time, and what follows each other counts each exchange once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelUse {
    /// Where the time went.
    pub airtime: Airtime,
    /// What each node had of it, and what became of its frames: sender, access point, receiver, other
    /// stations. A receiver on a wire has nothing.
    pub nodes: Vec<NodeAirtime>,
    /// The first exchanges of the first window that has any, at most [`ChannelUse::MOST_INTERVALS`].
    pub intervals: Vec<AirInterval>,
}

/// An exchange on the channel, or several joined where a trial has very many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AirInterval {
    /// Its beginning, nanoseconds after that of the window.
    pub begin_ns: u64,
    /// Its end, after the response.
    pub end_ns: u64,
    /// Part of it that each node's exchanges took, nanoseconds, in the order of nodes.
    pub nodes_ns: Vec<u64>,
    /// Part of it that collisions took, nanoseconds.
    pub collision_ns: u64,
}

impl ChannelUse {
    /// The most intervals that are kept.
    pub const MOST_INTERVALS: usize = 200;

    /// Share of the time that exchanges took; `None` without any time.
    pub fn airtime_share(&self) -> Option<f64> {
        share(self.airtime.busy_ns(), self.airtime.elapsed_ns())
    }

    /// Share of the time that PPDUs to groups took; `None` without any time.
    pub fn group_share(&self) -> Option<f64> {
        share(self.sum(|node| node.group_ns), self.airtime.elapsed_ns())
    }

    /// Mean frames of a PPDU; `None` if none was sent.
    pub fn mean_aggregate(&self) -> Option<f64> {
        share(self.sum(|node| node.frames_sent), self.sum(|node| node.transmissions))
    }

    /// Share of the frames on air that had to be sent again; `None` if none was sent.
    pub fn retry_share(&self) -> Option<f64> {
        share(self.sum(|node| node.retries), self.sum(|node| node.frames_sent))
    }

    /// Share of the PPDUs that collided; `None` if none was sent.
    pub fn collision_share(&self) -> Option<f64> {
        share(self.sum(|node| node.collisions), self.sum(|node| node.transmissions))
    }

    /// Share of a node's frames that its full queue dropped; `None` if it had none, or is not there.
    pub fn drop_share(&self, node: usize) -> Option<f64> {
        let node = self.nodes.get(node)?;
        let done = node.frames_received.saturating_add(node.given_up);
        share(node.queue_drops, done.saturating_add(node.queue_drops))
    }

    fn sum(&self, of: impl Fn(&NodeAirtime) -> u64) -> u64 {
        self.nodes.iter().map(of).fold(0, u64::saturating_add)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_nodes_but_for_drops() {
        let node = |transmissions, frames_sent, queue_drops| NodeAirtime {
            transmissions,
            frames_sent,
            frames_received: frames_sent,
            queue_drops,
            ..NodeAirtime::default()
        };
        let mut used = ChannelUse {
            airtime: Airtime { data_ns: 60, control_ns: 15, idle_ns: 25, ..Airtime::default() },
            nodes: vec![node(10, 80, 20), node(10, 60, 0), NodeAirtime::default()],
            intervals: Vec::new(),
        };
        (used.nodes[0].collisions, used.nodes[1].retries) = (1, 7);
        assert_eq!((used.airtime_share(), used.mean_aggregate()), (Some(0.75), Some(7.0)));
        assert_eq!((used.collision_share(), used.retry_share()), (Some(0.05), Some(0.05)));
        let drops = [0, 1, 2, 3].map(|node| used.drop_share(node));
        assert_eq!(drops, [Some(0.2), Some(0.0), None, None]);
        assert_eq!(ChannelUse::default().airtime_share(), None);
    }
}
