//! What generators other than stacklab's own set as requirements for the rest of a study.

use super::factors::Factors;
use crate::diagnostics::{Location, Problem, Problems};
use crate::parse::tree::Located;
use crate::read::node::At;
use stacklab_model::{
    Direction, Factor, Generator, Length, Pacing, Probe, ProbeSpec, SizeOf, System, Systems, Topology,
    Transport, print_duration,
};

/// Factors of hosts and links, which a testbed sets for whatever runs in its hosts.
const OF_TESTBEDS: [Factor; 8] = [
    Factor::Os,
    Factor::Services,
    Factor::Mechanism,
    Factor::RouterOs,
    Factor::Translator,
    Factor::Mtu,
    Factor::QueueLength,
    Factor::Pinning,
];

/// Adds what the generators of a study cannot do.
pub(super) fn check(
    node: Option<&Located>,
    topology: Option<&At<Topology>>,
    all: &[Factors],
    probes: &[ProbeSpec],
    problems: &mut Problems,
) {
    for factors in all {
        check_programs(factors, problems);
        for (generator, place) in others(factors) {
            check_hosts(generator, place, topology, factors, problems);
            check_traffic(generator, place, factors, problems);
            check_probes(generator, place, node, probes, problems);
        }
        if !problems.is_empty() {
            return;
        }
    }
}

/// The generators that are not stacklab's own, with their places.
fn others(factors: &Factors) -> impl Iterator<Item = (Generator, &Location)> {
    let levels = factors.setting_levels(Factor::Generator).iter();
    levels
        .filter_map(|level| Some((level.value.parse::<Generator>().ok()?, &level.place)))
        .filter(|(generator, _)| generator.is_other())
}

/// stacklab's own generator is this program itself.
fn check_programs(factors: &Factors, problems: &mut Problems) {
    let Some(folder) = factors.setting_levels(Factor::Programs).first() else { return };
    let generators = factors.setting_levels(Factor::Generator);
    let own = generators.iter().find(|level| level.value == Generator::Stacklab.name());
    if own.is_none() && !generators.is_empty() {
        return;
    }
    let problem = Problem::at(
        folder.place.clone(),
        "generator `stacklab` has no other programs",
        "folders are for programs such as iperf3",
    );
    let problem = match own {
        Some(own) => problem.related(own.place.clone(), "together with this"),
        None => problem,
    };
    problems.add(problem.help("set factors.generator = [\"iperf3\"], or leave programs out"));
}

/// Their programs are on this machine, and so in namespaces of its kernel.
fn check_hosts(
    generator: Generator,
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
                format!("generator `{generator}` cannot run in {system}"),
                "its program is installed on this machine, and not in that system",
            )
            .related(level.place.clone(), "together with this")
            .help("generators other than stacklab run in namespaces: leave it or the system out"),
        );
        return;
    }
    if let Some(topology) = topology.filter(|topology| matches!(topology.value, Topology::Wifi(_))) {
        problems.add(
            Problem::at(
                place.clone(),
                format!("generator `{generator}` cannot run on Wi-Fi"),
                "the network is inside a guest, where its program is not installed",
            )
            .related(topology.place.clone(), "together with this"),
        );
    }
}

/// What their command lines can ask for.
fn check_traffic(generator: Generator, place: &Location, factors: &Factors, problems: &mut Problems) {
    let over_tcp = factors.transport.iter().any(|transport| transport.value == Transport::Tcp);
    if let Some(size_of) = factors.size_of.iter().find(|size_of| over_tcp && size_of.value != SizeOf::Write) {
        problems.add(
            Problem::at(
                place.clone(),
                format!("generator `{generator}` cannot keep each message in a separate segment"),
                "TCP joins what it writes",
            )
            .related(size_of.place.clone(), "together with this and tcp")
            .help("set factors.size_of = [\"write\"]"),
        );
    }
    for setting in &factors.settings {
        let known = matches!(setting.factor, Factor::Generator | Factor::Programs)
            || OF_TESTBEDS.contains(&setting.factor)
            || generator.definition().settings.contains(&setting.factor);
        let forward = |level: &At<String>| level.value == Direction::Forward.name();
        let usual = setting.factor == Factor::Direction && setting.levels.iter().all(forward);
        if let Some(level) = setting.levels.first().filter(|_| !known && !usual) {
            problems.add(
                Problem::at(
                    level.place.clone(),
                    format!("`{}` cannot be set with generator `{generator}`", setting.factor),
                    "its command line has no such option here",
                )
                .related(place.clone(), "the generator"),
            );
        }
    }
}

/// What they can measure, and for how long.
fn check_probes(
    generator: Generator,
    place: &Location,
    node: Option<&Located>,
    probes: &[ProbeSpec],
    problems: &mut Problems,
) {
    let about = generator.definition();
    let mut measured = probes.iter().filter(|spec| about.probes.contains(&spec.probe)).peekable();
    if measured.peek().is_none() && !probes.is_empty() {
        let names: Vec<&str> = about.probes.iter().map(|probe| probe.name()).collect();
        problems.add(Problem::at(
            place.clone(),
            format!("generator `{generator}` measures by no probe of this study"),
            format!("expected probe.{}", names.join(" or probe.")),
        ));
    }
    for spec in measured {
        let probe = spec.probe;
        let key = |name| node.and_then(|node| node.get(probe.name())).and_then(|probe| probe.get(name));
        let step = print_duration(about.step_ns.max(1));
        let wrong = match spec.length {
            Length::Packets(_) if !about.counts_messages => {
                Some(format!("generator `{generator}` ends after a time and not after messages"))
            }
            Length::Time(ns) if about.step_ns > 0 && ns % about.step_ns != 0 => {
                Some(format!("generator `{generator}` measures multiples of {step}"))
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
                .related(place.clone(), "the generator"),
            );
        }
        let paces = about.probes.contains(&Probe::Paced);
        if let (Pacing::Schedule(_) | Pacing::Link, false, Some(rate)) =
            (spec.pacing, paces, key("message_rate"))
        {
            problems.add(
                Problem::at(
                    rate.place.clone(),
                    format!("generator `{generator}` has no rate"),
                    "expected none",
                )
                .related(place.clone(), "the generator"),
            );
        }
    }
}
