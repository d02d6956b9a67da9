//! Text of iperf 2 (`-e`, and without it), versions 2.0 to 2.2. Its figures have three digits.

use crate::import::error::ImportError;
use crate::import::file::{Content, Format, ToolFile};
use crate::import::test::{ToolTest, family, nanoseconds};
use crate::import::value::{MOST_TESTS, number, untold};
use stacklab_model::{Direction, Metric, Probe, Transport, Value};
use std::collections::BTreeMap;

/// What is said before the tests of a client or a server.
#[derive(Debug, Clone, Copy, Default)]
struct Head {
    transport: Option<Transport>,
    size: Option<u32>,
    is_server: bool,
}

/// The connections of a test, by their numbers.
#[derive(Default)]
struct Group {
    head: Head,
    connections: BTreeMap<String, Connection>,
    has_results: bool,
}

struct Connection {
    line: usize,
    ends: [String; 2],
    is_reverse: bool,
    own: Option<Outcome>,
    /// Whether its last line was of an interval that does not begin with the test: the whole test's line comes last.
    is_open: bool,
    /// By the server, told to the client.
    server: Option<Outcome>,
}

/// A line of results from the begin of a test.
struct Outcome {
    seconds: f64,
    bits_per_second: f64,
    /// Jitter in ms, datagrams lost and sent.
    udp: Option<[f64; 3]>,
    retries: Option<f64>,
}

/// Reads the tests of a file.
pub(crate) fn read_text(text: &str) -> Result<ToolFile, ImportError> {
    let (mut head, mut version) = (Head::default(), None);
    let (mut group, mut tests) = (Group::default(), Vec::new());
    let (mut of_server, mut left_out) = (false, Vec::new());
    // A client that tests both directions listens, too (-d and -r).
    let (mut is_client, mut listening) = (false, None);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let failed = |reason: String| ImportError::of_line(number, reason);
        if let Some(rest) =
            line.strip_prefix("Client connecting to ").or(line.strip_prefix("Server listening on "))
        {
            // Connections may be told before what is said of them all.
            if group.has_results {
                close(&mut group, &mut tests)?;
            }
            let transport = [("TCP", Transport::Tcp), ("UDP", Transport::Udp)];
            let named = transport.iter().find(|(name, _)| rest.split_whitespace().any(|word| word == *name));
            let port = rest.split_once("port ").and_then(|(_, port)| port.split_whitespace().next());
            if line.starts_with("Server") {
                listening = port.map(str::to_owned);
            } else {
                is_client = true;
            }
            head =
                Head { transport: named.map(|(_, t)| *t), size: None, is_server: line.starts_with("Server") };
        } else if let Some(rest) = line.strip_prefix("Sending ") {
            head.size = rest.split_whitespace().next().and_then(|bytes| bytes.parse().ok());
        } else if let Some(rest) = line.strip_prefix("Write buffer size:") {
            // `1.42 KByte` is rounded, and no size.
            let size = amount(rest, "Byte", 1024.0);
            let is_rounded = rest.split_whitespace().next().is_some_and(|amount| amount.contains('.'));
            head.size = size.filter(|_| !is_rounded).map(|bytes| bytes as u32);
        } else if let Some((id, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            let (id, rest) = (id.trim().trim_start_matches('*').to_owned(), rest.trim());
            if let Some(ends) = rest.strip_prefix("local ") {
                if group.has_results {
                    close(&mut group, &mut tests)?;
                }
                if let Some((_, peer)) = rest.split_once("(peer ") {
                    version = peer.split(')').next().map(str::to_owned);
                }
                group.head = head;
                let (ends, port) =
                    ends_of(ends).ok_or_else(|| failed("this is no pair of addresses".to_owned()))?;
                let is_reverse =
                    rest.contains("(reverse)") || is_client && listening.as_deref() == Some(port);
                let connection =
                    Connection { line: number, ends, is_reverse, own: None, is_open: false, server: None };
                if group.connections.insert(id, connection).is_some() {
                    return Err(failed("its number is taken".to_owned()));
                }
            } else if rest.starts_with("Server Report") {
                of_server = true;
            } else if rest.contains(" sec ") {
                let (from, outcome) =
                    outcome(rest).ok_or_else(|| failed("these are no results of iperf".to_owned()))?;
                if !group.has_results {
                    group.head = head;
                }
                group.has_results = true;
                if id.starts_with("SUM") {
                    continue;
                }
                let Some(connection) = group.connections.get_mut(&id) else {
                    return Err(failed(format!("connection {} was not begun", id.escape_debug())));
                };
                connection.is_open = from > 0.0;
                let known = if of_server { &mut connection.server } else { &mut connection.own };
                of_server = false;
                if from == 0.0 && known.as_ref().is_none_or(|known| outcome.seconds > known.seconds) {
                    *known = Some(outcome);
                }
            } else if rest.starts_with("WARNING") {
                left_out.push(format!("line {}: {rest}", number + 1));
            }
        }
        if tests.len() > MOST_TESTS || group.connections.len() > 10_000 {
            return Err(failed("there are too many tests".to_owned()));
        }
    }
    close(&mut group, &mut tests)?;
    Ok(ToolFile { format: Format::IperfText, version, content: Content::Tests(tests), left_out })
}

/// The addresses of `A port N connected with B port N`, and the first port.
fn ends_of(text: &str) -> Option<([String; 2], &str)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [local, "port", port, "connected", "with", peer, "port" | "port:", ..] = words[..] else {
        return None;
    };
    Some(([local.to_owned(), peer.to_owned()], port))
}

/// Amounts with a unit: `2.51 MBytes`, `10.5 Mbits/sec`.
fn amount(text: &str, unit: &str, step: f64) -> Option<f64> {
    let mut words = text.split_whitespace();
    let (amount, unit_word) = (number(words.next()?)?, words.next()?);
    let power = match unit_word
        .strip_suffix("s/sec")
        .unwrap_or(unit_word.trim_end_matches('s'))
        .strip_suffix(unit)?
    {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some(amount * step.powi(power)).filter(|amount| *amount >= 0.0 && *amount <= 1e18)
}

/// `0.0000-2.0020 sec  2.51 MBytes  10.5 Mbits/sec ..`: the begin, and the results.
fn outcome(text: &str) -> Option<(f64, Outcome)> {
    let (interval, rest) = text.split_once(" sec ")?;
    let (from, to) = interval.trim().split_once('-')?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [_, bytes_unit, rate, rate_unit, more @ ..] = &words[..] else { return None };
    if !bytes_unit.contains("Byte") {
        return None;
    }
    let rate = [*rate, *rate_unit].join(" ");
    let bits = amount(&rate, "bit", 1000.0).or_else(|| Some(8.0 * amount(&rate, "Byte", 1024.0)?))?;
    let udp = match more {
        [jitter, "ms", lost_of_sent, ..] => {
            // Before version 2.1, `0/ 1811`.
            let (lost, sent) = match lost_of_sent.strip_suffix('/') {
                Some(lost) => (lost, *more.get(3)?),
                None => lost_of_sent.split_once('/')?,
            };
            Some([number(jitter)?, number(lost)?, number(sent)?])
        }
        _ => None,
    };
    let retries = match more {
        [written, retries, window, ..] if written.contains('/') && window.contains('/') => number(retries),
        _ => None,
    };
    // Before version 2.0.14, ` 0.0- 1.0`.
    let (from, to) = (from.trim(), to.trim());
    Some((number(from)?, Outcome { seconds: number(to)?, bits_per_second: bits, udp, retries }))
}

/// Ends a test.
fn close(group: &mut Group, tests: &mut Vec<ToolTest>) -> Result<(), ImportError> {
    let Group { head, connections, .. } = std::mem::take(group);
    let Some(first) = connections.values().next() else { return Ok(()) };
    let mut test = ToolTest::new(Probe::Stream);
    test.family = family(&first.ends[0], &first.ends[1]);
    (test.transport, test.size, test.flows) = (head.transport, head.size, connections.len() as u32);
    if let Some(other) = connections.values().find(|connection| connection.is_reverse != first.is_reverse) {
        let reason = "both directions are measured at once (-d, --full-duplex), which the figures do not tell apart: test one after the other (-r)";
        return Err(ImportError::of_line(other.line, reason.to_owned()));
    }
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
        test.warn("tool_side", said.to_owned(), "take the server's file, or long tests");
    }
    test.warn(
        "tool_digits",
        "iperf's text has three digits".to_owned(),
        "differences below 1 % may be rounding",
    );
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
