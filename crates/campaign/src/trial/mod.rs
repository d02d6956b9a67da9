//! One trial, from a cell's settings to its evidence and its run.

pub mod clock;
pub mod figures;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod other_load;
pub(crate) mod routers;
pub(crate) mod run;
pub(crate) mod spec;
pub(crate) mod wifi;

use crate::generator::GeneratorEvidence;
use crate::rig::adapter::AdapterEvidence;
use clock::ClockSync;
use other_load::OtherLoad;
use routers::RouterEvidence;
use stacklab_model::{Direction, Service};
use stacklab_testbed::Ticks;
use stacklab_testbed::services::Asked;
use stacklab_trial::Collected;
use stacklab_trial::results::interleaved::JointFigures;
use std::collections::BTreeMap;
use wifi::WifiEvidence;

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
    pub(crate) routers: Option<RouterEvidence>,
    /// The Wi-Fi network, if the path is one.
    pub(crate) wifi: Option<WifiEvidence>,
    /// The Wi-Fi adapters of real machines: the sender's and the receiver's.
    pub(crate) adapters: [Option<AdapterEvidence>; 2],
    /// How the hosts' clocks are synchronised.
    pub clocks: ClockSync,
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
        Evidence {
            collected,
            guest_cpu: [None, None],
            services: None,
            routers: None,
            wifi: None,
            adapters: [None, None],
            clocks: ClockSync::Same,
            other_load: None,
            generator: None,
            joint: JointFigures::default(),
        }
    }
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
