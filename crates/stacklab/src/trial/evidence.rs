//! What is known of a trial when it has ended, before any figure is made of it.

use stacklab_model::{Counters, Direction, Mechanism, Service};
use stacklab_testbed::Ticks;
use stacklab_testbed::services::Asked;
use stacklab_traffic::stats::clock::Offset;
use stacklab_traffic::trial::Collected;
use std::collections::BTreeMap;

/// All that a rig observed of one trial.
#[derive(Debug)]
pub struct Evidence {
    /// What the agents of both hosts reported.
    pub collected: Collected,
    /// For the sender's and the receiver's host: what a guest's processes had run before and after the trial, counted on
    /// this machine, where the guest does not count all of its CPU time itself.
    pub guest_cpu: [Option<[Ticks; 2]>; 2],
    /// Queries to each service that the receiver's host runs; `None` where none runs.
    pub services: Option<BTreeMap<Service, Asked>>,
    /// What the routers counted, where there are any.
    pub routers: Option<RouterEvidence>,
    /// What is known of the hosts' clocks.
    pub clocks: ClockSync,
}

impl Evidence {
    /// What two agents reported, of hosts with one clock; no other evidence.
    pub fn of(collected: Collected) -> Self {
        let (guest_cpu, clocks) = ([None, None], ClockSync::Same);
        Evidence { collected, guest_cpu, services: None, routers: None, clocks }
    }
}

/// What the two routers counted around a trial, and what they do to packets.
#[derive(Debug)]
pub struct RouterEvidence {
    /// What is between the routers.
    pub mechanism: Mechanism,
    /// Of the sender's router and the receiver's, before the trial.
    pub before: [RouterCount; 2],
    /// The same after it.
    pub after: [RouterCount; 2],
}

/// What a router has counted until now.
#[derive(Debug)]
pub struct RouterCount {
    /// Its packet counters.
    pub counters: Counters,
    /// Its CPU time; `None` where it counts none.
    pub busy: Option<Busy>,
}

/// CPU time until now.
#[derive(Debug, Clone, Copy)]
pub struct Busy {
    /// Nanoseconds that it was busy.
    pub ns: u64,
    /// Nanoseconds of which that is a part.
    pub of_ns: u64,
}

/// How two hosts' clocks were synchronised for a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum ClockSync {
    /// They read the same clock.
    Same,
    /// The offset before the trial, and the one after it or why there is none.
    Compared {
        /// By this one delays were taken.
        before: Offset,
        /// By this one they are corrected for drift.
        after: Result<Offset, String>,
    },
    /// No offset was known before the trial, and why.
    Unknown(String),
}

/// Where a host report of a run is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportSource {
    /// The rig's host: 0 is the sender of the testbed, 1 its receiver.
    pub host: usize,
    /// Whether the messages it reports on went from host 0 to host 1.
    pub forward: bool,
}

/// Where each of a run's host reports is from: a stream's sender and its receiver, then those of a stream back.
pub fn report_sources(direction: Direction) -> &'static [ReportSource] {
    const FORWARD: [ReportSource; 2] =
        [ReportSource { host: 0, forward: true }, ReportSource { host: 1, forward: true }];
    const REVERSE: [ReportSource; 2] =
        [ReportSource { host: 1, forward: false }, ReportSource { host: 0, forward: false }];
    const BOTH: [ReportSource; 4] = [FORWARD[0], FORWARD[1], REVERSE[0], REVERSE[1]];
    match direction {
        Direction::Forward => &FORWARD,
        Direction::Reverse => &REVERSE,
        Direction::Both => &BOTH,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_report_has_one_host_and_one_direction() {
        let hosts =
            |direction| report_sources(direction).iter().map(|source| source.host).collect::<Vec<_>>();
        assert_eq!(hosts(Direction::Forward), [0, 1]);
        assert_eq!(hosts(Direction::Reverse), [1, 0]);
        assert_eq!(hosts(Direction::Both), [0, 1, 1, 0]);
        assert!(report_sources(Direction::Forward).iter().all(|source| source.forward));
        assert!(!report_sources(Direction::Reverse).iter().any(|source| source.forward));
        let both: Vec<bool> = report_sources(Direction::Both).iter().map(|source| source.forward).collect();
        assert_eq!(both, [true, true, false, false]);
    }
}
