//! Tests of iperf 2 from their lines.

use super::iperf_lines::BOTH;
use crate::test::{Identity, Part, ToolTest, family, nanoseconds, of_flows};
use crate::value::{ImportError, untold};
use stacklab_model::{Direction, Metric, Probe, Role, ToolSeries, Transport, Value};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default)]
pub(super) struct Head {
    /// Why its tests are left out, if they are.
    pub(super) left_out: Option<String>,
    pub(super) transport: Option<Transport>,
    pub(super) size: Option<u32>,
    pub(super) is_server: bool,
}

#[derive(Default)]
pub(super) struct TestGroup {
    pub(super) head: Head,
    pub(super) connections: BTreeMap<String, Connection>,
    pub(super) has_results: bool,
    pub(super) late: f64,
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
}

pub(super) struct Connection {
    pub(super) line: usize,
    pub(super) ends: [String; 2],
    /// Addresses and ports, in one order at both ends.
    pub(super) name: String,
    pub(super) is_reverse: bool,
    pub(super) own: Option<ResultLine>,
    /// The lines of this host, that of the whole test included.
    pub(super) parts: Vec<Part>,
    /// Whether its last line was of an interval that does not begin with the test: the whole test's line comes last.
    pub(super) is_open: bool,
    /// By the server, which sends it to the client.
    pub(super) server: Option<ResultLine>,
    /// When it began, nanoseconds since the Unix epoch.
    pub(super) began_unix_ns: Option<u64>,
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
}

impl ResultLine {
    pub(super) fn part(&self, from: f64) -> Part {
        let messages = self.udp.map_or(0.0, |[_, lost, sent]| (sent - lost).max(0.0));
        Part { from, to: self.seconds, bytes: self.bytes, messages }
    }
}

/// The intervals of connections: their lines without that of the whole test, which is the last one.
fn series(connections: &BTreeMap<String, Connection>, is_receiver: bool) -> Option<ToolSeries> {
    let intervals = |connection: &Connection| {
        let (whole, parts) = connection.parts.split_last()?;
        (whole.from == 0.0).then(|| parts.to_vec())
    };
    let flows: Vec<Vec<Part>> = connections.values().map(intervals).collect::<Option<_>>()?;
    of_flows(if is_receiver { Role::Receiver } else { Role::Sender }, &flows)
}

/// Adds a group as a test, or why it is left out.
pub(super) fn close(
    group: TestGroup,
    tests: &mut Vec<ToolTest>,
    left_out: &mut Vec<String>,
) -> Result<(), ImportError> {
    let TestGroup { head, connections, late, left_out: reason, failures, .. } = group;
    let Some(first) = connections.values().next() else { return Ok(()) };
    let is_both = connections.values().any(|other| other.is_reverse != first.is_reverse);
    if let Some(reason) = reason.or(head.left_out).or_else(|| is_both.then(|| BOTH.to_owned())) {
        left_out.push(format!("line {}: {reason}", first.line + 1));
        return Ok(());
    }
    let mut test = ToolTest::new(Probe::Stream);
    test.invalid = failures;
    test.family = family(&first.ends[0], &first.ends[1]);
    (test.transport, test.size, test.flows) = (head.transport, head.size, connections.len() as u32);
    if first.is_reverse {
        test.direction = Direction::Reverse;
    }
    let mut outcomes = Vec::new();
    for (id, connection) in &connections {
        // Who received tells more.
        let outcome = connection
            .server
            .as_ref()
            .or(connection.own.as_ref())
            .filter(|_| !connection.is_open)
            .ok_or_else(|| {
                let reason = format!(
                    "connection {} has no result of the whole test: the file is cut short",
                    id.escape_debug()
                );
                ImportError::of_line(connection.line, reason)
            })?;
        outcomes.push((outcome, connection.server.is_some() || head.is_server != connection.is_reverse));
    }
    test.series = series(&connections, head.is_server != first.is_reverse);
    test.duration_ns = nanoseconds(outcomes.iter().map(|(outcome, _)| outcome.seconds).fold(0.0, f64::max));
    let arrived = outcomes.iter().all(|(_, is_receiver)| *is_receiver);
    let rate: f64 = outcomes.iter().map(|(outcome, _)| outcome.bits_per_second).sum();
    if arrived || head.transport != Some(Transport::Udp) {
        test.set(Metric::Throughput, Value::Measured(rate / 1e6));
    } else {
        test.set(Metric::Throughput, Value::Missing("the file has no report of the server".to_owned()));
    }
    if !arrived && head.transport == Some(Transport::Tcp) {
        let said = "a client of iperf counts what it wrote, some of which may be in its buffer";
        test.warn("tool_side", said.to_owned(), "use the server's file, or longer tests");
    }
    test.started_unix_ns = connections.values().filter_map(|connection| connection.began_unix_ns).min();
    let mut names: Vec<&str> = connections.values().map(|connection| connection.name.as_str()).collect();
    names.sort_unstable();
    let at_s = test.started_unix_ns.map(|ns| ns as f64 / 1e9);
    test.identity =
        at_s.map(|at_s| Identity { what: "ports and time", name: names.join(", "), at_s: Some(at_s) });
    if !outcomes.iter().all(|(outcome, _)| outcome.is_exact) {
        test.warn(
            "tool_digits",
            "iperf's text has three digits".to_owned(),
            "differences below 1 % may be rounding",
        );
    }
    test.warn_late("iperf", late);
    let rtts: Option<f64> = outcomes.iter().map(|(outcome, _)| outcome.rtt).sum();
    if let Some(rtts) = rtts {
        test.set(Metric::TcpSrtt, Value::Measured(rtts / outcomes.len() as f64));
    }
    let retries: Option<f64> = outcomes.iter().map(|(outcome, _)| outcome.retries).sum();
    let bits = outcomes.iter().map(|(outcome, _)| outcome.bits_per_second * outcome.seconds);
    test.set_retransmits(retries, bits.sum::<f64>() / 8.0);
    let udp: Option<Vec<[f64; 3]>> = outcomes.iter().map(|(outcome, _)| outcome.udp).collect();
    if head.transport == Some(Transport::Udp) {
        let sum = |place: usize| udp.iter().flatten().map(|row| row[place]).sum::<f64>();
        let reason = "the file has no report of the server";
        test.set(Metric::Loss, Value::finite(sum(1) / sum(2), reason));
        test.set(Metric::JitterRfc3550, Value::finite(sum(0) / udp.iter().flatten().count() as f64, reason));
        test.set(Metric::OneWayDelay, untold("iperf", "whether the clocks of both hosts agree"));
    }
    tests.push(test);
    Ok(())
}
