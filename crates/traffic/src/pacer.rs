//! When the next message leaves.

use crate::sys::{self, Nanos};
use stacklab_model::{Length, Pacing};
use std::time::Duration;

/// The least wait that is slept; shorter ones are spun, since a sleep ends tens of microseconds late.
const SPIN_NS: Nanos = 80_000;

/// The send times of one phase.
pub struct Pacer {
    start_ns: Nanos,
    /// Nanoseconds between messages on a schedule; 0 where there is none.
    gap_ns: f64,
    length: Length,
    max_late_ns: Nanos,
}

impl Pacer {
    /// A phase that starts now.
    pub fn start(pacing: Pacing, length: Length) -> Self {
        let gap_ns = match pacing {
            Pacing::Schedule(per_second) => 1e9 / per_second,
            Pacing::Flood | Pacing::Lockstep => 0.0,
        };
        Pacer { start_ns: sys::now_ns(), gap_ns, length, max_late_ns: 0 }
    }

    /// Waits for the message's turn. `None` when the phase is over, else its intended send time and the time now.
    pub fn turn(&mut self, sequence: u64) -> Option<(Nanos, Nanos)> {
        let mut now = sys::now_ns();
        let scheduled = self.gap_ns > 0.0;
        let due = if scheduled { self.start_ns + (sequence as f64 * self.gap_ns) as Nanos } else { now };
        let over = match self.length {
            Length::Packets(packets) => sequence >= packets,
            Length::Time(time) => due.saturating_sub(self.start_ns) >= time,
        };
        if over {
            return None;
        }
        if scheduled {
            now = wait_until(due, now);
            self.max_late_ns = self.max_late_ns.max(now - due);
        }
        Some((due, now))
    }

    /// The longest that a message left after its scheduled time; `None` where there is no schedule.
    pub fn max_late_ns(&self) -> Option<Nanos> {
        (self.gap_ns > 0.0).then_some(self.max_late_ns)
    }
}

/// Waits until the clock says `due`; gives the time then, which is never before `due`.
fn wait_until(due: Nanos, mut now: Nanos) -> Nanos {
    while now < due {
        match due - now {
            left @ SPIN_NS.. => std::thread::sleep(Duration::from_nanos(left - SPIN_NS / 2)),
            _ => std::hint::spin_loop(),
        }
        now = sys::now_ns();
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_never_sends_early_and_sends_the_right_number() {
        let mut pacer = Pacer::start(Pacing::Schedule(10_000.0), Length::Time(20_000_000));
        let start = pacer.start_ns;
        let mut sequence = 0;
        while let Some((due, now)) = pacer.turn(sequence) {
            assert_eq!(due, start + sequence * 100_000);
            assert!(now >= due);
            sequence += 1;
        }
        assert_eq!(sequence, 200);
        assert!(pacer.max_late_ns().is_some());
    }

    #[test]
    fn a_count_ends_a_flood() {
        let mut pacer = Pacer::start(Pacing::Flood, Length::Packets(3));
        assert_eq!((0..10).filter(|sequence| pacer.turn(*sequence).is_some()).count(), 3);
        assert_eq!(pacer.max_late_ns(), None);
    }
}
