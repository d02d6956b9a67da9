//! The slices of all arms of an interleaved trial, in the order of time.

use crate::page::document::{ArmSlices, SlicesView};
use crate::page::rounded;
use crate::rendering::numbers::DisplayUnit;
use stacklab_model::{ArmSchedule, Metric, Probe, Role, RunRecord, Slice};

/// Maximum rounds that are shown: the first ones.
const ROUNDS: usize = 120;

/// The slices of a run and of the runs that took turns with it; `None` if it took no turns.
pub(super) fn slices(run: &RunRecord, beside: &[RunRecord]) -> Option<SlicesView> {
    let of = |run: &RunRecord, role: Role| -> Vec<Slice> {
        let report = run.host_reports.iter().find(|report| report.role == role);
        report.map_or_else(Vec::new, |report| report.slices.iter().take(ROUNDS).copied().collect())
    };
    if of(run, Role::Sender).is_empty() {
        return None;
    }
    let echo = run.spec.probe.probe == Probe::Echo;
    let mut all: Vec<&RunRecord> = std::iter::once(run).chain(beside).collect();
    all.sort_by_key(|run| run.trial.position);
    // Arms with separate senders have separate clocks: each begins with its first slice.
    let own_clocks = matches!(run.spec.schedule, ArmSchedule::TimeSlots(_));
    let first_ns = |run: &RunRecord| of(run, Role::Sender).iter().map(|slice| slice.first_ns).min();
    let begin_ns = all.iter().filter_map(|run| first_ns(run)).min()?;
    let arm = |run: &&RunRecord| {
        let begin_ns = if own_clocks { first_ns(run).unwrap_or(begin_ns) } else { begin_ns };
        let [sent, received] = [Role::Sender, Role::Receiver].map(|role| of(run, role));
        let figure = |slice: &Slice| {
            if echo {
                slice.delay_ns.map(|ns| ns as f64 / 1e6)
            } else {
                let arrived = received.iter().find(|arrived| arrived.round == slice.round)?;
                arrived
                    .arrival_rate(run.spec.bucket)
                    .map(|rate| rate * f64::from(run.spec.message_bytes) * 8.0 / 1e6)
            }
        };
        let held_up = |slice: &Slice| {
            let arrived = received.iter().find(|arrived| arrived.round == slice.round);
            [Some(slice), arrived].into_iter().flatten().any(|slice| slice.held_up() == Some(true))
        };
        ArmSlices {
            label: run.trial.cell.label(),
            start_ms: sent
                .iter()
                .filter_map(|slice| rounded(slice.first_ns.saturating_sub(begin_ns) as f64 / 1e6, 6))
                .collect(),
            figures: sent.iter().map(figure).collect(),
            held_up: sent.iter().map(held_up).collect(),
        }
    };
    let mut arms: Vec<ArmSlices> = all.iter().map(arm).collect();
    let (what, metric) =
        if echo { ("median round trip", Metric::Rtt) } else { ("payload received", Metric::Throughput) };
    let figures = arms.iter().flat_map(|arm| &arm.figures);
    let shown = DisplayUnit::fitting(metric, figures.flatten().copied());
    for figure in arms.iter_mut().flat_map(|arm| &mut arm.figures) {
        *figure = figure.and_then(|figure| rounded(shown.factor * figure, 5));
    }
    Some(SlicesView { what: what.to_owned(), unit: shown.unit.to_owned(), arms })
}
