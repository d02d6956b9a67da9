//! A routed testbed: two clients with two routers between them. The routers count before and after a trial.

use crate::CampaignError;
use crate::rig::host_pair::{HostPair, Kernels, names, router_name, spans};
use crate::rig::routed_source::RoutedSource;
use crate::rig::routed_text::{describe, kinds};
use crate::rig::router_counts::RouterCounts;
use crate::rig::{Cells, CpuCover, Network, Rig, RigKind};
use crate::trial::evidence::Evidence;
use crate::trial::settings::{CpuAffinity, Steers};
use stacklab_model::{Cell, LinkConfig, Links, RoutedKind, Services, System, Systems};
use stacklab_store::HostRow;
use stacklab_testbed::{Host, Node, Streams, TestbedError, Ticks, ends};
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_traffic::protocol::AgentClient;
use stacklab_trial::{NatPath, Path};
use std::sync::atomic::AtomicBool;

pub(crate) struct RoutedNetwork {
    source: RoutedSource,
    routers: [AgentClient; 2],
    /// What the routers had counted, and the guests' CPU times, when the trial began.
    before: Option<(RouterCounts, [Option<Ticks>; 2])>,
}

impl RoutedNetwork {
    /// Sends hello to the agents on these streams: the sender's, both routers' and the receiver's.
    pub(crate) fn rig(
        source: RoutedSource,
        link_config: &LinkConfig,
        streams: [Streams; 4],
        interrupted: &'static AtomicBool,
    ) -> Result<Rig, CampaignError> {
        let kind = source.plan.kind.clone();
        let RoutedKind { mechanism, clients, routers, .. } = &kind;
        let client = |node: Node, system: &System, (output, input): Streams| {
            let system = if *system == System::Namespace { String::new() } else { format!("{system}, ") };
            AgentClient::new(format!("{node} ({system}{mechanism})"), output, input, interrupted)
        };
        let [sender, near, far, receiver] = streams;
        let mut routers =
            [client(Node::Router1, &routers.0[0], near), client(Node::Router2, &routers.0[1], far)];
        routers.iter_mut().try_for_each(AgentClient::hello)?;
        let agents =
            [client(Node::Sender, &clients.0[0], sender), client(Node::Receiver, &clients.0[1], receiver)];
        let ends = HostPair::handshake(clients.clone(), names(clients, &Services::default()), agents)?;
        let Links { near, middle, far } = source.plan.links;
        let is = RigKind {
            here: true,
            cubic: *clients == Systems::NAMESPACES,
            divides: false,
            steers: Steers::None,
            cpu: if source.is_counted_outside() { CpuCover::Outside } else { CpuCover::BySystem },
            buckets: [(near, false), (middle, true), (far, false)]
                .map(|(link, has_mechanism)| (link.of(link_config), has_mechanism))
                .into(),
            in_guest: source.own.is_none(),
            cells: Cells::OfRouters(kind),
        };
        Ok(Rig { ends, is, network: Box::new(RoutedNetwork { source, routers, before: None }) })
    }

    /// CPU time so far of the processes of guests that do not count all of their CPU time themselves. This includes a
    /// guest that holds the whole testbed.
    fn ticks(&self, ends: &HostPair) -> [Option<Ticks>; 2] {
        if self.source.is_counted_outside() {
            return [self.source.guest_ticks(); 2];
        }
        ends.uncounted(|| self.source.client_ticks())
    }
}

impl Network for RoutedNetwork {
    fn tool_hosts(&self) -> Option<[&Host; 2]> {
        self.source.own.as_ref()?.client_namespaces()
    }

    fn describe(&self, link_config: &LinkConfig) -> String {
        describe(&self.source, link_config)
    }

    fn hosts(&mut self, ends: &mut HostPair, kernels: &mut Kernels) -> Result<Vec<HostRow>, CampaignError> {
        let since_unix_ns = now_unix_ns();
        let [sender, near, far, receiver] = kinds(&self.source);
        let mut rows = ends.hosts(since_unix_ns, [sender, receiver], |agent| kernels.facts(agent))?;
        let routers = [(Node::Router1, near), (Node::Router2, far)];
        for (agent, (node, kind)) in self.routers.iter_mut().zip(routers) {
            let (name, facts) = (router_name(node, &self.source.plan.kind.routers), kernels.facts(agent)?);
            rows.push(HostRow { name, kind, since_unix_ns, facts });
        }
        Ok(rows)
    }

    fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path {
        let plan = &self.source.plan;
        let ends = ends(plan.kind.mechanism, cell.family)
            .expect("a checked study's mechanisms carry their families");
        let seen = self.source.carried.iter().find(|carried| carried.family == cell.family);
        let path_mtus = seen.expect("a testbed has been seen to carry what it carries").path_mtus;
        let nat = NatPath {
            destination: ends.destination,
            source: ends.source,
            path_mtus,
            own_mtus: [plan.links.near, plan.links.far].map(|link| link.of(link_config).mtu),
            renumbers: plan.keeps_state(),
        };
        Path {
            sender: ends.sender.into(),
            receiver: ends.receiver.into(),
            mtu: link_config.mtu,
            planned_mtu: true,
            offloads: link_config.offloads,
            rate: link_config.rate,
            shared: false,
            nat: Some(nat),
            opener: None,
        }
    }

    fn configure(&mut self, _: &Cell, _: CpuAffinity) -> Result<(), TestbedError> {
        Ok(())
    }

    fn begin(&mut self, ends: &mut HostPair, _: u64) -> Result<(), CampaignError> {
        // Both ends must know the path MTU during the trial.
        if let Some(own) = &mut self.source.own {
            own.keep_path_mtus()?;
        }
        let counts = RouterCounts::begin(&self.source, &mut self.routers, ends)?;
        self.before = Some((counts, self.ticks(ends)));
        Ok(())
    }

    fn end(&mut self, ends: &mut HostPair, evidence: &mut [Evidence]) -> Result<(), CampaignError> {
        let (counts, ticks) = self.before.take().expect("a trial is begun before it is ended");
        let guest_cpu = spans(ticks, self.ticks(ends));
        let reports = evidence.iter().flat_map(|arm| arm.collected.reports.iter().flatten().flatten());
        let routers = counts.end(&self.source, &mut self.routers, reports)?;
        if let [only] = evidence {
            (only.guest_cpu, only.routers) = (guest_cpu, Some(routers));
        }
        Ok(())
    }
}
