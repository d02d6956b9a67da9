//! Runs: the list of all, by column; the slices of an interleaved trial; and the use of a radio channel.

use crate::page::cells::Index;
use crate::page::document::{
    AirLane, ArmSlices, ChannelView, FigureColumn, Remark, RunsView, SlicesView, facts, round_to_digits,
};
use crate::rendering::numbers::DisplayUnit;
use stacklab_model::wifi::{AirInterval, ChannelUse, NodeAirtime, WifiSettings};
use stacklab_model::{ArmSchedule, Metric, Probe, Role, RunRecord, RunStatus, Slice, Value, add_up};
use std::collections::BTreeMap;

/// Digits of a single run's figures.
const DIGITS: i32 = 6;

pub(super) fn runs(runs: &[RunRecord], started_unix_ns: u64, index: &Index) -> RunsView {
    let mut view = RunsView::default();
    let mut remarks: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
    for (number, run) in runs.iter().enumerate() {
        let trial = &run.trial;
        let name = trial.probe.name();
        let probe = view.probes.iter().position(|known| known == name).unwrap_or_else(|| {
            view.probes.push(name.to_owned());
            view.probes.len() - 1
        });
        view.block.push(trial.block);
        view.position.push(trial.position);
        view.cell.push(index.cell(&trial.cell).unwrap_or_default());
        view.probe.push(probe);
        let after = run.started_unix_ns.saturating_sub(started_unix_ns);
        view.started_s.push((after as f64 / 1e8).round() / 10.0);
        if let RunStatus::Invalid(reasons) = &run.status {
            remarks.entry(("invalid", reasons.join("; "))).or_default().push(number);
        }
        for warning in &run.warnings {
            // Texts may name the run's own figures; the kind of a warning does not.
            let runs = remarks.entry((&warning.code, warning.advice.clone())).or_default();
            if runs.last() != Some(&number) {
                runs.push(number);
            }
        }
    }
    view.remarks = remarks
        .into_iter()
        .map(|((code, text), runs)| Remark { code: code.to_owned(), text, runs })
        .collect();
    for (number, metric) in index.numbered_metrics() {
        let factor = index.find_unit(metric).factor;
        let mut values = Vec::new();
        for run in runs.iter().filter(|run| run.trial.probe == index.probe(metric)) {
            let figure = run.values.get(&metric).and_then(Value::measured).filter(|_| run.is_valid());
            values.push(figure.and_then(|figure| round_to_digits(factor * figure, DIGITS)));
        }
        view.figures.push(FigureColumn { metric: number, values });
    }
    view
}

const ROUNDS: usize = 120;

/// The slices of a run and of the runs that took turns with it; `None` if it took no turns.
pub(super) fn slices(run: &RunRecord, beside: &[RunRecord]) -> Option<SlicesView> {
    if list_slices(run, Role::Sender).is_empty() {
        return None;
    }
    let is_echo = run.spec.probe.probe == Probe::Echo;
    let mut all: Vec<&RunRecord> = std::iter::once(run).chain(beside).collect();
    all.sort_by_key(|run| run.trial.position);
    // Arms with separate senders have separate clocks: each begins with its first slice.
    let own_clocks = matches!(run.spec.schedule, ArmSchedule::TimeSlots(_));
    let begin_ns = all.iter().filter_map(|run| find_begin_ns(run)).min()?;
    let mut arms: Vec<ArmSlices> = Vec::new();
    for run in all {
        let begin_ns = if own_clocks { find_begin_ns(run).unwrap_or(begin_ns) } else { begin_ns };
        arms.push(view_arm(run, begin_ns, is_echo));
    }
    let (what, metric) =
        if is_echo { ("median round trip", Metric::Rtt) } else { ("payload received", Metric::Throughput) };
    let figures = arms.iter().flat_map(|arm| &arm.figures);
    let shown = DisplayUnit::fitting(metric, figures.flatten().copied());
    for figure in arms.iter_mut().flat_map(|arm| &mut arm.figures) {
        *figure = figure.and_then(|figure| round_to_digits(shown.factor * figure, 5));
    }
    Some(SlicesView { what: what.to_owned(), unit: shown.unit.to_owned(), arms })
}

/// The slices that a host reported, not more than the page has room for.
fn list_slices(run: &RunRecord, role: Role) -> Vec<Slice> {
    let report = run.host_reports.iter().find(|report| report.role == role);
    report.map_or_else(Vec::new, |report| report.slices.iter().take(ROUNDS).copied().collect())
}

fn find_begin_ns(run: &RunRecord) -> Option<u64> {
    list_slices(run, Role::Sender).iter().map(|slice| slice.first_ns).min()
}

/// The slices of a run; of an echo with the sender's delays, of others with the rates at the receiver.
fn view_arm(run: &RunRecord, begin_ns: u64, is_echo: bool) -> ArmSlices {
    let received = list_slices(run, Role::Receiver);
    let mut start_ms = Vec::new();
    let mut figures = Vec::new();
    let mut held_up = Vec::new();
    for slice in list_slices(run, Role::Sender) {
        let arrived = received.iter().find(|arrived| arrived.round == slice.round);
        start_ms.extend(round_to_digits(slice.first_ns.saturating_sub(begin_ns) as f64 / 1e6, 6));
        figures.push(if is_echo {
            slice.delay_ns.map(|ns| ns as f64 / 1e6)
        } else {
            arrived.and_then(|arrived| compute_rate(run, arrived))
        });
        let is_late = arrived.is_some_and(|arrived| arrived.held_up() == Some(true));
        held_up.push(is_late || slice.held_up() == Some(true));
    }
    ArmSlices { label: run.trial.cell.label(), start_ms, figures, held_up }
}

/// The rate at which the payload of a slice arrived, Mbit/s.
fn compute_rate(run: &RunRecord, arrived: &Slice) -> Option<f64> {
    let rate = arrived.arrival_rate(run.spec.bucket)?;
    Some(rate * f64::from(run.spec.message_bytes) * 8.0 / 1e6)
}

/// The nodes of a channel, by their places. Other stations follow.
const NODES: [&str; 3] = ["sender", "access point", "receiver"];

const COLLISIONS: &str = "collisions";

/// The channel as the receiver's report has it, or else the first report that has it. A record may be anybody's.
pub(super) fn channel(run: &RunRecord) -> Option<ChannelView> {
    let of_receiver = run.host_reports.iter().filter(|report| report.role == Role::Receiver);
    let used = of_receiver.chain(&run.host_reports).find_map(|report| report.channel.as_ref())?;
    let intervals = &used.intervals[..used.intervals.len().min(ChannelUse::MAX_INTERVALS)];
    let others = used.nodes.len().saturating_sub(NODES.len()).min(WifiSettings::MAX_STATIONS.into());
    let others = (1..=others).map(|number| format!("station {number}"));
    let names: Vec<String> = NODES.iter().copied().map(str::to_owned).chain(others).collect();
    let mut lanes: Vec<AirLane> = Vec::new();
    for name in names.iter().cloned().chain([COLLISIONS.to_owned()]) {
        lanes.push(AirLane { name, begin_ms: Vec::new(), end_ms: Vec::new() });
    }
    for interval in intervals {
        add(&mut lanes, interval);
    }
    let airtime = &used.airtime;
    let parts = [
        ("data", airtime.data_ns),
        ("preambles", airtime.preamble_ns),
        ("responses", airtime.control_ns),
        (COLLISIONS, airtime.collision_ns),
        ("contention", airtime.contention_ns),
        ("idle", airtime.idle_ns),
    ];
    let whole = add_up(parts.map(|(_, ns)| ns));
    let shares = parts.map(|(name, ns)| (name, percent(ns, whole)));
    let nodes = names.iter().map(String::as_str).zip(&used.nodes);
    let nodes = nodes.map(|(name, node)| (name, of_node(node, whole)));
    let end_ns = intervals.iter().map(|interval| interval.end_ns).max().unwrap_or(0);
    Some(ChannelView { facts: facts(shares.into_iter().chain(nodes)), lanes, end_ms: milliseconds(end_ns) })
}

/// Adds an exchange. Where several are joined, what each node had of them follows each other.
fn add(lanes: &mut [AirLane], interval: &AirInterval) {
    let (collisions, nodes) = lanes.split_last_mut().expect("there is one for collisions");
    let taken = nodes.iter_mut().zip(interval.nodes_ns.iter().copied());
    let mut begin_ns = interval.begin_ns;
    for (lane, ns) in taken.chain([(collisions, interval.collision_ns)]).filter(|(_, ns)| *ns > 0) {
        let end_ns = begin_ns.saturating_add(ns).min(interval.end_ns);
        lane.begin_ms.push(milliseconds(begin_ns));
        lane.end_ms.push(milliseconds(end_ns));
        begin_ns = end_ns;
    }
}

fn of_node(node: &NodeAirtime, whole: u64) -> String {
    let NodeAirtime { transmissions, collisions, retries, given_up, queue_drops, .. } = node;
    let busy = add_up([node.data_ns, node.preamble_ns, node.control_ns]);
    let size = node.mean_aggregate().and_then(|size| round_to_digits(size, 3)).unwrap_or(0.0);
    format!(
        "{} of the time, {transmissions} PPDUs of {size} frames; {collisions} collided, {retries} frames sent again, \
         {given_up} given up, {queue_drops} dropped by the queue",
        percent(busy, whole)
    )
}

fn percent(part: u64, whole: u64) -> String {
    let share = round_to_digits(100.0 * part as f64 / whole as f64, 3);
    share.map_or_else(|| "-".to_owned(), |share| format!("{share} %"))
}

fn milliseconds(ns: u64) -> f64 {
    round_to_digits(ns as f64 / 1e6, 6).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::run;
    use stacklab_model::wifi::Airtime;

    fn make_node(data_ns: u64, transmissions: u64) -> NodeAirtime {
        NodeAirtime { data_ns, transmissions, frames_sent: 8 * transmissions, ..NodeAirtime::default() }
    }

    fn make_interval(begin_ns: u64, end_ns: u64, nodes_ns: [u64; 3], collision_ns: u64) -> AirInterval {
        AirInterval { begin_ns, end_ns, nodes_ns: nodes_ns.to_vec(), collision_ns }
    }

    #[test]
    fn channel_lanes_and_shares_are_those_of_the_report() {
        let mut run = run(0, RunStatus::Valid);
        assert_eq!(channel(&run), None);
        run.host_reports[0].channel = Some(ChannelUse {
            airtime: Airtime { data_ns: 700, collision_ns: 100, idle_ns: 200, ..Airtime::default() },
            nodes: vec![make_node(400, 4), make_node(300, 3), make_node(0, 0)],
            intervals: vec![
                make_interval(1_000_000, 1_500_000, [500_000, 0, 0], 0),
                make_interval(2_000_000, 2_500_000, [0, 0, 0], 500_000),
                // Two exchanges that are joined, with a pause between them.
                make_interval(3_000_000, 4_100_000, [500_000, 500_000, 0], 0),
            ],
        });
        let view = channel(&run).unwrap();
        let lanes: Vec<_> =
            view.lanes.iter().map(|lane| (&lane.name[..], &lane.begin_ms[..], &lane.end_ms[..])).collect();
        let none: &[f64] = &[];
        assert_eq!(lanes[0], ("sender", &[1.0, 3.0][..], &[1.5, 3.5][..]));
        assert_eq!(lanes[1], ("access point", &[3.5][..], &[4.0][..]));
        assert_eq!(lanes[2..], [("receiver", none, none), ("collisions", &[2.0][..], &[2.5][..])]);
        assert_eq!(view.end_ms, 4.1);
        let facts: Vec<_> = view.facts.iter().map(|fact| format!("{}: {}", fact.name, fact.text)).collect();
        assert_eq!(facts[0], "data: 70 %");
        assert!(facts[6].starts_with("sender: 40 % of the time, 4 PPDUs of 8 frames"), "{facts:?}");
        assert_eq!(facts.len(), 9);
        let used = run.host_reports[0].channel.as_mut().unwrap();
        used.nodes.extend(vec![make_node(50, 1); 20]);
        let view = channel(&run).unwrap();
        assert_eq!(view.lanes.len(), 3 + 8 + 1);
        assert_eq!((view.lanes[3].name.as_str(), view.lanes[11].name.as_str()), ("station 1", "collisions"));
        assert_eq!(view.facts[9].name, "station 1");
    }
}
