//! Clients and routers with other systems, really running: user-mode Linux, a Debian kernel in a virtual machine,
//! gVisor.
//!
//! The tests need root, tayga and all images; if one is missing they fail.

use crate::support;

use stacklab_model::{
    CpuScope, Factor, Mechanism, Metric, Role, RunRecord, System, Systems, Transport, Value,
};
use stacklab_store::Record;
use std::time::Duration;
use support::leftovers::Scene;
use support::others::allowed;
use support::program::{Program, code, require_root, require_tool};
use support::records::{figure, runs, side};
use support::routed::model;
use support::studies::TestStudy;

/// Allowed deviation from the header model on a link of known rate, also for a guest that pauses occasionally.
const TOLERANCE: f64 = 0.01;
const FAR: f64 = 0.05;
/// The rate that emulated guests can fill, Mbit/s.
const RATE: f64 = 5.0;
/// The largest message that every mechanism carries in one packet, bytes.
const MAX_MESSAGE: u32 = 1400;
/// Maximum time after an end until everything is removed.
const SOON: Duration = Duration::from_secs(3);

/// Messages per second on a schedule, instead of a flood. The shaper outside does not slow a guest down; in a flood
/// of fragments, hardly any two fragments of one datagram both arrive.
const PACED: u32 = 200;

/// A study of floods, or of messages on a schedule.
fn study(systems: &[&str], mechanisms: &[&str], transports: &[&str], size: u32, paced: bool) -> TestStudy {
    let study = TestStudy::new("Other clients of two routers")
        .topology("routed")
        .rate(&format!("{RATE} Mbit/s"))
        .systems(systems)
        .mechanisms(mechanisms)
        .families()
        .transports(transports)
        .size_of("write")
        .sizes(&[size])
        .echo(&["rtt"])
        .time("50ms")
        .warmup("20ms")
        .stream(&METRICS)
        .time("500ms")
        .warmup("300ms")
        .interval("100ms")
        .blocks(2);
    if paced { study.set_of_probe("message_rate", PACED) } else { study }
}

const METRICS: [&str; 8] = [
    "throughput",
    "path_mtu",
    "ip_frag_creates",
    "ip_reasm_oks",
    "link_bytes",
    "one_way_delay",
    "cpu_receiver",
    "cpu_router1",
];

/// The rate of messages of a size on a schedule, Mbit/s.
fn scheduled(size: u32) -> f64 {
    f64::from(PACED * size * 8) / 1e6
}

/// The streams among runs.
fn streams(all: &[RunRecord]) -> Vec<&RunRecord> {
    all.iter().filter(|run| run.values.contains_key(&Metric::Throughput)).collect()
}

/// The properties of every stream of datagrams, with any systems at its ends.
fn check(run: &RunRecord) {
    let cell = &run.trial.cell;
    let (limit, bytes) = model(run, RATE);
    let left = Mechanism::of(cell).leaves(cell.family, 1500).unwrap();
    assert_eq!(figure(run, Metric::PathMtu), f64::from(left), "{cell}");
    let link_bytes = figure(run, Metric::LinkBytes);
    assert!((link_bytes / bytes - 1.0).abs() < TOLERANCE, "{cell}: {link_bytes} B on the link, not {bytes}");
    let is_large = cell.size > MAX_MESSAGE;
    let throughput = figure(run, Metric::Throughput);
    if is_large {
        // A guest that was paused drops messages of a schedule, and none waits for it as in a flood.
        let expected = scheduled(cell.size);
        assert!(throughput < expected * 1.05, "{cell}: {throughput} Mbit/s, not {expected}");
    } else {
        assert!((throughput / limit - 1.0).abs() < allowed(FAR), "{cell}: {throughput} Mbit/s, not {limit}");
    }
    // Each message that is too large leaves in two fragments and is reassembled; no other message is.
    let fragments = figure(run, Metric::IpFragCreates);
    let expected = if is_large { 2.0 } else { 0.0 };
    assert!((fragments - expected).abs() < 0.05, "{cell}: {fragments} fragments a message");
    assert_eq!(figure(run, Metric::IpReasmOks) > 0.0, is_large, "{cell}");
}

/// The properties of all streams on a schedule, two of each cell, also if they are TCP or an end reports less.
///
/// Nothing delivers more than was sent. A guest that pauses as the measured time ends has messages that arrive after
/// it, so one of a cell's runs at least keeps the schedule.
fn check_schedules(streams: &[&RunRecord]) {
    for run in streams {
        let cell = &run.trial.cell;
        let of_cell = streams.iter().filter(|other| other.trial.cell == *cell);
        let ratios: Vec<f64> =
            of_cell.map(|run| figure(run, Metric::Throughput) / scheduled(cell.size)).collect();
        let far = allowed(FAR);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        assert_eq!(ratios.len(), 2, "{cell}");
        assert!((most - 1.0).abs() < far, "{cell}: {ratios:?} of the rate that was sent");
        if cell.transport == Transport::Udp {
            let link_bytes = figure(run, Metric::LinkBytes);
            let (_, bytes) = model(run, RATE);
            assert!((link_bytes / bytes - 1.0).abs() < TOLERANCE, "{cell}: {link_bytes} B, not {bytes}");
        }
    }
}

/// Measures a study into a record of that name; returns its runs, and the program's output.
fn measure(program: &Program, study: &TestStudy, name: &str) -> (Vec<RunRecord>, String) {
    program.write("study.toml", study.text());
    let done = program.run(&["run", "study.toml", "--out", name, "--seed", "1"]).expect(code::DONE);
    (runs(&program.work().join(name)), done.stderr)
}

const MECHANISMS: [&str; 3] = ["native", "nat64", "464xlat"];

#[test]
fn user_mode_linux_behind_routers_fits_header_model() {
    require_root();
    require_tool("tayga", "tayga");
    let program = Program::new();
    let scene = Scene::now();
    measure_streams(&program, &["uml"], &["native", "464xlat"], 1536, "large.stacklab");
    let streams = measure_streams(&program, &["namespace", "uml"], &MECHANISMS, 1024, "x.stacklab");
    check_kernels(&program);
    // Native in two families and each translator in one, in two blocks.
    let of_each = (MECHANISMS.len() + 1) * 2;
    for (systems, scope) in [("namespace", CpuScope::Shared), ("uml", CpuScope::Outside)] {
        let streams = streams_of(&streams, systems);
        assert_eq!(streams.len(), of_each, "{systems}");
        for run in streams {
            let cpu = side(run, Role::Receiver).cpu.as_ref().expect("it is counted");
            assert_eq!(cpu.scope, scope, "{}", run.trial);
        }
    }
    streams_of(&streams, "uml").into_iter().for_each(check_delay);
    scene.assert_restored(&program, &["study.toml", "x.stacklab", "large.stacklab"], SOON);
}

/// Measures clients behind routers, checks each stream, and returns all streams.
fn measure_streams(
    program: &Program,
    systems: &[&str],
    mechanisms: &[&str],
    size: u32,
    name: &str,
) -> Vec<RunRecord> {
    let study = study(systems, mechanisms, &["udp"], size, size > MAX_MESSAGE);
    let (all, said) = measure(program, &study, name);
    assert!(said.contains("both clients user-mode Linux"), "{said}");
    let streams: Vec<RunRecord> = streams(&all).into_iter().cloned().collect();
    // Two blocks; native in two families and each translator in one; a stream and an echo.
    let cells = systems.len() * (mechanisms.len() + 1);
    assert_eq!((all.len(), streams.len()), (cells * 2 * 2, cells * 2));
    streams.iter().for_each(check);
    if size > MAX_MESSAGE {
        check_schedules(&streams.iter().collect::<Vec<_>>());
    }
    // Its CPU time counts in ticks: a single run with little to forward may have zero.
    let router: f64 = streams.iter().map(|run| figure(run, Metric::CpuRouter1)).sum();
    assert!(router > 0.0, "router1 has forwarded for nothing");
    streams
}

fn streams_of<'a>(streams: &'a [RunRecord], systems: &str) -> Vec<&'a RunRecord> {
    let systems: Systems = systems.parse().unwrap();
    streams.iter().filter(|run| Systems::of(&run.trial.cell) == systems).collect()
}

/// Runs of one cell came from different kernels, and the record names the kernel of each run.
fn check_kernels(program: &Program) {
    let hosts = Record::read(&program.work().join("x.stacklab")).unwrap().hosts().unwrap();
    for name in ["sender (uml)", "receiver (uml)"] {
        let kinds: Vec<&str> =
            hosts.iter().filter(|host| host.name == name).map(|host| &host.kind[..]).collect();
        assert!(kinds.iter().all(|kind| kind.starts_with("uml: user-mode Linux 7.")), "{kinds:?}");
        let of_each = MECHANISMS.iter().all(|name| kinds.iter().any(|kind| kind.ends_with(name)));
        assert!(kinds.len() == MECHANISMS.len() && of_each, "{kinds:?}");
    }
    assert_eq!(hosts.iter().filter(|host| host.name == "router2").count(), 6);
}

/// Two kernels are two clocks: a delay is computed by their comparison over the routers, or is missing for that
/// reason.
fn check_delay(run: &RunRecord) {
    match &run.values[&Metric::OneWayDelay] {
        Value::Measured(delay) => assert!(*delay > 0.0, "{}: {delay}", run.trial),
        Value::Missing(reason) => assert!(reason.starts_with("clock: "), "{}: {reason}", run.trial),
        other @ Value::Invalid(_) => panic!("{}: {other:?}", run.trial),
    }
}

#[test]
fn virtual_machine_reaches_a_sandbox_by_translator() {
    require_root();
    require_tool("tayga", "tayga");
    let program = Program::new();
    let scene = Scene::now();
    let systems = ["linux-6.1 -> gvisor", "gvisor -> namespace"];
    let study = study(&systems, &["464xlat"], &["udp", "tcp"], 1024, true).family("ipv4");
    let (all, said) = measure(&program, &study, "x.stacklab");
    assert!(said.contains("the sender Linux 6.1"), "{said}");
    let streams = streams(&all);
    assert_eq!((all.len(), streams.len()), (16, 8));
    check_schedules(&streams);
    for run in streams {
        let cell = &run.trial.cell;
        // A sandbox does not report it.
        if Systems::of(cell).0[0] != System::Gvisor {
            assert_eq!(figure(run, Metric::PathMtu), 1480.0, "{cell}");
        }
    }
    scene.assert_restored(&program, &["study.toml", "x.stacklab"], SOON);
}

#[test]
fn tunnels_of_user_mode_linux_routers_need_no_module() {
    require_root();
    require_tool("tayga", "tayga");
    let program = Program::new();
    let scene = Scene::now();
    // Two families, two blocks, a stream and an echo.
    let (all, _) = measure_routers(&program, "uml", &["gre6"], 1536, "large.stacklab");
    assert_eq!(all.len(), 2 * 2 * 2);
    // The routers' translators: a program on one, a kernel module that keeps state on the other.
    let mechanisms = ["native", "464xlat"];
    let (all, said) = measure_routers(&program, "namespace -> uml-full", &mechanisms, 1024, "mixed.stacklab");
    assert!(said.contains("464xlat (tayga and Jool 4.") && said.contains(", stateful)"), "{said}");
    assert_eq!(all.len(), 3 * 2 * 2);
    assert!(said.contains("the near router a namespace, the far router user-mode Linux"), "{said}");
    // Native in two families, the others in one.
    let mechanisms = ["native", "6in4", "464xlat"];
    let (all, said) = measure_routers(&program, "uml", &mechanisms, 1024, "x.stacklab");
    assert_eq!((all.len(), streams(&all).len()), (4 * 2 * 2, 4 * 2));
    assert!(said.contains("the clients namespaces, both routers user-mode Linux"), "{said}");
    // Processor time of each of two kernels that do nothing else, in ticks of this machine.
    for metric in [Metric::CpuRouter1, Metric::CpuRouter2] {
        let busy: Vec<f64> = streams(&all).into_iter().map(|run| figure(run, metric)).collect();
        let mean = busy.iter().sum::<f64>() / busy.len() as f64;
        assert!(mean > 0.5 && busy.iter().all(|share| *share < 50.0), "{metric}: {busy:?}");
    }
    let hosts = Record::read(&program.work().join("x.stacklab")).unwrap().hosts().unwrap();
    const ROUTERS: [&str; 2] = ["router1 (uml)", "router2 (uml)"];
    assert!(ROUTERS.iter().all(|name| hosts.iter().any(|host| host.name == *name)), "{hosts:?}");
    for host in hosts {
        let is_router = ROUTERS.contains(&&host.name[..]);
        let expected = if is_router { "uml: user-mode Linux 7." } else { "namespace, " };
        assert!(host.kind.starts_with(expected), "{}: {}", host.name, host.kind);
    }
    let left = ["study.toml", "x.stacklab", "large.stacklab", "mixed.stacklab"];
    scene.assert_restored(&program, &left, SOON);
}

/// Measures clients in namespaces behind these routers, and checks each stream. Returns what [`measure`] does.
fn measure_routers(
    program: &Program,
    routers: &str,
    mechanisms: &[&str],
    size: u32,
    name: &str,
) -> (Vec<RunRecord>, String) {
    let study = study(&["namespace"], mechanisms, &["udp"], size, size > MAX_MESSAGE);
    let (all, said) = measure(program, &study.levels(Factor::RouterOs, [routers]), name);
    let found = streams(&all);
    assert!(!found.is_empty(), "no stream was measured");
    if size > MAX_MESSAGE {
        check_schedules(&found);
    }
    found.into_iter().for_each(check);
    (all, said)
}

#[test]
fn two_router_kernels_speak_through_wireguard() {
    require_root();
    let program = Program::new();
    let scene = Scene::now();
    let study = study(&["namespace -> uml"], &["wireguard6"], &["udp"], 1024, true)
        .levels(Factor::RouterOs, ["linux-6.1 -> uml-full", "uml-full"]);
    let (all, said) = measure(&program, &study, "x.stacklab");
    for words in
        ["the near router Linux 6.1", "the far router user-mode Linux", "both routers user-mode Linux"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    let streams = streams(&all);
    // Two families, with two pairs of routers, twice.
    assert_eq!((all.len(), streams.len()), (16, 8));
    check_schedules(&streams);
    scene.assert_restored(&program, &["study.toml", "x.stacklab"], SOON);
}

#[test]
fn what_routers_lack_is_refused_before_start() {
    require_root();
    let program = Program::new();
    let run = ["run", "study.toml", "--out", "x.stacklab"];
    let inside = [&run[..], &["--in-vm"]].concat();
    let lacks = ["uml as a router lacks", "wireguard4: wireguard", "linux-6.1"];
    for (routers, mechanism, asked, expected, words) in [
        ("uml", "wireguard4", &run[..], code::TESTBED, &lacks[..]),
        ("uml-none", "gre4", &run, code::TESTBED, &["stacklab image build uml-none"]),
        ("uml", "gre4", &inside, code::REQUEST, &["--in-vm", "(uml)", "factors.router_os"]),
        ("uml", "gre4", &["lab", "up", "study.toml"], code::REQUEST, &["factors.router_os"]),
    ] {
        let study = study(&["namespace"], &[mechanism], &["udp"], 1024, false);
        program.write("study.toml", study.levels(Factor::RouterOs, [routers]).text());
        program.run(asked).expect(expected).says(words);
    }
    assert!(!program.work().join("x.stacklab").exists());
}

#[test]
fn what_routed_guests_lack_is_refused_before_start() {
    require_root();
    let program = Program::new();
    program.write("study.toml", study(&["uml"], &["native", "6in4"], &["udp"], 1024, false).text());
    let run = ["run", "study.toml", "--out", "x.stacklab"];
    let all_in_one = program.run(&[&run[..], &["--in-vm"]].concat()).expect(code::REQUEST).stderr;
    assert!(all_in_one.contains("--in-vm") && all_in_one.contains("factors.os"), "{all_in_one}");
    let sit = stacklab_testbed::abilities().into_iter().find(|ability| ability.name == "sit").unwrap();
    if sit.result.is_ok() {
        let said = program.run(&run).expect(code::DONE).stderr;
        assert!(said.contains("6in4 between the routers"), "{said}");
        std::fs::remove_file(program.work().join("x.stacklab")).unwrap();
    } else {
        let said = program.run(&run).expect(code::TESTBED).stderr;
        for words in [
            "guests as hosts (uml)",
            "6in4 needs sit",
            "sudo modprobe sit",
            "factors.os",
            "factors.router_os = [\"linux-6.1\"]",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
    assert!(!program.work().join("x.stacklab").exists());
    for (os, expected) in [
        ("ssh:lab", "`localhost` cannot be a client behind routers"),
        ("localhost -> ssh:lab", "`localhost` cannot be a client behind routers"),
    ] {
        let study = study(&[os], &["native"], &["udp"], 1024, false);
        program.write("study.toml", study.text());
        let place = format!("study.toml:{}:", study.line_of("os"));
        program.run(&["plan", "study.toml"]).expect(code::REQUEST).says(&[expected, &place]);
    }
}
