//! A routed testbed: two clients with two routers between them. The routers count before and after a trial.

use crate::CampaignError;
use crate::rig::host_pair::{HostPair, spans};
use crate::rig::kernels::Kernels;
use crate::rig::names::router_name;
use crate::rig::routed_source::RoutedSource;
use crate::rig::routed_text::{describe, kinds};
use crate::rig::router_counts::RouterCounts;
use crate::rig::{Rig, bucket_of};
use crate::trial::evidence::Evidence;
use crate::trial::settings::Steers;
use stacklab_model::{Cell, CpuScope, LinkBucket, LinkConfig, Links, RoutedKind, Services, System};
use stacklab_store::HostRow;
use stacklab_testbed::{Host, Node, Streams, Ticks, ends};
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_trial::{Collected, NatPath, Path};
use std::sync::atomic::AtomicBool;

/// Two hosts with two routers between them.
pub(crate) struct RoutedRig {
    source: RoutedSource,
    routers: [AgentClient; 2],
    ends: HostPair,
    /// What the routers had counted, and the guests' CPU times, when the trial began.
    before: Option<(RouterCounts, [Option<Ticks>; 2])>,
}

impl RoutedRig {
    /// Sends hello to the agents on these streams: the sender's, both routers' and the receiver's.
    ///
    /// # Errors
    /// When an agent does not answer.
    pub(crate) fn new(
        source: RoutedSource,
        streams: [Streams; 4],
        interrupted: &'static AtomicBool,
    ) -> Result<Self, CampaignError> {
        let RoutedKind { mechanism, clients, routers, .. } = source.plan.kind.clone();
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
        let ends = HostPair::handshake(&clients, &Services::default(), agents)?;
        Ok(RoutedRig { source, routers, ends, before: None })
    }

    /// CPU time so far of the processes of guests that do not count all of their CPU time themselves. This includes a
    /// guest that holds the whole testbed.
    fn ticks(&self) -> [Option<Ticks>; 2] {
        if self.source.is_counted_outside() {
            return [self.source.guest_ticks(); 2];
        }
        self.ends.uncounted(|| self.source.client_ticks())
    }
}

impl Rig for RoutedRig {
    fn ends(&self) -> &HostPair {
        &self.ends
    }

    fn ends_mut(&mut self) -> &mut HostPair {
        &mut self.ends
    }

    fn is_for(&self, cell: &Cell) -> bool {
        self.source.plan.kind == RoutedKind::of(cell)
    }

    fn tool_hosts(&self) -> Option<[&Host; 2]> {
        self.source.own.as_ref()?.client_namespaces()
    }

    fn describe(&self, link_config: &LinkConfig) -> String {
        describe(&self.source, link_config)
    }

    fn hosts(&mut self, kernels: &mut Kernels) -> Result<Vec<HostRow>, CampaignError> {
        let since_unix_ns = now_unix_ns();
        let [sender, near, far, receiver] = kinds(&self.source);
        let mut rows = self.ends.hosts(since_unix_ns, [sender, receiver], |agent| kernels.facts(agent))?;
        let routers = [(Node::Router1, near), (Node::Router2, far)];
        for (agent, (node, kind)) in self.routers.iter_mut().zip(routers) {
            let (name, facts) = (router_name(node, &self.source.plan.kind.routers), kernels.facts(agent)?);
            rows.push(HostRow { name, kind, since_unix_ns, facts });
        }
        Ok(rows)
    }

    fn cpu_scope(&self, cell: &Cell) -> CpuScope {
        if self.source.is_counted_outside() {
            CpuScope::Outside
        } else {
            self.ends.cpu_scope(cell, Steers::None)
        }
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

    fn bucket(&self, link_config: &LinkConfig, cell: &Cell) -> Option<LinkBucket> {
        let mut plain = cell.clone();
        plain.settings.mechanism = None;
        let Links { near, middle, far } = self.source.plan.links;
        let in_guest = self.source.own.is_none();
        let links = [(near, &plain), (middle, cell), (far, &plain)];
        let buckets = links.map(|(link, cell)| bucket_of(cell, &link.of(link_config), in_guest));
        buckets
            .into_iter()
            .flatten()
            .min_by(|one, other| one.messages_per_second.total_cmp(&other.messages_per_second))
    }

    fn begin(&mut self, _seed: u64) -> Result<(), CampaignError> {
        // Both ends must know the path MTU during the trial.
        if let Some(own) = &mut self.source.own {
            own.keep_path_mtus()?;
        }
        let counts = RouterCounts::begin(&self.source, &mut self.routers, &mut self.ends)?;
        self.before = Some((counts, self.ticks()));
        Ok(())
    }

    fn end(&mut self, collected: Result<Vec<Collected>, AgentError>) -> Result<Vec<Evidence>, CampaignError> {
        let mut evidence = Evidence::of_each(collected?);
        let (counts, ticks) = self.before.take().expect("a trial is begun before it is ended");
        let guest_cpu = spans(ticks, self.ticks());
        let reports = evidence.iter().flat_map(|arm| arm.collected.reports.iter().flatten().flatten());
        let routers = counts.end(&self.source, &mut self.routers, reports)?;
        if let [only] = &mut evidence[..] {
            (only.guest_cpu, only.routers) = (guest_cpu, Some(routers));
        }
        Ok(evidence)
    }
}
