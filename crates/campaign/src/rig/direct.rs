//! Two hosts on a virtual link.

use crate::CampaignError;
use crate::rig::host_pair::{HostPair, spans};
use crate::rig::kernels::Kernels;
use crate::rig::{Rig, bucket_of};
use crate::trial::evidence::Evidence;
use crate::trial::settings::{CpuAffinity, Steers};
use stacklab_guests::prepare;
use stacklab_model::{Cell, CpuScope, LinkBucket, LinkConfig, Probe, Services, Systems};
use stacklab_store::HostRow;
use stacklab_study::Study;
use stacklab_testbed::error::Attempt;
use stacklab_testbed::services::Serving;
use stacklab_testbed::{AGENT, AtHost, Host, Node, Testbed, TestbedError, Ticks};
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_traffic::protocol::AgentError;
use stacklab_trial::{Collected, Path};
use std::sync::atomic::AtomicBool;

/// A built testbed: namespaces or guests, with or without services on the receiver.
pub(crate) struct DirectRig {
    testbed: Box<Testbed>,
    ends: HostPair,
    /// Whose receive work streams have on its own processors: both hosts', to fill a link of known rate; else a TCP
    /// sender's, and the sender's processor does the rest of both hosts' work, and is the limit.
    steers: Steers,
    /// CPU time of the guests' processes when the trial began.
    ticks: [Option<Ticks>; 2],
}

impl DirectRig {
    /// Builds the testbed for a pair of systems with the receiver's services. Call it from the main thread: the hosts
    /// end with the thread that made them.
    ///
    /// # Errors
    /// When this machine cannot build it, or an agent does not answer.
    pub(crate) fn build(
        study: &Study,
        systems: &Systems,
        services: &Services,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, CampaignError> {
        let program = std::env::current_exe().map_err(|reason| CampaignError::System {
            attempted: "find this program's executable",
            reason,
        })?;
        let mut testbed = Testbed::of(systems, &study.link_config, &program, &AGENT, prepare)?;
        let [sender, receiver] = testbed.hosts_mut().each_mut().map(|host| host.meet());
        let streams = [sender?, receiver?];
        testbed.serve(services)?;
        let steers = match study.link_config.rate {
            _ if !testbed.can_steer() => Steers::None,
            Some(_) => Steers::Both,
            None => Steers::Senders,
        };
        let ends = HostPair::connect(systems, services, streams, interrupted)?;
        Ok(DirectRig { ends, testbed: Box::new(testbed), steers, ticks: [None, None] })
    }

    /// CPU time so far of the processes of guests that do not count all of their CPU time themselves.
    fn ticks(&self) -> [Option<Ticks>; 2] {
        self.ends.uncounted(|| self.testbed.hosts().each_ref().map(|host| host.guest_ticks()))
    }
}

impl Rig for DirectRig {
    fn ends(&self) -> &HostPair {
        &self.ends
    }

    fn ends_mut(&mut self) -> &mut HostPair {
        &mut self.ends
    }

    fn tool_hosts(&self) -> Option<[&Host; 2]> {
        self.testbed.guests().iter().all(Option::is_none).then(|| self.testbed.hosts().each_ref())
    }

    fn describe(&self, _link_config: &LinkConfig) -> String {
        self.testbed.describe()
    }

    fn hosts(&mut self, kernels: &mut Kernels) -> Result<Vec<HostRow>, CampaignError> {
        let mut more = self.testbed.guests().clone();
        if let Some(serving) = self.testbed.serving() {
            more[1] = Some(serving.describe());
        }
        let [sender, receiver] = more;
        let kind = |number: usize, more: Option<String>| {
            let kind = self.ends.systems.0[number].kind();
            more.map_or_else(|| kind.to_owned(), |more| format!("{kind}: {more}"))
        };
        let kinds = [kind(0, sender), kind(1, receiver)];
        Ok(self.ends.hosts(now_unix_ns(), kinds, |agent| kernels.facts(agent))?)
    }

    fn cpu_scope(&self, cell: &Cell) -> CpuScope {
        self.ends.cpu_scope(cell, self.steers)
    }

    fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path {
        let addresses = self.testbed.hosts().each_ref().map(|host| host.address(cell.family).into());
        self.ends.path(addresses, link_config, cell)
    }

    fn bucket(&self, link_config: &LinkConfig, cell: &Cell) -> Option<LinkBucket> {
        bucket_of(cell, link_config, false)
    }

    fn pinning(&self, cell: &Cell, probe: Probe) -> CpuAffinity {
        CpuAffinity::of(cell, probe, self.testbed.has_own_processors(), self.steers)
    }

    fn pin(&mut self, pinning: CpuAffinity) -> Result<(), TestbedError> {
        self.testbed.divide(pinning.divided)?;
        let steered = self.testbed.steer(pinning.steered).attempt("configure receive packet steering (RPS)");
        steered.at(Node::Receiver)
    }

    fn prepare(&mut self, cell: &Cell) -> Result<(), TestbedError> {
        self.testbed.set_link(cell.settings.mtu, cell.settings.queue_length)
    }

    fn begin(&mut self, _seed: u64) -> Result<(), CampaignError> {
        self.ticks = self.ticks();
        if let Some(serving) = self.testbed.serving() {
            serving.begin();
        }
        Ok(())
    }

    fn end(&mut self, collected: Result<Vec<Collected>, AgentError>) -> Result<Vec<Evidence>, CampaignError> {
        let asked = self.testbed.serving().map(Serving::end);
        let mut evidence = Evidence::of_each(collected?);
        let services = asked.transpose()?;
        if let [only] = &mut evidence[..] {
            only.guest_cpu = spans(self.ticks, self.ticks());
        }
        if let Some(first) = evidence.first_mut() {
            first.services = services;
        }
        Ok(evidence)
    }
}
