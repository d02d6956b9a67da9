//! Tests of iperf 2 from their lines.

use super::iperf_groups::{Connection, ResultLine, TestGroup};
use crate::test::{Identity, PORTS, Part, Side, ToolTest, family, nanoseconds, of_flows};
use crate::value::{Datagrams, ImportError, share_of_losses, too_few_digits, untold};
use stacklab_model::{Direction, Metric, Probe, Role, ToolSeries, Transport, Value};
use std::collections::BTreeMap;

/// The intervals of connections: their lines without that of the whole test, which is the last one.
fn series(connections: &BTreeMap<String, Connection>, is_receiver: bool) -> Option<ToolSeries> {
    if connections.values().any(|connection| connection.has_rough_parts) {
        return None;
    }
    let mut flows: Vec<Vec<Part>> = Vec::new();
    for connection in connections.values() {
        let (whole, parts) = connection.parts.split_last()?;
        if whole.from != 0.0 {
            return None;
        }
        flows.push(parts.to_vec());
    }
    of_flows(if is_receiver { Role::Receiver } else { Role::Sender }, &flows)
}

/// Adds a group as tests, or why it is left out. In the last group of a file, a connection without a result says that
/// the file is cut short; others were broken off.
pub(super) fn close(
    mut group: TestGroup,
    is_last: bool,
    tests: &mut Vec<ToolTest>,
    left_out: &mut Vec<String>,
) -> Result<(), ImportError> {
    group.count_connections();
    for part in group.split_by_hosts() {
        let Some(line) = part.line else { continue };
        if let Some(reason) = part.find_reason() {
            left_out.push(format!("line {}: {reason}", line + 1));
        } else if let Some((id, connection)) = part.find_open() {
            let reason = format!("connection {} has no result of the whole test", id.escape_debug());
            if is_last {
                return Err(ImportError::of_line(connection.line, reason + ": the file is cut short"));
            }
            left_out.push(ImportError::of_line(connection.line, reason).to_string());
        } else {
            tests.extend(read_test(part));
        }
    }
    Ok(())
}

/// The test of a group; `None` if it has no connection.
fn read_test(group: TestGroup) -> Option<ToolTest> {
    let TestGroup { head, connections, failures, .. } = group;
    let first = connections.values().next()?;
    let mut test = ToolTest::new(Probe::Stream);
    test.invalid = failures;
    test.family = family(&first.ends[0], &first.ends[1]);
    test.transport = head.transport;
    test.size = head.size;
    test.flows = connections.len() as u32;
    if first.is_reverse {
        test.direction = Direction::Reverse;
    }
    test.series = series(&connections, first.is_receiver(&head));
    test.started_unix_ns = connections.values().filter_map(|connection| connection.began_unix_ns).min();
    let mut names: Vec<&str> = connections.values().map(|connection| connection.name.as_str()).collect();
    names.sort_unstable();
    let at_s = test.started_unix_ns.map(|ns| ns as f64 / 1e9);
    test.identities.push(Identity { what: PORTS, name: names.join(", "), at_s });
    let is_server = head.is_server || first.is_served;
    test.side = Some(if is_server { Side::Server } else { Side::Client });
    let outcomes: Vec<&ResultLine> = connections.values().filter_map(Connection::outcome).collect();
    let mut arrived = true;
    for connection in connections.values() {
        arrived &= connection.server.is_some() || connection.is_receiver(&head);
    }
    set_figures(&mut test, &outcomes, arrived);
    test.warn_late("iperf", connections.values().map(|connection| connection.late).sum());
    Some(test)
}

/// Sets the figures of a test by the results of its connections. `arrived` says whether they are of receivers.
fn set_figures(test: &mut ToolTest, outcomes: &[&ResultLine], arrived: bool) {
    test.duration_ns = nanoseconds(outcomes.iter().map(|outcome| outcome.seconds).fold(0.0, f64::max));
    let rate: f64 = outcomes.iter().map(|outcome| outcome.bits_per_second).sum();
    let rough = outcomes.iter().find_map(|outcome| outcome.rough_rate.as_deref());
    if let Some(rough) = rough {
        test.set(Metric::Throughput, Value::Missing(too_few_digits(rough)));
    } else if arrived || test.transport != Some(Transport::Udp) {
        test.set(Metric::Throughput, Value::Measured(rate / 1e6));
    } else {
        test.set(Metric::Throughput, Value::Missing("the file has no report of the server".to_owned()));
    }
    if !arrived && test.transport == Some(Transport::Tcp) {
        let said = "a client of iperf counts what it wrote, some of which may be in its buffer";
        test.warn("tool_side", said.to_owned(), "use the server's file, or longer tests");
    }
    if !outcomes.iter().all(|outcome| outcome.is_exact) {
        test.warn(
            "tool_digits",
            "iperf's text has three digits".to_owned(),
            "differences below 1 % may be rounding",
        );
    }
    let rtts: Option<f64> = outcomes.iter().map(|outcome| outcome.rtt).sum();
    if let Some(rtts) = rtts {
        test.set(Metric::TcpSrtt, Value::Measured(rtts / outcomes.len() as f64));
    }
    let retries: Option<f64> = outcomes.iter().map(|outcome| outcome.retries).sum();
    let bits = outcomes.iter().map(|outcome| outcome.bits_per_second * outcome.seconds);
    test.set_retransmits(retries, bits.sum::<f64>() / 8.0);
    if let Some(rough) = rough.filter(|_| retries.is_some()) {
        test.set(Metric::Retransmits, Value::Missing(too_few_digits(rough)));
    }
    if test.transport == Some(Transport::Udp) {
        let udp: Option<Vec<[f64; 3]>> = outcomes.iter().map(|outcome| outcome.udp).collect();
        let udp = udp.unwrap_or_default();
        let counts: Vec<Datagrams> =
            udp.iter().map(|[_, lost, sent]| Datagrams { lost: *lost, sent: *sent }).collect();
        let jitter: f64 = udp.iter().map(|[jitter, ..]| jitter).sum();
        test.set(Metric::Loss, share_of_losses(&counts, NO_REPORT));
        test.set(Metric::JitterRfc3550, Value::finite(jitter / udp.len() as f64, NO_REPORT));
        test.set(Metric::OneWayDelay, untold("iperf", "whether the clocks of both hosts agree"));
    }
}

/// Why datagrams of a client have no figures.
pub(super) const NO_REPORT: &str = "the file has no report of the server";
