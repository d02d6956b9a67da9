//! Stretches of a measured window in which nothing moved: a host or the link was stopped.

use stacklab_model::{ArmSchedule, HostReport, IntervalRow, Length, Probe, Slice, TrialSpec, Warning};

/// What may pass without a message, nanoseconds, in addition to the usual: longer than a first retransmission of TCP
/// takes.
const LONG_NS: u64 = 250_000_000;

/// The warning of a run in which nothing moved for long.
pub(super) fn standstill(spec: &TrialSpec, sender: &HostReport, receiver: &HostReport) -> Option<Warning> {
    if spec.probe.probe == Probe::Connect {
        return None;
    }
    let ns = match spec.schedule {
        ArmSchedule::Alone => alone(spec, sender, receiver),
        _ => [&sender.slices, &receiver.slices].into_iter().filter_map(|slices| in_slices(slices)).max(),
    }?;
    Some(Warning {
        code: "standstill".to_owned(),
        text: format!("nothing moved for about {} ms of the measured window", ns / 1_000_000),
        advice: "see whether a host or the link was stopped meanwhile".to_owned(),
    })
}

/// For how long nothing moved in a trial by itself, if that was long.
fn alone(spec: &TrialSpec, sender: &HostReport, receiver: &HostReport) -> Option<u64> {
    let seen = if spec.probe.probe.echoes() { sender } else { receiver };
    let sent_ns = sender.sent.last_ns.saturating_sub(sender.sent.first_ns);
    let arrived_ns = seen.received.last_ns.saturating_sub(seen.received.first_ns);
    // Where nothing arrived at the beginning or the end, the arrivals are a shorter window than what was sent.
    let missing_ns = sent_ns.saturating_sub(arrived_ns);
    if seen.received.measured == 0 {
        return (sender.sent.measured > 0).then_some(sent_ns);
    }
    let usual_ns = sent_ns.max(arrived_ns) / seen.received.measured;
    if missing_ns > sent_ns / 5 && missing_ns > usual_ns.saturating_mul(20) {
        return Some(missing_ns);
    }
    let longer_ns = match spec.probe.length {
        Length::Time(ns) => sent_ns.saturating_sub(ns),
        Length::Packets(_) => 0,
    };
    let ns = longer_ns.max(longest_gap(&seen.series));
    (ns > usual_ns.saturating_mul(2).saturating_add(LONG_NS)).then_some(ns)
}

/// How much longer than the others the longest round of an arm lasted, from the beginning of its slice to that of the
/// next one, if that was long. What keeps a path from getting empty keeps all arms waiting. A slice of which nothing
/// arrived has no beginning: the rounds around it count as equally long.
fn in_slices(slices: &[Slice]) -> Option<u64> {
    let slices: Vec<&Slice> =
        slices.iter().filter(|slice| slice.messages > 0 || slice.first_ns > 0).collect();
    let began = slices.windows(2).map(|pair| {
        let rounds = pair[1].round.saturating_sub(pair[0].round).max(1);
        pair[1].first_ns.saturating_sub(pair[0].first_ns) / u64::from(rounds)
    });
    let last = slices.last()?;
    let mut lasted: Vec<u64> = began.chain([last.last_ns.saturating_sub(last.first_ns)]).collect();
    lasted.sort_unstable();
    let (usual_ns, longest_ns) = (lasted[lasted.len() / 2], lasted[lasted.len() - 1]);
    (longest_ns > usual_ns.saturating_mul(2).saturating_add(LONG_NS)).then(|| longest_ns - usual_ns)
}

/// The longest stretch of intervals without a message, nanoseconds.
fn longest_gap(series: &[IntervalRow]) -> u64 {
    let [first, second, ..] = series else { return 0 };
    let row_ns = second.start_ns.saturating_sub(first.start_ns);
    let empty = series.split(|row| row.messages > 0).map(<[_]>::len).max().unwrap_or(0);
    (empty as u64).saturating_mul(row_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use stacklab_model::{ArmSchedule, Family, Transport};

    /// Both reports of a stream of 1 s with 1000 messages, evenly.
    fn stream() -> (TrialSpec, HostReport, HostReport) {
        let mut spec = fixtures::spec(Family::Ipv4, Transport::Udp);
        spec.probe.length = Length::Time(1_000_000_000);
        let (mut sender, mut receiver) = fixtures::host_reports(&spec);
        (sender.sent.first_ns, sender.sent.last_ns) = (5_000_000_000, 6_000_000_000);
        receiver.received.measured = 1000;
        (receiver.received.first_ns, receiver.received.last_ns) = (7_000_000_000, 8_000_000_000);
        let row = |place: u64| IntervalRow {
            start_ns: place * 50_000_000,
            messages: 50,
            bytes: 6400,
            delay_mean_ns: None,
        };
        receiver.series = (0..20).map(row).collect();
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
        let (mut cut, mut late) = (receiver.clone(), sender.clone());
        cut.received.last_ns -= 400_000_000;
        assert!(said(&sender, &cut).contains("about 400 ms"));
        late.sent.last_ns += 700_000_000;
        assert!(said(&late, &receiver).contains("about 700 ms"));
        // Nothing at all arrived.
        let nothing = HostReport::new(receiver.role, receiver.endpoint.clone());
        assert!(said(&sender, &nothing).contains("about 1000 ms"));
        // The receiver of a short trial was stopped in its middle.
        let (mut short, mut half) = (sender.clone(), receiver.clone());
        short.sent.last_ns = short.sent.first_ns + 40_000_000;
        half.received.last_ns = half.received.first_ns + 20_000_000;
        assert!(said(&short, &half).contains("about 20 ms"));
        // Three messages in a second are as slow as that.
        let mut slow = cut.clone();
        slow.received.measured = 3;
        assert_eq!(said(&sender, &slow), "");
    }

    #[test]
    fn an_arm_that_stood_still_in_a_slice_says_so() {
        let (mut spec, mut sender, receiver) = stream();
        spec.schedule = ArmSchedule::TokenPassing(None);
        let slice = |round: u32| Slice {
            round,
            messages: 100,
            first_ns: u64::from(round) * 40_000_000,
            last_ns: u64::from(round) * 40_000_000 + 10_000_000,
            ..Slice::default()
        };
        sender.slices = (0..8).map(slice).collect();
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
}
