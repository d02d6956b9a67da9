//! Four hosts in a row: what its routers are asked around a trial, and the figures that this gives.

use crate::failure::Failure;
use crate::outside;
use stacklab_model::{
    Cell, Counters, ETHERNET_HEADER_BYTES, Family, LinkConfig, Metric, OwnLink, Probe, Role, RowKind,
    RunRecord, System, Systems, Transport, Value, WirePath, once_each,
};
use stacklab_store::HostRow;
use stacklab_testbed::routed::{Carried, MIDDLE_INTERFACE, Node, Routed, RowPlan, ends};
use stacklab_testbed::{TestbedError, Ticks};
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_traffic::protocol::{Answer, Request};
use stacklab_traffic::trial::{NatPath, Path};
use std::time::{Duration, Instant};

/// How long a router may take to say what it has counted.
const COUNT_LIMIT: Duration = Duration::from_secs(20);

/// Where a row of hosts comes from.
pub struct Origin {
    /// What was built.
    pub plan: RowPlan,
    /// What was seen of packets on it.
    pub carried: Vec<Carried>,
    /// What the testbed is in, where it is not on this kernel.
    pub guest: Option<String>,
    /// The process of that guest, where its kernel does not count what time it takes.
    pub process: Option<u32>,
    /// The testbed, where it is on this kernel; it goes with this.
    pub own: Option<Box<Routed>>,
}

/// The routers of a testbed, and how packets cross between them.
pub struct Row {
    origin: Origin,
    routers: [AgentClient; 2],
    since: Instant,
}

/// What a router has counted until now.
pub struct Count {
    counters: Counters,
    busy: Option<Busy>,
}

/// Processor time until now.
#[derive(Clone, Copy)]
struct Busy {
    /// Nanoseconds that it was busy.
    ns: u64,
    /// Nanoseconds of which that is a part.
    of_ns: u64,
}

impl Row {
    /// Greets the routers.
    pub fn new(origin: Origin, routers: [AgentClient; 2]) -> Result<Self, Failure> {
        let mut row = Row { origin, routers, since: Instant::now() };
        row.routers.iter_mut().try_for_each(AgentClient::hello)?;
        Ok(row)
    }

    /// How packets cross, and what the hosts run.
    pub fn kind(&self) -> &RowKind {
        &self.origin.plan.kind
    }

    /// Has both ends know the path MTU during the next trial.
    ///
    /// # Errors
    /// When an end does not find it any more.
    pub fn keep_path_mtus(&mut self) -> Result<(), TestbedError> {
        self.origin.own.as_mut().map_or(Ok(()), |own| own.keep_path_mtus())
    }

    /// What it is, in a sentence.
    pub fn describe(&self, link_config: &LinkConfig) -> String {
        let Origin { plan, carried, guest, .. } = &self.origin;
        let (mechanism, links) = (plan.kind.mechanism, &plan.links);
        let place = guest.as_ref().map_or_else(String::new, |guest| format!(" inside {guest}"));
        let (hosts, seen_by) = hosts(&place, &self.guests());
        let rate = link_config.rate.map_or("no rate limit".to_owned(), |rate| rate.to_string());
        let by = translators(plan);
        let own =
            links.all().into_iter().filter(|(_, link)| *link != OwnLink::default()).map(|(name, link)| {
                let rate = link.rate.map(|rate| rate.to_string());
                let mtu = link.mtu.map(|mtu| format!("MTU {mtu}"));
                let told: Vec<String> = rate.into_iter().chain(mtu).chain(link.impairments()).collect();
                format!("; {name} link: {}", told.join(", "))
            });
        let seen = carried.iter().map(|carried| {
            format!(
                "{} as {}, path MTU {}",
                carried.family,
                carried.headers.join(" / "),
                carried.path_mtus[0]
            )
        });
        let offloads = if link_config.offloads { "on" } else { "off" };
        format!(
            "client - router - router - client{hosts}, {mechanism}{by} between the routers, \
             MTU {}, {rate}, offloads {offloads}{}; seen on the middle link{seen_by}: {}",
            link_config.mtu,
            own.collect::<String>(),
            seen.collect::<Vec<_>>().join("; ")
        )
    }

    /// What kind of host each is, in their order on the path.
    fn kinds(&self) -> [String; 4] {
        let Origin { plan, guest: lab, .. } = &self.origin;
        let RowKind { mechanism, clients, routers, .. } = &plan.kind;
        let lab = lab.as_ref().map_or_else(String::new, |lab| format!(" in {lab}"));
        let [[sender, receiver], [near, far]] = self.guests();
        let of = |system: &System, guest: Option<String>| match guest {
            Some(guest) => format!("{}: {guest}, {mechanism}", system.kind()),
            None => format!("namespace{lab}, {mechanism}"),
        };
        [
            of(&clients.0[0], sender),
            of(&routers.0[0], near),
            of(&routers.0[1], far),
            of(&clients.0[1], receiver),
        ]
    }

    /// What kind of host a client is, the sender being the first.
    pub fn client_kind(&self, number: usize) -> String {
        let [sender, _, _, receiver] = self.kinds();
        if number == 0 { sender } else { receiver }
    }

    /// What the processes of clients that are guests have run until now; the sender's first.
    pub fn client_ticks(&self) -> [Option<Ticks>; 2] {
        self.origin.own.as_ref().map_or([None, None], |own| own.client_ticks())
    }

    /// Whether the whole row is in a guest whose kernel does not count its time itself.
    pub fn is_counted_outside(&self) -> bool {
        self.origin.process.is_some()
    }

    /// What that guest's process has run until now.
    pub fn lab_ticks(&self) -> Option<Ticks> {
        self.origin.process.map(Ticks::of)
    }

    /// What routers' processes have run until now, where their kernels do not count that themselves.
    fn router_ticks(&self) -> [Option<Ticks>; 2] {
        let routers = &self.origin.plan.kind.routers;
        match (self.lab_ticks(), &self.origin.own) {
            (Some(ticks), _) => [Some(ticks), Some(ticks)],
            (None, Some(own)) if routers.0.iter().any(|system| !system.counts_cpu()) => {
                let all = own.router_ticks();
                [0, 1].map(|number| all[number].filter(|_| !routers.0[number].counts_cpu()))
            }
            _ => [None, None],
        }
    }

    /// What the clients are where they are guests, and what the routers are; the sender's first.
    fn guests(&self) -> [[Option<String>; 2]; 2] {
        let own = self.origin.own.as_ref();
        own.map_or_else(Default::default, |own| [own.clients().clone(), own.routers().clone()])
    }

    /// The routers' facts.
    pub fn hosts(&mut self, since_unix_ns: u64) -> Result<Vec<HostRow>, Failure> {
        let [_, near, far, _] = self.kinds();
        let mut rows = Vec::new();
        for (agent, (node, kind)) in
            self.routers.iter_mut().zip([(Node::Router1, near), (Node::Router2, far)])
        {
            let (name, facts) = (router_name(node, &self.origin.plan.kind.routers), agent.facts()?);
            rows.push(HostRow { name, kind, since_unix_ns, facts });
        }
        Ok(rows)
    }

    /// The path of a cell's trials.
    pub fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path {
        let ends = ends(self.origin.plan.kind.mechanism, cell.family)
            .expect("a checked study's mechanisms carry their families");
        let seen = self.origin.carried.iter().find(|carried| carried.family == cell.family);
        let path_mtus = seen.expect("a testbed has been seen to carry what it carries").path_mtus;
        let nat = NatPath {
            destination: ends.destination,
            source: ends.source,
            path_mtus,
            own_mtus: [self.origin.plan.links.near, self.origin.plan.links.far]
                .map(|link| link.of(link_config).mtu),
            renumbers: self.origin.plan.keeps_state(),
        };
        Path {
            sender: ends.sender,
            receiver: ends.receiver,
            mtu: link_config.mtu,
            planned_mtu: true,
            offloads: link_config.offloads,
            rate: link_config.rate,
            shared: false,
            nat: Some(nat),
        }
    }

    /// What both routers have counted until now.
    pub fn count(&mut self) -> Result<[Count; 2], AgentError> {
        let mut ask = |number: usize| {
            let agent = &mut self.routers[number];
            let request = Request::Count { interface: MIDDLE_INTERFACE.to_owned() };
            match agent.ask(request, "tell its counters", COUNT_LIMIT)? {
                (_, Answer::Counted { counters, cpu }) => {
                    let busy = cpu.map(|cpu| Busy { ns: cpu.busy_ns(), of_ns: cpu.window_ns });
                    Ok(Count { counters, busy })
                }
                _ => Err(agent.confused("tell its counters")),
            }
        };
        let mut counts = [ask(0)?, ask(1)?];
        let of_ns = self.since.elapsed().as_nanos() as u64;
        for (count, ticks) in counts.iter_mut().zip(self.router_ticks()) {
            if let Some(ticks) = ticks {
                count.busy = Some(Busy { ns: outside::busy_ns(ticks), of_ns });
            }
        }
        Ok(counts)
    }
}

/// What a router is called, in the record and on the page.
pub fn router_name(router: Node, routers: &Systems) -> String {
    match &routers.0[usize::from(router == Node::Router2)] {
        System::Namespace => router.name().to_owned(),
        system => format!("{router} ({system})"),
    }
}

/// What translates between the routers, and how, for a sentence; empty where nothing does.
pub fn translators(plan: &RowPlan) -> String {
    let names = once_each(plan.translators().into_iter().map(ToString::to_string));
    let how = if plan.keeps_state() { "with state" } else { "one address to one" };
    if names.is_empty() { String::new() } else { format!(" ({}, {how})", names.join(" and ")) }
}

/// What the four hosts are, and whose packets were looked at, in the words of a sentence; of guests, the clients' are first.
fn hosts(place: &str, [clients, routers]: &[[Option<String>; 2]; 2]) -> (String, &'static str) {
    let pair = |guests: &[Option<String>; 2], names: [&str; 3]| match guests {
        [None, None] => format!("the {}s namespaces", names[0]),
        [Some(one), Some(other)] if one == other => format!("both {}s {one}", names[0]),
        ends => {
            let [near, far] = ends.each_ref().map(|end| end.as_deref().unwrap_or("a namespace"));
            format!("the {} {near}, the {} {far}", names[1], names[2])
        }
    };
    if [clients, routers].iter().all(|guests| **guests == [None, None]) {
        return (format!(" in four namespaces{place}"), "");
    }
    let seen_by = if *clients == [None, None] { "" } else { " while the clients were namespaces" };
    let clients = pair(clients, ["client", "sender", "receiver"]);
    let routers = pair(routers, ["router", "near router", "far router"]);
    (format!(", {clients}, {routers}"), seen_by)
}

/// Puts the routers' figures into a run of a stream.
pub fn fill_in(
    run: &mut RunRecord,
    row: &Row,
    link_config: &LinkConfig,
    before: &[Count; 2],
    after: &[Count; 2],
) {
    if run.trial.probe != Probe::Stream {
        return;
    }
    let moved = |router: usize, name: &str| {
        after[router].counters.get(name).saturating_sub(before[router].counters.get(name))
    };
    let both = |name: &str| {
        let of = |router| moved(router, &format!("ip.{name}")) + moved(router, &format!("ip6.{name}"));
        Value::Measured((of(0) + of(1)) as f64)
    };
    let busy = |router: usize| match (before[router].busy, after[router].busy) {
        (Some(before), Some(after)) => {
            let busy = after.ns.saturating_sub(before.ns) as f64;
            let window = after.of_ns.saturating_sub(before.of_ns) as f64;
            Value::finite(busy * 100.0 / window, "the window was empty")
        }
        _ => Value::Missing("the router counts no CPU time".to_owned()),
    };
    run.values.insert(Metric::FragmentsRouters, both("FragCreates"));
    run.values.insert(Metric::ReassembledRouters, both("ReasmOKs"));
    run.values.insert(Metric::CpuRouter1, busy(0));
    run.values.insert(Metric::CpuRouter2, busy(1));
    let Some(sent) = run.host_reports.iter().find(|side| side.role == Role::Sender) else { return };
    let Some(received) = run.host_reports.iter().find(|side| side.role == Role::Receiver) else { return };
    if run.spec.transport != Transport::Udp {
        return;
    }
    if run.host_reports.len() != 2 {
        for metric in [Metric::LinkBytes, Metric::LinkBytesBeyond] {
            run.values.insert(metric, Value::Missing("not told of streams both ways at once".to_owned()));
        }
        return;
    }
    // A trial in reverse has its sender behind the far router, and translators do the opposite for it.
    let mechanism = row.kind().mechanism;
    let family = Family::of(sent.endpoint.local.ip());
    let forward = Some(sent.endpoint.local.ip()) == ends(mechanism, run.spec.family).map(|ends| ends.sender);
    let mechanism = if forward { mechanism } else { mechanism.reversed() };
    let router = usize::from(!forward);
    let (bytes, packets) = (moved(router, "interface.tx_bytes"), moved(router, "interface.tx_packets"));
    let ip_bytes = bytes.saturating_sub(packets * u64::from(ETHERNET_HEADER_BYTES)) as f64;
    let seen = &received.received;
    let crossed = seen.warmup + seen.measured + seen.duplicates + sent.sent.markers + run.drops.socket_buffer;
    let each = ip_bytes / crossed as f64;
    let path = WirePath { mechanism, ..WirePath::plain(family, run.spec.transport, link_config.mtu) };
    let model = path.wire_size(run.spec.message_bytes).map(|size| f64::from(size.ip_bytes));
    run.values.insert(Metric::LinkBytes, Value::finite(each, "no message arrived"));
    if let Some(model) = model {
        let beyond = 100.0 * (each / model - 1.0);
        run.values.insert(Metric::LinkBytesBeyond, Value::finite(beyond, "no message arrived"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_what_the_hosts_are() {
        let said = |guests: [[Option<&str>; 2]; 2]| {
            hosts("", &guests.map(|pair| pair.map(|guest| guest.map(str::to_owned))))
        };
        let none = [None, None];
        assert_eq!(hosts(" inside a guest", &Default::default()).0, " in four namespaces inside a guest");
        let (both, seen_by) = said([[Some("UML 7"), Some("UML 7")], none]);
        assert_eq!(both, ", both clients UML 7, the routers namespaces");
        assert_eq!(seen_by, " while the clients were namespaces");
        let (mixed, _) = said([[None, Some("UML 7")], [Some("UML 6"), None]]);
        let expected =
            ", the sender a namespace, the receiver UML 7, the near router UML 6, the far router a namespace";
        assert_eq!(mixed, expected);
        let (routers, seen_by) = said([none, [Some("UML 7"), Some("UML 7")]]);
        assert_eq!(routers, ", the clients namespaces, both routers UML 7");
        assert_eq!(seen_by, "");
    }
}
