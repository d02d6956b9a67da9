//! A testbed with agents of the real program, used without the rest of the program. A test can therefore choose the
//! path.

use super::program::require_root;
use super::tun::{MTU, address};
use stacklab_model::{
    Cell, Direction, Family, LinkConfig, ProbeSpec, RunRecord, SizeOf, Transport, Trial, TrialSpec,
};
use stacklab_testbed::{Testbed, enter};
use stacklab_traffic::protocol::AgentClient;
use stacklab_trial::{Path, run_trial};
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

static NEVER_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Two hosts with agents that have greeted. It must be built, used and dropped on one thread.
pub(crate) struct LinkRig {
    testbed: Testbed,
    agents: [AgentClient; 2],
    link_config: LinkConfig,
    trials: u32,
}

impl LinkRig {
    /// Builds it with its own link, without limits.
    pub(crate) fn build() -> Self {
        LinkRig::of(LinkConfig { rate: None, mtu: MTU, offloads: true })
    }

    /// Builds it with a link of the test's choice.
    pub(crate) fn of(link_config: LinkConfig) -> Self {
        require_root();
        enter().unwrap_or_else(|error| panic!("{error}"));
        let program = env!("CARGO_BIN_EXE_stacklab").as_ref();
        let mut testbed = Testbed::build(&link_config, program, &["agent", "--stdio"]).unwrap();
        let agents = testbed.hosts_mut().each_mut().map(|host| {
            let (output, input) = host.take_streams().unwrap();
            let mut agent = AgentClient::new(host.node().name(), output, input, &NEVER_INTERRUPTED);
            agent.hello().unwrap();
            agent
        });
        LinkRig { testbed, agents, link_config, trials: 0 }
    }

    /// The hosts' processes, sender first.
    pub(crate) fn pids(&self) -> [u32; 2] {
        self.testbed.hosts().each_ref().map(|host| host.pid())
    }

    /// Runs a probe with messages of 128 bytes over the path with faults; fails if the run is not valid.
    pub(crate) fn run(&mut self, family: Family, transport: Transport, probe: &ProbeSpec) -> RunRecord {
        let [sender, receiver] = [0, 1].map(|end| address(family, end).into());
        let path = Path {
            sender,
            receiver,
            mtu: MTU,
            planned_mtu: true,
            offloads: true,
            rate: None,
            shared: false,
            nat: None,
            opener: None,
            customers: Vec::new(),
        };
        self.run_trial(path, transport, 128, probe, Direction::Forward)
    }

    /// Runs a probe with messages of a size over its own link; fails if the run is not valid.
    pub(crate) fn run_on_link(
        &mut self,
        (family, transport, size): (Family, Transport, u32),
        probe: &ProbeSpec,
        direction: Direction,
    ) -> RunRecord {
        let [sender, receiver] = self.addresses(family).map(Into::into);
        let LinkConfig { rate, mtu, offloads, .. } = self.link_config;
        let path = Path {
            sender,
            receiver,
            mtu,
            planned_mtu: true,
            offloads,
            rate,
            shared: false,
            nat: None,
            opener: None,
            customers: Vec::new(),
        };
        self.run_trial(path, transport, size, probe, direction)
    }

    /// The hosts' addresses on the link.
    pub(crate) fn addresses(&self, family: Family) -> [IpAddr; 2] {
        self.testbed.hosts().each_ref().map(|host| host.address(family))
    }

    fn run_trial(
        &mut self,
        path: Path,
        transport: Transport,
        size: u32,
        probe: &ProbeSpec,
        direction: Direction,
    ) -> RunRecord {
        self.trials += 1;
        let cell = Cell::new(Family::of(path.sender.ip()), transport, SizeOf::Payload, size);
        let spec = TrialSpec::new(self.trials, &cell, probe.clone());
        let trial = Trial { block: 0, position: self.trials, cell, probe: probe.probe };
        let [sender, receiver] = &mut self.agents;
        let run = run_trial(sender, receiver, &path, &trial, spec, direction)
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(run.is_valid(), "{}: {:?}", run.trial, run.status);
        run
    }
}
