//! The use of the radio channel in one run.

use crate::page::document::{AirLane, ChannelView};
use crate::page::{facts, rounded};
use stacklab_model::wifi::{AirInterval, Airtime, ChannelUse, MOST_STATIONS, NodeAirtime};
use stacklab_model::{Role, RunRecord};

/// The nodes of a channel, by their places. Other stations follow.
const NODES: [&str; 3] = ["sender", "access point", "receiver"];

/// The names of a channel's nodes. A record may be anybody's.
fn names(used: &ChannelUse) -> Vec<String> {
    let others = used.nodes.len().saturating_sub(NODES.len()).min(MOST_STATIONS.into());
    let others = (1..=others).map(|number| format!("station {number}"));
    NODES.iter().copied().map(str::to_owned).chain(others).collect()
}

const COLLISIONS: &str = "collisions";

/// The channel as the receiver's report has it, or else the first report that has it.
pub(super) fn channel(run: &RunRecord) -> Option<ChannelView> {
    let reports = || run.host_reports.iter();
    let received = reports().filter(|report| report.role == Role::Receiver).chain(reports());
    let used = received.filter_map(|report| report.channel.as_ref()).next()?;
    // A record may be anybody's.
    let intervals = &used.intervals[..used.intervals.len().min(ChannelUse::MOST_INTERVALS)];
    let names = names(used);
    let lanes = names.iter().map(String::as_str).chain([COLLISIONS]);
    let mut lanes: Vec<AirLane> = lanes.map(lane).collect();
    for interval in intervals {
        add(&mut lanes, interval);
    }
    let parts = parts(&used.airtime);
    let whole = sum(parts.map(|(_, ns)| ns));
    let shares = parts.map(|(name, ns)| (name, percent(ns, whole)));
    let nodes = names.iter().map(String::as_str).zip(&used.nodes);
    let nodes = nodes.map(|(name, node)| (name, of_node(node, whole)));
    let end_ns = intervals.iter().map(|interval| interval.end_ns).max().unwrap_or(0);
    Some(ChannelView { facts: facts(shares.into_iter().chain(nodes)), lanes, end_ms: milliseconds(end_ns) })
}

fn lane(name: &str) -> AirLane {
    AirLane { name: name.to_owned(), begin_ms: Vec::new(), end_ms: Vec::new() }
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

fn parts(airtime: &Airtime) -> [(&'static str, u64); 6] {
    [
        ("data", airtime.data_ns),
        ("preambles", airtime.preamble_ns),
        ("responses", airtime.control_ns),
        (COLLISIONS, airtime.collision_ns),
        ("contention", airtime.contention_ns),
        ("idle", airtime.idle_ns),
    ]
}

fn of_node(node: &NodeAirtime, whole: u64) -> String {
    let NodeAirtime { transmissions, collisions, retries, given_up, queue_drops, .. } = node;
    let busy = sum([node.data_ns, node.preamble_ns, node.control_ns]);
    let size = node.mean_aggregate().and_then(|size| rounded(size, 3)).unwrap_or(0.0);
    format!(
        "{} of the time, {transmissions} PPDUs of {size} frames; {collisions} collided, {retries} frames sent again, \
         {given_up} given up, {queue_drops} dropped by the queue",
        percent(busy, whole)
    )
}

/// A record's numbers may be anybody's.
fn sum<const N: usize>(parts: [u64; N]) -> u64 {
    parts.into_iter().fold(0, u64::saturating_add)
}

fn percent(part: u64, whole: u64) -> String {
    let share = rounded(100.0 * part as f64 / whole as f64, 3);
    share.map_or_else(|| "-".to_owned(), |share| format!("{share} %"))
}

fn milliseconds(ns: u64) -> f64 {
    rounded(ns as f64 / 1e6, 6).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::run;
    use stacklab_model::RunStatus;

    #[test]
    fn a_channels_lanes_and_shares_are_those_of_its_report() {
        let mut run = run(0, RunStatus::Valid);
        assert_eq!(channel(&run), None);
        let node = |data_ns, transmissions| NodeAirtime {
            data_ns,
            transmissions,
            frames_sent: 8 * transmissions,
            ..NodeAirtime::default()
        };
        let interval = |begin_ns, end_ns, nodes_ns: [u64; 3], collision_ns| AirInterval {
            begin_ns,
            end_ns,
            nodes_ns: nodes_ns.to_vec(),
            collision_ns,
        };
        run.host_reports[0].channel = Some(ChannelUse {
            airtime: Airtime { data_ns: 700, collision_ns: 100, idle_ns: 200, ..Airtime::default() },
            nodes: vec![node(400, 4), node(300, 3), node(0, 0)],
            intervals: vec![
                interval(1_000_000, 1_500_000, [500_000, 0, 0], 0),
                interval(2_000_000, 2_500_000, [0, 0, 0], 500_000),
                // Two exchanges that are joined, with a pause between them.
                interval(3_000_000, 4_100_000, [500_000, 500_000, 0], 0),
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
        used.nodes.extend(vec![node(50, 1); 20]);
        let view = channel(&run).unwrap();
        assert_eq!(view.lanes.len(), 3 + 8 + 1);
        assert_eq!((view.lanes[3].name.as_str(), view.lanes[11].name.as_str()), ("station 1", "collisions"));
        assert_eq!(view.facts[9].name, "station 1");
    }
}
