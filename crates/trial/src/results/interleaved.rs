//! Joint figures of the arms of an interleaved trial: locations from their slices, and the packets of all.

use crate::results::locations::{TRIMMED, TRIMMED_OF_TCP_STREAM, estimate_arms, explain_too_few_round_trips};
use crate::validate::{self, ArmReports};
use stacklab_model::{Ends, HostReport, Metric, Probe, Slice, Transport, TrialSpec, Value};
use stacklab_traffic::timing::knows_arrival_times;
use std::collections::BTreeMap;

/// The joint figures of the arms of an interleaved trial, those of one arm.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JointFigures {
    /// Locations of the arm, which replace the sums over its slices.
    pub values: BTreeMap<Metric, Value>,
    /// How the packets of all arms contradict the plan.
    pub contradictions: Vec<String>,
    /// How many slices of all arms, at both hosts, were held up ([`Slice::held_up`]), and of how many that is known.
    pub held_up: [usize; 2],
}

/// A spec, and the reports of sender and receiver.
pub type ArmSlices<'a> = (&'a TrialSpec, &'a Ends<HostReport>);

/// The joint figures of the arms, in their order.
pub fn joint_figures(arms: &[ArmReports<'_>]) -> Vec<JointFigures> {
    let slices: Vec<ArmSlices<'_>> = arms.iter().map(|(_, spec, reports)| (*spec, *reports)).collect();
    let mut all = Vec::new();
    for values in locate_arms(&slices) {
        all.push(JointFigures { values, ..JointFigures::default() });
    }
    for (arm, (spec, Ends { sender, receiver })) in all.iter_mut().zip(&slices) {
        if spec.probe.probe == Probe::Stream
            && let Some(stalls) = stalls(&rates(spec, &sender.slices, &receiver.slices))
        {
            arm.values.insert(Metric::Stalls, Value::Measured(stalls as f64));
        }
    }
    for reason in validate::arms(arms) {
        all.iter_mut().for_each(|arm| arm.contradictions.push(reason.clone()));
    }
    let held_up = held_up(&slices);
    all.iter_mut().for_each(|arm| arm.held_up = held_up);
    all
}

/// The figures of each arm that replace the sums over its slices.
///
/// For each metric that slices have, the log ratio of two arms is the trimmed mean of their log ratios within rounds:
/// a slow round affects all arms, and a slice that was disturbed spoils neither another round nor another pair of
/// arms. Rounds count by their messages. An arm's effect is the mean of its log ratios to all arms, itself included
/// (least squares: with two arms, exactly their trimmed mean). The level is the trimmed mean over rounds of the
/// median arm without its effect.
pub fn locate_arms(arms: &[ArmSlices<'_>]) -> Vec<BTreeMap<Metric, Value>> {
    let mut all = vec![BTreeMap::new(); arms.len()];
    let weights = weights(arms);
    let is_tcp_stream =
        arms.iter().any(|(spec, _)| spec.transport == Transport::Tcp && spec.probe.probe == Probe::Stream);
    let trimmed = if is_tcp_stream { TRIMMED_OF_TCP_STREAM } else { TRIMMED };
    // Lost messages cut slices short, too, and half of them may be missing.
    let too_few_round_trips = if have_answers(arms) { explain_too_few_round_trips(&weights) } else { None };
    for metric in Metric::ALL.iter().copied() {
        let columns: Option<Vec<Vec<Option<f64>>>> = arms.iter().map(|arm| column(metric, *arm)).collect();
        let Some(columns) = columns else { continue };
        let located = match &too_few_round_trips {
            Some(reason) if metric == Metric::Rtt => vec![Some(Value::Missing(reason.clone())); arms.len()],
            _ => estimate_arms(metric, &columns, &weights, trimmed),
        };
        for (arm, figure) in all.iter_mut().zip(located) {
            arm.extend(figure.map(|figure| (metric, figure)));
        }
    }
    all
}

/// Whether all messages but one in a hundred had an answer.
fn have_answers(arms: &[ArmSlices<'_>]) -> bool {
    arms.iter().all(|(_, Ends { sender, .. })| 100 * sender.received.measured >= 99 * sender.sent.measured)
}

/// The messages of each round: of the arm that sent fewest.
fn weights(arms: &[ArmSlices<'_>]) -> Vec<f64> {
    let rounds = arms.iter().map(|(_, ends)| ends.sender.slices.len()).min().unwrap_or(0);
    let mut weights = Vec::new();
    for round in 0..rounds {
        let fewest = arms.iter().map(|(_, ends)| ends.sender.slices[round].messages).min();
        weights.push(fewest.unwrap_or(0) as f64);
    }
    weights
}

/// The slices that were held up, and all of which that is known. All arms have the same figures: no arm's slices are
/// judged by what it suffered more.
fn held_up(arms: &[ArmSlices<'_>]) -> [usize; 2] {
    let slices = arms.iter().flat_map(|(_, reports)| *reports).flat_map(|report| &report.slices);
    let known = slices.filter_map(Slice::held_up);
    known.fold([0, 0], |[held_up, all], was| [held_up + usize::from(was), all + 1])
}

/// The metric's figure in each round of an arm; `None` for a metric that slices do not have.
fn column(metric: Metric, (spec, Ends { sender, receiver }): ArmSlices<'_>) -> Option<Vec<Option<f64>>> {
    let timed = spec.probe.probe == Probe::Stream && knows_arrival_times(spec);
    let shared = spec.schedule.shares(metric);
    if metric.probe() != spec.probe.probe || !metric.applies_to(spec.transport) || shared {
        return None;
    }
    let figures = match metric {
        Metric::Throughput => {
            let megabits = f64::from(spec.message_bytes) * 8.0 / 1e6;
            let rates = rates(spec, &sender.slices, &receiver.slices);
            rates.into_iter().map(|rate| rate.map(|rate| rate * megabits)).collect()
        }
        Metric::MessageRate => rates(spec, &sender.slices, &receiver.slices),
        Metric::SenderCpuPerMessage => collect_positive(&sender.slices, Slice::cpu_per_message),
        Metric::ReceiverCpuPerMessage => collect_positive(&receiver.slices, Slice::cpu_per_message),
        Metric::OneWayDelay if timed => {
            collect_positive(&receiver.slices, |slice| slice.delay_ns.map(|ns| ns as f64 / 1e6))
        }
        Metric::Jitter if timed => {
            collect_positive(&receiver.slices, |slice| slice.jitter_ns.map(|ns| ns / 1e6))
        }
        Metric::Rtt => collect_positive(&sender.slices, |slice| match slice.delay_ns {
            Some(ns) => Some(ns as f64 / 1e6),
            None => (slice.messages > 0).then_some(f64::INFINITY),
        }),
        _ => return None,
    };
    Some(figures)
}

/// A figure of each slice, without those of zero: only of a rate zero is a figure, others have no logarithm of it.
fn collect_positive(slices: &[Slice], figure: impl Fn(&Slice) -> Option<f64>) -> Vec<Option<f64>> {
    slices.iter().map(|slice| figure(slice).filter(|figure| *figure > 0.0)).collect()
}

/// Messages per second that arrived in each slice: 0 where messages were sent and none arrived, and `None` where the
/// sender left the slice out, or one receive returned all that arrived.
fn rates(spec: &TrialSpec, sent: &[Slice], arrived: &[Slice]) -> Vec<Option<f64>> {
    let mut rates = Vec::new();
    for round in 0..sent.len().max(arrived.len()) {
        let is_sent = sent.get(round).is_some_and(|slice| slice.messages > 0);
        rates.push(match arrived.get(round) {
            Some(slice) if slice.messages > 0 => slice.arrival_rate(spec.bucket),
            _ if is_sent => Some(0.0),
            _ => None,
        });
    }
    rates
}

/// Number of slices below half of the median slice's rate; `None` without a rate. A trimmed mean does not show them.
fn stalls(rates: &[Option<f64>]) -> Option<usize> {
    let mut known: Vec<f64> = rates.iter().copied().flatten().collect();
    known.sort_by(f64::total_cmp);
    let median = *known.get(known.len() / 2).filter(|rate| **rate > 0.0)?;
    Some(known.iter().filter(|rate| **rate < median / 2.0).count())
}

/// Messages after the first receive of each slice, without the burst of a token bucket, and the seconds in which they
/// arrived.
pub(super) fn arrivals(spec: &TrialSpec, slices: &[Slice]) -> (f64, f64) {
    let messages =
        slices.iter().map(|slice| slice.arrival_rate(spec.bucket).unwrap_or(0.0) * slice.seconds());
    (messages.sum(), slices.iter().map(Slice::seconds).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{host_reports, path, spec};
    use crate::path::Path;
    use stacklab_model::{ArmSchedule, Family, LinkBucket, Transport};

    /// Slices of two arms whose messages per second are given by round, and which send 10 ms each.
    fn arms(rates: [&[f64]; 2]) -> Vec<(Path, TrialSpec, Ends<HostReport>)> {
        vec![build_arm(Family::Ipv4, rates[0]), build_arm(Family::Ipv6, rates[1])]
    }

    fn build_arm(family: Family, rates: &[f64]) -> (Path, TrialSpec, Ends<HostReport>) {
        let mut spec = spec(family, Transport::Udp);
        spec.schedule = ArmSchedule::TokenPassing(None);
        let (mut sender, mut receiver) = host_reports(&spec);
        for (rate, round) in rates.iter().zip(0..) {
            sender.slices.push(Slice { round, messages: 1000, ..Slice::default() });
            receiver.slices.push(Slice {
                round,
                messages: (rate / 100.0) as u64 + 1,
                at_first: 1,
                first_ns: 5,
                last_ns: 10_000_005,
                ..Slice::default()
            });
        }
        sender.counters.0.insert("interface.tx_packets".to_owned(), 2 * 1003);
        (path(family), spec, Ends { sender, receiver })
    }

    fn compute_figures(arms: &[(Path, TrialSpec, Ends<HostReport>)]) -> Vec<JointFigures> {
        joint_figures(&arms.iter().map(|(path, spec, reports)| (path, spec, reports)).collect::<Vec<_>>())
    }

    fn rate(found: &JointFigures) -> f64 {
        found.values[&Metric::MessageRate].measured().unwrap()
    }

    #[test]
    fn slow_round_and_disturbed_slice_make_no_difference() {
        // The machine wanders by a factor of ten; IPv6 is 4 % slower in each round.
        let levels = [1e5, 2e5, 5e5, 1e6, 3e5, 2e5, 1e5, 9e5, 4e5, 6e5];
        let slower: Vec<f64> = levels.iter().map(|level| level * 0.96).collect();
        let both = compute_figures(&arms([&levels, &slower]));
        assert!((rate(&both[1]) / rate(&both[0]) - 0.96).abs() < 1e-3, "{both:?}");
        // The level is the trimmed geometric mean, about 3.4e5.
        assert!((2e5..5e5).contains(&rate(&both[0])), "{both:?}");
        // Something else takes the processor for one slice.
        let mut disturbed = slower.clone();
        disturbed[4] = 1e3;
        let both = compute_figures(&arms([&levels, &disturbed]));
        assert!((rate(&both[1]) / rate(&both[0]) - 0.96).abs() < 1e-3, "{both:?}");
        assert!(both.iter().all(|arm| arm.contradictions.is_empty()), "{both:?}");
    }

    #[test]
    fn incomplete_rounds_are_left_out_and_few_give_none() {
        let few = compute_figures(&arms([&[1e5; 4], &[1e5; 9]]));
        assert!(few.iter().all(|arm| arm.values.keys().eq([&Metric::Stalls])));
        let mut some = arms([&[1e5; 9], &[1e5; 9]]);
        // The sender had no time for one, and one receive brought another.
        some[1].2.sender.slices[3].messages = 0;
        some[1].2.receiver.slices[3] = Slice { round: 3, ..Slice::default() };
        some[1].2.receiver.slices[4].last_ns = 5;
        assert!((rate(&compute_figures(&some)[1]) - 1e5).abs() < 1.0);
    }

    #[test]
    fn packets_of_all_arms_are_compared_with_the_plan() {
        let mut some = arms([&[1e5; 9], &[1e5; 9]]);
        some[0].2.sender.counters.0.insert("interface.tx_packets".to_owned(), 3000);
        let said = &compute_figures(&some)[1].contradictions;
        assert_eq!(*said, ["the arms together sent 2006 packets and 3000 left: they were split"]);
    }

    #[test]
    fn token_bucket_burst_is_no_throughput_of_the_link() {
        let mut some = arms([&[1.05e5; 9], &[0.95e5; 9]]);
        for (_, spec, _) in &mut some {
            spec.bucket = Some(LinkBucket { messages_per_second: 1e5, burst: 100.0 });
        }
        // 1050 messages in 10 ms, of which the bucket let 50 through at once; and a sender slower than the link.
        let both = compute_figures(&some);
        assert_eq!(both.iter().map(|arm| rate(arm).round()).collect::<Vec<_>>(), [1e5, 0.95e5]);
        let (_, spec, Ends { receiver, .. }) = &some[0];
        let (messages, seconds) = arrivals(spec, &receiver.slices);
        assert!((messages / seconds - 1e5).abs() < 1e-3, "{messages} in {seconds} s");
    }

    #[test]
    fn slices_that_waited_are_counted_over_all_arms() {
        let mut some = arms([&[1e5; 9], &[1e5; 9]]);
        // Of 10 ms: just enough, and too much.
        (some[0].2.receiver.slices[2].waited_ns, some[1].2.receiver.slices[3].waited_ns) =
            (Some(1_000_000), Some(1_000_001));
        assert!(compute_figures(&some).iter().all(|arm| arm.held_up == [1, 2]));
    }

    #[test]
    fn slices_far_below_their_arms_median_are_stalls() {
        let mut rates = [1e5; 9];
        (rates[2], rates[7]) = (4e4, 6e4);
        let both = compute_figures(&arms([&rates, &[1e5; 9]]));
        assert_eq!(list_stalls(&both), [1.0, 0.0]);
        // One where nothing arrived is a stall. One that was never sent is none, nor one that one receive brought.
        let mut some = arms([&rates, &[1e5; 9]]);
        some[0].2.receiver.slices[4] = Slice { round: 4, ..Slice::default() };
        some[1].2.sender.slices[4].messages = 0;
        some[1].2.receiver.slices[4] = Slice { round: 4, ..Slice::default() };
        some[1].2.receiver.slices[5].last_ns = 5;
        assert_eq!(list_stalls(&compute_figures(&some)), [2.0, 0.0]);
    }

    fn list_stalls(arms: &[JointFigures]) -> Vec<f64> {
        arms.iter().map(|arm| arm.values[&Metric::Stalls].measured().unwrap()).collect()
    }

    #[test]
    fn lost_slices_are_cut_off_and_many_leave_no_figure() {
        // A fifth of the rounds is cut off at each end.
        let two = lose_slices(2);
        assert!(two.iter().all(|arm| (rate(arm) / 1e5 - 1.0).abs() < 1e-3), "{two:?}");
        let three = lose_slices(3);
        assert!((rate(&three[0]) / 1e5 - 1.0).abs() < 1e-3, "{three:?}");
        let missing = Value::Missing("nothing arrived in 3 of 10 slices".to_owned());
        assert_eq!(
            [Metric::MessageRate, Metric::Throughput].map(|metric| three[1].values[&metric].clone()),
            [missing.clone(), missing]
        );
    }

    /// The figures of ten rounds in whose first ones nothing of the second arm arrived.
    fn lose_slices(count: usize) -> Vec<JointFigures> {
        let mut some = arms([&[1e5; 10], &[1e5; 10]]);
        for round in 0..count {
            some[1].2.receiver.slices[round] = Slice { round: round as u32, ..Slice::default() };
        }
        compute_figures(&some)
    }

    #[test]
    fn costs_of_zero_are_left_out_and_not_lost() {
        let mut some = arms([&[1e5; 10], &[1e5; 10]]);
        let slices = some.iter_mut().flat_map(|(.., ends)| &mut ends.receiver.slices);
        slices.for_each(|slice| slice.cpu_ns = Some(1001 * 500));
        // A coarse clock saw nothing of four slices.
        some[1].2.receiver.slices[..4].iter_mut().for_each(|slice| slice.cpu_ns = Some(0));
        let found = compute_figures(&some);
        let cpu =
            found.iter().map(|arm| arm.values[&Metric::ReceiverCpuPerMessage].measured().unwrap().round());
        assert_eq!(cpu.collect::<Vec<_>>(), [500.0; 2]);
    }

    #[test]
    fn a_round_trip_that_never_ended_is_longer_than_any() {
        for unanswered in [0, 2] {
            let found = echo(unanswered);
            assert!(is_close(&found[0], 0.02) && is_close(&found[1], 0.01), "{found:?}");
        }
        let found = echo(3);
        assert!(is_close(&found[0], 0.02), "{found:?}");
        let reason = "half of the messages or more had no answer in 3 of 10 slices".to_owned();
        assert_eq!(found[1], Value::Missing(reason));
    }

    /// The round trips of two arms, of which the second had no answers in this number of its first rounds.
    fn echo(unanswered: usize) -> Vec<Value> {
        let mut some = arms([&[1e5; 10], &[1e5; 10]]);
        for (arm, (_, spec, Ends { sender, .. })) in some.iter_mut().enumerate() {
            spec.probe.probe = Probe::Echo;
            spec.probe.pacing = stacklab_model::Pacing::Lockstep;
            for (round, slice) in sender.slices.iter_mut().enumerate() {
                // The second arm is twice as fast in the rounds whose answers came.
                let ns = if arm == 0 { 20_000 } else { 10_000 };
                slice.delay_ns = (arm == 0 || round >= unanswered).then_some(ns);
            }
        }
        compute_figures(&some).iter().map(|arm| arm.values[&Metric::Rtt].clone()).collect()
    }

    fn is_close(found: &Value, ms: f64) -> bool {
        (found.measured().unwrap() / ms - 1.0).abs() < 1e-9
    }
}
