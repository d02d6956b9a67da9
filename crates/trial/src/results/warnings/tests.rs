//! Trials that were disturbed, and what is said of them.

use super::*;
use crate::fixtures;
use stacklab_model::Family;

/// Both reports of a stream of 1 s with 1000 messages, evenly.
fn stream() -> (TrialSpec, HostReport, HostReport) {
    let mut spec = fixtures::spec(Family::Ipv4, Transport::Udp);
    spec.probe.length = Length::Time(1_000_000_000);
    let (mut sender, mut receiver) = fixtures::host_reports(&spec);
    (sender.sent.first_ns, sender.sent.last_ns) = (5_000_000_000, 6_000_000_000);
    receiver.received.measured = 1000;
    (receiver.received.first_ns, receiver.received.last_ns) = (7_000_000_000, 8_000_000_000);
    for place in 0..20 {
        let start_ns = place * 50_000_000;
        receiver.series.push(IntervalRow { start_ns, messages: 50, bytes: 6400, delay_mean_ns: None });
    }
    (spec, sender, receiver)
}

#[test]
fn a_stream_that_stood_still_says_for_how_long() {
    let (spec, sender, receiver) = stream();
    assert_eq!(standstill(&spec, &sender, &receiver), None);
    let said = |sender: &HostReport, receiver: &HostReport| {
        standstill(&spec, sender, receiver).map(|warning| warning.text).unwrap_or_default()
    };
    // In the middle: five empty intervals are a retransmission, ten are not.
    for (empty, text) in [(5, ""), (10, "about 500 ms")] {
        let mut gap = receiver.clone();
        gap.series[4..4 + empty].iter_mut().for_each(|row| row.messages = 0);
        assert!(said(&sender, &gap).contains(text) && said(&sender, &gap).is_empty() == text.is_empty());
    }
    // At the end, and a sender that stood still itself.
    let mut cut = receiver.clone();
    let mut late = sender.clone();
    cut.received.last_ns -= 400_000_000;
    assert!(said(&sender, &cut).contains("about 400 ms"));
    late.sent.last_ns += 700_000_000;
    assert!(said(&late, &receiver).contains("about 700 ms"));
    // Nothing at all arrived.
    let nothing = HostReport::new(receiver.role, receiver.endpoint.clone());
    assert!(said(&sender, &nothing).contains("about 1000 ms"));
    // The receiver of a short trial was stopped in its middle.
    let mut short = sender.clone();
    let mut half = receiver.clone();
    short.sent.last_ns = short.sent.first_ns + 40_000_000;
    half.received.last_ns = half.received.first_ns + 20_000_000;
    assert!(said(&short, &half).contains("about 20 ms"));
    // Three messages in a second are as slow as that.
    let mut slow = cut.clone();
    slow.received.measured = 3;
    assert_eq!(said(&sender, &slow), "");
}

#[test]
fn foreign_stream_stands_still_beyond_its_schedule() {
    let (mut spec, ..) = stream();
    assert_eq!(standstill_of_stream(&spec, 240_000_000, 5_000_000_000, 10_000), None);
    let warning = standstill_of_stream(&spec, 3_000_000_000, 5_000_000_000, 10_000).unwrap();
    assert!(warning.text.contains("about 3000 ms"));
    // A block every two seconds.
    spec.probe.pacing = Pacing::Schedule(0.5);
    assert_eq!(standstill_of_stream(&spec, 3_000_000_000, 5_000_000_000, 10_000), None);
}

#[test]
fn an_arm_that_stood_still_in_a_slice_says_so() {
    let (mut spec, mut sender, receiver) = stream();
    spec.schedule = ArmSchedule::TokenPassing(None);
    for round in 0..8 {
        let first_ns = u64::from(round) * 40_000_000;
        let last_ns = first_ns + 10_000_000;
        sender.slices.push(Slice { round, messages: 100, first_ns, last_ns, ..Slice::default() });
    }
    assert_eq!(standstill(&spec, &sender, &receiver), None);
    let mut with_gaps = receiver.clone();
    with_gaps.slices = sender.slices.clone();
    for slice in &mut with_gaps.slices {
        // A host that has been up for ten days.
        let up_ns = 864_000_000_000_000;
        (slice.first_ns, slice.last_ns) = (up_ns + slice.first_ns, up_ns + slice.last_ns);
    }
    for round in [3, 7] {
        with_gaps.slices[round] = Slice { round: round as u32, ..Slice::default() };
    }
    assert_eq!(standstill(&spec, &sender, &with_gaps), None);
    let mut at_the_end = sender.clone();
    at_the_end.slices[7].last_ns += 600_000_000;
    assert!(standstill(&spec, &at_the_end, &receiver).unwrap().text.contains("about 570 ms"));
    for slice in &mut sender.slices[4..] {
        slice.first_ns += 600_000_000;
        slice.last_ns += 600_000_000;
    }
    assert!(standstill(&spec, &sender, &receiver).unwrap().text.contains("about 600 ms"));
}
