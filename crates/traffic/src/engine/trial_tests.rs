//! Trials on loopback: every probe, long messages, receivers that do not read, copies.

use crate::engine::receiver::Receiver;
use crate::engine::sender;
use crate::{fixtures, sys};
use stacklab_model::{
    Cell, DelayPoints, Family, HostReport, Io, Length, Metric, Pacing, Point, Probe, ProbeSpec, Received,
    SHORT_HEADER_BYTES, SizeOf, Transport, TrialSpec,
};
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

fn spec(
    family: Family,
    transport: Transport,
    io: Io,
    probe: Probe,
    pacing: Pacing,
    length: Length,
) -> TrialSpec {
    let probe = ProbeSpec {
        probe,
        pacing,
        length,
        warmup_ns: 2_000_000,
        interval_ns: 1_000_000,
        metrics: vec![Metric::TcpSrtt],
    };
    let mut spec = TrialSpec::new(77, &Cell::new(family, transport, SizeOf::Payload, 200), probe);
    (spec.poll_ns, spec.io) = (10_000, io);
    spec
}

/// Every probe over every transport and family that it supports.
fn each(probe: Probe, pacing: Pacing, length: Length, check: impl Fn(Transport, HostReport, HostReport)) {
    for family in Family::ALL.iter().copied() {
        for transport in Transport::ALL.iter().copied().filter(|transport| probe.supports(*transport)) {
            for io in [Io::Send, Io::Sendmmsg, Io::Gso] {
                if (transport, io) == (Transport::Tcp, Io::Gso) {
                    continue;
                }
                let [sender, receiver] = run(&spec(family, transport, io, probe, pacing, length));
                check(transport, sender, receiver);
            }
        }
    }
}

#[test]
fn small_datagrams_are_counted_and_timed() {
    let pacing = Pacing::Shifted(20_000.0);
    for family in Family::ALL.iter().copied() {
        for (io, flows) in [(Io::Send, 1), (Io::Sendmmsg, 3), (Io::Gso, 1)] {
            let mut small =
                spec(family, Transport::Udp, io, Probe::Stream, pacing, Length::Time(100_000_000));
            (small.message_bytes, small.flows) = (SHORT_HEADER_BYTES, flows);
            let [sender, receiver] = run(&small);
            let Received { measured, bytes, strays, duplicates, waiting, .. } = receiver.received;
            assert_eq!((measured, strays, duplicates), (sender.sent.measured, 0, 0), "{family} {io}");
            assert_eq!(bytes, measured * u64::from(SHORT_HEADER_BYTES));
            assert!(waiting.is_some());
            // On loopback no message takes a second.
            let delays = receiver.delays.unwrap().buckets;
            let slowest_ns = delays.percentile(1.0).unwrap();
            assert!(delays.count() == measured && (1..1_000_000_000).contains(&slowest_ns), "{slowest_ns}");
        }
    }
}

/// Both hosts' reports.
fn run(spec: &TrialSpec) -> [HostReport; 2] {
    let own = spec.family.loopback();
    let receiver = Receiver::listen(spec.clone(), own).unwrap();
    let sender = sender::run(spec, own, receiver.address).unwrap();
    let receiver = receiver.collect().unwrap();
    for side in [&sender, &receiver] {
        assert_eq!((side.endpoint.family, side.endpoint.transport), (spec.family, spec.transport));
        assert_eq!(side.endpoint.local.ip(), own);
    }
    assert_eq!(sender.endpoint.local.ip(), receiver.endpoint.peer.ip());
    [sender, receiver]
}

#[test]
fn a_paced_stream_arrives_whole_and_in_order() {
    each(Probe::Stream, Pacing::Schedule(5_000.0), Length::Packets(300), |transport, sender, receiver| {
        assert_eq!((sender.sent.measured, sender.sent.bytes), (300, 60_000));
        let received = &receiver.received;
        assert_eq!((received.measured, received.bytes), (300, 60_000));
        assert_eq!((received.duplicates, received.reordered, received.strays), (0, 0, 0));
        assert_eq!(receiver.delays.unwrap().buckets.count(), 300);
        assert_eq!(receiver.delay_points, Some(DelayPoints::between(Point::Call, Point::Kernel)));
        assert_eq!(sender.delay_points, None);
        assert_eq!(receiver.series.iter().map(|row| row.messages).sum::<u64>(), 300);
        assert!(receiver.cpu.is_some() && sender.cpu.is_some());
        if transport == Transport::Tcp {
            let segments = sender.tcp.as_ref().and_then(|tcp| tcp.sent_segments());
            let tcp = sender.tcp.unwrap();
            // On a busy machine, TCP retransmits segments that were only late.
            let all = sender.sent.warmup + 300 + sender.sent.markers + tcp.total_retrans.unwrap();
            assert_eq!(segments, Some((all * 200, all)));
            assert!(tcp.srtt_mean_us.is_some());
        }
    });
}

#[test]
fn timed_flood_counts_what_was_sent_and_arrived() {
    each(Probe::Stream, Pacing::Flood, Length::Time(30_000_000), |transport, sender, receiver| {
        assert!(sender.sent.measured > 0);
        // On a busy machine the buffer may be full of the warm-up.
        assert!(receiver.received.warmup + receiver.received.measured > 0);
        match transport {
            Transport::Tcp => assert_eq!(receiver.received.measured, sender.sent.measured),
            Transport::Udp => assert!(receiver.received.measured <= sender.sent.measured),
        }
    });
}

#[test]
fn the_kernel_keeps_a_schedule_where_it_is_told_to() {
    for family in Family::ALL.iter().copied() {
        for flows in [1, 4] {
            let pacing = Pacing::Schedule(4_000.0);
            let length = Length::Time(400_000_000);
            let mut spec = spec(family, Transport::Tcp, Io::Send, Probe::Stream, pacing, length);
            (spec.flows, spec.tuning.kernel_pacing) = (flows, Some(true));
            // The first ten segments of a connection are not paced.
            (spec.message_bytes, spec.probe.warmup_ns) = (1000, 50_000_000);
            let receiver = Receiver::listen(spec.clone(), family.loopback()).unwrap();
            let sender = sender::run(&spec, family.loopback(), receiver.address).unwrap();
            let received = receiver.collect().unwrap().received;
            assert_eq!((sender.sent.measured, received.measured), (1_600, 1_600));
            assert_eq!(sender.endpoint.options.max_pacing_rate, Some(4_000_000 / u64::from(flows)));
            assert!(sender.pacing_error.is_none());
            let seconds = (received.last_ns - received.first_ns) as f64 / 1e9;
            let rate = 1_600.0 / seconds;
            // A busy machine slows it down. Without a schedule the rate would be a hundred times higher.
            assert!((400.0..4_400.0).contains(&rate), "{rate} messages a second over {flows} flows");
        }
    }
}

#[test]
fn many_flows_arrive_whole_each_with_its_share() {
    const FLOWS: u32 = 50;
    for family in Family::ALL.iter().copied() {
        for (transport, io) in
            [(Transport::Tcp, Io::Send), (Transport::Tcp, Io::Sendmmsg), (Transport::Udp, Io::Sendmmsg)]
        {
            for (pacing, length) in [
                (Pacing::Schedule(20_000.0), Length::Packets(1_003)),
                (Pacing::Flood, Length::Time(30_000_000)),
            ] {
                let spec =
                    TrialSpec { flows: FLOWS, ..spec(family, transport, io, Probe::Stream, pacing, length) };
                let receiver = Receiver::listen(spec.clone(), family.loopback()).unwrap();
                let sender = sender::run(&spec, family.loopback(), receiver.address).unwrap();
                let receiver = receiver.collect().unwrap();
                let received = &receiver.received;
                if pacing == Pacing::Flood {
                    assert!(received.measured > 0);
                } else {
                    assert_eq!(sender.sent.measured, 1_003);
                    assert_eq!(sender.pacing_error.unwrap().buckets.count(), 1_003);
                }
                if transport == Transport::Tcp || pacing != Pacing::Flood {
                    assert_eq!(received.measured, sender.sent.measured, "{transport} {io} {pacing:?}");
                }
                // A short flood may end before a busy machine has come to each flow.
                if pacing != Pacing::Flood {
                    assert!(receiver.flow_bytes.iter().all(|bytes| *bytes > 0));
                }
                assert_eq!(receiver.flow_bytes.len(), FLOWS as usize);
                assert_eq!(receiver.flow_bytes.iter().sum::<u64>(), received.bytes);
                assert_eq!((received.duplicates, received.reordered, received.strays), (0, 0, 0));
            }
        }
    }
}

#[test]
fn an_echo_comes_back_in_lockstep_and_on_schedule() {
    let schedule = Pacing::Schedule(2_000.0);
    for (probe, pacing) in [(Probe::Echo, Pacing::Lockstep), (Probe::EchoOpenLoop, schedule)] {
        each(probe, pacing, Length::Packets(100), |_, sender, receiver| {
            assert_eq!(sender.sent.measured, 100);
            assert_eq!((sender.received.measured, receiver.sent.measured), (100, 100));
            assert_eq!(sender.delays.unwrap().buckets.count(), 100);
        });
    }
}

#[test]
fn a_round_trip_is_of_one_clock() {
    const HOUR_NS: i64 = 3_600_000_000_000;
    let schedule = Pacing::Schedule(2_000.0);
    for (probe, pacing) in [(Probe::Echo, Pacing::Lockstep), (Probe::EchoOpenLoop, schedule)] {
        for clock_offset_ns in [-HOUR_NS, HOUR_NS] {
            let spec = ipv4(Transport::Udp, Io::Send, probe, pacing, Length::Packets(50));
            let spec = TrialSpec { clock_offset_ns, ..spec };
            let receiver = Receiver::listen(spec.clone(), Family::Ipv4.loopback()).unwrap();
            let sender = sender::run(&spec, Family::Ipv4.loopback(), receiver.address).unwrap();
            receiver.collect().unwrap();
            let mean_ns = sender.delays.unwrap().mean_ns;
            assert!((1.0..10e9).contains(&mean_ns), "{probe} {clock_offset_ns}: {mean_ns}");
            assert_eq!(sender.received.least_delays, []);
        }
    }
}

#[test]
fn connections_open_one_after_another() {
    each(Probe::Connect, Pacing::Flood, Length::Packets(50), |_, sender, receiver| {
        assert_eq!(sender.sent.measured, 50);
        assert!(receiver.received.measured >= 50);
        assert_eq!(sender.delays.unwrap().buckets.count(), 50);
    });
}

#[test]
fn receiver_whose_sender_never_comes_says_so() {
    for family in Family::ALL.iter().copied() {
        for transport in Transport::ALL.iter().copied() {
            let spec = spec(family, transport, Io::Send, Probe::Stream, Pacing::Flood, Length::Packets(1));
            let side = Receiver::listen(spec, family.loopback()).unwrap().collect().unwrap();
            assert_eq!((side.endpoint.peer.port(), side.received), (0, Received::default()));
        }
    }
}

fn ipv4(transport: Transport, io: Io, probe: Probe, pacing: Pacing, length: Length) -> TrialSpec {
    let mut spec = fixtures::spec(Family::Ipv4, transport);
    (spec.probe.probe, spec.probe.pacing, spec.probe.length) = (probe, pacing, length);
    (spec.size_of, spec.io) = (SizeOf::Write, io);
    spec
}

#[test]
fn long_messages_of_several_flows_keep_their_rate() {
    let pacing = Pacing::Schedule(40.0);
    let length = Length::Time(500_000_000);
    let mut spec = ipv4(Transport::Tcp, Io::Send, Probe::Stream, pacing, length);
    // More than a new connection's buffer takes at once, and no warm-up that would enlarge it.
    (spec.flows, spec.message_bytes) = (8, 256 << 10);
    let receiver = Receiver::listen(spec.clone(), spec.family.loopback()).unwrap();
    let sender = sender::run(&spec, spec.family.loopback(), receiver.address).unwrap();
    let received = receiver.collect().unwrap().received;
    assert_eq!((sender.sent.measured, received.measured), (20, 20));
    // From the first of 20 messages to the last, each 25 ms after the one before: 475 ms, but for how late a busy
    // machine sends or receives the first. At once they would take few.
    let window_ns = received.last_ns - received.first_ns;
    assert!(window_ns > 250_000_000, "{window_ns} ns");
    assert!(sender.sent.last_ns - sender.sent.first_ns > 250_000_000, "it lasts its time");
}

#[test]
fn receiver_that_reads_nothing_prolongs_no_trial() {
    for flows in [1, 3] {
        let pacing = Pacing::Flood;
        let length = Length::Time(100_000_000);
        let mut spec = ipv4(Transport::Tcp, Io::Sendmmsg, Probe::Stream, pacing, length);
        spec.flows = flows;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ended = AtomicBool::new(false);
        let began = Instant::now();
        let sent = thread::scope(|scope| {
            scope.spawn(|| {
                let mut streams = Vec::new();
                for _ in 0..flows {
                    let mut stream = listener.accept().unwrap().0;
                    io::Write::write_all(&mut stream, &[1]).unwrap();
                    streams.push(stream);
                }
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
    let spec = ipv4(Transport::Udp, Io::Send, Probe::Echo, Pacing::Lockstep, Length::Packets(2));
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
    let received = report.received;
    let sent = report.sent;
    assert_eq!((received.measured, received.duplicates, sent.measured), (2, 2, 2));
}

/// Both hosts' reports of 2000 messages that fill segments, asked to leave from the program's memory.
fn zerocopy_flood(family: Family, flows: u32) -> [HostReport; 2] {
    let mut spec = fixtures::spec(family, Transport::Tcp);
    (spec.probe.pacing, spec.probe.length) = (Pacing::Flood, Length::Packets(2_000));
    spec.probe.warmup_ns = 2_000_000;
    let message_bytes = 30_000;
    let size_of = SizeOf::Write;
    let io = Io::Zerocopy;
    let spec = TrialSpec { message_bytes, size_of, io, flows, ..spec };
    let receiver = Receiver::listen(spec.clone(), family.loopback()).unwrap();
    let sender = sender::run(&spec, family.loopback(), receiver.address).unwrap();
    [sender, receiver.collect().unwrap()]
}

#[test]
fn zerocopy_messages_arrive_unchanged() {
    for family in Family::ALL.iter().copied() {
        let [sender, receiver] = zerocopy_flood(family, 1);
        let received = receiver.received;
        assert_eq!((received.measured, received.reordered, received.strays), (2_000, 0, 0));
        assert!(sender.counters.get("socket.zerocopy") > 2_000, "the warm-up is sent so too");
    }
}

#[test]
fn flows_that_share_a_thread_do_not_use_zerocopy() {
    let [sender, receiver] = zerocopy_flood(Family::Ipv4, sys::allowed_processors().count() as u32 + 1);
    assert_eq!(sender.io, Some(Io::Sendmmsg), "the report says what was done");
    assert_eq!(sender.counters.get("socket.zerocopy"), 0);
    assert_eq!(receiver.received.measured, sender.sent.measured);
}
