//! What engines other than stacklab's own set as requirements for the rest of a study.

use super::factors::Factors;
use crate::diagnostics::{Location, Problem, Problems};
use crate::parse::tree::Node;
use crate::read::node::At;
use stacklab_model::{
    Direction, Engine, Factor, Framing, Length, Pacing, Probe, ProbeSpec, System, Systems, Topology,
    Transport, print_duration,
};

/// Factors of hosts and links, which a testbed sets for whatever runs in its hosts.
const OF_TESTBEDS: [Factor; 8] = [
    Factor::Os,
    Factor::Services,
    Factor::Mechanism,
    Factor::Routers,
    Factor::Translator,
    Factor::Mtu,
    Factor::QueueLength,
    Factor::Pinning,
];

/// Adds what the engines of a study cannot do.
pub(super) fn check(
    node: Option<&Node>,
    topology: Option<&At<Topology>>,
    all: &[Factors],
    probes: &[ProbeSpec],
    problems: &mut Problems,
) {
    for factors in all {
        for (engine, place) in others(factors) {
            check_hosts(engine, place, topology, factors, problems);
            check_traffic(engine, place, factors, problems);
            check_probes(engine, place, node, probes, problems);
        }
        if !problems.is_empty() {
            return;
        }
    }
}

/// The engines that are not stacklab's own, with their places.
fn others(factors: &Factors) -> impl Iterator<Item = (Engine, &Location)> {
    let levels = factors.setting_levels(Factor::Engine).iter();
    levels
        .filter_map(|level| Some((level.value.parse::<Engine>().ok()?, &level.place)))
        .filter(|(engine, _)| engine.is_other())
}

/// Their programs are on this machine, and so in namespaces of its kernel.
fn check_hosts(
    engine: Engine,
    place: &Location,
    topology: Option<&At<Topology>>,
    factors: &Factors,
    problems: &mut Problems,
) {
    for level in factors.setting_levels(Factor::Os) {
        let Ok(Systems(systems)) = level.value.parse() else { continue };
        let Some(system) = systems.iter().find(|system| **system != System::Namespace) else { continue };
        problems.add(
            Problem::at(
                place.clone(),
                format!("engine `{engine}` cannot run in {system}"),
                "its program is installed on this machine, and not in that system",
            )
            .related(level.place.clone(), "together with this")
            .help("engines other than stacklab run in namespaces: leave it or the system out"),
        );
        return;
    }
    if let Some(topology) = topology.filter(|topology| matches!(topology.value, Topology::Wifi(_))) {
        problems.add(
            Problem::at(
                place.clone(),
                format!("engine `{engine}` cannot run on Wi-Fi"),
                "the network is inside a guest, where its program is not installed",
            )
            .related(topology.place.clone(), "together with this"),
        );
    }
}

/// What their command lines can ask for.
fn check_traffic(engine: Engine, place: &Location, factors: &Factors, problems: &mut Problems) {
    let over_tcp = factors.transport.iter().any(|transport| transport.value == Transport::Tcp);
    if let Some(framing) =
        factors.framing.iter().find(|framing| over_tcp && framing.value != Framing::Message)
    {
        problems.add(
            Problem::at(
                place.clone(),
                format!("engine `{engine}` cannot keep each message in a separate segment"),
                "TCP joins what it writes",
            )
            .related(framing.place.clone(), "together with this and tcp")
            .help("set factors.framing = [\"message\"]"),
        );
    }
    for setting in &factors.settings {
        let known = setting.factor == Factor::Engine
            || OF_TESTBEDS.contains(&setting.factor)
            || engine.definition().settings.contains(&setting.factor);
        let forward = |level: &At<String>| level.value == Direction::Forward.name();
        let usual = setting.factor == Factor::Direction && setting.levels.iter().all(forward);
        if let Some(level) = setting.levels.first().filter(|_| !known && !usual) {
            problems.add(
                Problem::at(
                    level.place.clone(),
                    format!("`{}` cannot be set with engine `{engine}`", setting.factor),
                    "its command line has no such option here",
                )
                .related(place.clone(), "the engine"),
            );
        }
    }
}

/// What they can measure, and for how long.
fn check_probes(
    engine: Engine,
    place: &Location,
    node: Option<&Node>,
    probes: &[ProbeSpec],
    problems: &mut Problems,
) {
    let about = engine.definition();
    let mut measured = probes.iter().filter(|spec| about.probes.contains(&spec.probe)).peekable();
    if measured.peek().is_none() && !probes.is_empty() {
        let names: Vec<&str> = about.probes.iter().map(|probe| probe.name()).collect();
        problems.add(Problem::at(
            place.clone(),
            format!("engine `{engine}` measures by no probe of this study"),
            format!("expected probe.{}", names.join(" or probe.")),
        ));
    }
    for spec in measured {
        let probe = spec.probe;
        let key = |name| node.and_then(|node| node.get(probe.name())).and_then(|probe| probe.get(name));
        let step = print_duration(about.step_ns.max(1));
        let wrong = match spec.length {
            Length::Packets(_) if !about.counts_messages => {
                Some(format!("engine `{engine}` ends after a time and not after messages"))
            }
            Length::Time(ns) if about.step_ns > 0 && ns % about.step_ns != 0 => {
                Some(format!("engine `{engine}` measures multiples of {step}"))
            }
            _ => None,
        };
        if let (Some(wrong), Some(length)) = (wrong, key("length")) {
            problems.add(
                Problem::at(
                    length.place.clone(),
                    wrong,
                    format!("expected {{ time = \"{}\" }} or the like", step.replace(' ', "")),
                )
                .related(place.clone(), "the engine"),
            );
        }
        let paces = about.probes.contains(&Probe::Paced);
        if let (Pacing::Schedule(_) | Pacing::Link, false, Some(rate)) =
            (spec.pacing, paces, key("message_rate"))
        {
            problems.add(
                Problem::at(rate.place.clone(), format!("engine `{engine}` has no rate"), "expected none")
                    .related(place.clone(), "the engine"),
            );
        }
    }
}
