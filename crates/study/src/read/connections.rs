//! Searches of connections: what they need of a study.

use crate::diagnostics::{Location, Problem, Problems};
use crate::language::leaf;
use crate::read::factors::{Factors, find_requirement, has_guest};
use crate::read::{At, Node};
use stacklab_model::{
    CONNECTION_METRICS, Direction, Factor, FlowOffload, Io, IoChoice, Mechanism, Metric, Pacing, Probe,
    ProbeSpec, SearchDevice, SearchSpec, SocketKind, Topology, Tracking,
};

/// Adds what a search of connections cannot have.
pub(super) fn check(
    probes: Node,
    specs: &[ProbeSpec],
    topology: &At<Topology>,
    all: &[Factors],
    problems: &mut Problems,
) {
    let search = probes.get(Probe::Search.name());
    let metrics = search.get("metrics").list(leaf::any_metric, problems);
    // A rate before the teardown, which needs less.
    let asked_for = metrics.into_iter().filter(|metric| CONNECTION_METRICS.contains(&metric.value));
    let asked_for = asked_for.min_by_key(|metric| metric.value == Metric::TeardownRate);
    let Some(metric) = asked_for else {
        if let Some(place) = search.get("connections").place() {
            let title = "no metric of this search makes connections";
            let help = "add connection_rate, established_rate or teardown_rate, or leave this key out";
            problems.add(Problem::at(place, title, "for connections").help(help));
        }
        return;
    };
    if !matches!(topology.value, Topology::Routed(_)) || is_of_path(specs) {
        let title = format!("{} needs a router with a table of connections", metric.value);
        let problem = metric
            .problem(title, "no such router here")
            .with_related_place(&topology.place, "together with this");
        problems
            .add(problem.help("add topology = \"routed\" to [testbed], and a mechanism such as \"nat44\""));
        return;
    }
    if has_no_loss(specs) && metric.value != Metric::TeardownRate {
        let title = format!("{} needs an allowed loss", metric.value);
        let label = "a slice ends before a queue of the path is full, which then loses nothing";
        problems.add(metric.problem(title, label).help("add loss = \"0.5 %\" to [probe.search]"));
        return;
    }
    for factors in all {
        let connections = Connections { metric: &metric, factors };
        connections.check_tables(problems);
        connections.check_hosts(problems);
        connections.check_messages(problems);
        if !problems.is_empty() {
            return;
        }
    }
}

fn is_of_path(specs: &[ProbeSpec]) -> bool {
    list_searches(specs).any(|search| search.device == SearchDevice::Path)
}

fn has_no_loss(specs: &[ProbeSpec]) -> bool {
    list_searches(specs).any(|search| search.loss_ppm == 0)
}

fn list_searches(specs: &[ProbeSpec]) -> impl Iterator<Item = SearchSpec> {
    specs.iter().filter_map(|spec| match spec.pacing {
        Pacing::Search(search) => Some(search),
        _ => None,
    })
}

/// The mechanisms whose connections can be counted.
const TRACKED: &str = "use nat44, nat66, nptv6, or native with conntrack = [0]";

struct Connections<'a> {
    metric: &'a At<Metric>,
    factors: &'a Factors,
}

impl Connections<'_> {
    /// Adds a level that connections cannot have, with the reason.
    fn refuse<T>(&self, level: &At<T>, reason: &str, label: &str, problems: &mut Problems) {
        let problem = level.problem(format!("{} {reason}", self.metric.value), label);
        let problem = problem.with_related_place(&self.metric.place, "together with this");
        problems.add(problem.help(format!("leave this level out, or {}", self.metric.value)));
    }

    /// Adds the first level of a factor that is another one than these.
    fn refuse_other(
        &self,
        factor: Factor,
        usual: &[&str],
        reason: &str,
        label: &str,
        problems: &mut Problems,
    ) {
        let mut levels = self.factors.setting_levels(factor).iter();
        if let Some(other) = levels.find(|level| !usual.contains(&level.value.as_str())) {
            self.refuse(other, reason, label, problems);
        }
    }

    /// Each mechanism has its table, or the near router tracks what it forwards.
    fn check_tables(&self, problems: &mut Problems) {
        let tracking = self.factors.setting_levels(Factor::Conntrack);
        let untracked = tracking.iter().find(|level| level.value == Tracking::OFF);
        let is_tracked = !tracking.is_empty() && untracked.is_none();
        let mechanisms = self.factors.setting_levels(Factor::Mechanism);
        let mut place: Option<&Location> = None;
        for level in mechanisms {
            let Ok(mechanism) = level.value.parse::<Mechanism>() else { continue };
            let is_plain = mechanism == Mechanism::Native;
            if !is_plain && mechanism.nat().is_none() {
                let title = format!(
                    "`{}` has no table of connections that {} can empty",
                    level.value, self.metric.value
                );
                let label = if mechanism.translates() {
                    "tayga translates each packet by itself, and Jool's table is not read"
                } else {
                    "only those of one router between its links are read"
                };
                let problem = level.problem(title, label);
                problems.add(problem.with_related_place(&self.metric.place, "asked for here").help(TRACKED));
                return;
            }
            if is_plain && !is_tracked {
                place = Some(&level.place);
            }
        }
        if place.is_some() || mechanisms.is_empty() && !is_tracked {
            let place = untracked.map(|level| &level.place).or(place).unwrap_or(&self.metric.place);
            let title = format!("{} needs connections that are tracked", self.metric.value);
            let problem = Problem::at(place, title, "the router has no table of connections");
            problems
                .add(problem.help("add conntrack = [0] to [factors]: tracked, without further connections"));
        }
        let reason = "empties the table, which a flowtable refers to";
        self.refuse_other(
            Factor::FlowOffload,
            &[FlowOffload::Off.name()],
            reason,
            "passes the table by",
            problems,
        );
    }

    fn check_hosts(&self, problems: &mut Problems) {
        for factor in [Factor::Os, Factor::RouterOs] {
            if let Some(guest) = self.factors.setting_levels(factor).iter().find(|level| has_guest(level)) {
                self.refuse(guest, "needs namespaces of this kernel", "another system", problems);
            }
        }
        self.refuse_other(Factor::Clients, &["1"], "is that of one customer's router", "several", problems);
        let reason = "has many ports between two addresses";
        self.refuse_other(Factor::Destinations, &["1"], reason, "several addresses", problems);
    }

    fn check_messages(&self, problems: &mut Problems) {
        let reason = "is of connections that the sender makes";
        self.refuse_other(
            Factor::Direction,
            &[Direction::Forward.name()],
            reason,
            "begins elsewhere",
            problems,
        );
        let reason = "has a connection for each message";
        self.refuse_other(Factor::Flows, &["1"], reason, "several flows", problems);
        let usual = [IoChoice::Auto.to_string(), Io::Send.name().to_owned()];
        let usual: Vec<&str> = usual.iter().map(String::as_str).collect();
        self.refuse_other(Factor::Io, &usual, "sends one message in a call", "several in a call", problems);
        let reason = "has sockets of the cell's family, without further options";
        self.refuse_other(Factor::Socket, &[SocketKind::Native.name()], reason, "of the other one", problems);
        for factor in Factor::ALL.iter().filter(|factor| factor.is_socket_option()) {
            let level = self.factors.setting_levels(*factor).first();
            if let Some(level) = level.filter(|level| is_of_datagrams(*factor, &level.value)) {
                self.refuse(level, reason, "an option of sockets", problems);
            }
        }
    }
}

/// Whether an option could act on the sockets of a search. Those of TCP are of other cells.
fn is_of_datagrams(factor: Factor, level: &str) -> bool {
    let required = find_requirement(factor, level);
    factor != Factor::Socket && required.is_none_or(|(other, _)| other != Factor::Transport)
}
