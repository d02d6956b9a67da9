//! Joint figures of the arms of an interleaved trial: locations from their slices, and the packets of all.

use crate::engine::coalesce;
use crate::trial::path::Path;
use stacklab_model::{
    Family, HostReport, Metric, Probe, Slice, Slicing, Transport, TrialSpec, Value, wire_size,
};
use std::collections::BTreeMap;

/// Share of the rounds cut off at each end before the mean is taken.
const TRIMMED: f64 = 0.2;
/// Packets of other protocols, and tolerance of counters: as in the validation of one transfer.
const OTHER_PACKETS: f64 = 16.0;
const TOLERANCE: f64 = 0.01;

/// An arm of an interleaved trial: path, spec, and the reports of sender and receiver.
pub type Arm<'a> = (&'a Path, &'a TrialSpec, &'a [HostReport; 2]);

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

/// The joint figures of the arms, in their order.
///
/// For each metric that slices have, the log ratio of two arms is the 20 % trimmed mean of their log ratios within
/// rounds: what slows a whole round is no difference, and a slice that was disturbed spoils neither another round nor
/// another pair of arms. An arm's effect is the mean of its log ratios to all arms, itself included (least squares:
/// with two arms, exactly their trimmed mean). The level is the 20 % trimmed mean over rounds of the median arm
/// without its effect.
pub fn joint_figures(arms: &[Arm<'_>]) -> Vec<JointFigures> {
    let mut all: Vec<JointFigures> = arms.iter().map(|_| JointFigures::default()).collect();
    for metric in Metric::ALL.iter().copied() {
        let columns: Option<Vec<Vec<Option<f64>>>> = arms.iter().map(|arm| column(metric, *arm)).collect();
        let Some(located) = columns.and_then(|columns| locations(&columns)) else { continue };
        for (arm, figure) in all.iter_mut().zip(located) {
            arm.values.insert(metric, Value::Measured(figure));
        }
    }
    for (arm, (_, spec, [_, receiver])) in all.iter_mut().zip(arms) {
        if let Some(stalls) = stalls(&receiver.slices).filter(|_| spec.probe.probe == Probe::Stream) {
            arm.values.insert(Metric::Stalls, Value::Measured(stalls as f64));
        }
    }
    for reason in packets(arms) {
        all.iter_mut().for_each(|arm| arm.contradictions.push(reason.clone()));
    }
    let held_up = held_up(arms);
    all.iter_mut().for_each(|arm| arm.held_up = held_up);
    all
}

/// The slices that were held up, and all of which that is known. All arms have the same figures: no arm's slices are
/// judged by what it suffered more.
fn held_up(arms: &[Arm<'_>]) -> [usize; 2] {
    let slices = arms.iter().flat_map(|(.., reports)| *reports).flat_map(|report| &report.slices);
    let known = slices.filter_map(Slice::held_up);
    known.fold([0, 0], |[held_up, all], was| [held_up + usize::from(was), all + 1])
}

/// The metric's figure in each round of an arm; `None` for a metric that slices do not have.
fn column(metric: Metric, (_, spec, [sender, receiver]): Arm<'_>) -> Option<Vec<Option<f64>>> {
    let of = |slices: &[Slice], figure: &dyn Fn(&Slice) -> Option<f64>| -> Option<Vec<Option<f64>>> {
        Some(slices.iter().map(figure).collect())
    };
    let milliseconds = |ns: f64| ns / 1e6;
    let timed = spec.probe.probe == Probe::Stream && coalesce::knows_arrival_times(spec);
    let shared = spec.slicing.is_some_and(|slicing| slicing.shares(metric));
    if metric.probe() != spec.probe.probe || !metric.applies_to(spec.transport) || shared {
        return None;
    }
    match metric {
        Metric::Throughput => of(&receiver.slices, &|slice| {
            slice.arrival_rate().map(|rate| rate * f64::from(spec.message_bytes) * 8.0 / 1e6)
        }),
        Metric::PacketRate => of(&receiver.slices, &Slice::arrival_rate),
        Metric::CpuPerPacketSender => of(&sender.slices, &Slice::cpu_per_message),
        Metric::CpuPerPacket => of(&receiver.slices, &Slice::cpu_per_message),
        Metric::OneWayDelay if timed => {
            of(&receiver.slices, &|slice| slice.delay_ns.map(|ns| milliseconds(ns as f64)))
        }
        Metric::Jitter if timed => of(&receiver.slices, &|slice| slice.jitter_ns.map(milliseconds)),
        Metric::Rtt => of(&sender.slices, &|slice| slice.delay_ns.map(|ns| milliseconds(ns as f64))),
        _ => None,
    }
}

/// Number of slices below half of the median slice's rate; `None` without a rate. A trimmed mean does not show them.
fn stalls(slices: &[Slice]) -> Option<usize> {
    let mut rates: Vec<f64> = slices.iter().map(|slice| slice.arrival_rate().unwrap_or(0.0)).collect();
    rates.sort_by(f64::total_cmp);
    let median = *rates.get(rates.len() / 2).filter(|rate| **rate > 0.0)?;
    Some(rates.iter().filter(|rate| **rate < median / 2.0).count())
}

/// The location of each arm from its figures by round. `None` with too few rounds in which every arm has one.
fn locations(columns: &[Vec<Option<f64>>]) -> Option<Vec<f64>> {
    let rounds = columns.iter().map(Vec::len).min()?;
    let complete: Vec<Vec<f64>> = (0..rounds)
        .filter_map(|round| {
            let row = columns.iter().map(|column| column[round].filter(|figure| *figure > 0.0).map(f64::ln));
            row.collect::<Option<Vec<f64>>>()
        })
        .collect();
    if (complete.len() as u64) < Slicing::LEAST_ROUNDS {
        return None;
    }
    let arms = columns.len();
    let log_ratio =
        |one: usize, other: usize| trimmed_mean(complete.iter().map(|row| row[one] - row[other]).collect());
    let mut effects = vec![0.0; arms];
    for one in 0..arms {
        for other in 0..one {
            let share = log_ratio(one, other) / arms as f64;
            effects[one] += share;
            effects[other] -= share;
        }
    }
    let without = |row: &Vec<f64>| median(row.iter().zip(&effects).map(|(x, effect)| x - effect).collect());
    let level = trimmed_mean(complete.iter().map(without).collect());
    Some(effects.iter().map(|effect| (level + effect).exp()).collect())
}

/// The median of at least one figure.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let upper = figures.len() / 2;
    (figures[upper] + figures[(figures.len() - 1) / 2]) / 2.0
}

/// The mean without the smallest and the largest fifth.
fn trimmed_mean(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let cut = (figures.len() as f64 * TRIMMED) as usize;
    let kept = &figures[cut..figures.len() - cut];
    kept.iter().sum::<f64>() / kept.len() as f64
}

/// Whether the datagrams of all arms together left in as many packets as planned: the interfaces count all arms.
fn packets(arms: &[Arm<'_>]) -> Vec<String> {
    let datagrams = arms.iter().all(|(_, spec, _)| {
        spec.transport == Transport::Udp && spec.framing != stacklab_model::Framing::Message
    });
    // Arms with testbeds of their own are validated one by one.
    let own = arms.iter().any(|(_, spec, _)| spec.slicing.is_some_and(|slicing| slicing.slots));
    if !datagrams || own || arms.iter().any(|(path, ..)| path.shared) {
        return Vec::new();
    }
    let planned = arms
        .iter()
        .map(|(path, spec, [sender, _])| {
            let mtu = sender.endpoint.path_mtu.filter(|_| !path.planned_mtu).unwrap_or(path.path_mtus()[0]);
            let each =
                wire_size(Family::of(path.sender.ip()), spec.transport, spec.message_bytes, mtu).packets;
            (sender.sent.warmup + sender.sent.measured + sender.sent.markers).saturating_mul(each.into())
        })
        .fold(0, u64::saturating_add);
    // The arm that began first and ended last saw all of them.
    let left =
        arms.iter().map(|(_, _, [sender, _])| sender.counters.get("interface.tx_packets")).max().unwrap_or(0);
    let [least, most] = [
        planned as f64 * (1.0 - TOLERANCE) - OTHER_PACKETS,
        planned as f64 * (1.0 + TOLERANCE) + OTHER_PACKETS,
    ];
    if left == 0 || (least..=most).contains(&(left as f64)) {
        return Vec::new();
    }
    let how = if (left as f64) < least { "they were coalesced" } else { "they were split" };
    vec![format!("the arms together sent {planned} packets and {left} left: {how}")]
}

/// Messages after the first receive of each slice, and the seconds in which they arrived.
pub(super) fn arrivals(slices: &[Slice]) -> (f64, f64) {
    let messages = slices.iter().map(|slice| slice.messages.saturating_sub(slice.at_first) as f64).sum();
    (messages, slices.iter().map(Slice::seconds).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures::{host_reports, path, spec};
    use stacklab_model::SplitMix64;

    /// Slices of two arms whose messages per second are given by round, and which send 10 ms each.
    fn arms(rates: [&[f64]; 2]) -> Vec<(Path, TrialSpec, [HostReport; 2])> {
        let of = |family: Family, rates: &[f64]| {
            let mut spec = spec(family, Transport::Udp);
            spec.slicing = Some(Slicing::default());
            let (mut sender, mut receiver) = host_reports(&spec);
            receiver.slices = rates
                .iter()
                .zip(0..)
                .map(|(rate, round)| Slice {
                    round,
                    messages: (rate / 100.0) as u64 + 1,
                    at_first: 1,
                    first_ns: 5,
                    last_ns: 10_000_005,
                    ..Slice::default()
                })
                .collect();
            sender.counters.0.insert("interface.tx_packets".to_owned(), 2 * 1003);
            (path(family), spec, [sender, receiver])
        };
        vec![of(Family::Ipv4, rates[0]), of(Family::Ipv6, rates[1])]
    }

    fn found(arms: &[(Path, TrialSpec, [HostReport; 2])]) -> Vec<JointFigures> {
        joint_figures(&arms.iter().map(|(path, spec, reports)| (path, spec, reports)).collect::<Vec<_>>())
    }

    fn rate(found: &JointFigures) -> f64 {
        found.values[&Metric::PacketRate].measured().unwrap()
    }

    #[test]
    fn what_slows_a_round_is_no_difference_and_a_disturbed_slice_has_no_weight() {
        // The machine wanders by a factor of ten; IPv6 is 4 % slower in each round.
        let levels = [1e5, 2e5, 5e5, 1e6, 3e5, 2e5, 1e5, 9e5, 4e5, 6e5];
        let slower: Vec<f64> = levels.iter().map(|level| level * 0.96).collect();
        let both = found(&arms([&levels, &slower]));
        assert!((rate(&both[1]) / rate(&both[0]) - 0.96).abs() < 1e-3, "{both:?}");
        // The level is the trimmed geometric mean, about 3.4e5.
        assert!((2e5..5e5).contains(&rate(&both[0])), "{both:?}");
        // Something else takes the processor for one slice.
        let mut disturbed = slower.clone();
        disturbed[4] = 1e3;
        let both = found(&arms([&levels, &disturbed]));
        assert!((rate(&both[1]) / rate(&both[0]) - 0.96).abs() < 1e-3, "{both:?}");
        assert!(both.iter().all(|arm| arm.contradictions.is_empty()), "{both:?}");
    }

    /// A draw from the standard normal distribution.
    fn normal(random: &mut u64) -> f64 {
        let mut uniform = || {
            *random = SplitMix64::mix(*random);
            (*random >> 11) as f64 / (1_u64 << 53) as f64
        };
        (-2.0 * (1.0 - uniform()).ln()).sqrt() * (2.0 * std::f64::consts::PI * uniform()).cos()
    }

    /// Mean and variance over trials of the log ratio of the first two of so many arms, of which the second is 1 % slower;
    /// slices have noise of 1 %, and one in twenty is up to half as fast.
    fn log_ratio_of(arms: usize) -> [f64; 2] {
        let mut random = 5;
        let found: Vec<f64> = (0..4000)
            .map(|_| {
                let column = |arm: usize, random: &mut u64| -> Vec<Option<f64>> {
                    let effect = if arm == 1 { 0.99 } else { 1.0 + 0.02 * arm as f64 };
                    let slice = |random: &mut u64| {
                        let slower = if normal(random) > 1.645 { 0.3 * normal(random).abs() } else { 0.0 };
                        effect * (0.01 * normal(random) - slower).exp()
                    };
                    (0..20).map(|_| Some(slice(random))).collect()
                };
                let columns: Vec<_> = (0..arms).map(|arm| column(arm, &mut random)).collect();
                let located = locations(&columns).unwrap();
                (located[1] / located[0]).ln()
            })
            .collect();
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        [mean, found.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / found.len() as f64]
    }

    #[test]
    fn disturbed_slices_of_other_arms_do_not_spoil_a_comparison() {
        let [_, of_two] = log_ratio_of(2);
        for arms in [4, 8, 16] {
            let [mean, variance] = log_ratio_of(arms);
            assert!((mean - 0.99_f64.ln()).abs() < 3e-4, "{arms} arms: {mean}");
            // With distances from the round's mean: 1.25 to 1.47 times.
            assert!(variance < 1.1 * of_two, "{arms} arms: {} times", variance / of_two);
        }
    }

    #[test]
    fn rounds_that_an_arm_lacks_are_left_out_and_too_few_give_no_location() {
        let few = found(&arms([&[1e5; 4], &[1e5; 9]]));
        assert!(few.iter().all(|arm| arm.values.keys().eq([&Metric::Stalls])));
        let mut some = arms([&[1e5; 9], &[1e5; 9]]);
        some[1].2[1].slices[3] = Slice { round: 3, ..Slice::default() };
        assert!((rate(&found(&some)[1]) - 1e5).abs() < 1.0);
    }

    #[test]
    fn packets_of_all_arms_together_are_compared_with_the_plan() {
        let mut some = arms([&[1e5; 9], &[1e5; 9]]);
        some[0].2[0].counters.0.insert("interface.tx_packets".to_owned(), 3000);
        let said = &found(&some)[1].contradictions;
        assert_eq!(*said, ["the arms together sent 2006 packets and 3000 left: they were split"]);
    }

    #[test]
    fn slices_that_waited_for_a_processor_are_counted_of_all_arms_together() {
        let mut some = arms([&[1e5; 9], &[1e5; 9]]);
        // Of 10 ms: just enough, and too much.
        (some[0].2[1].slices[2].waited_ns, some[1].2[1].slices[3].waited_ns) =
            (Some(1_000_000), Some(1_000_001));
        assert!(found(&some).iter().all(|arm| arm.held_up == [1, 2]));
    }

    #[test]
    fn slices_far_below_their_arms_median_are_stalls() {
        let mut rates = [1e5; 9];
        (rates[2], rates[7]) = (4e4, 6e4);
        let both = found(&arms([&rates, &[1e5; 9]]));
        let stalls = both.iter().map(|arm| arm.values[&Metric::Stalls].measured().unwrap());
        assert_eq!(stalls.collect::<Vec<_>>(), [1.0, 0.0]);
    }

    #[test]
    fn a_trimmed_mean_leaves_a_fifth_out_at_each_end() {
        assert_eq!(trimmed_mean(vec![100.0, 1.0, 2.0, 3.0, -50.0]), 2.0);
        assert_eq!(trimmed_mean(vec![1.0, 3.0]), 2.0);
    }
}
