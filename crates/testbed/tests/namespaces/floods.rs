//! What passes a link as fast as it can: offloads, and the shaper that keeps a link's rate.

use super::{PLAIN, TIMEOUT, bind, build, queue, read_sent_counts, witness};
use stacklab_model::{Family, LinkConfig, Rate, Transport, wire_size};
use stacklab_testbed::{Testbed, in_namespace};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn offloads_are_off_only_where_the_bed_says_so() {
    for offloads in [false, true] {
        let testbed = build(&LinkConfig { offloads, ..PLAIN });
        let sender = testbed.hosts()[0].pid();
        for family in Family::ALL {
            let before = read_sent_counts(sender);
            tcp_flood(&testbed, *family, || thread::sleep(Duration::from_millis(100)));
            let after = read_sent_counts(sender);
            let packets = after.0 - before.0;
            let bytes = after.1 - before.1;
            assert!(packets > 100, "{packets}");
            let mean = bytes as f64 / packets as f64;
            assert_eq!(mean <= 1514.0, !offloads, "{family}: {mean} bytes per packet, offloads {offloads}");
        }
    }
}

/// Makes the sender write to the receiver over TCP as fast as it can during a measurement.
fn tcp_flood<T>(testbed: &Testbed, family: Family, measure: impl FnOnce() -> T) -> T {
    let [sender, receiver] = testbed.hosts();
    let any_port = SocketAddr::new(receiver.address(family), 0);
    let listener = in_namespace(receiver.pid(), move || TcpListener::bind(any_port).unwrap()).unwrap();
    let there = listener.local_addr().unwrap();
    let outgoing =
        in_namespace(sender.pid(), move || TcpStream::connect_timeout(&there, TIMEOUT).unwrap()).unwrap();
    let (incoming, _) = listener.accept().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| while (&outgoing).write_all(&[0; 65536]).is_ok() {});
        scope.spawn(|| while (&incoming).read(&mut [0; 65536]).is_ok_and(|bytes| bytes > 0) {});
        let measured = measure();
        outgoing.shutdown(Shutdown::Both).unwrap();
        incoming.shutdown(Shutdown::Both).unwrap();
        measured
    })
}

/// Makes the sender send datagrams of a size to the receiver as fast as it can during a measurement.
fn udp_flood<T>(testbed: &Testbed, family: Family, size: u32, measure: impl FnOnce() -> T) -> T {
    let [sender, receiver] = testbed.hosts();
    // The socket is bound but never read: the test counts what arrives at the interface, and nothing may answer.
    let outgoing = bind(sender.pid(), sender.address(family));
    let incoming = bind(receiver.pid(), receiver.address(family));
    let there = incoming.local_addr().unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = outgoing.send_to(&vec![0; size as usize], there); // a full queue may be an error
            }
        });
        let measured = measure();
        done.store(true, Ordering::Relaxed);
        measured
    })
}

/// Packets per second that arrive at a host's interface in a window, after the flood has run for a while.
fn arrival_rate(pid: u32, window: Duration) -> f64 {
    thread::sleep(Duration::from_millis(300));
    let start = count_arrivals(pid);
    thread::sleep(window);
    let end = count_arrivals(pid);
    (end.0 - start.0) as f64 / (end.1 - start.1).as_secs_f64()
}

/// The packets that have arrived at a host's interface until now.
fn count_arrivals(pid: u32) -> (u64, Instant) {
    let counters = fs::read_to_string(format!("/proc/{pid}/net/dev")).unwrap();
    let line = counters.lines().find(|line| line.trim().starts_with("st0:")).unwrap();
    (line.split_whitespace().nth(2).unwrap().parse().unwrap(), Instant::now())
}

/// Checks that packets with this payload arrive as fast as an Ethernet of this rate allows, and no faster.
fn keeps_the_rate(rate: Rate, family: Family, transport: Transport, payload: u32) {
    let testbed = build(&LinkConfig { rate: Some(rate), ..PLAIN });
    let receiver = testbed.hosts()[1].pid();
    let wire_bits = 8.0 * f64::from(wire_size(family, transport, payload, 1500).wire_bytes);
    // The window is long enough that one packet more or less makes no difference.
    let window = Duration::from_secs_f64((500.0 * wire_bits / rate.bits_per_second() as f64).max(0.5));
    // A busy machine makes it slower but never faster. It gets three tries to be fast enough, and must never be too
    // fast.
    let mut tries = Vec::new();
    while !tries.last().is_some_and(|ratio| *ratio > 0.99) && tries.len() < 3 {
        let packets = match transport {
            Transport::Tcp => tcp_flood(&testbed, family, || arrival_rate(receiver, window)),
            Transport::Udp => udp_flood(&testbed, family, payload, || arrival_rate(receiver, window)),
        };
        tries.push(packets * wire_bits / rate.bits_per_second() as f64);
    }
    let right = tries.iter().all(|ratio| *ratio < 1.004) && tries.iter().any(|ratio| *ratio > 0.95);
    assert!(right, "{family} {transport} {payload} B: {tries:?} of {rate}");
}

#[test]
fn shaped_link_keeps_the_ethernet_rate_for_datagrams() {
    // The smallest datagram is padded on the wire. The rate is low enough that the queue never runs empty, even on a
    // busy machine.
    for (family, size) in Family::ALL.iter().flat_map(|family| [1, 128, 1408].map(|size| (*family, size))) {
        keeps_the_rate(Rate(2_000_000), family, Transport::Udp, size);
    }
}

#[test]
fn a_shaped_link_keeps_the_rate_of_ethernet_for_tcp() {
    // The rate is so low that TCP queues packets of two segments, which must be segmented before they are counted.
    for family in Family::ALL {
        let segment = 1500 - family.header_bytes() - Transport::Tcp.header_bytes();
        keeps_the_rate(Rate(2_000_000), *family, Transport::Tcp, segment);
    }
}

#[test]
fn the_shaper_is_what_tc_would_have_made() {
    for (rate, burst, limit) in [("100 Mbit/s", "16k", "200k"), ("40 Gbit/s", "655360", "8192000")] {
        let rate: Rate = rate.parse().unwrap();
        let testbed = build(&LinkConfig { rate: Some(rate), ..PLAIN });
        for host in testbed.hosts() {
            let ours = queue(host.pid(), "st0");
            let bits = rate.bits_per_second().to_string();
            let tc = format!(
                "tc qdisc replace dev st0 root tbf rate {bits}bit burst {burst} limit {limit} \
                 overhead 24 mpu 84 peakrate 140737488355328bit mtu 1514"
            );
            witness(host.pid(), &["tc", "qdisc", "del", "dev", "st0", "root"]);
            witness(host.pid(), &tc.split(' ').collect::<Vec<_>>());
            assert_eq!(ours, queue(host.pid(), "st0"));
            assert!(ours.contains("overhead 24") && ours.contains("mpu 84"), "{ours}");
        }
    }
}

#[test]
fn a_bed_without_a_rate_has_no_shaper() {
    let testbed = build(&PLAIN);
    for host in testbed.hosts() {
        assert!(!witness(host.pid(), &["tc", "qdisc", "show"]).contains("tbf"));
    }
}
