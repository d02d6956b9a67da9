//! What honest hosts report in extremes: lost, copied, late, cut, and clocks that nobody compared.

use super::*;

/// Each change is one that an honest run may have.
fn assert_honest(probe: Probe, transport: Transport, changes: &[ReportChange<'_>]) {
    for (place, change) in changes.iter().enumerate() {
        assert_eq!(reasons(probe, transport, *change), [""; 0], "{transport}: change {place}");
    }
}

/// Losses, and what a sender gives up, change counts that belong together.
fn lose(receiver: &mut HostReport, arrived: u64) {
    (receiver.received.measured, receiver.received.bytes) = (arrived, 100 * arrived);
    receiver.received.bytes_at_first = 100 * arrived.min(1);
    receiver.delays = (arrived > 0).then(|| delays(&[(10_000, arrived)]));
    if let Some(delays) = &mut receiver.delays {
        (delays.jitter_ns, delays.jitter_rfc3550_ns) = (None, None);
    }
    receiver.series = if arrived > 0 { vec![row(0, arrived)] } else { Vec::new() };
}

#[test]
fn honest_losses_and_copies_contradict_nothing() {
    assert_honest(
        Probe::Stream,
        Transport::Udp,
        &[
            &|_, r| lose(r, 0),
            &|_, r| lose(r, 1),
            // All but the first in the wrong order, each copied by a loop of routers.
            &|_, r| (r.received.reordered, r.received.duplicates) = (999, 255_000),
            &|_, r| r.received.warmup = 0,
            // Clocks were not compared, and no delay was asked for.
            &|_, r| r.delays = None,
            &|s, _| s.sent.discard(5_050, 100),
            &|s, _| s.sent.discard(100_000, 100),
        ],
    );
    assert_honest(
        Probe::Stream,
        Transport::Tcp,
        &[
            // The last message did not arrive whole.
            &|_, r| {
                lose(r, 3);
                r.received.cut_bytes = 99;
                r.series[0].bytes += 99;
                r.flow_bytes = vec![399];
            },
            // All bytes arrived at once.
            &|_, r| r.received.bytes_at_first = 100_000,
        ],
    );
    assert_honest(
        Probe::Echo,
        Transport::Udp,
        &[&|s, _| lose(s, 0), &|s, _| lose(s, 900), &|_, r| r.received.duplicates = 700],
    );
}

#[test]
fn honest_times_contradict_nothing() {
    assert_honest(
        Probe::Stream,
        Transport::Udp,
        &[
            // A clock that is faster, and all that a trial took.
            &|_, r| r.received.last_ns = r.received.first_ns + 1_400 * MS,
            &|s, _| s.sent.last_ns = s.sent.first_ns + 1_400 * MS,
            // One message, and two whose timestamps two processors took.
            &|_, r| r.received.last_ns = r.received.first_ns,
            &|_, r| r.received.last_ns = r.received.first_ns - 20_000,
            &|_, r| r.slices = vec![Slice { first_ns: 5, last_ns: 3, ..Slice::default() }],
            // All delays are alike, of nothing or of as long as the trial.
            &|_, r| r.delays = Some(Delays { mean_ns: 0.3, jitter_ns: Some(0.2), ..same(0) }),
            &|_, r| r.delays = Some(same(1_400 * MS)),
            // Values of a histogram are rounded up, means are not.
            &|_, r| r.delays.as_mut().unwrap().mean_ns = 18_000.0 / 1.0009,
        ],
    );
}

/// A thousand delays of this length.
fn same(ns: u64) -> Delays {
    Delays { jitter_ns: Some(0.0), jitter_rfc3550_ns: Some(0.0), ..delays(&[(ns, 1000)]) }
}

#[test]
fn honest_cpu_time_contradicts_nothing() {
    assert_honest(
        Probe::Stream,
        Transport::Udp,
        &[
            // All processors, and a tick more of each, in a window that is shorter than a tick.
            &change_cpu(|cpu| (cpu.user_ns, cpu.idle_ns, cpu.system_ns) = (2 * SECOND, 0, 40 * MS)),
            &change_cpu(|cpu| {
                (cpu.window_ns, cpu.user_ns, cpu.system_ns, cpu.own_user_ns) =
                    (MS, 64 * MS, 32 * MS, 64 * MS);
            }),
            // Stolen time may be counted as idle time too.
            &change_cpu(|cpu| cpu.steal_ns = 3 * SECOND),
            &change_cpu(|cpu| {
                *cpu = CpuTime { scope: CpuScope::Outside, user_ns: 90 * SECOND, ..cpu.clone() }
            }),
            // A thread that polls works also while the other arms send.
            &change_cpu(|cpu| *cpu = CpuTime { scope: CpuScope::Threads, window_ns: 10 * MS, ..cpu.clone() }),
        ],
    );
}

#[test]
fn clocks_that_differ_contradict_nothing() {
    let (spec, mut ends) = honest(Probe::Stream, Transport::Udp);
    // The clocks are years apart, and nobody compared them.
    ends.receiver.delays = Some(Delays { mean_ns: 9e17, ..same(100 * SECOND) });
    ends.receiver.series[0].delay_mean_ns = Some(9e17);
    let unknown = Limits { one_way: false, ..limits() };
    assert_eq!(numbers(&spec, &unknown, 0, ends.as_ref()), [""; 0]);
    let found = numbers(&spec, &limits(), 0, ends.as_ref());
    assert!(found[0].contains("a one-way delay of 1 min 40 s"), "{found:?}");
    // They were compared, and delays corrected by 100 us, which left none below zero.
    let compared = Some(Compared { offset_ns: 5, bound_ns: 900, skew_ns_per_s: 100_000 });
    let points = DelayPoints { compared, ..DelayPoints::between(Point::Call, Point::Call) };
    ends.receiver.delay_points = Some(points);
    ends.receiver.series[0].delay_mean_ns = Some(10.0);
    ends.receiver.delays = Some(Delays { mean_ns: 90_000.0, ..same(0) });
    assert_eq!(numbers(&spec, &limits(), 0, ends.as_ref()), [""; 0]);
}

#[test]
fn delays_beyond_a_histogram_contradict_nothing() {
    let (spec, mut ends) = honest(Probe::Stream, Transport::Udp);
    // Of a path with a queue of minutes.
    let hour = Limits { processors: [None; 2], ..Limits::of_time(Duration::from_secs(3600)) };
    let most = Delays { mean_ns: 2e12, jitter_ns: Some(9e9), ..same(100 * SECOND + 1) };
    ends.receiver.delays = Some(most.clone());
    assert_eq!(numbers(&spec, &hour, 0, ends.as_ref()), [""; 0]);
    ends.receiver.delays = Some(Delays { mean_ns: 5e12, ..most });
    assert_eq!(numbers(&spec, &hour, 0, ends.as_ref()).len(), 1);
}
