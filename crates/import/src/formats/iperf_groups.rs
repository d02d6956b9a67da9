//! Connections of iperf 2 that stand together in its text, and whether they are one test.

use super::iperf_lines::BOTH;
use crate::test::Part;
use stacklab_model::Transport;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// How far apart the connections of one test begin, seconds: times may be whole seconds.
const MAX_BEGIN_SPREAD_S: f64 = 1.5;
/// How much longer than its connections a sum may take, seconds.
const MAX_SUM_SPREAD_S: f64 = 0.5;
/// How far the bytes of a sum may be from those of its connections, as a share: both have three digits.
const MAX_SUM_ERROR: f64 = 0.02;

#[derive(Debug, Clone, Default)]
pub(super) struct Head {
    /// Why its tests are left out, if they are.
    pub(super) left_out: Option<String>,
    pub(super) transport: Option<Transport>,
    pub(super) size: Option<u32>,
    pub(super) is_server: bool,
    /// How many connections the client makes, if it says so.
    pub(super) flows: Option<usize>,
}

#[derive(Default)]
pub(super) struct TestGroup {
    pub(super) head: Head,
    /// The first line that is of it, from 0.
    pub(super) line: Option<usize>,
    pub(super) connections: BTreeMap<String, Connection>,
    pub(super) has_results: bool,
    /// Whether its heading is not the last one: a server accepted it behind that of its client.
    pub(super) keeps_head: bool,
    /// Whether a sum of connections is in it.
    pub(super) has_sum: bool,
    /// Why it is left out, if it is.
    pub(super) left_out: Option<String>,
    /// What iperf says that failed.
    pub(super) failures: Vec<String>,
}

impl TestGroup {
    pub(super) fn is_left_out(&self) -> bool {
        self.left_out.is_some() || self.head.left_out.is_some()
    }

    /// Leaves it out for a reason; the first one counts.
    pub(super) fn leave_out(&mut self, reason: impl Into<String>) {
        if !self.is_left_out() {
            self.left_out = Some(reason.into());
        }
    }

    /// Adds what iperf says that failed.
    pub(super) fn fail(&mut self, place: usize, line: &str) {
        self.line.get_or_insert(place);
        self.failures.push(format!("iperf says: {line}"));
        self.failures.dedup();
    }

    /// Says so if the client has fewer connections than it was to make.
    pub(super) fn count_connections(&mut self) {
        let made = self.connections.len();
        if let Some(flows) = self.head.flows
            && made > 0
            && made < flows
        {
            self.failures.push(format!("iperf was to make {flows} connections, and the file has {made}"));
        }
    }

    /// Splits it by the hosts of its connections: clients of several hosts may test one server at once.
    pub(super) fn split_by_hosts(self) -> Vec<TestGroup> {
        let mut groups: BTreeMap<String, TestGroup> = BTreeMap::new();
        if self.connections.is_empty() {
            return vec![self];
        }
        let TestGroup { head, connections, has_results, keeps_head, has_sum, left_out, failures, .. } = self;
        for (id, connection) in connections {
            let group = groups.entry(connection.name_hosts()).or_insert_with(|| TestGroup {
                head: head.clone(),
                line: None,
                connections: BTreeMap::new(),
                has_results,
                keeps_head,
                has_sum,
                left_out: left_out.clone(),
                failures: failures.clone(),
            });
            group.line = Some(group.line.unwrap_or(usize::MAX).min(connection.line));
            group.connections.insert(id, connection);
        }
        let mut groups: Vec<TestGroup> = groups.into_values().collect();
        groups.sort_by_key(|group| group.line);
        groups
    }

    /// Why it is not a test that can be read, if it is not.
    pub(super) fn find_reason(&self) -> Option<String> {
        let known = self.left_out.as_ref().or(self.head.left_out.as_ref());
        if let Some(reason) = known {
            return Some(reason.clone());
        }
        let has_rows = self.connections.values().any(|connection| !connection.parts.is_empty());
        if self.has_sum && !has_rows {
            return Some(
                "a sum of connections, whose own lines are missing: run iperf without --sum-only".to_owned(),
            );
        }
        if !self.failures.is_empty() && !has_rows {
            return Some(self.failures.join("; "));
        }
        let reverse = self.connections.values().filter(|connection| connection.is_reverse).count();
        if reverse > 0 && reverse < self.connections.len() {
            return Some(BOTH.to_owned());
        }
        self.find_overlap()
    }

    /// A connection without a result of the whole test.
    pub(super) fn find_open(&self) -> Option<(&str, &Connection)> {
        let open = self.connections.iter().find(|(_, connection)| connection.outcome().is_none());
        open.map(|(id, connection)| (id.as_str(), connection))
    }

    /// Why its connections may be of several tests at once between the same hosts, if they may.
    fn find_overlap(&self) -> Option<String> {
        if self.connections.len() < 2 {
            return None;
        }
        let begins = self.connections.values().filter_map(|connection| connection.began_unix_ns);
        let first = begins.clone().min().unwrap_or_default();
        let spread_s = (begins.max().unwrap_or_default() - first) as f64 / 1e9;
        if spread_s > MAX_BEGIN_SPREAD_S {
            return Some(format!(
                "its connections began {spread_s:.1} s apart, so they may be several tests that overlap"
            ));
        }
        let sums = self.connections.values().filter_map(|connection| connection.sum);
        let sum = sums.max_by(|one, other| one.seconds.total_cmp(&other.seconds))?;
        let mut longest = 0.0_f64;
        let mut bytes = 0.0;
        for connection in self.connections.values() {
            let own = connection.own.as_ref()?;
            longest = longest.max(own.seconds);
            bytes += own.bytes;
        }
        if sum.seconds > longest + MAX_SUM_SPREAD_S {
            return Some(format!(
                "its [SUM] line is of {:.1} s and its connections of {longest:.1} s, so they may be several tests that overlap",
                sum.seconds
            ));
        }
        let is_whole = sum.seconds > longest - MAX_SUM_SPREAD_S;
        if is_whole && (sum.bytes - bytes).abs() > MAX_SUM_ERROR * sum.bytes.max(bytes) {
            return Some(format!(
                "its [SUM] line has {:.0} bytes and its connections have {bytes:.0}, so they are not one test",
                sum.bytes
            ));
        }
        None
    }
}

pub(super) struct Connection {
    pub(super) line: usize,
    pub(super) ends: [String; 2],
    /// Addresses and ports, in one order at both ends.
    pub(super) name: String,
    pub(super) is_reverse: bool,
    /// Whether a server began it to a client that listens (-d, -r).
    pub(super) is_served: bool,
    pub(super) own: Option<ResultLine>,
    /// The lines of this host, that of the whole test included.
    pub(super) parts: Vec<Part>,
    /// Whether bytes of one of them have fewer than three digits.
    pub(super) has_rough_parts: bool,
    /// Whether another one of its number had no result when it began: it was broken off, or is of another iperf.
    pub(super) is_doubled: bool,
    /// Whether its last line was of an interval that does not begin with the test: the whole test's line comes last.
    pub(super) is_open: bool,
    /// By the server, which sends it to the client.
    pub(super) server: Option<ResultLine>,
    /// The sum of the connections of its host, if it stands behind this one's line.
    pub(super) sum: Option<SumLine>,
    /// Datagrams that came late.
    pub(super) late: f64,
    /// When it began, nanoseconds since the Unix epoch.
    pub(super) began_unix_ns: Option<u64>,
}

impl Connection {
    /// The result of the whole test: a receiver knows more.
    pub(super) fn outcome(&self) -> Option<&ResultLine> {
        self.server.as_ref().or(self.own.as_ref()).filter(|_| !self.is_open)
    }

    /// Whether the file's host received, by the heading.
    pub(super) fn is_receiver(&self, head: &Head) -> bool {
        (head.is_server || self.is_served) != self.is_reverse
    }

    /// The addresses of both hosts, in one order at both ends.
    fn name_hosts(&self) -> String {
        let mut hosts = self.ends.each_ref().map(|end| canonical(end));
        hosts.sort_unstable();
        hosts.join(" ")
    }
}

/// What a sum of connections has, from the begin of the test.
#[derive(Debug, Clone, Copy)]
pub(super) struct SumLine {
    pub(super) seconds: f64,
    pub(super) bytes: f64,
}

pub(super) struct ResultLine {
    pub(super) seconds: f64,
    pub(super) bytes: f64,
    pub(super) bits_per_second: f64,
    /// Jitter in ms, datagrams lost and sent.
    pub(super) udp: Option<[f64; 3]>,
    pub(super) retries: Option<f64>,
    /// The sender's round trip, ms.
    pub(super) rtt: Option<f64>,
    /// Whether all of its digits are printed (`-f b`).
    pub(super) is_exact: bool,
    /// Its rate, if that has fewer than three digits.
    pub(super) rough_rate: Option<String>,
    /// Whether its bytes have three digits.
    pub(super) has_precise_bytes: bool,
}

impl ResultLine {
    pub(super) fn part(&self, from: f64) -> Part {
        let messages = self.udp.map_or(0.0, |[_, lost, sent]| (sent - lost).max(0.0));
        Part { from, to: self.seconds, bytes: self.bytes, messages }
    }
}

/// An address without its zone; one of IPv4 that is written as IPv6 is one of IPv4.
pub(super) fn canonical(address: &str) -> String {
    let bare = address.split('%').next().unwrap_or(address);
    bare.parse().map_or_else(|_| bare.to_owned(), |address: IpAddr| address.to_canonical().to_string())
}
