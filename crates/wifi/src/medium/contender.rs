//! A node's access function for one category (EDCAF, section 10.22.2.2).

use crate::medium::NodeId;
use crate::medium::queue::Queue;
use stacklab_model::SplitMix64;
use stacklab_model::wifi::{Band, Edca};

/// The queue of one node and access category, and its backoff.
pub(crate) struct Contender {
    pub node: NodeId,
    pub queue: Queue,
    edca: Edca,
    aifs_ns: u64,
    slot_ns: u64,
    /// Slots left when the channel became busy, or idle.
    backoff: u32,
    /// Accesses in a row that failed.
    failures: u32,
    /// When a frame came into the empty queue.
    waits_since_ns: u64,
    /// Frames of the exchange in progress that do not come back, and its end. They have their places in the queue until
    /// then.
    in_flight: (usize, u64),
    random: SplitMix64,
}

impl Contender {
    pub(crate) fn new(node: NodeId, edca: Edca, band: Band, random: SplitMix64) -> Self {
        Contender {
            node,
            queue: Queue::default(),
            edca,
            aifs_ns: edca.aifs_ns(band),
            slot_ns: band.slot_ns(),
            backoff: 0,
            failures: 0,
            waits_since_ns: 0,
            in_flight: (0, 0),
            random,
        }
    }

    pub(crate) fn reseed(&mut self, random: SplitMix64) {
        self.random = random;
    }

    pub(crate) fn count_frames(&self, now_ns: u64) -> usize {
        let (frames, until_ns) = self.in_flight;
        self.queue.len() + if now_ns < until_ns { frames } else { 0 }
    }

    /// Notes that a frame is about to be queued. Where none waited and no backoff is left, a busy channel draws one
    /// (section 10.22.2.2, case a). A node's own exchange has drawn its backoff already.
    pub(crate) fn arrives(&mut self, now_ns: u64, busy_until_ns: u64) {
        if !self.queue.is_empty() {
            return;
        }
        self.waits_since_ns = now_ns;
        let own_exchange = now_ns < self.in_flight.1;
        if now_ns < busy_until_ns && self.backoff == 0 && !own_exchange {
            self.draw();
        }
    }

    /// The first slot boundary on a channel that is idle since `idle_ns`.
    fn first_boundary(&self, idle_ns: u64) -> u64 {
        idle_ns + self.aifs_ns
    }

    /// When it begins to send, if the channel stays idle; `None` without a frame. Access is at slot boundaries only.
    pub(crate) fn access_ns(&self, idle_ns: u64) -> Option<u64> {
        if self.queue.is_empty() {
            return None;
        }
        let first = self.first_boundary(idle_ns);
        let waited = self.waits_since_ns.saturating_sub(first).div_ceil(self.slot_ns);
        Some(first + waited.max(self.backoff.into()) * self.slot_ns)
    }

    /// Since when a frame waits; `None` without one.
    pub(crate) fn waits_since_ns(&self) -> Option<u64> {
        (!self.queue.is_empty()).then_some(self.waits_since_ns)
    }

    /// Counts the slots down to the boundary at which another one begins. At that boundary too: the counter falls
    /// before the other's preamble is heard, unlike in the older DCF.
    pub(crate) fn count_down(&mut self, idle_ns: u64, busy_ns: u64) {
        let first = self.first_boundary(idle_ns);
        if busy_ns >= first {
            let boundaries = (busy_ns - first) / self.slot_ns + 1;
            self.backoff = u64::from(self.backoff).saturating_sub(boundaries) as u32;
        }
    }

    pub(crate) fn succeeds(&mut self) {
        self.failures = 0;
        self.draw();
    }

    /// Draws the backoff after one that did not, or that a higher category of the same node took. After as many
    /// failures as a frame has attempts the window begins anew.
    pub(crate) fn fails(&mut self, attempts: u32) {
        self.failures = (self.failures + 1) % attempts;
        self.draw();
    }

    /// Notes the end of an exchange that it began, in which this many frames leave the queue.
    pub(crate) fn sends(&mut self, frames: usize, until_ns: u64) {
        self.in_flight = (frames, until_ns);
    }

    fn draw(&mut self) {
        // The window is a power of two less one.
        self.backoff = (self.random.next_u64() >> 32) as u32 & self.edca.window(self.failures);
    }

    /// Whether an event of this probability happens.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        // 53 random bits, as many as a number has.
        ((self.random.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::{Frame, FrameId, FrameKind, Receiver};
    use stacklab_model::wifi::{AccessCategory, Role};

    fn contender() -> Contender {
        let edca = Edca::default_of(Role::Station, AccessCategory::BestEffort);
        Contender::new(NodeId(0), edca, Band::Ghz2, SplitMix64(1))
    }

    fn arrive(contender: &mut Contender, now_ns: u64, busy_until_ns: u64) {
        contender.arrives(now_ns, busy_until_ns);
        contender.queue.push(Frame {
            id: FrameId(0),
            transmitter: NodeId(0),
            receiver: Receiver::Group,
            bytes: 100,
            kind: FrameKind::Single,
            category: AccessCategory::BestEffort,
        });
    }

    #[test]
    fn frame_on_an_idle_channel_is_sent_at_the_next_slot() {
        let mut contender = contender();
        assert_eq!(contender.access_ns(0), None);
        arrive(&mut contender, 40_000, 0);
        assert_eq!(contender.access_ns(0), Some(46_000));
        // Within AIFS it waits for its end, and on a boundary it waits for nothing.
        for (arrival, access) in [(10_000, 37_000), (37_000, 37_000), (46_000, 46_000), (46_001, 55_000)] {
            contender.waits_since_ns = arrival;
            assert_eq!(contender.access_ns(0), Some(access));
        }
    }

    #[test]
    fn a_frame_on_a_busy_channel_draws_a_backoff() {
        let mut slots = Vec::new();
        for seed in 0..200 {
            let mut contender = Contender { random: SplitMix64(seed), ..contender() };
            arrive(&mut contender, 50_000, 100_000);
            let backoff_ns = contender.access_ns(100_000).unwrap() - 137_000;
            assert_eq!(backoff_ns % 9000, 0);
            slots.push(backoff_ns / 9000);
        }
        assert_eq!(slots.iter().min(), Some(&0));
        assert_eq!(slots.iter().max(), Some(&15));
    }

    #[test]
    fn slots_count_at_the_boundary_where_another_begins() {
        let mut contender = contender();
        contender.backoff = 5;
        contender.count_down(0, 36_999);
        assert_eq!(contender.backoff, 5);
        contender.count_down(0, 37_000);
        assert_eq!(contender.backoff, 4);
        contender.count_down(0, 37_000 + 2 * 9000);
        assert_eq!(contender.backoff, 1);
        contender.count_down(0, 1_000_000_000);
        assert_eq!(contender.backoff, 0);
    }

    #[test]
    fn the_window_doubles_until_a_frame_is_given_up() {
        let mut contender = contender();
        for (failures, window) in [(0, 15), (1, 31), (2, 63)] {
            let mut largest = 0;
            for _ in 0..4000 {
                contender.failures = failures;
                contender.draw();
                largest = largest.max(contender.backoff);
            }
            assert_eq!(largest, window);
        }
        contender.succeeds();
        for failures in [1, 2, 3, 4, 5, 6, 0, 1] {
            contender.fails(7);
            assert_eq!(contender.failures, failures);
        }
        contender.succeeds();
        assert_eq!(contender.failures, 0);
    }
}
