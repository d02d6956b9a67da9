//! How much of its time a campaign has spent.

use crate::RunRecord;

/// What a pause before a trial counts at the most, nanoseconds: a longer one was an interruption.
const MAX_PAUSE_NS: u64 = 10_000_000_000;

/// The time of a campaign's trials, and of what was prepared between them. It is known from the runs alone, so a
/// resumed campaign and a report of its record find the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpentTime {
    ns: u64,
    /// When the latest trial began, and when it ended.
    began_unix_ns: Option<u64>,
    ended_unix_ns: u64,
}

impl SpentTime {
    /// Adds a run: the next one, in the order of measuring.
    pub fn add(&mut self, run: &RunRecord) {
        // Arms of one trial begin together, and each has its share of the trial's time.
        if self.began_unix_ns != Some(run.started_unix_ns) {
            if self.began_unix_ns.is_some() {
                let pause_ns = run.started_unix_ns.saturating_sub(self.ended_unix_ns);
                self.ns = self.ns.saturating_add(pause_ns.min(MAX_PAUSE_NS));
            }
            self.began_unix_ns = Some(run.started_unix_ns);
            self.ended_unix_ns = run.started_unix_ns;
        }
        self.ns = self.ns.saturating_add(run.wall_ns);
        self.ended_unix_ns = self.ended_unix_ns.saturating_add(run.wall_ns);
    }

    /// Adds runs, in the order of measuring.
    pub fn add_all<'r>(&mut self, runs: impl IntoIterator<Item = &'r RunRecord>) {
        runs.into_iter().for_each(|run| self.add(run));
    }

    /// Nanoseconds so far.
    pub fn ns(&self) -> u64 {
        self.ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Family, Metric, Probe, SizeOf, Transport, Trial, Value};

    const SECOND: u64 = 1_000_000_000;

    fn run(started_unix_ns: u64, wall_ns: u64) -> RunRecord {
        let cell = Cell::new(Family::Ipv6, Transport::Udp, SizeOf::Payload, 128);
        let trial = Trial { block: 0, position: 0, cell, probe: Probe::Stream };
        let run = RunRecord::with_value(trial, Metric::Throughput, Value::Measured(1.0));
        RunRecord { started_unix_ns, wall_ns, ..run }
    }

    fn spend(times: &[(u64, u64)]) -> u64 {
        let mut spent = SpentTime::default();
        for (started, wall) in times {
            spent.add(&run(*started * SECOND, *wall * SECOND));
        }
        spent.ns() / SECOND
    }

    #[test]
    fn preparation_counts_and_arms_share_a_trial() {
        assert_eq!(spend(&[]), 0);
        assert_eq!(spend(&[(1_000, 2)]), 2);
        // Two arms of one trial of 4 s, a pause of 3 s, and a trial of 1 s.
        assert_eq!(spend(&[(1_000, 2), (1_000, 2), (1_007, 1)]), 8);
    }

    #[test]
    fn interruptions_count_little_and_clocks_may_jump() {
        assert_eq!(spend(&[(1_000, 2), (5_000, 2)]), 2 + 10 + 2);
        assert_eq!(spend(&[(1_000, 2), (900, 2), (902, 1)]), 5);
        let mut spent = SpentTime::default();
        spent.add(&run(u64::MAX, u64::MAX));
        spent.add(&run(0, u64::MAX));
        assert_eq!(spent.ns(), u64::MAX);
    }
}
