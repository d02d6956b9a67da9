//! Findings of a search for the highest load.

use super::fixtures::{cell, cells_of, compare_families, estimate, findings};
use stacklab_model::{
    Estimate, Family, Findings, FrameLoss, FrameLossArm, FrameLossPoint, Interval, LossByLoad, LossPoint,
    Metric, Rfc8219, RunPercentiles, Transport, Verdict,
};

/// The search of a path that carries 1000 messages a second of one family, and 900 of the other.
pub(crate) fn with_losses() -> Findings {
    let losses = vec![losses(Family::Ipv4, 1000.0, 0), losses(Family::Ipv6, 900.0, 4)];
    let means = [(1000.0, 1.0), (900.0, 1.0)];
    let verdict = Verdict::Better("ipv4".to_owned());
    let comparisons =
        vec![compare_families(Transport::Udp, 64, Metric::LoadAtLoss, means, (0.9, 0.001), verdict)];
    Findings { loss_by_load: losses, cells: cells_of(&comparisons), comparisons, ..findings() }
}

fn losses(family: Family, carried: f64, disturbed: u32) -> LossByLoad {
    let mut points = Vec::new();
    for share in [0.98, 1.0, 1.02, 1.05] {
        let load = (1000.0 * carried * share).round() / 1000.0;
        let lost = (1.0 - carried / load).max(0.0);
        let loss = estimate(lost, 0.001);
        let possible = Interval { low: 0.0, high: 1.0 };
        let interval = loss.interval.map(|interval| interval.clip_to(possible));
        let bad = if lost > 0.005 { 8 } else { 0 };
        points.push(LossPoint { load, bad, loss: Estimate { interval, ..loss } });
    }
    LossByLoad { cell: cell(Transport::Udp, family, 64), valid: 32, disturbed, points }
}

/// Losses at common loads, of a path that carries less of IPv6.
pub(crate) fn with_frame_losses() -> Findings {
    let mut arms = Vec::new();
    for (family, carried, loads) in [(Family::Ipv4, 1.0, 2), (Family::Ipv6, 0.85, 4)] {
        let mut points = Vec::new();
        for percent in (0..loads).map(|step| 100 - 10 * step) {
            let load = 100.0 * f64::from(percent);
            let median = (1.0 - 100.0 * carried / f64::from(percent)).max(0.0);
            let [p1, p99] = [0.9, 1.2].map(|factor| factor * median);
            points.push(FrameLossPoint { percent, load, n: 20, median, p1, p99 });
        }
        arms.push(FrameLossArm { cell: cell(Transport::Udp, family, 64), group: 0, points });
    }
    let departures = vec!["trials of 500 ms instead of 60 s".to_owned()];
    let verdict = Verdict::Better("ipv4".to_owned());
    let means = [(0.0, 0.0), (0.15, 0.01)];
    let comparisons =
        vec![compare_families(Transport::Udp, 64, Metric::FrameLossRate, means, (0.15, 0.01), verdict)];
    let frame_loss = Some(FrameLoss { arms, departures });
    Findings { frame_loss, cells: cells_of(&comparisons), comparisons, ..findings() }
}

/// The same of a study that compares nothing: each arm has its own loads.
pub(crate) fn with_losses_of_arms_alone() -> Findings {
    let mut findings = Findings { comparisons: Vec::new(), ..with_frame_losses() };
    let Some(FrameLoss { arms, .. }) = &mut findings.frame_loss else { unreachable!("it has losses") };
    arms[1].group = 1;
    for point in &mut arms[1].points {
        point.load *= 0.85;
    }
    findings
}

/// Bounds of both families, and delays at them.
pub(crate) fn with_bounds() -> Findings {
    let mut rows = Vec::new();
    for (family, metric, [median, p1, p99]) in [
        (Family::Ipv4, Metric::LowerBound, [9615.4, 9598.0, 9621.0]),
        (Family::Ipv4, Metric::OneWayDelay, [0.1312, 0.1301, 0.1397]),
        (Family::Ipv6, Metric::LowerBound, [8333.1, 8301.0, 8340.0]),
        (Family::Ipv6, Metric::IpdvMin, [-0.5, -1.25, 0.0]),
    ] {
        rows.push(RunPercentiles { cell: cell(Transport::Udp, family, 64), metric, n: 20, median, p1, p99 });
    }
    let departures = vec!["trials of 1 s instead of 60 s".to_owned()];
    Findings { rfc8219: Some(Rfc8219 { rows, departures }), ..with_losses() }
}
