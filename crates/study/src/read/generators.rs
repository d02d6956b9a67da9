//! What generators other than stacklab's own set as requirements for the rest of a study.

use crate::diagnostics::{Problem, Problems};
use crate::read::factors::Factors;
use crate::read::{At, Node};
use stacklab_model::{
    Direction, Factor, Generator, Length, Pacing, Probe, ProbeSpec, SizeOf, System, Systems, Topology,
    Transport, print_duration,
};

/// Factors of hosts and links, which a testbed sets for whatever runs in its hosts.
pub(super) const OF_TESTBEDS: [Factor; 14] = [
    Factor::Os,
    Factor::Services,
    Factor::Mechanism,
    Factor::RouterOs,
    Factor::Translator,
    Factor::Rules,
    Factor::RuleForm,
    Factor::Routes,
    Factor::Conntrack,
    Factor::FlowOffload,
    Factor::RouterQueue,
    Factor::Mtu,
    Factor::QueueLength,
    Factor::Pinning,
];

pub(super) fn check(
    probe: Node,
    topology: Option<&At<Topology>>,
    all: &[Factors],
    probes: &[ProbeSpec],
    problems: &mut Problems,
) {
    for factors in all {
        check_programs(factors, problems);
        for level in factors.setting_levels(Factor::Generator) {
            let Ok(value) = level.value.parse::<Generator>() else { continue };
            if value.is_other() {
                let generator = At { value, place: level.place.clone() };
                check_namespaces(&generator, &format!("generator `{value}`"), topology, factors, problems);
                check_traffic(&generator, factors, problems);
                check_probes(&generator, probe, probes, problems);
            }
        }
        if !problems.is_empty() {
            return;
        }
    }
}

/// stacklab's own generator is this program itself.
fn check_programs(factors: &Factors, problems: &mut Problems) {
    let Some(folder) = factors.setting_levels(Factor::Programs).first() else { return };
    let generators = factors.setting_levels(Factor::Generator);
    let own = generators.iter().find(|level| level.value == Generator::Stacklab.name());
    if own.is_none() && !generators.is_empty() {
        return;
    }
    let title = "generator `stacklab` has no other programs";
    let mut problem = folder.problem(title, "folders are for programs such as iperf3");
    if let Some(own) = own {
        problem = problem.with_related_place(&own.place, "together with this");
    }
    problems.add(problem.help("set factors.generator = [\"iperf3\"], or leave programs out"));
}

/// Their programs are on this machine, and so in namespaces of its kernel.
pub(super) fn check_namespaces<T>(
    programs: &At<T>,
    what: &str,
    topology: Option<&At<Topology>>,
    factors: &Factors,
    problems: &mut Problems,
) {
    for level in factors.setting_levels(Factor::Os) {
        let Ok(Systems(systems)) = level.value.parse() else { continue };
        let Some(system) = systems.iter().find(|system| **system != System::Namespace) else { continue };
        let title = format!("{what} cannot run in {system}");
        problems.add(
            programs
                .problem(title, "what it runs is installed on this machine, and not in that system")
                .with_related_place(&level.place, "together with this")
                .help("programs that are not stacklab's run in namespaces: leave them or the system out"),
        );
        return;
    }
    if let Some(topology) = topology.filter(|topology| matches!(topology.value, Topology::Wifi(_))) {
        let title = format!("{what} cannot run on Wi-Fi");
        let label = "the network is inside a guest, where its program is not installed";
        problems
            .add(programs.problem(title, label).with_related_place(&topology.place, "together with this"));
    }
}

/// What their command lines can ask for.
fn check_traffic(generator: &At<Generator>, factors: &Factors, problems: &mut Problems) {
    let name = generator.value;
    let over_tcp = factors.transport.iter().any(|transport| transport.value == Transport::Tcp);
    if let Some(size_of) = factors.size_of.iter().find(|size_of| over_tcp && size_of.value != SizeOf::Write) {
        let title = format!("generator `{name}` cannot keep each message in a separate segment");
        problems.add(
            generator
                .problem(title, "TCP joins what it writes")
                .with_related_place(&size_of.place, "together with this and tcp")
                .help("set factors.size_of = [\"write\"]"),
        );
    }
    for setting in &factors.settings {
        let factor = setting.factor;
        let known = matches!(factor, Factor::Generator | Factor::Programs)
            || OF_TESTBEDS.contains(&factor)
            || name.definition().settings.contains(&factor);
        let usual = factor == Factor::Direction
            && setting.levels.iter().all(|level| level.value == Direction::Forward.name());
        if let Some(level) = setting.levels.first().filter(|_| !known && !usual) {
            let title = format!("`{factor}` cannot be set with generator `{name}`");
            let problem = level.problem(title, "its command line has no such option here");
            problems.add(problem.with_related_place(&generator.place, "the generator"));
        }
    }
}

/// What they can measure, and for how long.
fn check_probes(generator: &At<Generator>, node: Node, probes: &[ProbeSpec], problems: &mut Problems) {
    let name = generator.value;
    let about = name.definition();
    let mut measured = probes.iter().filter(|spec| about.probes.contains(&spec.probe)).peekable();
    if measured.peek().is_none() && !probes.is_empty() {
        let names: Vec<&str> = about.probes.iter().map(|probe| probe.name()).collect();
        problems.add(generator.problem(
            format!("generator `{name}` measures by no probe of this study"),
            format!("expected probe.{}", names.join(" or probe.")),
        ));
    }
    for spec in measured {
        let node = node.get(spec.probe.name());
        let step = print_duration(about.step_ns.max(1));
        let wrong = match spec.length {
            Length::Packets(_) if !about.counts_messages => {
                Some(format!("generator `{name}` ends after a time and not after messages"))
            }
            Length::Time(ns) if about.step_ns > 0 && ns % about.step_ns != 0 => {
                Some(format!("generator `{name}` measures multiples of {step}"))
            }
            _ => None,
        };
        let expected = format!("expected {{ time = \"{}\" }} or the like", step.replace(' ', ""));
        let is_paced = matches!(spec.pacing, Pacing::Schedule(_) | Pacing::Link);
        let has_rate = !is_paced || about.probes.contains(&Probe::Paced);
        let no_rate = (!has_rate).then(|| format!("generator `{name}` has no rate"));
        for (key, wrong, expected) in
            [("length", wrong, expected.as_str()), ("message_rate", no_rate, "expected none")]
        {
            if let (Some(wrong), Some(place)) = (wrong, node.get(key).place()) {
                let problem = Problem::at(place, wrong, expected);
                problems.add(problem.with_related_place(&generator.place, "the generator"));
            }
        }
    }
}
