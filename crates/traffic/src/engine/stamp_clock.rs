//! The kernel's packet timestamps, which are of the realtime clock, on the monotonic clock.

use crate::sys::{self, Nanos, RealtimeOffset};

/// What two readings of the offset may be apart, beyond their errors, if nobody has set the realtime clock: both clocks
/// run at one rate.
const APART_NS: u64 = 1_000_000;

/// How many readings are made of a clock that is new or was set, or whose reading was interrupted.
const READINGS: usize = 8;
/// A reading was interrupted if its error is this many times that of the most exact one, and this many ns more:
/// it hides that the clock was set to and fro, which takes little time.
const INTERRUPTED: u64 = 4;
const INTERRUPTED_NS: u64 = 1_000;

/// Both clocks, as they were at the last reading.
#[derive(Debug, Clone)]
pub(crate) struct StampClock {
    read_ns: Nanos,
    /// The most exact reading of those that agree with the last one.
    realtime: RealtimeOffset,
    /// The smallest error of all readings.
    least_bound_ns: u64,
    /// Whether the offset changed between the last two readings, and by more than a little.
    moved: bool,
    was_set: bool,
    /// The last reading before the realtime clock was set, or the first one of all: a timestamp from before it is of
    /// another time.
    since_ns: Nanos,
}

impl StampClock {
    /// The first reading: before any packet can arrive whose timestamp it is to be asked about.
    pub(crate) fn new() -> Self {
        StampClock::of(sys::now_ns(), exact(&mut sys::realtime_offset))
    }

    fn of(read_ns: Nanos, realtime: RealtimeOffset) -> Self {
        let least_bound_ns = realtime.bound_ns;
        StampClock { read_ns, realtime, least_bound_ns, moved: false, was_set: false, since_ns: read_ns }
    }

    /// Reads both clocks, at this time of the monotonic one.
    pub(crate) fn read(&mut self, read_ns: Nanos) {
        self.read_by(read_ns, &mut sys::realtime_offset);
    }

    fn read_by(&mut self, read_ns: Nanos, offset: &mut impl FnMut() -> RealtimeOffset) {
        let mut now = offset();
        let known = self.realtime;
        if was_interrupted(now, known.bound_ns) {
            now = exact(offset);
        }
        let apart_ns = now.offset_ns.abs_diff(known.offset_ns).saturating_sub(now.bound_ns + known.bound_ns);
        (self.moved, self.was_set) = (apart_ns > 0, apart_ns > APART_NS);
        if self.was_set {
            self.since_ns = self.read_ns;
        }
        // Two settings may take each other back but for the time that they took.
        if self.moved {
            self.realtime = exact(offset);
        } else if now.bound_ns < known.bound_ns {
            self.realtime = now;
        }
        self.least_bound_ns = self.least_bound_ns.min(self.realtime.bound_ns);
        self.read_ns = read_ns;
    }

    /// Whether the realtime clock was set between the last two readings, if only to and fro: the times between two
    /// timestamps from before and after are none.
    pub(crate) fn moved(&self) -> bool {
        self.moved
    }

    /// When a packet arrived that was received at the last reading, by its timestamp: no later than that, and then if
    /// the timestamp is of another time, or no exact reading was possible since the clock was set.
    pub(crate) fn arrival(&self, stamp_ns: Nanos) -> Nanos {
        let arrived_ns = (stamp_ns as i64 - self.realtime.offset_ns).max(0) as Nanos;
        let is_unknown = self.was_set || was_interrupted(self.realtime, self.least_bound_ns);
        if is_unknown || arrived_ns < self.since_ns { self.read_ns } else { self.read_ns.min(arrived_ns) }
    }
}

/// Whether a reading is much less exact than another one with this error.
fn was_interrupted(reading: RealtimeOffset, bound_ns: u64) -> bool {
    reading.bound_ns > INTERRUPTED * bound_ns + INTERRUPTED_NS
}

/// The most exact of several readings: one that was interrupted is off by more than a packet's way.
fn exact(offset: &mut impl FnMut() -> RealtimeOffset) -> RealtimeOffset {
    let readings = std::iter::repeat_with(offset).take(READINGS);
    readings.min_by_key(|reading| reading.bound_ns).expect("there are some")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_the_realtime_clock_moves_no_arrival() {
        const HOUR_NS: i64 = 3600 * 1_000_000_000;
        const OFFSET_NS: i64 = 1_700_000_000_000_000_000;
        let stamp = |arrived_ns: i64| (arrived_ns + OFFSET_NS) as Nanos;
        let reading = |offset_ns| move || RealtimeOffset { offset_ns, bound_ns: 20 };
        let begin = || StampClock::of(1_000, reading(OFFSET_NS)());
        let mut clock = begin();
        // Readings are not exact, and one that was interrupted is not taken.
        let interrupted = RealtimeOffset { offset_ns: OFFSET_NS + 3_000_000, bound_ns: 3_000_000 };
        clock.read_by(5_000, &mut || interrupted);
        clock.read_by(9_000, &mut || RealtimeOffset { offset_ns: OFFSET_NS + 10, bound_ns: 10 });
        assert_eq!(clock.arrival(stamp(5_010)), 5_000);
        assert_eq!(clock.arrival(stamp(9_500)), 9_000);
        for hours in [1, -1, 24 * 365] {
            let mut clock = begin();
            // A packet came at 15,000, and the clock was set before it was received, or before it came.
            for stamp_ns in [stamp(15_000), stamp(15_000 + hours * HOUR_NS)] {
                clock = begin();
                clock.read_by(20_000, &mut reading(OFFSET_NS + hours * HOUR_NS));
                assert!(clock.moved());
                assert_eq!(clock.arrival(stamp_ns), 20_000);
            }
            // The next ones are of the new time, but for one that has waited since.
            clock.read_by(30_000, &mut reading(OFFSET_NS + hours * HOUR_NS));
            assert_eq!(clock.arrival(stamp(25_000 + hours * HOUR_NS)), 25_000);
            assert_eq!(clock.arrival(stamp(900)), 30_000);
            // Set to and fro while a packet waited: its timestamp is of a time that no reading has seen.
            let mut clock = begin();
            clock.read_by(20_000, &mut reading(OFFSET_NS));
            assert_eq!(clock.arrival(stamp(15_000 + hours * HOUR_NS)), 20_000);
        }
        // All readings after the setting were interrupted, and put packets before they were sent.
        let mut clock = begin();
        let inexact = RealtimeOffset { offset_ns: OFFSET_NS + HOUR_NS + 30_000, bound_ns: 40_000 };
        for read_ns in [20_000, 60_000] {
            clock.read_by(read_ns, &mut || inexact);
            assert_eq!(clock.arrival(stamp(read_ns as i64 - 1_000 + HOUR_NS)), read_ns);
        }
        clock.read_by(90_000, &mut reading(OFFSET_NS + HOUR_NS));
        assert_eq!(clock.arrival(stamp(85_000 + HOUR_NS)), 85_000);
        // To and fro, and some time was lost: a packet that came later has not arrived earlier.
        let mut clock = begin();
        clock.read_by(500_000, &mut reading(OFFSET_NS - 300_000));
        assert_eq!(clock.arrival(stamp(450_000 - 300_000)), 450_000);
        // Nor if the reading after that was interrupted.
        let mut clock = begin();
        let mut readings =
            std::iter::once(interrupted).chain(std::iter::repeat_with(reading(OFFSET_NS - 300_000)));
        clock.read_by(500_000, &mut || readings.next().unwrap());
        assert!(clock.moved());
        assert_eq!(clock.arrival(stamp(450_000 - 300_000)), 450_000);
    }
}
