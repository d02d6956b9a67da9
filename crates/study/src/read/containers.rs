//! Receivers that are containers: what a study cannot have beside the mechanisms that lead to one.

use crate::diagnostics::{Problem, Problems};
use crate::read::factors::{Factors, has_guest};
use crate::read::{At, Node};
use stacklab_model::{Factor, Generator, Mechanism, Probe, ProbeSpec, Publisher};

/// Adds what a container and its host cannot be, and cannot carry. Where streams begin is checked with NAT.
pub(super) fn check(testbed: Node, factors: &Factors, problems: &mut Problems) {
    let mechanisms = factors.setting_levels(Factor::Mechanism);
    let mut containers = mechanisms.iter().filter(|level| find_publisher(level).is_some());
    let Some(container) = containers.next() else { return };
    check_hosts(container, factors, problems);
    check_traffic(container, factors, problems);
    let by_program = mechanisms.iter().find(|level| find_publisher(level).is_some_and(Publisher::is_program));
    if let (Some(program), Some(place)) = (by_program, testbed.get("receiver_link").place()) {
        let title = format!("the container of `{}` has a link like the middle one", program.value);
        problems.add(
            Problem::at(place, title, "another link")
                .with_related_place(&program.place, "a program is between both links")
                .help("leave testbed.receiver_link out, or this mechanism"),
        );
    }
}

/// Adds connections without data through a program, which connects to the container after the sender has what it
/// measures, or when there are data.
pub(super) fn check_probes(all: &[Factors], probes: &[ProbeSpec], problems: &mut Problems) {
    if !probes.iter().any(|spec| spec.probe == Probe::Connect) {
        return;
    }
    let mut mechanisms = all.iter().flat_map(|factors| factors.setting_levels(Factor::Mechanism));
    if let Some(level) = mechanisms.find(|level| find_publisher(level).is_some_and(Publisher::is_program)) {
        let title = format!("a connection through `{}` is open before the container has it", level.value);
        problems.add(
            level
                .problem(title, "together with probe `connect`")
                .help("leave probe.connect out, or this mechanism"),
        );
    }
}

fn find_publisher(level: &At<String>) -> Option<Publisher> {
    level.value.parse().ok().and_then(Mechanism::publisher)
}

fn check_hosts(container: &At<String>, factors: &Factors, problems: &mut Problems) {
    for factor in [Factor::Os, Factor::RouterOs] {
        let Some(guest) = factors.setting_levels(factor).iter().find(|level| has_guest(level)) else {
            continue;
        };
        let title = format!("`{}` needs namespaces: its host's own count proves each run", container.value);
        problems.add(
            guest
                .problem(title, "has another kernel")
                .with_related_place(&container.place, "together with this")
                .help(format!("leave factors.{factor} out, or this mechanism")),
        );
    }
}

/// Other programs take their own ports, and how much they send is not known exactly.
fn check_traffic(container: &At<String>, factors: &Factors, problems: &mut Problems) {
    let mut generators = factors.setting_levels(Factor::Generator).iter();
    let other = generators.find(|level| level.value != Generator::Stacklab.name());
    for level in other.into_iter().chain(factors.setting_levels(Factor::Programs).first()) {
        let title = format!("`{}` carries the traffic of stacklab alone", container.value);
        problems.add(
            level
                .problem(title, "sends to ports that nothing publishes")
                .with_related_place(&container.place, "together with this")
                .help("leave these programs out, or this mechanism"),
        );
    }
}
