//! smoltcp as a host, beside this kernel: it fills a link as the headers say, and what it counts is what the kernel
//! counts. The tests need root.

use crate::support;

use stacklab_model::{Factor, Family, HostReport, Metric, Probe, Role, RunRecord, Transport, wire_size};
use std::time::Duration;
use support::leftovers::Scene;
use support::others::allowed_on_any_machine;
use support::program::{Program, code, require_root};
use support::records::{figure, runs, side};
use support::studies::TestStudy;

/// A study of streams between these systems.
fn streams(systems: &[&str]) -> TestStudy {
    TestStudy::new("smoltcp beside Linux")
        .rate("20 Mbit/s")
        .systems(systems)
        .families()
        .transports(&["tcp", "udp"])
        .sizes(&[200, 1400])
        .stream(&["throughput", "loss"])
        .time("400ms")
        .warmup("100ms")
        .interval("100ms")
        .blocks(2)
        .compare_families()
}

const SYSTEMS: [&str; 3] = ["smoltcp", "smoltcp -> namespace", "namespace -> smoltcp"];
/// Packets of a trial beside those of its messages: acknowledgements, opening and end.
const OTHER_PACKETS: f64 = 40.0;
/// Allowed deviation of a full link from the rate that the headers leave, on a quiet machine.
const TOLERANCE: f64 = 0.02;
const SOON: Duration = Duration::from_secs(3);

fn measure(study: &TestStudy, expected: usize) -> (Program, Vec<RunRecord>) {
    require_root();
    let program = Program::new();
    program.write("study.toml", study.text());
    program.run(&["run", "study.toml", "--out", "x.stacklab"]).expect(code::DONE);
    let all = runs(&program.work().join("x.stacklab"));
    assert_eq!(all.len(), expected);
    (program, all)
}

fn system(run: &RunRecord, role: Role) -> String {
    let systems = run.trial.cell.level(Factor::Os);
    let mut ends = systems.split("->").map(str::trim);
    let sender = ends.next().unwrap_or_default();
    if role == Role::Sender { sender } else { ends.next().unwrap_or(sender) }.to_owned()
}

#[test]
fn smoltcp_fills_a_link_as_the_headers_say() {
    let scene = Scene::now();
    let study = streams(&SYSTEMS).echo(&["rtt"]).packets(200).schedule("sequential");
    let (program, all) = measure(&study, 3 * 2 * 2 * 2 * 2 * 2);
    scene.assert_restored(&program, &["study.toml", "x.stacklab"], SOON);
    for run in &all {
        for role in [Role::Sender, Role::Receiver] {
            if system(run, role) == "smoltcp" {
                check_counts(run, side(run, role));
            }
        }
    }
    for run in all.iter().filter(|run| run.trial.probe == Probe::Stream) {
        let of = &run.trial.cell;
        let same = all.iter().filter(|other| other.trial.probe == Probe::Stream && other.trial.cell == *of);
        let best = same.map(|run| figure(run, Metric::Throughput)).fold(0.0, f64::max);
        let wire = wire_size(of.family, of.transport, of.size, 1500).wire_bytes;
        let limit = 20.0 * f64::from(of.size) / f64::from(wire);
        let off = (best / limit - 1.0).abs();
        assert!(off < allowed_on_any_machine(TOLERANCE), "{}: {best} of {limit} Mbit/s", run.trial);
        if of.transport == Transport::Udp {
            // The kernel holds back who fills the queue of the link, as it does its own sockets.
            assert!(figure(run, Metric::Loss) < 0.01, "{}", run.trial);
        }
    }
}

/// The stack's counts of a host beside those of the kernel at the same interface, and of the messages.
fn check_counts(run: &RunRecord, host: &HostReport) {
    let (own, other) = match run.trial.cell.family {
        Family::Ipv4 => ("ip", "ip6"),
        Family::Ipv6 => ("ip6", "ip"),
    };
    for (packets, name) in [("rx_packets", "InReceives"), ("tx_packets", "OutRequests")] {
        let of_kernel = host.counters.get(&format!("interface.{packets}")) as f64;
        let of_stack = host.counters.get(&format!("{own}.{name}")) as f64;
        assert!((of_kernel - of_stack).abs() <= OTHER_PACKETS, "{}: {of_kernel} and {of_stack}", run.trial);
        // The end of a connection of the trial before may be late.
        let others = host.counters.get(&format!("{other}.{name}"));
        assert!(others <= 4, "{}: {others} of the other family", run.trial);
    }
    assert_eq!((host.endpoint.interface_mtu, host.endpoint.path_mtu), (1500, Some(1500)), "{}", run.trial);
    if host.role == Role::Sender && run.trial.cell.transport == Transport::Tcp {
        let tcp = host.tcp.as_ref().expect("the segments are counted");
        let segments = tcp.data_segs_out.unwrap() - tcp.total_retrans.unwrap();
        assert!(segments >= host.sent.of_trial(), "{}: {segments}", run.trial);
        assert_eq!(host.endpoint.congestion_control.as_deref(), Some("none"));
    }
}

#[test]
fn smoltcp_opens_connections_and_has_several_flows() {
    let study = streams(&["smoltcp", "namespace -> smoltcp"])
        .sizes(&[1000])
        .levels(Factor::Flows, [1, 4])
        .levels(Factor::Direction, ["forward", "both"])
        .schedule("sequential");
    let (_, all) = measure(&study, 2 * 2 * 2 * 2 * 2 * 2);
    for run in all.iter().filter(|run| run.trial.cell.level(Factor::Flows) == "4") {
        let bytes = &side(run, Role::Receiver).flow_bytes;
        assert!(bytes.len() == 4 && bytes.iter().all(|bytes| *bytes > 0), "{}: {bytes:?}", run.trial);
    }
    let study = streams(&SYSTEMS)
        .transports(&["tcp"])
        .sizes(&[200])
        .echo(&["rtt"])
        .packets(50)
        .connect(&["connect_time"])
        .packets(300)
        .schedule("sequential");
    let (_, all) = measure(&study, 3 * 3 * 2 * 2);
    for run in all.iter().filter(|run| run.trial.probe == Probe::Connect) {
        let opened = side(run, Role::Receiver).received.measured;
        assert!(opened >= 300, "{}: {opened}", run.trial);
    }
}

#[test]
fn arms_of_smoltcp_take_turns() {
    let study = streams(&["smoltcp", "smoltcp -> namespace"]).echo(&["rtt"]).time("200ms");
    // Both families, and one of them once more as the control.
    let (_, all) = measure(&study, 2 * 2 * 2 * 2 * 2 * 2 + 16);
    for run in &all {
        let slices = &side(run, Role::Sender).slices;
        assert!(slices.iter().any(|slice| slice.messages > 0), "{}", run.trial);
    }
}
