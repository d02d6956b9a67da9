//! Where the time of the channel went.

use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Sub};

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
    /// Each count with the other's.
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

    /// The time of its exchanges without a collision.
    pub fn busy_ns(&self) -> u64 {
        self.data_ns + self.preamble_ns + self.control_ns
    }

    /// Mean frames of a PPDU; `None` if it sent none.
    pub fn mean_aggregate(&self) -> Option<f64> {
        (self.transmissions > 0).then(|| self.frames_sent as f64 / self.transmissions as f64)
    }
}
