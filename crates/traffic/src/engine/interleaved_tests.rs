//! Interleaved trials on loopback: the slices of all arms.

use crate::engine::arms::send_in_turns;
use crate::engine::opening::WaitingSender;
use crate::engine::receiver::Receiver;
use crate::fixtures;
use crate::protocol::message::SendArm;
use stacklab_model::{
    ArmSchedule, CpuScope, Family, HostReport, Io, Length, Pacing, Probe, SizeOf, Slice, Transport, TrialSpec,
};
use std::net::SocketAddr;

fn spec(family: Family, transport: Transport, probe: Probe, pacing: Pacing, token: u32) -> TrialSpec {
    let mut spec = fixtures::spec(family, transport);
    (spec.token, spec.size_of, spec.io) = (token, SizeOf::Payload, Io::Sendmmsg);
    (spec.probe.probe, spec.probe.pacing) = (probe, pacing);
    (spec.probe.length, spec.probe.warmup_ns) = (Length::Time(60_000_000), 5_000_000);
    spec.schedule = ArmSchedule::TokenPassing(Some(3_000_000));
    spec
}

fn arms(specs: &[TrialSpec], to: impl Iterator<Item = SocketAddr>) -> Vec<(SendArm, Option<WaitingSender>)> {
    let mut arms = Vec::new();
    for (spec, to) in specs.iter().zip(to) {
        let from = spec.family.loopback().into();
        arms.push((SendArm { spec: Box::new(spec.clone()), from, to, waiting: None }, None));
    }
    arms
}

/// Both hosts' reports of each arm.
fn trial(specs: &[TrialSpec]) -> Vec<[HostReport; 2]> {
    let receivers: Vec<Receiver> =
        specs.iter().map(|spec| Receiver::listen(spec.clone(), spec.family.loopback()).unwrap()).collect();
    let to = receivers.iter().map(|receiver| receiver.address);
    let sent = send_in_turns(arms(specs, to), 5, None).unwrap();
    let received = receivers.into_iter().map(|receiver| receiver.collect().unwrap());
    sent.into_iter().zip(received).map(|(sent, received)| [sent, received]).collect()
}

#[test]
fn arms_have_equally_many_slices_without_overlap() {
    for (probe, pacing) in [
        (Probe::Stream, Pacing::Flood),
        (Probe::Stream, Pacing::Schedule(20_000.0)),
        (Probe::Echo, Pacing::Lockstep),
    ] {
        for transport in Transport::ALL.iter().copied() {
            let specs: Vec<TrialSpec> = [Family::Ipv4, Family::Ipv6, Family::Ipv4]
                .into_iter()
                .zip(7..)
                .map(|(family, token)| spec(family, transport, probe, pacing, token))
                .collect();
            let reports = trial(&specs);
            let mut sent: Vec<(u64, u64, u32)> = Vec::new();
            for [sender, receiver] in &reports {
                assert_eq!(sender.slices.len(), 20, "{probe} {transport}");
                assert_eq!(
                    sender.slices.iter().map(|slice| slice.messages).sum::<u64>(),
                    sender.sent.measured
                );
                assert!(sender.slices.iter().all(|slice| slice.messages > 0 && slice.cpu_ns.is_some()));
                sent.extend(sender.slices.iter().map(|slice| (slice.first_ns, slice.last_ns, slice.round)));
                assert_eq!(sender.cpu.as_ref().unwrap().scope, CpuScope::Threads);
                if probe == Probe::Echo {
                    assert!(sender.slices.iter().all(|slice| slice.delay_ns.is_some()));
                    continue;
                }
                let arrived: u64 = receiver.slices.iter().map(|slice| slice.messages).sum();
                assert_eq!(arrived, receiver.received.measured);
                if transport == Transport::Tcp {
                    assert_eq!(arrived, sender.sent.measured);
                    assert_eq!(list_messages(&sender.slices), list_messages(&receiver.slices));
                }
            }
            sent.sort_unstable();
            assert!(sent.windows(2).all(|pair| pair[0].1 <= pair[1].0), "slices overlap: {sent:?}");
            // A round is over before the next one begins.
            assert!(sent.windows(2).all(|pair| pair[0].2 <= pair[1].2), "{sent:?}");
        }
    }
}

fn list_messages(slices: &[Slice]) -> Vec<u64> {
    slices.iter().map(|slice| slice.messages).collect()
}

/// Arms of both families whose messages fill segments, of this many bytes.
fn filling(message_bytes: u32, flows: u32) -> [TrialSpec; 2] {
    [Family::Ipv4, Family::Ipv6].map(|family| {
        let spec = spec(family, Transport::Tcp, Probe::Stream, Pacing::Flood, 7);
        TrialSpec { size_of: SizeOf::Write, message_bytes, flows, ..spec }
    })
}

#[test]
fn end_of_a_slice_does_not_wait_for_a_full_segment() {
    for flows in [1, 3] {
        let reports = trial(&filling(10_000, flows));
        let arrived = reports.iter().flat_map(|[_, receiver]| &receiver.slices);
        let mut lasted: Vec<u64> = arrived.map(|slice| slice.last_ns - slice.first_ns).collect();
        lasted.sort_unstable();
        // Slices of 3 ms. What is held back leaves when the peer's delayed acknowledgement comes, after 40 ms.
        let median_ns = lasted[lasted.len() / 2];
        assert!(median_ns < 20_000_000, "{flows} flows: {lasted:?}");
    }
}

#[test]
fn what_fills_several_sockets_leaves_in_the_same_turn() {
    let specs = filling(128 << 10, 3).map(|mut spec| {
        // Less than a message.
        spec.tuning.send_buffer = Some(16 << 10);
        spec.probe.length = Length::Time(15_000_000);
        spec
    });
    let reports = trial(&specs);
    let mut late = 0;
    let mut all = 0;
    for (arm, [sender, receiver]) in reports.iter().enumerate() {
        let other_turns = &reports[1 - arm][0].slices;
        for (sent, arrived) in sender.slices.iter().zip(&receiver.slices) {
            let next =
                other_turns.iter().map(|slice| slice.first_ns).filter(|began| *began > sent.last_ns).min();
            late += usize::from(next.is_some_and(|next| arrived.last_ns > next));
            all += 1;
        }
    }
    // The receiver of a busy machine may be late.
    assert!(all == 10 && late < 4, "{late} of {all} slices arrived in another arm's turn");
}

#[test]
fn share_of_flood_rate_is_one_schedule_for_all_arms() {
    for transport in Transport::ALL.iter().copied() {
        let arm = |family, token| spec(family, transport, Probe::Stream, Pacing::Share(0.25), token);
        let reports = trial(&[arm(Family::Ipv4, 7), arm(Family::Ipv6, 8)]);
        let sent = reports.iter().map(|[sender, _]| sender.sent.measured).collect::<Vec<_>>();
        // Each slice ends within a message of the schedule.
        assert!(sent[0].abs_diff(sent[1]) <= reports[0][0].slices.len() as u64, "{transport}: {sent:?}");
        let slowest =
            reports.iter().map(|[sender, _]| sender.sent.warmup as f64 / 5.0 * 60.0).fold(f64::MAX, f64::min);
        // The warm-up and what empties the path after it; a busy machine makes it slower, not faster. A slice has
        // one message at least.
        let most = (0.3 * slowest).max(reports[0][0].slices.len() as f64);
        assert!(sent[0] as f64 <= most, "{transport}: {sent:?} beside {slowest}");
    }
    let alone = spec(Family::Ipv4, Transport::Udp, Probe::Stream, Pacing::Share(0.25), 7);
    let receiver = Receiver::listen(alone.clone(), alone.family.loopback()).unwrap();
    let reason = crate::engine::sender::run(&alone, alone.family.loopback(), receiver.address).unwrap_err();
    assert!(reason.to_string().contains("needs the arms of an interleaved trial"), "{reason}");
    drop(receiver);
}

#[test]
fn an_arm_that_fails_ends_the_trial_with_its_reason() {
    let specs = [7, 8].map(|token| spec(Family::Ipv6, Transport::Tcp, Probe::Stream, Pacing::Flood, token));
    let receiver = Receiver::listen(specs[0].clone(), Family::Ipv6.loopback()).unwrap();
    let closed = SocketAddr::new(Family::Ipv6.loopback(), 1);
    let arms = arms(&specs, [receiver.address, closed].into_iter());
    let reason = send_in_turns(arms, 5, None).unwrap_err();
    assert!(reason.contains("[::1]:1"), "{reason}");
    receiver.collect().unwrap();
    assert!(send_in_turns(Vec::new(), 5, None).unwrap_err().contains("0 arms"));
}
