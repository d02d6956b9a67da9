//! Where the time of the channel went.

use serde::{Deserialize, Serialize};

/// The time of a channel by use, nanoseconds. The parts add up to the time that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Airtime {
    /// Symbols with frames that did not collide.
    pub data_ns: u64,
    /// Preambles, PHY headers and signal extensions of these.
    pub preamble_ns: u64,
    /// SIFS, ACK and BlockAck; the time in which a missing one was awaited.
    pub control_ns: u64,
    /// Collisions, until the channel is idle again.
    pub collision_ns: u64,
    /// AIFS and backoff, while a frame waits.
    pub contention_ns: u64,
    /// No frame waits.
    pub idle_ns: u64,
}

impl Airtime {
    /// All time, with an exchange that has begun in full.
    pub fn elapsed_ns(&self) -> u64 {
        self.busy_ns() + self.contention_ns + self.idle_ns
    }

    /// The time of exchanges.
    pub fn busy_ns(&self) -> u64 {
        self.data_ns + self.preamble_ns + self.control_ns + self.collision_ns
    }
}

/// What one node had of the channel, and what became of its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeAirtime {
    /// Symbols with its frames, in exchanges without a collision.
    pub data_ns: u64,
    /// Preambles, PHY headers and signal extensions of these.
    pub preamble_ns: u64,
    /// SIFS and responses to its frames; the time in which it awaited one.
    pub control_ns: u64,
    /// Its PPDUs in collisions. Those of others may overlap.
    pub collision_ns: u64,
    /// Part of the first three for frames to groups.
    pub group_ns: u64,
    /// PPDUs that it sent.
    pub transmissions: u64,
    /// Part of these that collided.
    pub collisions: u64,
    /// Frames in all of its PPDUs; for each PPDU the aggregate size.
    pub frames_sent: u64,
    /// Frames that were received.
    pub frames_received: u64,
    /// Times that a frame had to be sent again.
    pub retries: u64,
    /// Frames lost for good: after the last attempt, or to a group.
    pub given_up: u64,
    /// Frames dropped by a full queue.
    pub queue_drops: u64,
}

impl NodeAirtime {
    /// The time of its exchanges without a collision.
    pub fn busy_ns(&self) -> u64 {
        self.data_ns + self.preamble_ns + self.control_ns
    }

    /// Mean frames of a PPDU; `None` if it sent none.
    pub fn mean_aggregate(&self) -> Option<f64> {
        (self.transmissions > 0).then(|| self.frames_sent as f64 / self.transmissions as f64)
    }
}
