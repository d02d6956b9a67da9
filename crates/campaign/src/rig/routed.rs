//! A routed testbed: two clients with two routers between them. The routers count packets before and after a trial, and
//! CPU time in its measured window.

use crate::CampaignError;
use crate::rig::container::{check_way, correct_offloads};
use crate::rig::host_pair::{COUNT_LIMIT, HostPair, Kernels, counters, names, router_name};
use crate::rig::routed_source::RoutedSource;
use crate::rig::routed_text::describe;
use crate::rig::{BucketLink, CellSet, CpuCover, Rig, RigKind, RigNetwork};
use crate::trial::Evidence;
use crate::trial::figures::busy_ns;
use crate::trial::routers::{Busy, RouterEvidence};
use stacklab_model::{
    Cell, Counters, Customer, LinkConfig, Links, Mechanism, Role, RoutedKind, RouterQueue, Services, System,
    Systems, Topology,
};
use stacklab_store::HostRow;
use stacklab_testbed::kernel::router_thread::RouterThread;
use stacklab_testbed::{CustomerId, Host, MIDDLE, Node, Routed, RoutedStreams, Streams, TUNNEL, Ticks, ends};
use stacklab_traffic::protocol::{AgentClient, AgentError, Answer, Request};
use stacklab_trial::{NatPath, Path};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The counter of what the queue behind an interface had no room for.
const DROPPED: &str = "interface.tx_dropped";

struct RoutedNetwork {
    source: RoutedSource,
    routers: [AgentClient; 2],
    /// The near routers of further customers.
    spokes: Vec<AgentClient>,
    before: Option<RouterCounts>,
}

struct RouterCounts {
    counters: MiddleCounters,
    /// The bytes that the container's host has carried to it, if the receiver is one.
    published: Option<u64>,
    /// CPU time of the processes of routers whose kernels do not count it.
    ticks: [Option<Ticks>; 2],
    since: Instant,
    /// How far the clock of each router is ahead of the sender's, nanoseconds.
    ahead_ns: [i64; 2],
}

/// What the routers have counted on the middle links.
struct MiddleCounters {
    /// Of each customer's near router.
    near: Vec<Counters>,
    far: Counters,
}

impl MiddleCounters {
    /// Of the near routers together, and of the far one.
    fn sums(&self) -> [Counters; 2] {
        let mut near = Counters::default();
        for router in &self.near {
            near.add(router.clone());
        }
        [near, self.far.clone()]
    }

    /// The place of a customer, one of several, whose near router has sent nothing since.
    fn find_silent(&self, before: &MiddleCounters) -> Option<usize> {
        let name = "interface.tx_packets";
        let mut grown =
            self.near.iter().zip(&before.near).map(|(after, before)| after.get(name) > before.get(name));
        if self.near.len() > 1 { grown.position(|has_grown| !has_grown) } else { None }
    }
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
        is_divided: source.own.as_ref().is_some_and(|testbed| testbed.has_own_processors()),
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
    fn counters(&mut self) -> Result<MiddleCounters, AgentError> {
        let [near, far] = &mut self.routers;
        let mut of_near = Vec::new();
        for router in [near].into_iter().chain(&mut self.spokes) {
            of_near.push(counters(router, MIDDLE)?);
        }
        Ok(MiddleCounters { near: of_near, far: counters(far, MIDDLE)? })
    }

    /// Packets that the queues of translators had no room for.
    fn count_translator_drops(&mut self) -> Result<u64, AgentError> {
        let [near_translates, far_translates] = self.source.plan.tayga_routers();
        let [near, far] = &mut self.routers;
        let near = [near].into_iter().chain(&mut self.spokes).filter(|_| near_translates);
        let mut dropped = 0;
        for router in near.chain([far].into_iter().filter(|_| far_translates)) {
            dropped += counters(router, TUNNEL)?.get(DROPPED);
        }
        Ok(dropped)
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

    fn count_queue_drops(&mut self) -> Result<u64, AgentError> {
        if self.source.plan.kind.queue == RouterQueue::Inline {
            return Ok(0);
        }
        let counters = self.counters()?.sums();
        let dropped: u64 = counters.iter().map(|router| router.get(DROPPED)).sum();
        Ok(dropped + self.count_translator_drops()?)
    }

    fn find_routers(&self) -> Option<&Routed> {
        self.source.own.as_deref()
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
        let published = self.source.own.as_mut().map(|own| own.published_bytes()).transpose()?.flatten();
        for router in &mut self.routers {
            match router.ask(Request::WatchCpu, "read its processor times", COUNT_LIMIT)? {
                (_, Answer::Watching) => {}
                _ => return Err(router.describe_wrong_answer("read its processor times").into()),
            }
        }
        let ticks = self.source.router_ticks();
        self.before = Some(RouterCounts { counters, published, ticks, since: Instant::now(), ahead_ns });
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
        if let Some(silent) = after.find_silent(&before.counters) {
            let reason = format!("nothing of customer {} crossed its middle link", silent + 1);
            evidence.iter_mut().for_each(|arm| arm.collected.reports = Err(reason.clone()));
        }
        if let (Some(own), Some(carried_before)) = (&mut self.source.own, before.published) {
            check_way(own, self.source.plan.kind.mechanism, carried_before, evidence);
            correct_offloads(own, evidence);
        }
        if let Some(own) = &self.source.own {
            evidence.iter_mut().for_each(|arm| arm.entry_memory.clone_from(&own.entry_memory));
        }
        if let [only] = evidence {
            let mechanism = self.source.plan.kind.mechanism;
            only.routers =
                Some(RouterEvidence { mechanism, before: before.counters.sums(), after: after.sums(), busy });
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

#[cfg(test)]
mod tests {
    use super::*;

    fn count_packets(near: &[u64]) -> MiddleCounters {
        let mut of_near = Vec::new();
        for packets in near {
            of_near.push(Counters([("interface.tx_packets".to_owned(), *packets)].into()));
        }
        MiddleCounters { near: of_near, far: Counters::default() }
    }

    #[test]
    fn a_customer_that_sends_nothing_is_found() {
        let before = count_packets(&[5, 7, 0]);
        assert_eq!(count_packets(&[6, 8, 1]).find_silent(&before), None);
        assert_eq!(count_packets(&[6, 7, 1]).find_silent(&before), Some(1));
        assert_eq!(count_packets(&[6, 8, 1]).sums()[0].get("interface.tx_packets"), 15);
        assert_eq!(count_packets(&[5]).find_silent(&count_packets(&[5])), None, "there is one customer");
    }
}
