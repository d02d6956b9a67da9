//! After the warm-up, neither loop allocates memory, however many messages pass.

use crate::engine::count::{ArrivalCounter, SharedState};
use crate::engine::header::{Header, Phase};
use crate::engine::own_socket;
use crate::engine::receive_loop::receive;
use crate::engine::receiver::Reflect;
use crate::engine::rx::RxBatch;
use crate::engine::send_loop::{SendPhase, Stamp, send};
use crate::engine::socket::{self, MessageSocket};
use crate::engine::stamps::StampClock;
use crate::engine::tx::TxBatch;
use crate::fixtures;
use crate::sys::{self, Socket};
use stacklab_model::{Family, Io, Length, Pacing, Probe, SizeOf, Transport, TrialSpec};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const WARMUP: u64 = 200;
const SHORT_TRIAL: u64 = 1_000;
const LONG_TRIAL: u64 = 100_000;

/// Memory that the loops allocated: by the sender since the warm-up, by the receiver since before the first message.
fn count_allocations(spec: &TrialSpec) -> [u64; 2] {
    let address = std::net::SocketAddr::new(spec.family.loopback(), 0);
    let socket = own_socket::open(spec, address).unwrap();
    if spec.transport == Transport::Tcp {
        socket.listen(64).unwrap();
    }
    let to = socket.local_addr().unwrap().as_socket().unwrap();
    let sending: Vec<MessageSocket> = (0..spec.flows)
        .map(|_| MessageSocket::connect(spec, address, to, socket::CONNECT_LIMIT).unwrap())
        .collect();
    let receiving: Vec<MessageSocket> = match spec.transport {
        Transport::Tcp => accept_flows(spec, &socket, &sending),
        Transport::Udp => {
            if spec.flows == 1 {
                socket.connect(&sending[0].socket.local_addr().unwrap()).unwrap();
            }
            vec![MessageSocket::new(spec, socket).unwrap()]
        }
    };
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receiver_asks(spec, &receiving, &ended));
        let sender = sender_asks(spec, &sending);
        ended.store(true, Ordering::Relaxed);
        [sender, receiver.join().unwrap()]
    })
}

/// The connections of these senders: any other program of this machine may reach the port, too.
fn accept_flows(spec: &TrialSpec, listener: &Socket, sending: &[MessageSocket]) -> Vec<MessageSocket> {
    let senders: Vec<_> =
        sending.iter().map(|channel| channel.socket.local_addr().unwrap().as_socket()).collect();
    let mut flows = Vec::new();
    while flows.len() < senders.len() {
        let (connection, from) = sys::accept(listener).unwrap();
        if senders.contains(&from) {
            flows.push(MessageSocket::new(spec, connection).unwrap());
        }
    }
    flows
}

fn receiver_asks(spec: &TrialSpec, channels: &[MessageSocket], ended: &AtomicBool) -> u64 {
    let shared = SharedState::new(ended);
    let mut counter = ArrivalCounter::new(spec, &shared, spec.flows as usize).with_cpu_time(spec.cpu_scope);
    let mut reflect = Reflect::new(spec, &channels[0], ended);
    let mut rx = RxBatch::new(channels, StampClock::new()).unwrap();
    let size = spec.message_bytes as usize;
    let before = sys::fixtures::asked();
    if spec.probe.probe.echoes() {
        receive(&mut rx, size, spec.token, &mut reflect).unwrap();
    } else {
        receive(&mut rx, size, spec.token, &mut counter).unwrap();
    }
    let asked = sys::fixtures::asked() - before;
    let counted = counter.finish().received.measured + reflect.received.measured;
    assert!(counted > 0, "nothing arrived");
    asked
}

fn sender_asks(spec: &TrialSpec, channels: &[MessageSocket]) -> u64 {
    let ended = AtomicBool::new(false);
    let shared = SharedState::new(&ended);
    let mut answers = ArrivalCounter::new(spec, &shared, 1);
    let mut rx = RxBatch::new(channels, StampClock::new()).unwrap();
    let mut tx = TxBatch::new(channels, 0).unwrap();
    let size = spec.message_bytes as usize;
    let mut asked = 0;
    for (phase, length) in [(Phase::Warmup, Length::Packets(WARMUP)), (Phase::Measured, spec.probe.length)] {
        let token = spec.token;
        let pacing = spec.probe.pacing;
        let send_phase = SendPhase {
            token,
            phase,
            pacing,
            length,
            stamp: Stamp::Actual,
            slice: 0,
            min_messages: 0,
            offset_ns: 0,
            limit_ns: u64::MAX,
            sent_before: 0,
            stop: None,
        };
        let before = sys::fixtures::asked();
        let report = send(&send_phase, &mut tx, |sequence| {
            if spec.probe.probe == Probe::Echo {
                answers.await_answer(phase, sequence, sys::now_ns());
                return receive(&mut rx, size, spec.token, &mut answers);
            }
            Ok(())
        });
        asked = sys::fixtures::asked() - before;
        assert!(report.unwrap().messages > 0);
    }
    for markers_left in (0..3).rev() {
        let header = Header {
            token: spec.token,
            phase: Phase::End,
            markers_left,
            sent_ns: sys::now_ns(),
            ..Header::default()
        };
        // The receiver may have closed after an earlier marker.
        let _ = tx.mark_end(header);
    }
    asked
}

fn check(spec: &TrialSpec, many: u64) {
    let [few, many] = [SHORT_TRIAL, many].map(|packets| {
        let mut spec = spec.clone();
        spec.probe.length = Length::Packets(packets);
        count_allocations(&spec)
    });
    let TrialSpec { family, transport, io, flows, probe, .. } = spec;
    let what = format!("{} {transport} {family}, {io}, {flows} flows, {:?}", probe.probe, probe.pacing);
    assert_eq!(few, many, "sender and receiver, few and many: {what}");
    // A schedule allocates its pacing error histogram first.
    let scheduled = matches!(spec.probe.pacing, Pacing::Schedule(_));
    assert!(many[0] <= if scheduled { 2 } else { 0 }, "sender: {many:?}: {what}");
    assert_eq!(many[1], 0, "receiver: {what}");
}

/// Every I/O mode over every transport and family, with one flow and with several.
fn each(probe: Probe, pacing: Pacing, flows: &[u32], many: u64) {
    for family in Family::ALL.iter().copied() {
        for transport in Transport::ALL.iter().copied() {
            for io in Io::ALL.iter().copied() {
                let other = if transport == Transport::Tcp { Io::Gso } else { Io::Zerocopy };
                for flows in flows.iter().copied() {
                    if io == other || io == Io::Zerocopy && flows > 1 {
                        continue;
                    }
                    let mut spec = fixtures::spec(family, transport);
                    (spec.size_of, spec.io, spec.flows) = (SizeOf::Write, io, flows);
                    (spec.probe.probe, spec.probe.pacing) = (probe, pacing);
                    // Short, so that a series overflows and its rows are merged.
                    spec.probe.interval_ns = 10_000;
                    check(&spec, many);
                }
            }
        }
    }
}

#[test]
fn a_counted_allocation_is_seen() {
    let before = sys::fixtures::asked();
    drop(std::hint::black_box(Box::new([0_u8; 100])));
    assert_eq!(sys::fixtures::asked() - before, 1);
}

#[test]
fn a_flood_asks_for_no_memory() {
    each(Probe::Stream, Pacing::Flood, &[1, 7], LONG_TRIAL);
}

#[test]
fn a_schedule_asks_for_no_memory() {
    each(Probe::Stream, Pacing::Schedule(200_000.0), &[1, 7], LONG_TRIAL / 5);
}

#[test]
fn an_echo_asks_for_no_memory() {
    each(Probe::Echo, Pacing::Lockstep, &[1], LONG_TRIAL / 10);
}
