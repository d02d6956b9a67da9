//! Factors other than family and size take effect: the sockets, the link and the traffic match their cell.

use crate::support;

use stacklab_model::{Cell, Factor, Family, HostReport, Role, RunRecord, Transport};
use std::collections::BTreeSet;
use support::program::{Program, code, require_root};
use support::records::{measure, runs, side};
use support::studies::TestStudy;

/// A study of both families, without its further factors.
fn study() -> TestStudy {
    TestStudy::new("What settings do")
        .rate("100 Mbit/s")
        .offloads(false)
        .families()
        .stream(&["throughput"])
        .time("150ms")
        .warmup("50ms")
        .interval("50ms")
        .blocks(2)
        .set("blocks.target", "2 %")
}

/// Every run of a study; each must be valid.
fn run(study: &TestStudy) -> Vec<RunRecord> {
    require_root();
    measure(&study.text()).1
}

fn level<T: std::str::FromStr>(cell: &Cell, factor: Factor) -> T {
    cell.level(factor).parse().unwrap_or_else(|_| panic!("{factor} of {cell:?}"))
}

fn sender(run: &RunRecord) -> &HostReport {
    side(run, Role::Sender)
}

#[test]
fn sockets_have_the_options_of_their_cell() {
    let varied = study()
        .transports(&["tcp"])
        .size_of("payload")
        .sizes(&[512])
        .levels(Factor::Dscp, [0, 46])
        .levels(Factor::SendBuffer, [100_000, 200_000])
        .levels(Factor::Nodelay, [true, false])
        .levels(Factor::CongestionControl, ["cubic", "reno"]);
    let runs = run(&varied);
    assert_eq!(runs.len(), 2 * 2 * 16);
    for run in &runs {
        let cell = &run.trial.cell;
        let endpoint = &sender(run).endpoint;
        assert_eq!(endpoint.options.dscp, Some(level(cell, Factor::Dscp)), "{}", run.trial);
        assert_eq!(endpoint.options.send_buffer, Some(2 * level::<u32>(cell, Factor::SendBuffer)));
        if cell.transport == Transport::Tcp {
            assert_eq!(endpoint.options.nodelay, Some(level(cell, Factor::Nodelay)));
            assert_eq!(endpoint.congestion_control, Some(level(cell, Factor::CongestionControl)));
        }
    }
}

#[test]
fn mapped_addresses_send_packets_of_ipv4() {
    let varied = study()
        .transports(&["tcp", "udp"])
        .size_of("payload")
        .sizes(&[512])
        .levels(Factor::Socket, ["native", "ipv4-mapped"])
        .levels(Factor::Flows, [1, 4])
        .levels(Factor::Direction, ["forward", "reverse"]);
    let runs = run(&varied);
    // Two kinds of sockets of IPv4, and one of IPv6.
    assert_eq!(runs.len(), 2 * 3 * 8);
    for run in &runs {
        let cell = &run.trial.cell;
        for role in [Role::Sender, Role::Receiver] {
            let HostReport { endpoint, counters, .. } = side(run, role);
            assert_eq!(endpoint.options.socket, Some(level(cell, Factor::Socket)), "{}", run.trial);
            assert_eq!((endpoint.family, Family::of(endpoint.local.ip())), (cell.family, cell.family));
            let [ipv4, ipv6] = ["ip.InReceives", "ip6.InReceives"].map(|name| counters.get(name));
            let arrived = if cell.family == Family::Ipv4 { ipv4 > ipv6 } else { ipv6 > ipv4 };
            // Nothing need come back to the sender of datagrams.
            let may_lack = role == Role::Sender && ipv4 + ipv6 == 0;
            assert!(arrived || may_lack, "{} {role}: {ipv4} of IPv4, {ipv6} of IPv6", run.trial);
        }
    }
}

#[test]
fn arms_of_both_kinds_of_sockets_take_turns() {
    require_root();
    let program = Program::new();
    let words = ["run", "mapped", "--set", "blocks.min=2", "--set", "blocks.max=2", "--out", "x.stacklab"];
    let outcome = program.run(&words).expect(code::DONE);
    assert!(outcome.stdout.contains("ipv4-mapped"), "{outcome}");
    let runs = runs(&program.work().join("x.stacklab"));
    assert!(runs.iter().all(|run| run.is_valid() && !run.spec.schedule.is_alone()), "{outcome}");
    let sockets: BTreeSet<_> = runs.iter().map(|run| run.trial.cell.settings.tuning.socket).collect();
    assert_eq!(sockets.len(), 2, "{sockets:?}");
}

#[test]
fn link_has_its_cells_mtu_and_cuts_larger_datagrams() {
    // A flood keeps a short queue full, which then takes one fragment of each datagram and no whole one.
    let varied = study()
        .transports(&["tcp", "udp"])
        .size_of("write")
        .sizes(&[1400])
        .levels(Factor::Mtu, [1280, 1500])
        .levels(Factor::QueueLength, [900, 1000]);
    let runs = run(&varied);
    assert_eq!(runs.len(), 2 * 2 * 8);
    for run in &runs {
        let cell = &run.trial.cell;
        let sender = sender(run);
        let mtu: u32 = level(cell, Factor::Mtu);
        assert_eq!(sender.endpoint.interface_mtu, mtu, "{}", run.trial);
        if cell.transport == Transport::Tcp {
            let headers = if cell.family == Family::Ipv4 { 20 } else { 40 } + 20;
            assert_eq!(sender.endpoint.options.mss, Some(mtu - headers - 12), "{}", run.trial);
        }
        let cut = sender.counters.get("ip.FragCreates") + sender.counters.get("ip6.FragCreates");
        assert_eq!(cut > 0, cell.transport == Transport::Udp && mtu == 1280, "{}: {cut}", run.trial);
    }
}

#[test]
fn flows_share_a_link_over_every_io_path() {
    let varied = study()
        .transports(&["tcp", "udp"])
        .size_of("payload")
        .sizes(&[512])
        .levels(Factor::Flows, [1, 4])
        .levels(Factor::Io, ["send", "sendmmsg"])
        .levels(Factor::Pinning, ["none", "halves"])
        // What all flows may have on the way fits into the link's queue: a TCP whose segments overflow it may stand
        // still for longer than such a run.
        .levels(Factor::SendBuffer, [30_000]);
    let runs = run(&varied);
    assert_eq!(runs.len(), 2 * 2 * 16);
    for run in &runs {
        let cell = &run.trial.cell;
        let received = side(run, Role::Receiver);
        let flows: usize = level(cell, Factor::Flows);
        if flows > 1 {
            assert_eq!(received.flow_bytes.len(), flows, "{}", run.trial);
            // Only a flow of TCP that waits for its retransmission timer may have nothing in such a short run.
            let moved = received.flow_bytes.iter().filter(|bytes| **bytes > 0).count();
            let waits = moved > 1 && sender(run).counters.get("tcp.RetransSegs") > 0;
            assert!(moved == flows || waits, "{}: {:?}", run.trial, received.flow_bytes);
        }
        let bytes: u64 = received.flow_bytes.iter().sum();
        assert!(flows == 1 || bytes == received.received.bytes, "{}", run.trial);
        assert_eq!(received.io.map(|io| io.to_string()), Some(level(cell, Factor::Io)), "{}", run.trial);
    }
}
