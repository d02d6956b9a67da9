//! The evidence of a trial, before any figure is computed.

use crate::generator::GeneratorEvidence;
use stacklab_guests::WifiSeen;
use stacklab_model::{Counters, Direction, Mechanism, Service, Station};
use stacklab_testbed::Ticks;
use stacklab_testbed::services::Asked;
use stacklab_traffic::host::other_load::OtherLoad;
use stacklab_traffic::stats::clock::Offset;
use stacklab_trial::Collected;
use stacklab_trial::results::interleaved::JointFigures;
use std::collections::BTreeMap;

/// A rig's observations of one trial.
#[derive(Debug)]
pub struct Evidence {
    /// The reports of both agents.
    pub collected: Collected,
    /// For the sender's and the receiver's host: CPU time of a guest's processes before and after the trial, counted
    /// on this machine, if the guest does not count all of its CPU time itself.
    pub(crate) guest_cpu: [Option<[Ticks; 2]>; 2],
    /// Queries to each service on the receiver's host; `None` without services.
    pub(crate) services: Option<BTreeMap<Service, Asked>>,
    /// The routers' counters, if there are routers.
    pub(crate) routers: Option<RouterEvidence>,
    /// The Wi-Fi network, if the path is one.
    pub(crate) wifi: Option<WifiEvidence>,
    /// The Wi-Fi adapters of real machines: the sender's and the receiver's.
    pub(crate) adapters: [Option<AdapterEvidence>; 2],
    /// The clock synchronisation of the hosts.
    pub(crate) clocks: ClockSync,
    /// What others had of this machine's processors, if a host of the trial is on it.
    pub(crate) other_load: Option<OtherLoad>,
    /// The output of another program that drove the trial; `None` if it was stacklab's own generator.
    pub(crate) generator: Option<GeneratorEvidence>,
    /// The joint figures of the arm of an interleaved trial; none otherwise.
    pub(crate) joint: JointFigures,
}

impl Evidence {
    /// The reports of two agents on hosts with one clock, without other evidence.
    pub fn of(collected: Collected) -> Self {
        let (guest_cpu, clocks, joint) = ([None, None], ClockSync::Same, JointFigures::default());
        let (services, routers, wifi, other_load, generator) = (None, None, None, None, None);
        let adapters = [None, None];
        Evidence {
            collected,
            guest_cpu,
            services,
            routers,
            wifi,
            adapters,
            clocks,
            other_load,
            generator,
            joint,
        }
    }

    /// The same, of hosts whose clocks were compared.
    pub fn with_clocks(self, clocks: ClockSync) -> Self {
        Evidence { clocks, ..self }
    }

    /// The same of each arm.
    pub(crate) fn of_each(collected: Vec<Collected>) -> Vec<Self> {
        collected.into_iter().map(Evidence::of).collect()
    }
}

/// What the two routers counted in a trial, and their mechanism.
#[derive(Debug)]
pub(crate) struct RouterEvidence {
    /// The mechanism between the routers.
    pub mechanism: Mechanism,
    /// Counters of the sender's router and the receiver's router, before the trial.
    pub before: [Counters; 2],
    /// The same after the trial.
    pub after: [Counters; 2],
    /// Their CPU time in the measured window; that of a guest's processes, over the whole trial. `None` if it was not
    /// counted.
    pub busy: [Option<Busy>; 2],
}

/// A Wi-Fi network before and after a trial: its state, or a sentence that says how it was not as planned.
#[derive(Debug, Clone)]
pub(crate) struct WifiEvidence {
    /// Whether its time is simulated.
    pub is_virtual: bool,
    /// The seed that the medium drew from.
    pub seed: u64,
    /// The network before the trial.
    pub before: WifiSeen,
    /// The network after it.
    pub after: WifiSeen,
}

/// A real machine's Wi-Fi adapter before and after a trial: its state, or a sentence that says why it has none.
pub(crate) type AdapterEvidence = [Result<Station, String>; 2];

/// CPU time in a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Busy {
    /// Busy time, nanoseconds.
    pub ns: u64,
    /// Length of the window, nanoseconds.
    pub of_ns: u64,
}

/// How two hosts' clocks were synchronised for a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum ClockSync {
    /// Both hosts read the same clock.
    Same,
    /// The offset before the trial, and the offset after it or the reason why it is missing.
    Compared {
        /// The offset with which delays were computed.
        before: Offset,
        /// The offset for the correction of drift.
        after: Result<Offset, String>,
    },
    /// No offset was known before the trial, with the reason.
    Unknown(String),
}

/// The host and direction of a host report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReportSource {
    /// The rig's host: 0 is the sender of the testbed, 1 its receiver.
    pub host: usize,
    /// Whether the messages it reports on went from host 0 to host 1.
    pub forward: bool,
}

/// The host and direction of each host report of a run: a stream's sender and receiver, then those of the reverse
/// stream.
pub(crate) fn report_sources(direction: Direction) -> Vec<ReportSource> {
    let of_transfer = |from: &usize| {
        let forward = *from == 0;
        [*from, 1 - *from].map(|host| ReportSource { host, forward })
    };
    direction.senders().iter().flat_map(of_transfer).collect()
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
