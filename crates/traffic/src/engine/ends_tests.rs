//! Trials of long messages, of receivers that do not read, and of copies.

use crate::engine::receiver::Receiver;
use crate::engine::sender;
use crate::fixtures;
use stacklab_model::{Family, Io, Length, Pacing, Probe, SizeOf, Transport, TrialSpec};
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

fn spec(transport: Transport, io: Io, probe: Probe, pacing: Pacing, length: Length) -> TrialSpec {
    let mut spec = fixtures::spec(Family::Ipv4, transport);
    (spec.probe.probe, spec.probe.pacing, spec.probe.length) = (probe, pacing, length);
    (spec.size_of, spec.io) = (SizeOf::Write, io);
    spec
}

#[test]
fn long_messages_of_several_flows_arrive_at_their_rate() {
    let (pacing, length) = (Pacing::Schedule(40.0), Length::Time(500_000_000));
    let mut spec = spec(Transport::Tcp, Io::Send, Probe::Stream, pacing, length);
    // More than a new connection's buffer takes at once, and no warm-up that would enlarge it.
    (spec.flows, spec.message_bytes) = (8, 256 << 10);
    let receiver = Receiver::listen(spec.clone(), spec.family.loopback()).unwrap();
    let sender = sender::run(&spec, spec.family.loopback(), receiver.address).unwrap();
    let received = receiver.collect().unwrap().received;
    assert_eq!((sender.sent.measured, received.measured), (20, 20));
    // From the first of 20 messages to the last, each 25 ms after the one before.
    let window_ns = received.last_ns - received.first_ns;
    assert!(window_ns > 19 * 25_000_000 * 9 / 10, "{window_ns} ns");
    assert!(sender.sent.last_ns - sender.sent.first_ns > 475_000_000, "it lasts its time");
}

#[test]
fn a_receiver_that_reads_nothing_does_not_lengthen_a_timed_trial() {
    for flows in [1, 3] {
        let (pacing, length) = (Pacing::Flood, Length::Time(100_000_000));
        let mut spec = spec(Transport::Tcp, Io::Sendmmsg, Probe::Stream, pacing, length);
        spec.flows = flows;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (ended, began) = (AtomicBool::new(false), Instant::now());
        let sent = thread::scope(|scope| {
            scope.spawn(|| {
                let admit = |_| {
                    let mut stream = listener.accept().unwrap().0;
                    io::Write::write_all(&mut stream, &[1]).unwrap();
                    stream
                };
                let _streams: Vec<_> = (0..flows).map(admit).collect();
                while !ended.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(10));
                }
            });
            let sender = sender::run(&spec, spec.family.loopback(), address);
            ended.store(true, Ordering::Relaxed);
            sender.unwrap().sent
        });
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        assert!(sent.discarded > 0, "{sent:?}");
    }
}

#[test]
fn a_copy_of_a_message_is_counted_and_not_answered() {
    let spec = spec(Transport::Udp, Io::Send, Probe::Echo, Pacing::Lockstep, Length::Packets(2));
    let receiver = Receiver::listen(spec.clone(), spec.family.loopback()).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(receiver.address).unwrap();
    let mut message = vec![0; spec.message_bytes as usize];
    for (phase, sequence, copies) in [(1, 0, 1), (1, 1, 3), (2, 2, 1)] {
        message[..4].copy_from_slice(&spec.token.to_be_bytes());
        (message[4], message[15]) = (phase, sequence);
        (0..copies).for_each(|_| assert_eq!(socket.send(&message).unwrap(), message.len()));
    }
    let report = receiver.collect().unwrap();
    let (received, sent) = (report.received, report.sent);
    assert_eq!((received.measured, received.duplicates, sent.measured), (2, 2, 2));
}
