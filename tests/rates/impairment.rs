//! Faults of a known kind and number on the path are reported correctly.

use crate::support;

use stacklab_model::{
    Drops, Family, Length, Metric, Pacing, Probe, ProbeSpec, Role, RunRecord, Transport, Value,
};
use std::time::Duration;
use support::link_rig::LinkRig;
use support::records::{figure, side};
use support::tun::{Done, Faults, FaultyPath};

/// Maximum delay that forwarding through this process and two wake-ups may add on a busy machine, compared with the
/// same path without delay. The reported figure is a median, so a few late packets do not count.
const LATE_MS: f64 = 2.0;
/// Histograms keep three significant digits.
const DIGITS: f64 = 0.001;

fn probe(probe: Probe, pacing: Pacing, packets: u64) -> ProbeSpec {
    let length = Length::Packets(packets);
    ProbeSpec { probe, pacing, length, warmup_ns: 50_000_000, interval_ns: 100_000_000, metrics: Vec::new() }
}

/// This many messages at this many per second.
fn stream(packets: u64, per_second: f64) -> ProbeSpec {
    probe(Probe::Stream, Pacing::Schedule(per_second), packets)
}

fn echo(packets: u64) -> ProbeSpec {
    probe(Probe::Echo, Pacing::Lockstep, packets)
}

fn delayed(delay: Duration) -> Faults {
    Faults { delay, ..Faults::default() }
}

#[test]
fn a_known_delay_is_reported_in_each_direction() {
    // The delays differ, to distinguish half of the round trip from the one-way delay.
    const THERE: Duration = Duration::from_millis(20);
    const BACK: Duration = Duration::from_millis(30);
    // TCP begins with 10 segments per round trip; at a higher rate, messages would wait in the sender.
    let slow = stream(100, 100.0);
    let mut rig = LinkRig::build();
    let path = FaultyPath::new(rig.pids(), Faults::default(), Faults::default());
    let without = measure_delays(&mut rig, &slow);
    drop(path);
    let _path = FaultyPath::new(rig.pids(), delayed(THERE), delayed(BACK));
    for (before, after) in without.into_iter().zip(measure_delays(&mut rig, &slow)) {
        let case = &before.case;
        println!(
            "{case}: {:.3} and {:.3} ms one way, {:.3} and {:.3} ms",
            before.one_way, after.one_way, before.round_trip, after.round_trip
        );
        for (what, injected, base, reported) in [
            ("one way", THERE, before.one_way, after.one_way),
            ("there and back", THERE + BACK, before.round_trip, after.round_trip),
        ] {
            let injected = injected.as_secs_f64() * 1e3;
            // A packet is never early.
            let least = injected * (1.0 - DIGITS);
            let most = injected * (1.0 + DIGITS) + base + LATE_MS;
            assert!(
                (least..=most).contains(&reported),
                "{case}, {what}: {injected} ms were injected on a path of {base} ms, {reported} ms are reported"
            );
        }
    }
}

/// What is reported of a family and a transport, milliseconds.
struct DelayFigures {
    case: String,
    one_way: f64,
    round_trip: f64,
}

fn measure_delays(rig: &mut LinkRig, slow: &ProbeSpec) -> Vec<DelayFigures> {
    let mut all = Vec::new();
    for family in Family::ALL.iter().copied() {
        for transport in Transport::ALL.iter().copied() {
            all.push(DelayFigures {
                case: format!("{family} {transport}"),
                one_way: figure(&rig.run(family, transport, slow), Metric::OneWayDelay),
                round_trip: figure(&rig.run(family, transport, &echo(20)), Metric::Rtt),
            });
        }
    }
    all
}

#[test]
fn losses_duplicates_and_reordering_are_exact() {
    const SENT: u64 = 2000;
    // A rate at which no buffer is ever full.
    let paced = stream(SENT, 1000.0);
    let delay = Duration::from_millis(2);
    let drop = Some((50, 49));
    let double = Some((40, 7));
    let hold = Some((30, 11, 3));
    // Lost messages at the end have no later messages; only waiting distinguishes them from late ones.
    let tail = Some(SENT - 10);
    let cases = [
        ("none", Faults { delay, ..Faults::default() }, (0, 0, 0)),
        ("loss", Faults { delay, drop, drop_from: tail, ..Faults::default() }, (49, 0, 0)),
        ("duplication", Faults { delay, double, ..Faults::default() }, (0, 50, 0)),
        ("reordering", Faults { delay, hold, ..Faults::default() }, (0, 0, 67)),
        (
            "all of them",
            Faults { delay, drop, drop_from: tail, double, hold, ..Faults::default() },
            (49, 50, 66),
        ),
    ];
    let mut rig = LinkRig::build();
    for (name, faults, planned) in cases {
        let path = FaultyPath::new(rig.pids(), faults, Faults::default());
        for family in Family::ALL {
            let run = rig.run(*family, Transport::Udp, &paced);
            let done = path.take();
            println!("{family} {name}: {} {} {}", done.dropped, done.doubled, done.reordered);
            assert_eq!(done.came, SENT, "{family} {name}: the path has not seen every message");
            // The path applied the intended faults.
            assert_eq!((done.dropped, done.doubled, done.reordered), planned, "{family} {name}");
            reported(&run, &done, name);
        }
    }
}

/// Compares a run's figures with the faults that the path applied.
fn reported(run: &RunRecord, done: &Done, name: &str) {
    let received = &side(run, Role::Receiver).received;
    let arrived = done.came - done.dropped;
    let counts =
        (received.measured, received.duplicates, received.reordered, received.beyond_window, received.strays);
    assert_eq!(counts, (arrived, done.doubled, done.reordered, 0, 0), "{} {name}", run.trial);
    for (metric, count, of) in [
        (Metric::Loss, done.dropped, done.came),
        (Metric::Duplicate, done.doubled, arrived),
        (Metric::Reorder, done.reordered, arrived),
    ] {
        assert_eq!(figure(run, metric), count as f64 / of as f64, "{} {name}", run.trial);
    }
    let network = Drops { network: done.dropped, ..Drops::default() };
    assert_eq!(run.drops, network, "{} {name}: losses on the path are blamed on it alone", run.trial);
}

#[test]
fn lossy_tcp_path_shows_retransmissions_and_no_loss() {
    const SENT: u64 = 2000;
    let mut rig = LinkRig::build();
    let faults = Faults { delay: Duration::from_millis(2), drop: Some((50, 49)), ..Faults::default() };
    for (faults, lossy) in [(delayed(faults.delay), false), (faults, true)] {
        let path = FaultyPath::new(rig.pids(), faults, Faults::default());
        for family in Family::ALL {
            let run = rig.run(*family, Transport::Tcp, &stream(SENT, 1000.0));
            let dropped = path.take().dropped;
            let sent = side(&run, Role::Sender).sent.of_trial();
            let retransmits = (figure(&run, Metric::Retransmits) * sent as f64).round();
            println!("{family}: {dropped} segments were dropped, {retransmits} sent again");
            assert_eq!(dropped > 0, lossy, "{family}");
            // On a busy machine a segment may be so late that TCP retransmits it unnecessarily.
            assert!(lossy || retransmits < 10.0, "{family}: {retransmits} on a path without loss");
            // Each dropped segment is retransmitted, and perhaps some that were only late.
            assert!(retransmits >= dropped as f64, "{family}: {retransmits} for {dropped}");
            for metric in [Metric::Loss, Metric::Duplicate, Metric::Reorder] {
                assert!(
                    matches!(&run.values[&metric], Value::Missing(_)),
                    "{family}: TCP repairs, so {metric} is not"
                );
            }
            assert_eq!(side(&run, Role::Receiver).received.measured, SENT, "{family}");
        }
    }
}
