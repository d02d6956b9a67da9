//! Two hosts on a virtual link.

use crate::CampaignError;
use crate::error::own_program;
use crate::rig::host_pair::{HostPair, Kernels, names, planned_path, spans};
use crate::rig::{Cells, CpuCover, Network, Rig, RigKind};
use crate::trial::evidence::Evidence;
use crate::trial::settings::{CpuAffinity, Steers};
use stacklab_guests::prepare;
use stacklab_model::{Cell, LinkConfig, Services, Systems};
use stacklab_store::HostRow;
use stacklab_study::Study;
use stacklab_testbed::error::Attempt;
use stacklab_testbed::services::Serving;
use stacklab_testbed::{AGENT, AtHost, Host, Node, Testbed, TestbedError, Ticks};
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_trial::Path;
use std::sync::atomic::AtomicBool;

/// A built testbed: namespaces or guests, with or without services on the receiver.
pub(crate) struct Direct {
    testbed: Box<Testbed>,
    /// CPU time of the guests' processes when the trial began.
    ticks: [Option<Ticks>; 2],
}

impl Direct {
    /// Builds the testbed for a pair of systems with the receiver's services. Call it from the main thread: the hosts
    /// end with the thread that made them.
    pub(crate) fn build(
        study: &Study,
        systems: &Systems,
        services: &Services,
        interrupted: &'static AtomicBool,
    ) -> Result<Rig, CampaignError> {
        let mut testbed = Testbed::of(systems, &study.link_config, &own_program()?, &AGENT, prepare)?;
        let [sender, receiver] = testbed.hosts_mut().each_mut().map(|host| host.meet());
        let streams = [sender?, receiver?];
        testbed.serve(services)?;
        let is = RigKind {
            cells: Cells::OfHosts(systems.clone(), services.clone()),
            here: true,
            cubic: *systems == Systems::NAMESPACES,
            divides: testbed.has_own_processors(),
            // Both hosts', to fill a link of known rate; else a TCP sender's, and the sender's processor does the rest
            // of both hosts' work, and is the limit.
            steers: match study.link_config.rate {
                _ if !testbed.can_steer() => Steers::None,
                Some(_) => Steers::Both,
                None => Steers::Senders,
            },
            cpu: CpuCover::BySystem,
            buckets: vec![(study.link_config.clone(), true)],
            in_guest: false,
        };
        let ends = HostPair::connect(systems, names(systems, services), streams, interrupted)?;
        Ok(Rig { ends, is, network: Box::new(Direct { testbed: Box::new(testbed), ticks: [None, None] }) })
    }

    /// CPU time so far of the processes of guests that do not count all of their CPU time themselves.
    fn ticks(&self, ends: &HostPair) -> [Option<Ticks>; 2] {
        ends.uncounted(|| self.testbed.hosts().each_ref().map(|host| host.guest_ticks()))
    }
}

impl Network for Direct {
    fn tool_hosts(&self) -> Option<[&Host; 2]> {
        self.testbed.guests().iter().all(Option::is_none).then(|| self.testbed.hosts().each_ref())
    }

    fn describe(&self, _: &LinkConfig) -> String {
        self.testbed.describe()
    }

    fn hosts(&mut self, ends: &mut HostPair, kernels: &mut Kernels) -> Result<Vec<HostRow>, CampaignError> {
        let mut more = self.testbed.guests().clone();
        if let Some(serving) = self.testbed.serving() {
            more[1] = Some(serving.describe());
        }
        let mut more = more.into_iter();
        let kinds = ends.systems.0.each_ref().map(|system| match more.next().flatten() {
            Some(more) => format!("{}: {more}", system.kind()),
            None => system.kind().to_owned(),
        });
        Ok(ends.hosts(now_unix_ns(), kinds, |agent| kernels.facts(agent))?)
    }

    fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path {
        let addresses = self.testbed.hosts().each_ref().map(|host| host.address(cell.family).into());
        planned_path(addresses, link_config, cell)
    }

    fn configure(&mut self, cell: &Cell, affinity: CpuAffinity) -> Result<(), TestbedError> {
        self.testbed.set_link(cell.settings.mtu, cell.settings.queue_length)?;
        self.testbed.divide(affinity.divided)?;
        let steered = self.testbed.steer(affinity.steered).attempt("configure receive packet steering (RPS)");
        steered.at(Node::Receiver)
    }

    fn begin(&mut self, ends: &mut HostPair, _: u64) -> Result<(), CampaignError> {
        self.ticks = self.ticks(ends);
        if let Some(serving) = self.testbed.serving() {
            serving.begin();
        }
        Ok(())
    }

    fn end(&mut self, ends: &mut HostPair, evidence: &mut [Evidence]) -> Result<(), CampaignError> {
        let services = self.testbed.serving().map(Serving::end).transpose()?;
        if let [only] = &mut *evidence {
            only.guest_cpu = spans(self.ticks, self.ticks(ends));
        }
        evidence[0].services = services;
        Ok(())
    }
}
