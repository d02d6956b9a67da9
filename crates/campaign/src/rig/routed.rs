//! A routed testbed: two clients with two routers between them. The routers count packets before and after a trial, and
//! CPU time in its measured window.

use crate::CampaignError;
use crate::rig::host_pair::{COUNT_LIMIT, HostPair, Kernels, counters, names, router_name};
use crate::rig::{CellSet, CpuCover, Rig, RigKind, RigNetwork, find_uncounted_cpu};
use crate::trial::Evidence;
use crate::trial::figures::busy_ns;
use crate::trial::routers::{Busy, RouterEvidence};
use stacklab_model::{
    Cell, Counters, Customer, FlowOffload, LinkConfig, Links, Mechanism, OwnLink, Role, RoutedKind,
    RouterQueue, RuleForm, Rules, Services, System, Systems, Tables, Topology, Tracking, once_each,
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
    fn guests(&self) -> [[Option<String>; 2]; 2] {
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
        buckets: [(near, false), (middle, true), (far, false)]
            .map(|(link, has_mechanism)| (link.of(link_config), has_mechanism))
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
            rate: link_config.rate,
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
        self.before = Some(RouterCounts { counters, ticks, since: Instant::now(), ahead_ns });
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

/// Describes a routed testbed in a line for what it has in common with others, and one for its mechanism.
fn describe(source: &RoutedSource, link_config: &LinkConfig) -> String {
    let RoutedSource { plan, carried, guest, .. } = source;
    let mechanism = plan.kind.mechanism;
    let links = &plan.links;
    let place = guest.as_ref().map_or_else(String::new, |guest| format!(" inside {guest}"));
    let (hosts, seen_by) = hosts(&place, &source.guests());
    let rate = link_config.rate.map_or("no rate limit".to_owned(), |rate| rate.to_string());
    let by = translators(plan) + &describe_rules(plan.kind.rules) + &describe_tables(plan.kind.tables);
    let own = links
        .all()
        .into_iter()
        .filter(|(_, link)| *link != OwnLink::default())
        .map(|(name, link)| format!("; {name} link: {}", link.describe().join(", ")));
    let queue = match plan.kind.queue {
        RouterQueue::Inline => "",
        RouterQueue::Thread => ", a kernel thread at each ingress of the routers",
    };
    let seen = carried.iter().map(|carried| {
        let whose = match carried.customer {
            CustomerId::FIRST => String::new(),
            customer => format!("customer {}'s ", customer.number()),
        };
        let headers = carried.headers.join(" / ");
        format!("{whose}{} as {headers}, path MTU {}", carried.family, carried.path_mtus[0])
    });
    let black_hole = match carried.iter().any(|carried| carried.black_hole) {
        true => "; a larger packet vanishes without an answer, so the testbed sets the path MTU",
        false => "",
    };
    let bottleneck = Topology::Routed(*links).bottleneck(link_config, plan.kind.customers);
    let bottleneck = bottleneck.map_or_else(String::new, |link| format!("; bottleneck: {link}"));
    let offloads = if link_config.offloads { "on" } else { "off" };
    let customers = match plan.kind.customers {
        1 => String::new(),
        count => format!("{count} customers, each with the first two hosts and links of: "),
    };
    format!(
        "{customers}client - router - router - client{hosts}, MTU {}, {rate}, offloads {offloads}{}{bottleneck}\n\
         {mechanism}{by}{queue}, seen on the middle link{seen_by}: {}{black_hole}",
        link_config.mtu,
        own.collect::<String>(),
        seen.collect::<Vec<_>>().join("; ")
    )
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

/// What changes addresses at the routers, for a sentence; empty where nothing does.
pub(crate) fn translators(plan: &RoutedSpec) -> String {
    let mut names = once_each(plan.translators().into_iter().map(ToString::to_string));
    let how = if plan.keeps_state() { "stateful" } else { "stateless" };
    if plan.kind.mechanism.changes_source() {
        names.push("nftables".to_owned());
    }
    if names.is_empty() { String::new() } else { format!(" ({}, {how})", names.join(" and ")) }
}

/// The firewall on the near router, for a sentence; empty without one.
fn describe_rules(rules: Rules) -> String {
    match (rules.count, rules.form) {
        (0, _) => String::new(),
        (count, RuleForm::List) => format!(", {count} firewall rules on router1"),
        (count, RuleForm::Set) => format!(", a firewall rule with a set of {count} on router1"),
        (count, RuleForm::Map) => format!(", a firewall rule with a map of {count} on router1"),
    }
}

/// The near router's tables, for a sentence; empty without further entries and a flowtable.
fn describe_tables(tables: Tables) -> String {
    let routes = match tables.routes {
        0 => String::new(),
        routes => format!(", {routes} more routes of each family on router1"),
    };
    let connections = match tables.tracking {
        Tracking::Off => String::new(),
        Tracking::On(0) => ", connections tracked on router1".to_owned(),
        Tracking::On(more) => format!(", connections tracked on router1 among {more} more of each family"),
    };
    let flowtable = match tables.offload {
        FlowOffload::Off => "",
        FlowOffload::On => ", known connections by a flowtable on router1",
    };
    routes + &connections + flowtable
}

/// Two parts of the sentence: the four hosts, and whether packets were captured while the clients were namespaces.
fn hosts(place: &str, [clients, routers]: &[[Option<String>; 2]; 2]) -> (String, &'static str) {
    if [clients, routers].iter().all(|guests| **guests == [None, None]) {
        return (format!(" in four namespaces{place}"), "");
    }
    let seen_by = if *clients == [None, None] { "" } else { " while the clients were namespaces" };
    let clients = describe_pair(clients, ["client", "sender", "receiver"]);
    let routers = describe_pair(routers, ["router", "near router", "far router"]);
    (format!(", {clients}, {routers}"), seen_by)
}

fn describe_pair(guests: &[Option<String>; 2], names: [&str; 3]) -> String {
    match guests {
        [None, None] => format!("the {}s namespaces", names[0]),
        [Some(one), Some(other)] if one == other => format!("both {}s {one}", names[0]),
        ends => {
            let [near, far] = ends.each_ref().map(|end| end.as_deref().unwrap_or("a namespace"));
            format!("the {} {near}, the {} {far}", names[1], names[2])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_hosts(guests: [[Option<&str>; 2]; 2]) -> (String, &'static str) {
        hosts("", &guests.map(|pair| pair.map(|guest| guest.map(str::to_owned))))
    }

    #[test]
    fn the_sentence_says_what_the_hosts_are() {
        let none = [None, None];
        assert_eq!(hosts(" inside a guest", &Default::default()).0, " in four namespaces inside a guest");
        let (both, seen_by) = describe_hosts([[Some("UML 7"), Some("UML 7")], none]);
        assert_eq!(both, ", both clients UML 7, the routers namespaces");
        assert_eq!(seen_by, " while the clients were namespaces");
        let (mixed, _) = describe_hosts([[None, Some("UML 7")], [Some("UML 6"), None]]);
        let expected =
            ", the sender a namespace, the receiver UML 7, the near router UML 6, the far router a namespace";
        assert_eq!(mixed, expected);
        let (routers, seen_by) = describe_hosts([none, [Some("UML 7"), Some("UML 7")]]);
        assert_eq!(routers, ", the clients namespaces, both routers UML 7");
        assert_eq!(seen_by, "");
    }
}
