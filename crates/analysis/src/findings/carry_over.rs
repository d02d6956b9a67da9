//! Carry-over: whether a slice behind a slice of the same arm differs from one behind the other arm's.

use crate::findings::same_arm::check;
use crate::statistics::Moments;
use stacklab_model::{Metric, Probe, Role, RunRecord, SELF_ARMS, SameArm, Scale, Slice, Transport, Trial};
use std::collections::BTreeMap;

const METRICS: [Metric; 3] = [Metric::Throughput, Metric::SenderCpuPerMessage, Metric::Rtt];

/// By metric and transport, of the A/A check's trials: the figure of slices that follow their own arm's, against the
/// other arm's slice of the same round. The arms are of one cell, so nothing else differs. A trial is the unit.
pub(super) fn carry_over(runs: &[RunRecord]) -> Vec<SameArm> {
    let mut trials: BTreeMap<(u32, Probe, Transport), [Option<&RunRecord>; 2]> = BTreeMap::new();
    for run in runs {
        let (Trial { block, probe, .. }, cell) = (&run.trial, &run.trial.cell);
        let Some(arm) = SELF_ARMS.iter().position(|label| *label == cell.replica) else { continue };
        trials.entry((*block, *probe, cell.transport)).or_default()[arm] = Some(run);
    }
    let mut pairs: BTreeMap<(Metric, Transport), Vec<(f64, f64)>> = BTreeMap::new();
    for ((_, probe, transport), arms) in trials {
        let [Some(one), Some(other)] = arms else { continue };
        for metric in METRICS.into_iter().filter(|metric| metric.probe() == probe) {
            if let Some(ratio) = of_trial([one, other], metric) {
                pairs.entry((metric, transport)).or_default().push((1.0, ratio));
            }
        }
    }
    let checks = pairs.into_iter();
    checks.filter_map(|((metric, transport), pairs)| check(metric, transport, Scale::Ratio, &pairs)).collect()
}

/// The ratio of own to other over the rounds of a trial, by their trimmed mean.
fn of_trial(arms: [&RunRecord; 2], metric: Metric) -> Option<f64> {
    let [one, other] = arms.map(|run| (slices(run, Role::Sender), slices(run, Role::Receiver)));
    let rounds = one.0.len().min(other.0.len());
    let is_first = |round: usize| one.0[round].first_ns < other.0[round].first_ns;
    let ratio = |round: usize| {
        // The arm that was second in the round before is the first in this one.
        let is_own = is_first(round) != is_first(round - 1);
        let figure = |arm: &(&[Slice], &[Slice]), run: &RunRecord| match metric {
            Metric::Throughput => arm.1.get(round)?.arrival_rate(run.spec.bucket),
            Metric::SenderCpuPerMessage => arm.0[round].cpu_per_message(),
            _ => arm.0[round].delay_ns.map(|ns| ns as f64),
        };
        let [one, other] = [figure(&one, arms[0])?, figure(&other, arms[1])?];
        let (own, rest) = if is_first(round) { (one, other) } else { (other, one) };
        (is_own && own > 0.0 && rest > 0.0).then(|| (own / rest).ln())
    };
    let ratios: Vec<f64> = (1..rounds).filter_map(ratio).collect();
    Some(Moments::trimmed(&ratios)?.mean.exp())
}

fn slices(run: &RunRecord, role: Role) -> &[Slice] {
    run.host_reports.iter().find(|report| report.role == role).map_or(&[], |report| &report.slices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, run};
    use stacklab_model::{Cell, Endpoint, Family, HostReport, Offloads};
    use std::net::SocketAddr;

    /// An arm's report: slices that begin at these times, 100 messages in so many nanoseconds each.
    fn report(role: Role, slices: &[(u64, u64)]) -> HostReport {
        let slices = (0..).zip(slices).map(|(round, (first_ns, took))| Slice {
            round,
            messages: 101,
            at_first: 1,
            first_ns: *first_ns,
            last_ns: first_ns + took,
            ..Slice::default()
        });
        let any: SocketAddr = "[::]:0".parse().unwrap();
        let endpoint = Endpoint {
            family: Family::Ipv6,
            transport: Transport::Udp,
            local: any,
            peer: any,
            interface: "st0".to_owned(),
            interface_mtu: 1500,
            path_mtu: None,
            offloads: Offloads::default(),
            congestion_control: None,
            options: Default::default(),
        };
        HostReport { slices: slices.collect(), ..HostReport::new(role, endpoint) }
    }

    #[test]
    fn slices_after_their_own_arms_are_compared_with_the_other_arms() {
        let arm = |number: usize| Cell { replica: SELF_ARMS[number].to_owned(), ..cell(Family::Ipv4, 128) };
        let mut runs = Vec::new();
        for block in 0..5 {
            // One, other; other, one; one, other; ..: from the second round on, the first slice follows its own
            // arm's, and takes 5 % longer.
            let mut of = [Vec::new(), Vec::new()];
            for round in 0..8_u64 {
                let first = (round % 2) as usize;
                of[first].push((round * 1000, if round > 0 { 105 } else { 100 }));
                of[1 - first].push((round * 1000 + 500, 100));
            }
            for (number, slices) in of.iter().enumerate() {
                let mut arm = run(block, &arm(number), Metric::Throughput, 1.0);
                arm.host_reports = [Role::Sender, Role::Receiver].map(|role| report(role, slices)).to_vec();
                runs.push(arm);
            }
        }
        let found = carry_over(&runs);
        let [check] = &found[..] else { panic!("{found:?}") };
        assert_eq!((check.metric, check.effect.pairs), (Metric::Throughput, 5));
        assert!((check.effect.estimate - 1.0 / 1.05).abs() < 1e-9 && check.p == 0.0, "{check:?}");
        runs.iter_mut().for_each(|run| run.host_reports.clear());
        assert_eq!(carry_over(&runs), []);
    }
}
