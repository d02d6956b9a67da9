//! When the next message leaves.

use crate::sys::{self, Nanos};
use stacklab_model::{Length, Pacing};
use std::time::Duration;

/// The least wait that is slept; shorter ones are spun, since a sleep ends tens of microseconds late.
const SPIN_NS: Nanos = 80_000;

/// Leave to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// When the first message should leave.
    pub due: Nanos,
    /// The time now.
    pub now: Nanos,
    /// How many messages may leave.
    pub messages: usize,
}

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

    /// Waits for the turn of message `sequence`; with no schedule, up to `most` messages may leave in it. `None` when
    /// the phase is over.
    pub fn turn(&mut self, sequence: u64, most: usize) -> Option<Turn> {
        let mut now = sys::now_ns();
        let scheduled = self.gap_ns > 0.0;
        let due = if scheduled { self.start_ns + (sequence as f64 * self.gap_ns) as Nanos } else { now };
        let left = match self.length {
            Length::Packets(packets) => packets.saturating_sub(sequence),
            Length::Time(time) if due.saturating_sub(self.start_ns) >= time => 0,
            Length::Time(_) => u64::MAX,
        };
        if left == 0 {
            return None;
        }
        if scheduled {
            now = wait_until(due, now);
            self.max_late_ns = self.max_late_ns.max(now - due);
        }
        let messages = if scheduled { 1 } else { most.min(usize::try_from(left).unwrap_or(usize::MAX)) };
        Some(Turn { due, now, messages })
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
        while let Some(turn) = pacer.turn(sequence, 64) {
            assert_eq!((turn.due, turn.messages), (start + sequence * 100_000, 1));
            assert!(turn.now >= turn.due);
            sequence += 1;
        }
        assert_eq!(sequence, 200);
        assert!(pacer.max_late_ns().is_some());
    }

    #[test]
    fn a_count_ends_a_flood() {
        let mut pacer = Pacer::start(Pacing::Flood, Length::Packets(3));
        let turns = [0, 2, 3].map(|sequence| pacer.turn(sequence, 2).map(|turn| turn.messages));
        assert_eq!(turns, [Some(2), Some(1), None]);
        assert_eq!(pacer.max_late_ns(), None);
    }
}
