//! Where the time of the channel went.

use crate::add_up;
use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Sub};

/// The time of a channel by use, nanoseconds. The parts add up to the time that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Airtime {
    /// Symbols with frames that did not collide.
    pub data_ns: u64,
    pub preamble_ns: u64,
    /// SIFS, ACK and BlockAck; the time in which a missing one was awaited.
    pub control_ns: u64,
    /// Collisions, until the channel is idle again.
    pub collision_ns: u64,
    /// AIFS and backoff, while a frame waits.
    pub contention_ns: u64,
    pub idle_ns: u64,
}

impl AddAssign for Airtime {
    fn add_assign(&mut self, other: Self) {
        self.data_ns += other.data_ns;
        self.preamble_ns += other.preamble_ns;
        self.control_ns += other.control_ns;
        self.collision_ns += other.collision_ns;
        self.contention_ns += other.contention_ns;
        self.idle_ns += other.idle_ns;
    }
}

impl Airtime {
    pub fn elapsed_ns(&self) -> u64 {
        self.busy_ns() + self.contention_ns + self.idle_ns
    }

    pub fn busy_ns(&self) -> u64 {
        self.data_ns + self.preamble_ns + self.control_ns + self.collision_ns
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeAirtime {
    /// Symbols with its frames, in exchanges without a collision.
    pub data_ns: u64,
    pub preamble_ns: u64,
    /// SIFS and responses to its frames; the time in which it awaited one.
    pub control_ns: u64,
    /// Its PPDUs in collisions. Those of others may overlap.
    pub collision_ns: u64,
    /// Part of the first three for frames to groups.
    pub group_ns: u64,
    pub transmissions: u64,
    pub collisions: u64,
    /// Frames in all of its PPDUs; for each PPDU the aggregate size.
    pub frames_sent: u64,
    pub frames_received: u64,
    pub retries: u64,
    /// Frames lost for good: after the last attempt, or to a group.
    pub given_up: u64,
    pub queue_drops: u64,
}

impl AddAssign for NodeAirtime {
    fn add_assign(&mut self, other: Self) {
        *self = self.with(other, |own, other| own + other);
    }
}

impl Sub for NodeAirtime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        self.with(earlier, |own, earlier| own - earlier)
    }
}

impl NodeAirtime {
    fn with(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        NodeAirtime {
            data_ns: of(self.data_ns, other.data_ns),
            preamble_ns: of(self.preamble_ns, other.preamble_ns),
            control_ns: of(self.control_ns, other.control_ns),
            collision_ns: of(self.collision_ns, other.collision_ns),
            group_ns: of(self.group_ns, other.group_ns),
            transmissions: of(self.transmissions, other.transmissions),
            collisions: of(self.collisions, other.collisions),
            frames_sent: of(self.frames_sent, other.frames_sent),
            frames_received: of(self.frames_received, other.frames_received),
            retries: of(self.retries, other.retries),
            given_up: of(self.given_up, other.given_up),
            queue_drops: of(self.queue_drops, other.queue_drops),
        }
    }

    pub fn busy_ns(&self) -> u64 {
        self.data_ns + self.preamble_ns + self.control_ns
    }

    pub fn mean_aggregate(&self) -> Option<f64> {
        share(self.frames_sent, self.transmissions)
    }
}

/// The use of a radio channel in the windows of one host: the measured one, or the slices of an arm. An exchange is in
/// the window in which it begins, in full; a window begins when the exchange before it has ended. So the parts of the
/// airtime add up to the windows' time, and each exchange counts once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelUse {
    pub airtime: Airtime,
    /// Sender, access point, receiver (nothing if it is on a wire), other stations.
    pub nodes: Vec<NodeAirtime>,
    /// The first exchanges of the first window that has any, at most [`ChannelUse::MAX_INTERVALS`].
    pub intervals: Vec<AirInterval>,
}

/// An exchange on the channel, or several joined where a trial has very many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AirInterval {
    /// Its beginning, nanoseconds after that of the window.
    pub begin_ns: u64,
    pub end_ns: u64,
    /// Part of it that each node's exchanges took, nanoseconds, in the order of nodes.
    pub nodes_ns: Vec<u64>,
    /// Part of it that collisions took, nanoseconds.
    pub collision_ns: u64,
}

/// Shares are `None` where there is nothing to share.
impl ChannelUse {
    pub const MAX_INTERVALS: usize = 200;

    pub fn airtime_share(&self) -> Option<f64> {
        share(self.airtime.busy_ns(), self.airtime.elapsed_ns())
    }

    pub fn group_share(&self) -> Option<f64> {
        share(self.sum(|node| node.group_ns), self.airtime.elapsed_ns())
    }

    pub fn mean_aggregate(&self) -> Option<f64> {
        share(self.sum(|node| node.frames_sent), self.sum(|node| node.transmissions))
    }

    pub fn retry_share(&self) -> Option<f64> {
        share(self.sum(|node| node.retries), self.sum(|node| node.frames_sent))
    }

    pub fn collision_share(&self) -> Option<f64> {
        share(self.sum(|node| node.collisions), self.sum(|node| node.transmissions))
    }

    /// Of a node's frames, those that its full queue dropped.
    pub fn drop_share(&self, node: usize) -> Option<f64> {
        let node = self.nodes.get(node)?;
        let done = node.frames_received.saturating_add(node.given_up);
        share(node.queue_drops, done.saturating_add(node.queue_drops))
    }

    fn sum(&self, of: impl Fn(&NodeAirtime) -> u64) -> u64 {
        add_up(self.nodes.iter().map(of))
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
        let mut used = ChannelUse {
            airtime: Airtime { data_ns: 60, control_ns: 15, idle_ns: 25, ..Airtime::default() },
            nodes: vec![create_node(80, 20), create_node(60, 0), NodeAirtime::default()],
            intervals: Vec::new(),
        };
        used.nodes[0].collisions = 1;
        used.nodes[1].retries = 7;
        assert_eq!((used.airtime_share(), used.mean_aggregate()), (Some(0.75), Some(7.0)));
        assert_eq!((used.collision_share(), used.retry_share()), (Some(0.05), Some(0.05)));
        let drops = [0, 1, 2, 3].map(|node| used.drop_share(node));
        assert_eq!(drops, [Some(0.2), Some(0.0), None, None]);
        assert_eq!(ChannelUse::default().airtime_share(), None);
    }

    fn create_node(frames: u64, queue_drops: u64) -> NodeAirtime {
        NodeAirtime {
            transmissions: 10,
            frames_sent: frames,
            frames_received: frames,
            queue_drops,
            ..NodeAirtime::default()
        }
    }
}
