//! Routers, and what is built between them.

use crate::diagnostics::{Problem, Problems};
use crate::language::leaf;
use crate::read::factors::{Factors, has_guest};
use crate::read::{At, Node, containers, nanoseconds, whole, wifi};
use stacklab_model::{
    Direction, Factor, Family, FlowOffload, Links, Mechanism, OwnLink, RouterQueue, System, Systems,
    Topology, Translator,
};

/// Factors that routed testbeds do not support: they change an end of the one link between two hosts.
const OF_ONE_LINK: [Factor; 4] = [Factor::Services, Factor::Mtu, Factor::QueueLength, Factor::Pinning];

pub(super) fn topology(testbed: Node, problems: &Problems) -> Option<At<Topology>> {
    let said: At<String> = testbed.get("topology").at(leaf::text, problems)?;
    let value = match said.value.as_str() {
        "routed" => Topology::Routed(Links {
            near: read_link(testbed.get("sender_link"), problems),
            // The rate and the MTU of the link configuration are the middle link's.
            middle: OwnLink { rate: None, mtu: None, ..read_link(testbed, problems) },
            far: read_link(testbed.get("receiver_link"), problems),
        }),
        "wifi" => Topology::Wifi(wifi::network(testbed, problems)),
        _ => Topology::Link,
    };
    Some(At { value, place: said.place })
}

fn read_link(table: Node, problems: &Problems) -> OwnLink {
    OwnLink {
        rate: table.get("rate").value(leaf::rate, problems),
        mtu: table.get("mtu").value(whole, problems),
        delay_ns: table.get("delay").value(nanoseconds, problems).unwrap_or(0),
        loss: table.get("loss").value(leaf::share, problems).unwrap_or(0.0),
    }
}

/// Adds the settings that make another link narrower than the middle one. The header model counts the middle link's
/// headers.
fn check_ends(testbed: Node, problems: &mut Problems) {
    for end in ["sender_link", "receiver_link"] {
        for name in ["rate", "mtu"] {
            let own = testbed.get(end);
            let middle = testbed.get(name).place();
            let Some(place) = own.get(name).place() else { continue };
            let Some(width) = read_width(own, name, problems) else { continue };
            let most = read_width(testbed, name, problems);
            // Without a rate, the middle link has no limit.
            if most.is_some_and(|most| width >= most) || most.is_none() && name == "mtu" {
                continue;
            }
            let title =
                format!("`testbed.{end}.{name}` makes this link narrower than the one between the routers");
            let mut problem = Problem::at(place, title, "less than the middle link's");
            if let Some(middle) = middle {
                problem = problem.with_related_place(middle, "the middle link's");
            }
            problems.add(problem.help(format!(
                "the link between the routers is measured: it (testbed.{name}) must have the smallest"
            )));
        }
    }
}

/// A link's `rate` in bits per second, or its `mtu` in bytes.
fn read_width(table: Node, name: &str, problems: &Problems) -> Option<u64> {
    match name {
        "rate" => table.get(name).value(leaf::rate, problems).map(|rate| rate.bits_per_second()),
        _ => table.get(name).value(whole, problems).map(u64::from),
    }
}

/// Adds the systems that a routed testbed does not support: real machines, and as a router a system without tunnels.
fn check_systems(topology: &At<Topology>, factors: &Factors, problems: &mut Problems) {
    let places = [
        (Factor::Os, "a client behind routers", "clients are namespace, gvisor, "),
        (Factor::RouterOs, "a router", "routers are namespace, "),
    ];
    for (factor, what, others) in places {
        for level in factors.setting_levels(factor) {
            let Ok(Systems(systems)) = level.value.parse() else { continue };
            let refused = systems.iter().find_map(|system| match system {
                System::Localhost | System::Ssh(_) => Some((system, "a real machine is on another network")),
                System::Smoltcp if factor == Factor::RouterOs => Some((system, "its stack forwards nothing")),
                System::Smoltcp => Some((system, "its stack discovers no path MTU")),
                System::Gvisor if factor == Factor::RouterOs => Some((system, "its stack has no tunnels")),
                _ => None,
            });
            let Some((system, why)) = refused else { continue };
            let problem = level.problem(format!("`{system}` cannot be {what}"), why);
            problems.add(
                problem.with_related_place(&topology.place, "together with this").help(format!(
                    "leave it out; {others}uml, uml-NAME, linux-SERIES or disk:PATH, or a pair"
                )),
            );
        }
    }
}

/// Adds a thread of routers that are guests, or whose packets segmentation offload would carry past it.
fn check_router_queue(testbed: Node, factors: &Factors, problems: &mut Problems) {
    let levels = factors.setting_levels(Factor::RouterQueue);
    let Some(level) = levels.iter().find(|level| level.value != RouterQueue::Inline.name()) else { return };
    if let Some(guest) = factors.setting_levels(Factor::RouterOs).iter().find(|level| has_guest(level)) {
        problems.add(
            level
                .problem("only routers that are namespaces have such a queue", "needs namespaces")
                .with_related_place(&guest.place, "a guest is a device with a queue of its kernel")
                .help("leave factors.router_queue out, or factors.router_os"),
        );
    }
    let offloads = testbed.get("offloads");
    let Some(level) = levels.iter().find(|level| level.value == RouterQueue::Thread.name()) else { return };
    if let (Some(true), Some(place)) = (offloads.value(leaf::boolean, problems), offloads.place()) {
        problems.add(
            level
                .problem("a router's thread needs links without offloads", "not possible with offloads")
                .with_related_place(place, "a veth with TSO delivers past the thread")
                .help("leave testbed.offloads out, or factors.router_queue"),
        );
    }
}

/// Adds translators without anything to translate, and stateful translators if streams flow from the end at which
/// connections cannot begin.
fn check_translators(factors: &Factors, problems: &mut Problems) {
    let mechanisms = factors.setting_levels(Factor::Mechanism);
    for level in factors.setting_levels(Factor::Translator) {
        let Ok(translator) = level.value.parse::<Translator>() else { continue };
        if !mechanisms.iter().filter_map(parse_mechanism).any(Mechanism::translates) {
            problems.add(
                level
                    .problem("no mechanism of this study translates", "translates nothing")
                    .help(format!("leave the factor out, or add {} to factors.mechanism", translating())),
            );
            return;
        }
        check_choice(level, translator, mechanisms, problems);
        let stateful =
            mechanisms.iter().find(|level| parse_mechanism(level).is_some_and(|m| translator.keeps_state(m)));
        let forward = Direction::Forward.name();
        let back = factors.setting_levels(Factor::Direction).iter().find(|level| level.value != forward);
        if let (Some(stateful), Some(back)) = (stateful, back) {
            let by = format!("`{}` by {translator}", stateful.value);
            let title = format!("{by} is stateful: only the sender can open connections");
            problems.add(
                back.problem(title, "begins at the receiver")
                    .with_related_place(&level.place, "together with this")
                    .help("leave this direction out, or use \"tayga\" in factors.translator"),
            );
        }
    }
}

/// Adds a mechanism that cannot have the translator.
fn check_choice(
    level: &At<String>,
    translator: Translator,
    mechanisms: &[At<String>],
    problems: &mut Problems,
) {
    if translator == Translator::Tayga {
        return;
    }
    for other in mechanisms {
        if parse_mechanism(other).is_some_and(|m| m.translates() && !m.has_any_translator()) {
            let title = format!("`{}` is translated by tayga alone, behind its NAT", other.value);
            problems.add(
                level
                    .problem(title, "another translator")
                    .with_related_place(&other.place, "together with this")
                    .help("leave the translator out, or the mechanism"),
            );
            return;
        }
    }
}

/// The mechanism of a level; `None` if that is a mistake, which has been reported.
fn parse_mechanism(level: &At<String>) -> Option<Mechanism> {
    level.value.parse().ok()
}

/// Behind a NAT only the sender can open connections.
fn check_nat(factors: &Factors, problems: &mut Problems) {
    let forward = Direction::Forward.name();
    let directions = factors.setting_levels(Factor::Direction);
    let Some(back) = directions.iter().find(|level| level.value != forward) else { return };
    for level in factors.setting_levels(Factor::Mechanism) {
        if level.value.parse::<Mechanism>().is_ok_and(Mechanism::begins_at_sender) {
            let title = format!("`{}` is stateful: only the sender can open connections", level.value);
            problems.add(
                back.problem(title, "begins at the receiver")
                    .with_related_place(&level.place, "together with this")
                    .help("leave this direction out, or the mechanism"),
            );
            return;
        }
    }
}

/// A flowtable is of links, and forwards what enters by one and leaves by another.
fn check_flow_offload(factors: &Factors, problems: &mut Problems) {
    let mut levels = factors.setting_levels(Factor::FlowOffload).iter();
    let Some(level) = levels.find(|level| level.value == FlowOffload::On.name()) else { return };
    for mechanism in factors.setting_levels(Factor::Mechanism) {
        if parse_mechanism(mechanism).is_some_and(|mechanism| !mechanism.allows_flow_offload()) {
            let title = format!("a flowtable forwards nothing with `{}`", mechanism.value);
            let names = list_mechanisms(Mechanism::allows_flow_offload);
            problems.add(
                level
                    .problem(title, "packets change between two links")
                    .with_related_place(&mechanism.place, "together with this")
                    .help(format!(
                        "it forwards with {names}: leave the other mechanisms out, or flow_offload"
                    )),
            );
            return;
        }
    }
}

/// The mechanisms that any translator can be on: `nat64, siit or 464xlat`.
fn translating() -> String {
    list_mechanisms(Mechanism::has_any_translator)
}

/// The mechanisms that meet a condition: `nat64, siit or 464xlat`.
fn list_mechanisms(wanted: fn(Mechanism) -> bool) -> String {
    let all = Mechanism::ALL.iter().filter(|mechanism| wanted(**mechanism));
    let names = all.map(|mechanism| mechanism.name()).collect::<Vec<_>>().join(", ");
    names.rsplit_once(", ").map_or(names.clone(), |(others, last)| format!("{others} or {last}"))
}

/// What to write for a key that needs routers in a study without them.
fn with_routers(key: &str, topology: &Topology) -> String {
    if matches!(topology, Topology::Wifi(_)) {
        return "leave it out, or write topology = \"routed\" in place of \"wifi\"".to_owned();
    }
    let meaning = match key {
        "testbed.delay" => "packets are then delayed on the link between its two routers, each way",
        "testbed.loss" => "packets are then lost on the link between its two routers, each way",
        "testbed.sender_link" => "this is then the link between the sender and its router",
        "testbed.receiver_link" => "this is then the link between the receiver and its router",
        _ => "otherwise leave this out",
    };
    format!("write topology = \"routed\" in [testbed] (--set testbed.topology=routed); {meaning}")
}

pub(super) fn check(topology: &At<Topology>, testbed: Node, all: &[Factors], problems: &mut Problems) {
    // Mechanisms, routers and translators are those of [factors].
    let factors = &all[0];
    if !matches!(topology.value, Topology::Routed(_)) {
        return check_without_routers(&topology.value, testbed, all, problems);
    }
    check_ends(testbed, problems);
    check_systems(topology, factors, problems);
    check_rules(all, problems);
    check_router_queue(testbed, factors, problems);
    for factors in all {
        check_translators(factors, problems);
        check_nat(factors, problems);
        check_flow_offload(factors, problems);
        containers::check(testbed, factors, problems);
    }
    check_of_one_link(topology, all, problems);
    check_families(factors, problems);
}

fn check_without_routers(topology: &Topology, testbed: Node, all: &[Factors], problems: &mut Problems) {
    let of_routers = Factor::ALL.iter().filter(|factor| factor.is_of_routers());
    let factors = of_routers.map(|factor| {
        let level = all.iter().find_map(|factors| factors.setting_levels(*factor).first())?;
        Some((format!("factors.{factor}"), &level.place))
    });
    let keys = ["delay", "loss", "sender_link", "receiver_link"];
    let keys = keys.map(|name| Some((format!("testbed.{name}"), testbed.get(name).place()?)));
    for (what, place) in factors.chain(keys).flatten() {
        problems.add(
            Problem::at(place, format!("`{what}` needs two routers"), "not possible without them")
                .help(with_routers(&what, topology)),
        );
    }
}

fn check_of_one_link(topology: &At<Topology>, all: &[Factors], problems: &mut Problems) {
    for factor in OF_ONE_LINK {
        for factors in all {
            // Services may be stated even if there are none, the default.
            let mut levels = factors.setting_levels(factor).iter();
            let meant = levels.find(|level| factor != Factor::Services || level.value != "none");
            let Some(level) = meant else { continue };
            let title = format!("`{factor}` cannot be set behind routers");
            let problem = level.problem(title, "not possible here");
            problems.add(problem.with_related_place(&topology.place, "together with this").help(match factor {
                Factor::Mtu => {
                    "leave the factor out; testbed.mtu is the middle link's, testbed.sender_link.mtu and testbed.receiver_link.mtu the others'"
                }
                _ => "leave the factor out",
            }));
        }
    }
}

/// Adds a form of rules without rules, which changes nothing.
fn check_rules(all: &[Factors], problems: &mut Problems) {
    let Some(form) = all.iter().find_map(|factors| factors.setting_levels(Factor::RuleForm).first()) else {
        return;
    };
    let mut rules = all.iter().flat_map(|factors| factors.setting_levels(Factor::Rules));
    if rules.all(|level| level.value == "0") {
        problems.add(
            form.problem("`rule_form` is set, and no rules are", "measures nothing")
                .help("add rules = [1000] to [factors], or leave rule_form out"),
        );
    }
}

/// Each mechanism must carry a family of the study, and each family needs a mechanism.
fn check_families(factors: &Factors, problems: &mut Problems) {
    let Some(setting) = factors.setting(Factor::Mechanism) else { return };
    for level in &setting.levels {
        let is_used = factors.family.iter().any(|family| carries(level, family.value));
        if let (false, Some(family)) = (is_used, factors.family.first()) {
            let title = format!("`{}` does not carry {}", level.value, family.value);
            problems.add(
                level
                    .problem(title, "measures nothing")
                    .with_related_place(&family.place, "the only family")
                    .help("add the other family to factors.family, or leave this mechanism out"),
            );
        }
    }
    for family in &factors.family {
        let is_carried = setting.levels.iter().any(|level| carries(level, family.value));
        if let (false, Some(level)) = (is_carried, setting.levels.first()) {
            let title = format!("no mechanism of this study carries {}", family.value);
            problems.add(
                family
                    .problem(title, "measures nothing")
                    .with_related_place(&level.place, "this does not")
                    .help("leave this family out, or add \"native\" to factors.mechanism"),
            );
        }
    }
}

fn carries(level: &At<String>, family: Family) -> bool {
    parse_mechanism(level).is_some_and(|mechanism| mechanism.carries(family))
}
