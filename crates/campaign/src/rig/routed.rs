//! A routed testbed: two clients with two routers between them. The routers count packets before and after a trial, and
//! CPU time in its measured window.

use crate::CampaignError;
use crate::rig::host_pair::{COUNT_LIMIT, HostPair, Kernels, counters, names, router_name};
use crate::rig::routed_text::describe;
use crate::rig::{BucketLink, CellSet, CpuCover, Rig, RigKind, RigNetwork, find_uncounted_cpu};
use crate::trial::Evidence;
use crate::trial::figures::busy_ns;
use crate::trial::routers::{Busy, RouterEvidence};
use stacklab_model::{
    Cell, Counters, Customer, LinkConfig, Links, Mechanism, Role, RoutedKind, RouterQueue, Services, System,
    Systems, Topology,
};
use stacklab_store::HostRow;
use stacklab_testbed::kernel::router_thread::RouterThread;
use stacklab_testbed::{
    CustomerId, Host, MIDDLE, Node, PathCheck, Routed, RoutedSpec, RoutedStreams, Streams, Ticks, ends,
};
use stacklab_traffic::protocol::{AgentClient, AgentError, Answer, Request};
use stacklab_trial::{NatPath, Path};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A running testbed of four hosts, on this kernel or inside a guest.
pub(super) struct RoutedSource {
    pub plan: RoutedSpec,
    pub carried: Vec<PathCheck>,
    /// The guest that holds the testbed, if it is not on this kernel.
    pub guest: Option<String>,
    /// The process of that guest, if its kernel does not count its own CPU time.
    pub process: Option<u32>,
    /// The testbed, if it is on this kernel; it is removed when this is dropped.
    pub own: Option<Box<Routed>>,
}

impl RoutedSource {
    /// Guest systems of the clients, if they are guests, and of the routers; the sender's first.
    pub(super) fn guests(&self) -> [[Option<String>; 2]; 2] {
        self.own.as_ref().map_or_else(Default::default, |own| own.guests())
    }

    /// CPU time so far of the routers' processes, if their kernels do not count it themselves.
    fn router_ticks(&self) -> [Option<Ticks>; 2] {
        match (self.process, &self.own) {
            (Some(process), _) => [Some(Ticks::of(process)); 2],
            (None, Some(own)) => find_uncounted_cpu(&self.plan.kind.routers, || own.ticks()[1]),
            (None, None) => [None, None],
        }
    }

    fn has_one_clock(&self) -> bool {
        let kind = &self.plan.kind;
        self.guest.is_some()
            || kind.clients.0.iter().chain(&kind.routers.0).all(|system| *system == System::Namespace)
    }
}

struct RoutedNetwork {
    source: RoutedSource,
    routers: [AgentClient; 2],
    /// The near routers of further customers.
    spokes: Vec<AgentClient>,
    before: Option<RouterCounts>,
}

struct RouterCounts {
    counters: [Counters; 2],
    /// Packets that each customer's near router has sent on its middle link.
    of_customers: Vec<u64>,
    /// CPU time of the processes of routers whose kernels do not count it.
    ticks: [Option<Ticks>; 2],
    since: Instant,
    /// How far the clock of each router is ahead of the sender's, nanoseconds.
    ahead_ns: [i64; 2],
}

/// Sends hello to the agents on these streams.
pub(super) fn rig(
    source: RoutedSource,
    link_config: &LinkConfig,
    streams: RoutedStreams,
    interrupted: &'static AtomicBool,
) -> Result<Rig, CampaignError> {
    let kind = source.plan.kind.clone();
    let RoutedKind { mechanism, clients, routers, .. } = &kind;
    let client = |node: Node, system: &System, (output, input): Streams| {
        AgentClient::new(name_agent(node, system, *mechanism), output, input, interrupted)
    };
    let RoutedStreams { chain: [sender, near, far, receiver], spokes } = streams;
    let customers = CustomerId::list(kind.customers).into_iter().skip(1).map(Node::CustomerRouter);
    let spokes = customers.zip(spokes).map(|(node, streams)| client(node, &routers.0[0], streams));
    let mut spokes: Vec<AgentClient> = spokes.collect();
    let mut routers = [client(Node::Router1, &routers.0[0], near), client(Node::Router2, &routers.0[1], far)];
    routers.iter_mut().chain(&mut spokes).try_for_each(AgentClient::hello)?;
    let agents =
        [client(Node::Sender, &clients.0[0], sender), client(Node::Receiver, &clients.0[1], receiver)];
    let [sender_kind, _, _, receiver_kind] = kinds(&source);
    let names = names(clients, &Services::default());
    let ends = HostPair::handshake(clients.clone(), names, [sender_kind, receiver_kind], agents)?;
    let Links { near, middle, far } = source.plan.links;
    let is = RigKind {
        here: true,
        cubic: *clients == Systems::NAMESPACES,
        cpu: if source.process.is_some() { CpuCover::Outside } else { CpuCover::BySystem },
        buckets: [(near, false, kind.customers), (middle, true, kind.customers), (far, false, 1)]
            .map(|(link, has_mechanism, count)| BucketLink {
                link: link.of(link_config),
                has_mechanism,
                count,
            })
            .into(),
        in_guest: source.own.is_none(),
        cells: CellSet::OfRouters(kind),
        ..RigKind::default()
    };
    let description = describe(&source, link_config);
    Ok(Rig::new(ends, is, description, RoutedNetwork { source, routers, spokes, before: None }))
}

fn name_agent(node: Node, system: &System, mechanism: Mechanism) -> String {
    if *system == System::Namespace {
        return format!("{node} ({mechanism})");
    }
    format!("{node} ({system}, {mechanism})")
}

impl RoutedNetwork {
    /// Of the near routers of all customers together, and of the far one.
    fn counters(&mut self) -> Result<[Counters; 2], AgentError> {
        let [near, far] = &mut self.routers;
        let mut of_near = counters(near, MIDDLE)?;
        for spoke in &mut self.spokes {
            of_near.add(counters(spoke, MIDDLE)?);
        }
        Ok([of_near, counters(far, MIDDLE)?])
    }

    /// Packets that the near router of each customer has sent on its middle link; none without several customers.
    fn count_packets_of_customers(&mut self) -> Result<Vec<u64>, AgentError> {
        if self.spokes.is_empty() {
            return Ok(Vec::new());
        }
        let [near, _] = &mut self.routers;
        let mut packets = Vec::new();
        for router in [near].into_iter().chain(&mut self.spokes) {
            packets.push(counters(router, MIDDLE)?.get("interface.tx_packets"));
        }
        Ok(packets)
    }
}

impl RigNetwork for RoutedNetwork {
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
            planned_mtu: true,
            offloads: link_config.offloads,
            rate: Topology::Routed(plan.links).joint_link(link_config, cell).rate,
            nat: Some(nat),
            customers: list_customers(&plan.kind, cell),
            ..Path::without_plan(ends.sender.into(), ends.receiver.into(), link_config.mtu)
        }
    }

    fn tool_hosts(&self) -> Option<[&Host; 2]> {
        self.source.own.as_ref()?.client_namespaces()
    }

    fn add_hosts(&mut self, rows: &mut Vec<HostRow>, kernels: &mut Kernels) -> Result<(), AgentError> {
        let [_, near, far, _] = kinds(&self.source);
        let systems = &self.source.plan.kind.routers;
        let nodes = [(Node::Router1, near), (Node::Router2, far)];
        for (agent, (node, kind)) in self.routers.iter_mut().zip(nodes) {
            rows.push(kernels.host(router_name(node, systems), kind, agent)?);
        }
        Ok(())
    }

    fn count_ring_drops(&mut self) -> Result<u64, AgentError> {
        if self.source.plan.kind.queue == RouterQueue::Inline {
            return Ok(0);
        }
        let counters = self.counters()?;
        Ok(counters.iter().map(|router| router.get("interface.tx_dropped")).sum())
    }

    fn router_threads(&self) -> &[RouterThread] {
        self.source.own.as_ref().map_or(&[], |own| own.router_threads())
    }

    /// A guest that holds the whole testbed is both hosts.
    fn guest_ticks(&self) -> [Option<Ticks>; 2] {
        match (self.source.process, &self.source.own) {
            (Some(process), _) => [Some(Ticks::of(process)); 2],
            (None, own) => own.as_ref().map_or([None, None], |own| own.ticks()[0]),
        }
    }

    fn begin(&mut self, ends: &mut HostPair, _: u64) -> Result<(), CampaignError> {
        // Both ends must know the path MTU during the trial.
        if let Some(own) = &mut self.source.own {
            own.keep_path_mtus()?;
        }
        let mut ahead_ns = [0, 0];
        if !self.source.has_one_clock() {
            let [sender, _] = ends.agents();
            let sender_ns = sender.clock_offset()?.offset_ns;
            for (ahead_ns, router) in ahead_ns.iter_mut().zip(&mut self.routers) {
                *ahead_ns = router.clock_offset()?.offset_ns - sender_ns;
            }
        }
        let counters = self.counters()?;
        for router in &mut self.routers {
            match router.ask(Request::WatchCpu, "read its processor times", COUNT_LIMIT)? {
                (_, Answer::Watching) => {}
                _ => return Err(router.describe_wrong_answer("read its processor times").into()),
            }
        }
        let ticks = self.source.router_ticks();
        let of_customers = self.count_packets_of_customers()?;
        self.before = Some(RouterCounts { counters, of_customers, ticks, since: Instant::now(), ahead_ns });
        Ok(())
    }

    fn end(&mut self, evidence: &mut [Evidence]) -> Result<(), CampaignError> {
        let before = self.before.take().expect("a trial is begun before it is ended");
        let of_ns = u64::try_from(before.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let ticks = self.source.router_ticks();
        let reports = evidence.iter().flat_map(|arm| arm.collected.reports.iter().flatten().flatten());
        let windows = reports.filter(|report| report.role == Role::Sender);
        let window = windows.map(|report| (report.sent.first_ns, report.sent.last_ns));
        let window = window.reduce(|(from, to), (first, last)| (from.min(first), to.max(last)));
        let (from_ns, to_ns) = window.unwrap_or_default();
        let mut busy = [None, None];
        for (router, agent) in self.routers.iter_mut().enumerate() {
            let [from_ns, to_ns] =
                [from_ns, to_ns].map(|ns| ns.saturating_add_signed(before.ahead_ns[router]));
            let asked = Request::CpuBetween { from_ns, to_ns };
            let time = match agent.ask(asked, "tell its CPU time", COUNT_LIMIT)? {
                (_, Answer::Cpu { time }) => time,
                _ => return Err(agent.describe_wrong_answer("tell its CPU time").into()),
            };
            let outside = before.ticks[router].zip(ticks[router]);
            busy[router] = match outside {
                Some((before, after)) => {
                    Some(Busy { ns: busy_ns(after).saturating_sub(busy_ns(before)), of_ns })
                }
                None => time.map(|time| Busy { ns: time.busy_ns(), of_ns: time.window_ns }),
            };
        }
        let after = self.counters()?;
        let of_customers = self.count_packets_of_customers()?;
        if let Some(silent) =
            of_customers.iter().zip(&before.of_customers).position(|(after, before)| after <= before)
        {
            let reason = format!("nothing of customer {} crossed its middle link", silent + 1);
            evidence.iter_mut().for_each(|arm| arm.collected.reports = Err(reason.clone()));
        }
        if let Some(own) = &self.source.own {
            evidence.iter_mut().for_each(|arm| arm.entry_memory.clone_from(&own.entry_memory));
        }
        if let [only] = evidence {
            let mechanism = self.source.plan.kind.mechanism;
            only.routers = Some(RouterEvidence { mechanism, before: before.counters, after, busy });
        }
        Ok(())
    }
}

/// The customers of a cell, if there are several.
fn list_customers(kind: &RoutedKind, cell: &Cell) -> Vec<Customer> {
    if kind.customers == 1 {
        return Vec::new();
    }
    let all = CustomerId::list(kind.customers).into_iter();
    all.filter_map(|customer| customer.describe(kind.mechanism, cell.family)).collect()
}

/// The kind of each host, in their order on the path.
fn kinds(source: &RoutedSource) -> [String; 4] {
    let RoutedSource { plan, guest: inside, .. } = source;
    let RoutedKind { mechanism, clients, routers, .. } = &plan.kind;
    let inside = inside.as_ref().map_or_else(String::new, |guest| format!(" in {guest}"));
    let [[sender, receiver], [near, far]] = source.guests();
    let ordered =
        [(&clients.0[0], sender), (&routers.0[0], near), (&routers.0[1], far), (&clients.0[1], receiver)];
    ordered.map(|(system, guest)| match guest {
        Some(guest) => format!("{}: {guest}, {mechanism}", system.kind()),
        None => format!("namespace{inside}, {mechanism}"),
    })
}
