//! Which lines of iperf 2's CSV are of one test: by sums of connections, whose bytes are exact, or by hosts and times.

use super::iperf_groups::canonical;
use std::collections::{BTreeMap, HashMap, HashSet};

/// How far the ends of the flows of a test may be apart, seconds.
const MAX_END_SPREAD_S: f64 = 0.25;
/// How many lines before a line may be of its test.
const MAX_BESIDE: usize = 256;

/// A line of a connection or of a sum.
pub(super) struct IperfCsvRow<'a> {
    /// Its number, from 0.
    pub(super) line: usize,
    /// Seconds since 1970 in an unknown time zone; `None` where iperf wrote 1970 because it has no time.
    pub(super) time_s: Option<f64>,
    /// Both ends, and the number of the connection: as the line has them.
    pub(super) connection: [&'a str; 5],
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) bytes: f64,
    /// The bytes that a sum counts: the client's, where the report of the server took their place.
    pub(super) own_bytes: f64,
    pub(super) rate: f64,
    /// Jitter in ms, datagrams lost, sent and late.
    pub(super) udp: Option<[f64; 4]>,
    /// The line of the sum that it is in.
    pub(super) sum: Option<usize>,
    /// Whether a sum stands behind it that has other bytes.
    pub(super) is_contradicted: bool,
}

impl IperfCsvRow<'_> {
    /// Both ends of the connection, alike in the file of either.
    pub(super) fn name_ends(&self) -> String {
        let [address, port, peer, peer_port, _] = self.connection;
        let mut ends = [format!("{} {port}", canonical(address)), format!("{} {peer_port}", canonical(peer))];
        ends.sort_unstable();
        ends.join(" ")
    }

    fn hosts(&self) -> [&str; 2] {
        let mut hosts = [self.connection[0], self.connection[2]];
        hosts.sort_unstable();
        hosts
    }

    /// Whether both are between the same hosts, in either order.
    fn is_between_hosts_of(&self, other: &IperfCsvRow) -> bool {
        let [address, _, peer, ..] = self.connection;
        let [other_address, _, other_peer, ..] = other.connection;
        (address == other_address && peer == other_peer) || (address == other_peer && peer == other_address)
    }

    /// Seconds between the times of two lines; `None` if one has no time.
    fn seconds_to(&self, other: &IperfCsvRow) -> Option<f64> {
        Some((self.time_s? - other.time_s?).abs())
    }

    /// Whether both may be flows of one test: they ran at once, between the same hosts.
    fn is_beside(&self, other: &IperfCsvRow) -> bool {
        let is_equal = |field: usize| self.connection[field] == other.connection[field];
        // At the client the server's port is one, at the server its own.
        let is_between_same = is_equal(0) && is_equal(2) && (is_equal(3) || is_equal(1));
        // Tests one after another end as far apart as they last; times are whole seconds.
        let is_at_once = self.seconds_to(other).is_some_and(|seconds| {
            seconds == 0.0 || (seconds <= 1.0 && self.to.min(other.to) >= seconds + 1.0)
        });
        is_between_same && is_at_once && (self.to - other.to).abs() < MAX_END_SPREAD_S
    }
}

/// Marks the last lines of the same hosts and time that a sum is of, or that it contradicts. Returns whether there
/// are any.
pub(super) fn mark_flows(rows: &mut [IperfCsvRow], sum: &IperfCsvRow) -> bool {
    let mut flows = Vec::new();
    let mut bytes = 0.0;
    for (place, row) in rows.iter().enumerate().rev().take(MAX_BESIDE) {
        if !row.is_between_hosts_of(sum) {
            continue;
        }
        let is_at_once = row.seconds_to(sum).is_none_or(|seconds| seconds <= 1.0);
        let is_near = is_at_once && row.from == 0.0 && (row.to - sum.to).abs() < MAX_END_SPREAD_S;
        if !is_near || bytes >= sum.bytes {
            break;
        }
        bytes += row.own_bytes;
        flows.push(place);
    }
    let is_equal = bytes == sum.bytes;
    // Without a time, a sum of other bytes may be of another test.
    if !is_equal && sum.time_s.is_none() {
        return false;
    }
    for place in &flows {
        rows[*place].sum = is_equal.then_some(sum.line);
        rows[*place].is_contradicted = !is_equal;
    }
    !flows.is_empty()
}

/// Leaves out connections that two lines are of at once: what was sent and what was received (--full-duplex), or both
/// ends of it.
pub(super) fn leave_out_both_directions(rows: &mut Vec<IperfCsvRow>, left_out: &mut Vec<String>) {
    let mut known: HashMap<String, &IperfCsvRow> = HashMap::new();
    let mut both: HashSet<usize> = HashSet::new();
    let mut ids: Vec<&str> = Vec::new();
    for row in rows.iter() {
        let Some(before) = known.insert(row.name_ends(), row) else { continue };
        let is_same_line = before.connection == row.connection;
        let is_at_once = match row.seconds_to(before) {
            Some(seconds) => seconds <= if is_same_line { 0.0 } else { 1.0 },
            None => true,
        };
        if is_at_once && !(is_same_line && before.bytes == row.bytes) {
            both.extend([before.line, row.line]);
            ids.extend([before.connection[4], row.connection[4]]);
        }
    }
    ids.sort_unstable();
    ids.dedup();
    left_out.extend(ids.iter().map(|id| {
        format!(
            "connection {id}: two lines are of it at once, which may be both directions (--full-duplex): test one after the other"
        )
    }));
    rows.retain(|row| !both.contains(&row.line));
}

/// The lines of each test. Those that may be of one test or of several are left out.
pub(super) fn group_rows<'a>(
    rows: Vec<IperfCsvRow<'a>>,
    left_out: &mut Vec<String>,
) -> Vec<Vec<IperfCsvRow<'a>>> {
    let mut groups: Vec<IperfCsvGroup> = Vec::new();
    let mut untimed: BTreeMap<[String; 2], Vec<IperfCsvRow>> = BTreeMap::new();
    for row in rows {
        if row.sum.is_none() && row.time_s.is_none() {
            untimed.entry(row.hosts().map(str::to_owned)).or_default().push(row);
            continue;
        }
        let group = match groups.iter().rev().take(MAX_BESIDE).position(|group| group.takes(&row)) {
            Some(back) => groups.len() - 1 - back,
            None => {
                groups.push(IperfCsvGroup::default());
                groups.len() - 1
            }
        };
        groups[group].numbers.insert(row.connection[4]);
        groups[group].rows.push(row);
    }
    let mut tests: Vec<Vec<IperfCsvRow>> = groups.into_iter().map(|group| group.rows).collect();
    tests.retain(|test| {
        let is_contradicted = test.iter().any(|row| row.is_contradicted);
        if is_contradicted {
            left_out.push(describe_unknown(test, "have other bytes than their sum"));
            return false;
        }
        let is_short = test.len() > 1 && test[0].sum.is_none() && test.iter().any(|row| row.to < 1.0);
        if is_short {
            left_out.push(describe_unknown(test, "ended within one second"));
        }
        !is_short
    });
    for rows in untimed.into_values() {
        // A client begins to count with each test.
        if rows.iter().all(|row| row.connection[4] == rows[0].connection[4]) {
            tests.extend(rows.into_iter().map(|row| vec![row]));
        } else {
            left_out.push(describe_unknown(&rows, "have no time (1970)"));
        }
    }
    tests.sort_by_key(|test| test[0].line);
    tests
}

/// The lines of a test, and the numbers of its connections.
#[derive(Default)]
struct IperfCsvGroup<'a> {
    rows: Vec<IperfCsvRow<'a>>,
    numbers: HashSet<&'a str>,
}

impl IperfCsvGroup<'_> {
    /// Whether a line is of it: by their sum, or as a connection that ran beside its first.
    fn takes(&self, row: &IperfCsvRow) -> bool {
        let Some(first) = self.rows.first() else { return false };
        if row.sum.is_some() || first.sum.is_some() {
            return row.sum == first.sum;
        }
        first.is_beside(row) && !self.numbers.contains(row.connection[4])
    }
}

/// Why lines are left out that may be of one test or of several.
fn describe_unknown(rows: &[IperfCsvRow], why: &str) -> String {
    format!(
        "{} lines from line {} {why}, so they may be one test or several: run iperf with -i 1, or take its text",
        rows.len(),
        rows[0].line + 1
    )
}
