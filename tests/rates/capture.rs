//! Checks the record against tcpdump: the captured packets are the packets that the record states.

use crate::support;

use stacklab_model::{Family, HEADER_BYTES, HostReport, Probe, Role, RunRecord, Transport};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::net::SocketAddr;
use std::time::Duration;
use support::capture::{Capture, Packet, find_host};
use support::program::{Program, children, code, require_root};
use support::records::{runs, side};
use support::studies::TestStudy;

/// Allowed deviation of a count from the record's count: TCP may retransmit a segment.
const TOLERANCE: f64 = 0.001;
/// Packets of a trial without a message, in addition to acknowledgements: handshakes.
const OTHER_PACKETS: u64 = 16;

/// Paced, to avoid losses on the path and in tcpdump.
fn study() -> TestStudy {
    TestStudy::new("What tcpdump sees")
        .offloads(false)
        .set("testbed.rebuild", false)
        .families()
        .transports(&["tcp", "udp"])
        .size_of("payload")
        .sizes(&[128, 1408])
        .stream(&["throughput", "loss"])
        .packets(2000)
        .set_of_probe("message_rate", 5000)
        .warmup("50ms")
        .interval("100ms")
        .echo(&["rtt"])
        .packets(2000)
        .warmup("20ms")
        .interval("100ms")
        .schedule("sequential")
        .blocks(2)
        .set("blocks.target", "2 %")
        .compare_families_within("2 %")
}

/// Packets by source and destination.
type Flows = HashMap<(Transport, SocketAddr, SocketAddr), Vec<Packet>>;

#[test]
fn captured_families_sizes_and_counts_are_as_recorded() {
    require_root();
    let program = Program::new();
    program.write("study.toml", study().text());
    let mut running = program.start(&["run", "study.toml", "--out", "study.stacklab", "--seed", "1"]);

    // The sender has the address that ends in 1, independently of the start order of the processes.
    let pid = running.pid();
    let sender = find_host(pid, "20010002000000010000000000000001", || {
        assert!(running.is_running(), "{}", running.stderr());
    });
    // The namespaces stay as long as they are open here. The capture therefore ends normally, before its interface is
    // removed.
    let _namespaces: Vec<File> = children(running.pid())
        .iter()
        .map(|pid| File::open(format!("/proc/{pid}/ns/net")).unwrap())
        .collect();
    let capture = Capture::start(sender, "st0", &program.tmp());
    let listening = capture.listening.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    running.end(Duration::from_secs(120)).expect(code::DONE);

    let mut flows = Flows::new();
    for packet in capture.stop() {
        flows.entry((packet.transport, packet.source, packet.destination)).or_default().push(packet);
    }
    let mut seen = BTreeSet::new();
    for run in runs(&program.work().join("study.stacklab")) {
        // A trial that began before tcpdump was ready is not captured completely.
        if run.started_unix_ns > listening {
            agree(&run, &flows);
            let cell = &run.trial.cell;
            seen.insert((cell.family, cell.transport, run.trial.probe, cell.size));
        }
    }
    assert_eq!(seen.len(), 16, "not every cell was measured while tcpdump listened: {seen:?}");
}

/// Compares a run's record with the packets of its flow, both ways.
fn agree(run: &RunRecord, flows: &Flows) {
    let sender = side(run, Role::Sender);
    let receiver = side(run, Role::Receiver);
    let there = direction(run, sender, flows);
    let back = direction(run, receiver, flows);
    assert!(there > 0, "{}: no packet of {} was seen", run.trial, sender.endpoint.local);
    if run.trial.probe == Probe::Stream {
        assert_eq!(back, 0, "{}: messages came back from a stream", run.trial);
    }
    // Every captured packet has arrived, and the record states it.
    let arrived = receiver.received.warmup + receiver.received.measured;
    close(run, "messages that arrived", arrived, there - sender.sent.markers);
}

/// Compares one host's report of its sending with its packets. Returns the number of packets that carried a message.
fn direction(run: &RunRecord, side: &HostReport, flows: &Flows) -> u64 {
    let cell = &run.trial.cell;
    let endpoint = &side.endpoint;
    let none = Vec::new();
    let packets = flows.get(&(cell.transport, endpoint.local, endpoint.peer)).unwrap_or(&none);
    let mut data: Vec<&Packet> = packets.iter().filter(|packet| packet.payload > 0).collect();
    if cell.transport == Transport::Tcp {
        // A flow is opened by a bare header and its answer, which are not messages.
        let opening = if side.role == Role::Sender { HEADER_BYTES as usize } else { 1 };
        assert_eq!(data.first().map(|packet| packet.payload), Some(opening), "{}", run.trial);
        data.remove(0);
    }
    let count = data.len() as u64;
    let host = side.role;

    assert!(packets.iter().all(|packet| packet.family == cell.family), "{}: {host}", run.trial);
    assert_eq!(Family::of(endpoint.local.ip()), cell.family, "{}: {host}", run.trial);
    let other = data.iter().find(|packet| packet.payload != cell.size as usize);
    assert!(other.is_none(), "{}: a packet of the {host} has another size: {other:?}", run.trial);

    let sent = side.sent.warmup + side.sent.measured + side.sent.markers;
    close(run, &format!("messages of the {host}"), count, sent);
    if let Some(tcp) = &side.tcp {
        let segments = tcp.data_segs_out.expect("Linux counts segments");
        close(run, &format!("data segments of the {host}"), count, segments);
        let bytes = tcp.bytes_sent.expect("Linux counts bytes");
        close(run, &format!("bytes of the {host}"), count * u64::from(cell.size), bytes);
    }
    let left = side.counters.get("interface.tx_packets");
    let all = packets.len() as u64;
    assert!(
        left.abs_diff(all) <= OTHER_PACKETS,
        "{}: {all} packets of the {host} were seen and its interface counted {left}",
        run.trial
    );
    count
}

/// Compares a count with the record's: datagrams must agree exactly.
fn close(run: &RunRecord, what: &str, seen: u64, stated: u64) {
    let tolerance = match run.trial.cell.transport {
        Transport::Tcp => TOLERANCE * stated as f64,
        Transport::Udp => 0.0,
    };
    let apart = seen.abs_diff(stated) as f64;
    assert!(apart <= tolerance, "{}: {what}: {seen} were seen, the record states {stated}", run.trial);
}
