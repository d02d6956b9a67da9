//! Transition mechanisms between two routers: those that this kernel supports with namespaces alone, and the tunnels
//! inside a real guest. The tests need root, tayga and images: Debian's build of user-mode Linux (uml), the build
//! made here (uml-full), and Linux 6.1. If one is missing, they fail.

use crate::support;

use stacklab_model::{CpuScope, Factor, Family, Mechanism, Metric, Role, RunRecord, Setup};
use stacklab_store::Record;
use std::collections::BTreeMap;
use std::process::Command;
use support::others::allowed_on_any_machine;
use support::program::{Outcome, Program, code, require_root, require_tool};
use support::records::{figure, runs, side};
use support::routed::model;
use support::studies::TestStudy;

/// The offered load: a flood, or the rate that the headers leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offered {
    Flood,
    Paced,
}

/// Allowed deviation from the header model on a link of known rate.
const TOLERANCE: f64 = 0.01;
/// The share of what the headers leave that the best run of a cell carries at least. No run carries more than all of
/// it; how near it comes depends on how much of the machine there is (`bench/mechanisms`).
const MIN_FILLED: f64 = 0.75;
/// Runs of each cell.
const RUNS: u32 = 2;
/// Rates of the middle link, Mbit/s: one that each kind of guest fills on a busy machine, even emulated and with the
/// smallest messages; and one that user-mode Linux and a translator fill there. Speed is for `bench/mechanisms`.
pub(super) const SLOW: f64 = 5.0;
pub(super) const FAST: f64 = 20.0;

fn study(rate: f64, offered: Offered, mechanisms: &[&str], sizes: &[u32]) -> TestStudy {
    // A study with a family that none of its mechanisms carries is refused.
    let (asked, _) = all(|mechanism| mechanisms.contains(&mechanism.name()));
    let mut families = Vec::new();
    for family in Family::ALL {
        if asked.iter().any(|mechanism| mechanism.definition().carries.contains(family)) {
            families.push(family.name());
        }
    }
    let study = TestStudy::new("Mechanisms over a middle link of known rate")
        .topology("routed")
        .rate(&format!("{rate} Mbit/s"))
        .mechanisms(mechanisms)
        .levels(Factor::Family, families)
        .transports(&["udp"])
        .size_of("write")
        .sizes(sizes)
        .stream(&METRICS)
        .time("400ms")
        .warmup("200ms")
        .interval("100ms")
        .blocks(RUNS);
    match offered {
        Offered::Flood => study,
        Offered::Paced => study.set_of_probe("message_rate", "link"),
    }
}

const METRICS: [&str; 8] = [
    "throughput",
    "loss",
    "path_mtu",
    "ip_frag_creates",
    "ip_reasm_oks",
    "link_bytes",
    "link_bytes_beyond",
    "cpu_router1",
];

/// Runs a study. Returns its runs, the number of hosts in its record, the program's output in addition to its report,
/// and the record's statement about the packets seen on the middle links.
fn measured_and_seen(study: &TestStudy, more: &[&str]) -> (Vec<RunRecord>, usize, String, String) {
    require_root();
    require_tool("tayga", "tayga");
    let program = Program::new();
    program.write("mechanisms.toml", study.text());
    let done = program.run(&[&["run", "mechanisms.toml", "--out", "m.stacklab"], more].concat());
    let done = done.expect(code::DONE);
    let path = program.work().join("m.stacklab");
    let record = Record::read(&path).unwrap();
    let seen = record.campaign().unwrap().testbed_description;
    (runs(&path), record.hosts().unwrap().len(), done.stderr, seen)
}

/// Checks every run, of which the last campaign had `last`, and prints those that are not near the rate that the
/// headers leave. Returns the cells to measure again and what they carried: those with a best run below that rate, for
/// a busy machine only lowers figures; and those of which the last campaign had several runs that carried more.
fn unfilled(rate: f64, runs: &[RunRecord], last: usize) -> BTreeMap<String, f64> {
    let mut best: BTreeMap<String, f64> = BTreeMap::new();
    let mut above = Vec::new();
    let mut misses = 0;
    for (place, run) in runs.iter().enumerate() {
        let cell = &run.trial.cell;
        let (limit, bytes) = model(run, rate);
        let mechanism = Mechanism::of(cell);
        let left = mechanism.leaves(cell.family, 1500).unwrap();
        assert_eq!(figure(run, Metric::PathMtu), f64::from(left), "{cell}");
        let link_bytes = figure(run, Metric::LinkBytes);
        assert!(
            (link_bytes / bytes - 1.0).abs() < TOLERANCE,
            "{cell}: {link_bytes} B on the link, not {bytes}"
        );
        let filled = figure(run, Metric::Throughput) / limit;
        // Packets that a translator has queued continue on a link where they have smaller headers.
        let most =
            1.0 + allowed_on_any_machine(if mechanism.translates() { 3.0 * TOLERANCE } else { TOLERANCE });
        if !(1.0 - TOLERANCE..most).contains(&filled) {
            misses += 1;
            println!("note: {} carried {filled:.3} of {limit} Mbit/s", run.trial);
        }
        let best = best.entry(cell.to_string()).or_default();
        if filled < most {
            *best = best.max(filled);
        } else if place >= runs.len() - last {
            above.push((cell.to_string(), filled));
        }
    }
    println!("note: {misses} of {} runs carried less or more than the headers leave", runs.len());
    let least = 1.0 - allowed_on_any_machine(1.0 - MIN_FILLED);
    best.retain(|_, filled| *filled < least);
    // A guest that pauses while packets are queued behind the link carries them a little later, in another window.
    if above.len() > 1 {
        best.extend(above);
    }
    best
}

/// Checks that each message left in two fragments.
pub(super) fn check_fragments(runs: &[RunRecord]) {
    for run in runs {
        let fragments = figure(run, Metric::IpFragCreates);
        assert!((fragments - 2.0).abs() < 0.01, "{}: {fragments} a message", run.trial.cell);
    }
}

#[test]
fn tunnels_in_user_mode_linux_fit_the_header_model() {
    check_fragments(&filled(Some("uml"), FAST, Offered::Paced, &[1536], is_tunnel).0);
    let (_, hosts, seen) = filled(Some("uml"), FAST, Offered::Flood, &[128, 1408], is_tunnel);
    for headers in [
        // Protocol 41, with both kinds of addresses; protocol 47 over either family; protocol 4 in IPv6 and in IPv4.
        "ipv4 198.18.0.1 > 198.18.0.2 / ipv6 2001:2:0:1::1 > 2001:2:0:2::1 / udp",
        "ipv4 198.18.0.1 > 198.18.0.2 / ipv6 2002:c612:1:1::1 > 2002:c612:2:2::1 / udp",
        "ipv4 198.18.0.1 > 198.18.0.2 / gre / ipv4 198.18.1.1 > 198.18.2.1 / udp",
        "ipv4 198.18.0.1 > 198.18.0.2 / gre / ipv6 2001:2:0:1::1 > 2001:2:0:2::1 / udp",
        "ipv6 2001:2:0:ffff::1 > 2001:2:0:ffff::2 / gre / ipv4 198.18.1.1 > 198.18.2.1 / udp",
        "ipv6 2001:2:0:ffff::1 > 2001:2:0:ffff::2 / ipv4 198.18.1.1 > 198.18.2.1 / udp",
        "ipv4 198.18.0.1 > 198.18.0.2 / ipv4 198.18.1.1 > 198.18.2.1 / udp",
    ] {
        assert!(seen.contains(headers), "{headers}: {seen}");
    }
    // The record has the facts of each of the four hosts.
    assert_eq!(hosts, all(is_tunnel).0.len() * 4);
}

/// A tunnel that Debian's build of user-mode Linux supports, or none.
fn is_tunnel(mechanism: Mechanism) -> bool {
    mechanism.tunnel().is_none_or(|tunnel| tunnel.device.in_debian_uml)
        && !mechanism.translates()
        && !mechanism.begins_at_sender()
        && mechanism.publisher().is_none()
}

#[test]
fn translators_on_this_kernel_fit_the_header_model() {
    for (rate, offered, sizes) in [
        (SLOW, Offered::Flood, &[128][..]),
        (FAST, Offered::Flood, &[1024, 1408]),
        (FAST, Offered::Paced, &[1536]),
    ] {
        filled(None, rate, offered, sizes, Mechanism::translates);
    }
}

/// The mechanisms in the table that meet a condition, and the number of families that they carry together.
fn all(wanted: impl Fn(Mechanism) -> bool) -> (Vec<Mechanism>, usize) {
    let wanted: Vec<Mechanism> =
        Mechanism::ALL.iter().copied().filter(|mechanism| wanted(*mechanism)).collect();
    let cells = wanted.iter().map(|mechanism| mechanism.definition().carries.len()).sum();
    (wanted, cells)
}

/// The features that Debian's build of user-mode Linux does not support.
const UNSUPPORTED: [&str; 3] = ["6rd", "wireguard4", "wireguard6"];

/// How often an unfilled cell is measured: other load may disturb the machine for a while.
const TRIES: usize = 3;

/// Measures each cell of the mechanisms that meet a condition, in a guest or on this kernel, and those once more that a
/// busy machine did not fill, or filled too late; fails if one is filled in none of its tries. Returns all runs, and of
/// the first campaign the number of hosts in its record and what it saw on the middle links.
pub(super) fn filled(
    guest: Option<&str>,
    rate: f64,
    offered: Offered,
    sizes: &[u32],
    wanted: impl Fn(Mechanism) -> bool,
) -> (Vec<RunRecord>, usize, String) {
    let mut every = Vec::new();
    let mut first = None;
    let (mut asked, mut cells) = all(wanted);
    for attempt in 1..=TRIES {
        // Shorter trials: there are many cells.
        let names: Vec<&str> = asked.iter().map(|mechanism| mechanism.name()).collect();
        let study = study(rate, offered, &names, sizes).time("300ms").warmup("100ms");
        let inside = guest.map(|guest| format!("--in-vm={guest}"));
        let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
        let (runs, hosts, said, seen) = measured_and_seen(&study, &inside);
        assert!(guest.is_none_or(|guest| said.contains(&format!("inside a guest ({guest})"))), "{said}");
        assert_eq!(runs.len(), RUNS as usize * cells * sizes.len());
        first.get_or_insert((hosts, seen));
        let last = runs.len();
        every.extend(runs);
        let unfilled = unfilled(rate, &every, last);
        if unfilled.is_empty() {
            break;
        }
        println!("note: round {attempt}: cells that did not carry what the headers leave: {unfilled:?}");
        assert!(attempt < TRIES, "of what the headers leave: {unfilled:#?}");
        // Only mechanisms with such a cell are measured again.
        let mut short = Vec::new();
        for run in &every {
            if unfilled.contains_key(&run.trial.cell.to_string()) {
                short.push(Mechanism::of(&run.trial.cell));
            }
        }
        (asked, cells) = all(|mechanism| short.contains(&mechanism));
    }
    let (hosts, seen) = first.expect("one campaign at least");
    (every, hosts, seen)
}

#[test]
fn mechanisms_fill_the_rate_in_built_user_mode_linux() {
    for (offered, sizes) in [(Offered::Flood, &[128][..]), (Offered::Paced, &[1408, 1536])] {
        let (runs, _, seen) = filled(Some("uml-full"), FAST, offered, sizes, is_for_built_uml);
        for headers in [
            "ipv6 as ipv6 2001:2:0:1::1 > 2001:2:0:64::c612:201 / udp",
            "ipv4 as ipv6 2001:2:0:64::c612:101 > 2001:2:0:2::1 / udp",
            "ipv4 as ipv6 2001:2:0:c1a7::1 > 2001:2:0:64::c612:201 / udp",
        ] {
            assert!(seen.contains(headers), "{headers}: {seen}");
        }
        // Translated in the kernel, by a stateful NAT64.
        assert!(seen.contains("464xlat (Jool 4.") && seen.contains(", stateful)"), "{seen}");
        // Its kernel counts packet processing as idle time while no process runs.
        for run in &runs {
            let cpu = side(run, Role::Receiver).cpu.as_ref().expect("it is counted");
            assert!(cpu.scope == CpuScope::Outside && cpu.busy_ns() > 0, "{}", run.trial);
        }
    }
}

/// Overlays and NAT are tried on this kernel and in another guest.
fn is_for_built_uml(mechanism: Mechanism) -> bool {
    !mechanism.begins_at_sender()
        && mechanism.publisher().is_none()
        && mechanism.tunnel().is_none_or(|tunnel| {
            !tunnel.carries_frames()
                && ![Setup::Gue, Setup::Fou, Setup::Esp, Setup::GreInEsp, Setup::SegmentsToTable]
                    .contains(&tunnel.device.setup)
        })
}

#[test]
fn what_debian_user_mode_linux_lacks_is_refused() {
    let program = Program::new();
    // It is a program itself and needs no other one.
    program.write("few.toml", study(SLOW, Offered::Flood, &UNSUPPORTED, &[128]).text());
    let few = ["run", "few.toml", "--in-vm=uml-full", "--set", "blocks.max=2", "--set", "blocks.min=2"];
    let mut alone = program.command(&few);
    alone.env("PATH", "/nonexistent");
    Outcome::of(alone).expect(code::DONE);
    program.write("m.toml", study(SLOW, Offered::Flood, &UNSUPPORTED, &[128]).text());
    let refused = program.run(&["run", "m.toml", "--in-vm=uml"]).expect(code::TESTBED).stderr;
    assert!(refused.contains("(sit 6rd, wireguard)") && refused.contains("--in-vm=linux-6.1"), "{refused}");
    program.write("t.toml", study(SLOW, Offered::Flood, &["native", "nat64"], &[128]).text());
    let asked = ["run", "t.toml", "--set", "factors.translator=[\"jool\"]", "--in-vm=uml"];
    let refused = program.run(&asked).expect(code::TESTBED).stderr;
    assert!(refused.contains("(jool)") && refused.contains("stacklab image build uml-full"), "{refused}");
    let refused = program.run(&["run", "m.toml", "--in-vm=gvisor"]).expect(code::REQUEST).stderr;
    assert!(refused.contains("gvisor cannot host a testbed"), "{refused}");
}

#[test]
fn what_user_mode_linux_lacks_a_virtual_machine_has() {
    let study = study(SLOW, Offered::Flood, &UNSUPPORTED, &[1024]);
    let (runs, _, said, _) = measured_and_seen(&study, &["--in-vm=linux-6.1"]);
    assert!(said.contains("inside a guest (linux-6.1)"), "{said}");
    assert_eq!(runs.len(), RUNS as usize * 5);
    for run in &runs {
        let (_, bytes) = model(run, SLOW);
        let link_bytes = figure(run, Metric::LinkBytes);
        assert!(
            (link_bytes / bytes - 1.0).abs() < TOLERANCE,
            "{}: {link_bytes}, not {bytes}",
            run.trial.cell
        );
    }
}

#[test]
fn each_link_has_its_own_rate_mtu_delay_and_loss() {
    let study = TestStudy::new("A long middle link, and ends of their own")
        .topology("routed")
        .rate("50 Mbit/s")
        .set("testbed.delay", "10ms")
        .set("testbed.loss", "10 %")
        .set("testbed.sender_link.rate", "100 Mbit/s")
        .set("testbed.sender_link.delay", "5ms")
        .set("testbed.receiver_link.mtu", 9000)
        .families()
        .transports(&["udp"])
        .size_of("write")
        .sizes(&[512])
        .stream(&["loss", "one_way_delay"])
        .set_of_probe("message_rate", 1000)
        .time("2s")
        .warmup("100ms")
        .interval("100ms")
        .blocks(2);
    let (runs, _, _, seen) = measured_and_seen(&study, &[]);
    for link in
        ["near link: 100 Mbit/s, delay 5 ms", "middle link: delay 10 ms, loss 10 %", "far link: MTU 9000"]
    {
        assert!(seen.contains(link), "{link}: {seen}");
    }
    assert_eq!(runs.len(), 4);
    for run in &runs {
        let loss = figure(run, Metric::Loss);
        let delay = figure(run, Metric::OneWayDelay);
        // Of 2000 packets; four standard deviations are 2.7 %.
        assert!((0.073..0.127).contains(&loss), "{}: {loss}", run.trial);
        assert!((15.0..20.0).contains(&delay), "{}: {delay} ms", run.trial);
        let mtus = run.host_reports.iter().map(|side| (side.endpoint.interface_mtu, side.endpoint.path_mtu));
        assert_eq!(mtus.collect::<Vec<_>>(), [(1500, Some(1500)), (9000, Some(1500))], "{}", run.trial);
    }
}

#[test]
fn what_is_on_its_way_takes_no_place_in_a_links_queue() {
    let study = TestStudy::new("Small messages over a long link")
        .topology("routed")
        .rate("20 Mbit/s")
        .set("testbed.delay", "30ms")
        .families()
        .transports(&["udp"])
        .size_of("write")
        .sizes(&[64])
        .stream(&["throughput"])
        .time("1s")
        .warmup("200ms")
        .schedule("sequential")
        .blocks(2);
    let (runs, ..) = measured_and_seen(&study, &[]);
    assert_eq!(runs.len(), 4);
    for run in &runs {
        let cell = &run.trial.cell;
        // Payload, headers of UDP and Ethernet, and what a frame takes on the wire beside them.
        let frame = 64 + cell.family.header_bytes() + 8 + 14 + 24;
        let mbit = figure(run, Metric::Throughput);
        let expected = 20.0 * 64.0 / f64::from(frame);
        println!("note: {cell}: {mbit:.2} of {expected:.2} Mbit/s");
        // With places of the queue taken, a third. A guest may pause, beside another guest for a quarter of the time.
        assert!((0.5..1.05).contains(&(mbit / expected)), "{cell}: {mbit}, not {expected}");
    }
}

#[test]
fn what_cannot_be_had_is_named_before_anything_starts() {
    let program = Program::new();
    program.write("m.toml", study(SLOW, Offered::Flood, &["native", "6rd"], &[128]).text());
    let mut command = Command::new(program.path());
    command.current_dir(program.work()).env("STACKLAB_CACHE", program.work().join("nothing"));
    let done = command.args(["run", "m.toml", "--in-vm", "--out", "m.stacklab"]).output().unwrap();
    assert_eq!(done.status.code(), Some(3));
    let said = String::from_utf8(done.stderr).unwrap();
    let here =
        String::from_utf8(Command::new(program.path()).arg("doctor").output().unwrap().stdout).unwrap();
    let has = here.lines().any(|line| line.starts_with("  yes  sit 6rd "));
    let why = if has {
        "--in-vm asks for a guest"
    } else {
        "6rd needs sit 6rd, which this kernel does not support"
    };
    assert!(said.contains(why), "{why}: {said}");
    assert!(said.contains("stacklab image get linux-6.1"), "{said}");
    assert!(!program.work().join("m.stacklab").exists());
}

#[test]
fn cells_hold_what_each_mechanism_carries() {
    let program = Program::new();
    program.write("m.toml", study(SLOW, Offered::Flood, &["native", "6in4", "4in6"], &[128]).text());
    let plan = program.run(&["plan", "m.toml"]).expect(code::DONE).stdout;
    assert!(plan.contains("Cells       4"), "{plan}");
    for (family, mechanism) in [(Family::Ipv6, "6in4"), (Family::Ipv4, "4in6")] {
        assert!(
            plan.contains(&format!("{family} udp 128 B write {}={mechanism}", Factor::Mechanism)),
            "{plan}"
        );
    }
}
