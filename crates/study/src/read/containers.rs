//! Ends that are containers: what a study cannot have beside the mechanisms that lead to one, or from one.

use crate::diagnostics::{Problem, Problems};
use crate::read::factors::{Factors, has_guest};
use crate::read::{At, Node};
use stacklab_model::{Factor, Generator, Mechanism, Probe, ProbeSpec, Publisher};

/// What the sender's router has for packets that it forwards.
const OF_NEAR_ROUTER: [Factor; 5] =
    [Factor::Rules, Factor::Routes, Factor::Conntrack, Factor::RouterQueue, Factor::Destinations];

/// What the sender's kernel does with its packets and their headers: behind a program there are other ones.
const OF_PACKETS: [Factor; 5] =
    [Factor::Dscp, Factor::FlowLabel, Factor::CongestionControl, Factor::Mss, Factor::KernelPacing];

/// Largest MTU of a program's device: its frames have 16 bits for their length, and a header of 14 bytes.
const MAX_DEVICE_MTU: u32 = 65_521;

/// Adds what a container and its host cannot be, and cannot carry. Where streams begin is checked with NAT.
pub(super) fn check(testbed: Node, factors: &Factors, problems: &mut Problems) {
    let mechanisms = factors.setting_levels(Factor::Mechanism);
    let mut containers = mechanisms.iter().filter(|level| find_publisher(level).is_some());
    let Some(container) = containers.next() else { return };
    check_hosts(container, factors, problems);
    check_traffic(container, factors, problems);
    check_neighbours(container, factors, problems);
    let by_program = mechanisms.iter().find(|level| find_publisher(level).is_some_and(Publisher::is_program));
    if let Some(program) = by_program {
        check_packets(program, factors, problems);
    }
    for level in mechanisms {
        let Some(publisher) = find_publisher(level) else { continue };
        if publisher.has_device() {
            check_device_mtu(level, factors, problems);
        }
        if publisher.has_ports() {
            check_streams(level, factors, problems);
            check_link(level, "receiver_link", BETWEEN_LINKS, testbed, problems);
        }
        if publisher == Publisher::Macvlan {
            check_link(level, "receiver_link", ON_MIDDLE_LINK, testbed, problems);
        }
        if publisher.is_of_sender() {
            check_link(level, "sender_link", BETWEEN_LINKS, testbed, problems);
            check_near_router(level, factors, problems);
            check_fragments(level, factors, problems);
        }
    }
}

/// Adds settings of the sender's packets, which end at a program: it sends others.
fn check_packets(program: &At<String>, factors: &Factors, problems: &mut Problems) {
    let title = format!("behind `{}` there are no packets of the sender", program.value);
    let labels = ["is of the sender's packets", "a program sends its own, without this setting"];
    refuse_factors(&OF_PACKETS, &title, labels, program, factors, problems);
}

/// Adds the first level of each of these factors. The labels are those of the level and of the mechanism.
fn refuse_factors(
    refused: &[Factor],
    title: &str,
    [label, reason]: [&str; 2],
    program: &At<String>,
    factors: &Factors,
    problems: &mut Problems,
) {
    for factor in refused {
        let Some(level) = factors.setting_levels(*factor).first() else { continue };
        problems.add(
            level
                .problem(title, label)
                .with_related_place(&program.place, reason)
                .help(format!("leave factors.{factor} out, or this mechanism")),
        );
    }
}

/// Adds an MTU that the device of a program cannot have.
fn check_device_mtu(program: &At<String>, factors: &Factors, problems: &mut Problems) {
    let Some(mtu) = factors.least_mtu.as_ref().filter(|mtu| mtu.value > MAX_DEVICE_MTU) else { return };
    let title = format!("the device of `{}` has no MTU of {}", program.value, mtu.value);
    problems.add(
        mtu.problem(title, format!("expected at most {MAX_DEVICE_MTU}"))
            .with_related_place(&program.place, "together with this")
            .help("use a smaller testbed.mtu, or leave this mechanism out"),
    );
}

/// Adds more streams than a program publishes ports.
fn check_streams(program: &At<String>, factors: &Factors, problems: &mut Problems) {
    let Some(flows) = factors.find_several(Factor::Flows) else { return };
    if flows.value > Publisher::MAX_STREAMS {
        let title = format!(
            "`{}` publishes {} ports, and {} flows need one each",
            program.value,
            Publisher::MAX_STREAMS,
            flows.value
        );
        problems.add(
            flows
                .problem(title, format!("expected at most {}", Publisher::MAX_STREAMS))
                .with_related_place(&program.place, "together with this")
                .help("use fewer flows, or leave this mechanism out"),
        );
    }
}

/// Adds datagrams that the container's kernel fragments: slirp4netns ends at some of them, by a mistake of its library.
fn check_fragments(program: &At<String>, factors: &Factors, problems: &mut Problems) {
    for (size, packet, mtu) in factors.find_large_datagrams() {
        let title =
            format!("`{}` may crash at fragments, and this takes a packet of {packet} bytes", program.value);
        problems.add(
            size.problem(title, format!("more than the link's MTU of {mtu}"))
                .with_related_place(&program.place, "together with this")
                .help("use smaller datagrams, or TCP alone"),
        );
    }
}

/// Why a container's link is not another one than the middle link.
const BETWEEN_LINKS: &str = "a program is between both links";
const ON_MIDDLE_LINK: &str = "its device is on the middle link";

/// Adds another link to a container whose device is a program's, or is on the middle link.
fn check_link(
    container: &At<String>,
    link: &'static str,
    reason: &str,
    testbed: Node,
    problems: &mut Problems,
) {
    if let Some(place) = testbed.get(link).place() {
        let title = format!("the container of `{}` has a link like the middle one", container.value);
        problems.add(
            Problem::at(place, title, "another link")
                .with_related_place(&container.place, reason)
                .help(format!("leave testbed.{link} out, or this mechanism")),
        );
    }
}

/// Adds what the sender's router is to do with packets that it forwards: a program there sends its own packets.
fn check_near_router(program: &At<String>, factors: &Factors, problems: &mut Problems) {
    let title = format!("with `{}` the sender's router forwards no packets", program.value);
    let labels = ["is of packets that it forwards", "a program there has its own connections"];
    refuse_factors(&OF_NEAR_ROUTER, &title, labels, program, factors, problems);
}

/// Adds connections without data through a program, which connects to the container after the sender has what it
/// measures, or when there are data.
pub(super) fn check_probes(all: &[Factors], probes: &[ProbeSpec], problems: &mut Problems) {
    if !probes.iter().any(|spec| spec.probe == Probe::Connect) {
        return;
    }
    let mut mechanisms = all.iter().flat_map(|factors| factors.setting_levels(Factor::Mechanism));
    if let Some(level) = mechanisms.find(|level| find_publisher(level).is_some_and(Publisher::has_ports)) {
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

/// A container's link is made by what publishes it, after the routers' tables.
fn check_neighbours(container: &At<String>, factors: &Factors, problems: &mut Problems) {
    let Some(setting) = factors.setting(Factor::Neighbours) else { return };
    if let Some(some) = setting.numbers().find(|level| level.value > 0) {
        let title =
            format!("`neighbours` are of a router's link, and `{}` leads to a container", container.value);
        problems.add(
            some.problem(title, "another link")
                .with_related_place(&container.place, "together with this")
                .help("leave factors.neighbours out, or this mechanism"),
        );
    }
}

/// Other programs take their own ports, and how much they send is not known exactly. Those of `[[program]]` are at
/// ports that nothing publishes.
fn check_traffic(container: &At<String>, factors: &Factors, problems: &mut Problems) {
    let mut generators = factors.setting_levels(Factor::Generator).iter();
    let other = generators.find(|level| level.value != Generator::Stacklab.name());
    let programs = factors.setting_levels(Factor::Programs).first();
    let own_programs = factors.setting_levels(Factor::Program).first();
    for level in other.into_iter().chain(programs).chain(own_programs) {
        let title = format!("`{}` carries the traffic of stacklab alone", container.value);
        problems.add(
            level
                .problem(title, "is not counted by the container's host")
                .with_related_place(&container.place, "together with this")
                .help("leave these programs out, or this mechanism"),
        );
    }
}
