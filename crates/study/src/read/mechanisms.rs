//! Routers, and what is built between them.

use super::factors::Factors;
use crate::diagnostics::{Location, Problem, Problems};
use crate::language::leaf;
use crate::parse::tree::Located;
use crate::read::node::{At, at, nanoseconds, whole};
use crate::read::wifi;
use stacklab_model::{Direction, Factor, Links, Mechanism, OwnLink, System, Systems, Topology, Translator};

/// Factors that routed testbeds do not support: they change an end of the one link between two hosts.
const OF_ONE_LINK: [Factor; 4] = [Factor::Services, Factor::Mtu, Factor::QueueLength, Factor::Pinning];

/// Reads how the hosts are connected.
pub(super) fn topology(link_config: Option<&Located>, problems: &Problems) -> Option<At<Topology>> {
    let key = |name| link_config.and_then(|node| node.get(name));
    let said: At<String> = at(key("topology"), leaf::text, problems)?;
    let own = |table: Option<&Located>| {
        let key = |name| table.and_then(|node| node.get(name));
        OwnLink {
            rate: at(key("rate"), leaf::rate, problems).map(|rate| rate.value),
            mtu: at(key("mtu"), whole, problems).map(|mtu| mtu.value),
            delay_ns: at(key("delay"), nanoseconds, problems).map_or(0, |delay| delay.value),
            loss: at(key("loss"), leaf::share, problems).map_or(0.0, |loss| loss.value),
        }
    };
    // The link configuration's rate and MTU are the middle link's.
    let middle = OwnLink { rate: None, mtu: None, ..own(link_config) };
    let links = Links { near: own(key("sender_link")), middle, far: own(key("receiver_link")) };
    let value = match said.value.as_str() {
        "routed" => Topology::Routed(links),
        "wifi" => Topology::Wifi(wifi::network(key("wifi"), key("mtu"), problems)),
        _ => Topology::Link,
    };
    Some(At { value, place: said.place })
}

/// Adds the settings that make another link narrower than the middle one. The header model counts the middle link's
/// headers.
fn check_ends(link_config: Option<&Located>, problems: &mut Problems) {
    let key = |name| link_config.and_then(|node| node.get(name));
    for end in ["sender_link", "receiver_link"] {
        let own = |name| key(end).and_then(|node| node.get(name));
        let middle = at(key("rate"), leaf::rate, problems);
        let mut narrow = Vec::new();
        if let Some(rate) = at(own("rate"), leaf::rate, problems)
            && middle
                .as_ref()
                .is_none_or(|middle| rate.value.bits_per_second() < middle.value.bits_per_second())
        {
            narrow.push(("rate", rate.place, middle.map(|middle| middle.place)));
        }
        if let (Some(mtu), Some(middle)) = (at(own("mtu"), whole, problems), at(key("mtu"), whole, problems))
            && mtu.value < middle.value
        {
            narrow.push(("mtu", mtu.place, Some(middle.place)));
        }
        for (name, place, other) in narrow {
            let text =
                format!("`testbed.{end}.{name}` makes this link narrower than the one between the routers");
            let mut problem = Problem::at(place, text, "less than the middle link's");
            if let Some(other) = other {
                problem = problem.related(other, "the middle link's");
            }
            problems.add(problem.help(format!(
                "the link between the routers is measured: it (testbed.{name}) must have the smallest"
            )));
        }
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
                System::Gvisor if factor == Factor::RouterOs => Some((system, "its stack has no tunnels")),
                _ => None,
            });
            let Some((system, why)) = refused else { continue };
            let text = format!("`{system}` cannot be {what}");
            problems.add(
                Problem::at(level.place.clone(), text, why)
                    .related(topology.place.clone(), "together with this")
                    .help(format!(
                        "leave it out; {others}uml, uml-NAME, linux-SERIES or disk:PATH, or a pair"
                    )),
            );
        }
    }
}

/// Adds translators without anything to translate, and stateful translators if streams flow from the end at which
/// connections cannot begin.
fn check_translators(factors: &Factors, problems: &mut Problems) {
    let mechanisms = factors.setting_levels(Factor::Mechanism);
    let known = |level: &At<String>| level.value.parse::<Mechanism>().ok();
    for level in factors.setting_levels(Factor::Translator) {
        let Ok(translator) = level.value.parse::<Translator>() else { continue };
        if !mechanisms.iter().filter_map(known).any(Mechanism::translates) {
            let text = "no mechanism of this study translates".to_owned();
            problems.add(
                Problem::at(level.place.clone(), text, "translates nothing")
                    .help(format!("leave the factor out, or add {} to factors.mechanism", translating())),
            );
            return;
        }
        let stateful =
            mechanisms.iter().find(|level| known(level).is_some_and(|m| translator.keeps_state(m)));
        let forward = Direction::Forward.name();
        let back = factors.setting_levels(Factor::Direction).iter().find(|level| level.value != forward);
        if let (Some(stateful), Some(back)) = (stateful, back) {
            let text = format!(
                "`{}` by {translator} is stateful: only the sender can open connections",
                stateful.value
            );
            problems.add(
                Problem::at(back.place.clone(), text, "begins at the receiver")
                    .related(level.place.clone(), "together with this")
                    .help("leave this direction out, or use \"tayga\" in factors.translator"),
            );
        }
    }
}

/// The mechanisms that translate: `nat64, siit or 464xlat`.
fn translating() -> String {
    let all = Mechanism::ALL.iter().filter(|mechanism| mechanism.translates());
    let names: Vec<&str> = all.map(|mechanism| mechanism.name()).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
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
        _ => "or leave this out",
    };
    format!("write topology = \"routed\" in [testbed] (--set testbed.topology=routed): {meaning}")
}

/// Adds what does not go together.
pub(super) fn check(
    topology: Option<&At<Topology>>,
    link_config: Option<&Located>,
    all: &[Factors],
    problems: &mut Problems,
) {
    // Mechanisms, routers and translators are those of [factors].
    let factors = &all[0];
    let Some(topology) = topology else { return };
    if !matches!(topology.value, Topology::Routed(_)) {
        return check_without_routers(topology, link_config, factors, problems);
    }
    check_ends(link_config, problems);
    check_systems(topology, factors, problems);
    all.iter().for_each(|factors| check_translators(factors, problems));
    check_of_one_link(topology, all, problems);
    check_families(factors, problems);
}

/// Refuses what needs two routers.
fn check_without_routers(
    topology: &At<Topology>,
    link_config: Option<&Located>,
    factors: &Factors,
    problems: &mut Problems,
) {
    let factors = [Factor::Mechanism, Factor::RouterOs, Factor::Translator].map(|factor| {
        let level = factors.setting_levels(factor).first()?;
        Some((format!("factors.{factor}"), level.place.clone()))
    });
    let keys = ["delay", "loss", "sender_link", "receiver_link"];
    let keys = keys.map(|name| Some((format!("testbed.{name}"), link_config?.get(name)?.place.clone())));
    for (what, place) in factors.into_iter().chain(keys).flatten() {
        problems.add(
            Problem::at(place, format!("`{what}` needs two routers"), "not possible without them")
                .help(with_routers(&what, &topology.value)),
        );
    }
}

/// Refuses factors that mean nothing behind routers.
fn check_of_one_link(topology: &At<Topology>, all: &[Factors], problems: &mut Problems) {
    for (factor, factors) in
        OF_ONE_LINK.into_iter().flat_map(|factor| all.iter().map(move |factors| (factor, factors)))
    {
        // A factor's value may be stated even if it is the default.
        let plain = match factor {
            Factor::Services => Some("none"),
            _ => None,
        };
        let Some(level) =
            factors.setting_levels(factor).iter().find(|level| Some(level.value.as_str()) != plain)
        else {
            continue;
        };
        let help = match factor {
            Factor::Mtu => {
                "leave the factor out; testbed.mtu is the middle link's, testbed.sender_link.mtu and testbed.receiver_link.mtu the others'"
            }
            _ => "leave the factor out",
        };
        problems.add(
            Problem::at(
                level.place.clone(),
                format!("`{factor}` cannot be set behind routers"),
                "not possible here",
            )
            .related(topology.place.clone(), "together with this")
            .help(help),
        );
    }
}

/// Each mechanism must carry a family of the study, and each family needs a mechanism.
fn check_families(factors: &Factors, problems: &mut Problems) {
    let Some(setting) = factors.setting(Factor::Mechanism) else { return };
    let known = |level: &At<String>| level.value.parse::<Mechanism>().ok();
    for level in &setting.levels {
        let Some(mechanism) = known(level) else { continue };
        let carries = factors.family.iter().any(|family| mechanism.carries(family.value));
        if let (false, Some(family)) = (carries, factors.family.first()) {
            problems.add(not_carried(
                &level.value,
                level.place.clone(),
                &family.value.to_string(),
                &family.place,
            ));
        }
    }
    for family in &factors.family {
        let carried =
            setting.levels.iter().filter_map(known).any(|mechanism| mechanism.carries(family.value));
        if let (false, Some(level)) = (carried, setting.levels.first()) {
            problems.add(
                Problem::at(
                    family.place.clone(),
                    format!("no mechanism of this study carries {}", family.value),
                    "measures nothing",
                )
                .related(level.place.clone(), "this does not")
                .help("leave this family out, or add \"native\" to factors.mechanism"),
            );
        }
    }
}

fn not_carried(mechanism: &str, place: Location, family: &str, family_place: &Location) -> Problem {
    Problem::at(place, format!("`{mechanism}` does not carry {family}"), "measures nothing")
        .related(family_place.clone(), "the only family")
        .help("add the other family to factors.family, or leave this mechanism out")
}
