//! Text of iperf 2 (`-e`, and without it), versions 2.0 to 2.2. Its figures have three digits.

use crate::test::{Format, Identity, MOST_ROWS, Part, ToolFile, ToolTest, family, nanoseconds, of_flows};
use crate::value::{ImportError, MOST_TESTS, RowText, amount, number, rfc3339_ns, untold};
use stacklab_model::{Direction, Metric, Probe, Role, ToolSeries, Transport, Value};
use std::collections::BTreeMap;

/// How many tests before the last one may still run.
const MOST_RUNNING: usize = 1000;

/// Words of headings and connections whose tests are left out, and why.
const LEFT_OUT: [(&str, &str); 7] = [
    ("full-duplex", BOTH),
    ("Full-duplex", BOTH),
    ("Bounceback", "bounceback: requests and answers, and no stream"),
    ("(bb", "bounceback: requests and answers, and no stream"),
    ("isoch", "an isochronous test, which sends frames on a schedule: stacklab has no such probe"),
    ("Isoch", "an isochronous test, which sends frames on a schedule: stacklab has no such probe"),
    ("MPTCP", "MPTCP: stacklab has no such transport"),
];
const BOTH: &str = "both directions were measured at once (-d, --full-duplex) and cannot be separated: test one after the other (-r)";

#[derive(Debug, Clone, Default)]
struct Head {
    /// Why its tests are left out, if they are.
    left_out: Option<String>,
    transport: Option<Transport>,
    size: Option<u32>,
    is_server: bool,
}

#[derive(Default)]
struct TestGroup {
    head: Head,
    connections: BTreeMap<String, Connection>,
    has_results: bool,
    late: f64,
    /// Why it is left out, if it is.
    left_out: Option<String>,
}

struct Connection {
    line: usize,
    ends: [String; 2],
    /// Addresses and ports, in one order at both ends.
    name: String,
    is_reverse: bool,
    own: Option<ResultLine>,
    /// The lines of this host, that of the whole test included.
    parts: Vec<Part>,
    /// Whether its last line was of an interval that does not begin with the test: the whole test's line comes last.
    is_open: bool,
    /// By the server, which sends it to the client.
    server: Option<ResultLine>,
    /// When it began, nanoseconds since the Unix epoch.
    began_unix_ns: Option<u64>,
}

struct ResultLine {
    seconds: f64,
    bytes: f64,
    bits_per_second: f64,
    /// Jitter in ms, datagrams lost and sent.
    udp: Option<[f64; 3]>,
    retries: Option<f64>,
    /// The sender's round trip, ms.
    rtt: Option<f64>,
    /// Whether all of its digits are printed (`-f b`).
    is_exact: bool,
}

impl ResultLine {
    fn part(&self, from: f64) -> Part {
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

pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let mut reader = Reader::default();
    for (number, line) in text.lines().enumerate() {
        let failed = |reason: String| ImportError::of_line(number, reason);
        reader.line(number, line.trim()).map_err(failed)?;
        if reader.groups.len() > MOST_TESTS || reader.group.connections.len() > 10_000 {
            return Err(failed("there are too many tests".to_owned()));
        }
    }
    reader.end_group();
    let mut tests = Vec::new();
    let mut left_out = reader.left_out;
    for group in reader.groups {
        close(group, &mut tests, &mut left_out)?;
    }
    ToolFile::of_tests(Format::IperfText, reader.version, tests, left_out)
}

#[derive(Default)]
struct Reader {
    head: Head,
    version: Option<String>,
    /// A server's log has connections that begin while others run: groups are closed at the end.
    groups: Vec<TestGroup>,
    group: TestGroup,
    /// Whether the server's report of a datagram test follows.
    of_server: bool,
    left_out: Vec<String>,
    /// A client that tests both directions listens too (-d and -r), on this port.
    is_client: bool,
    listening: Option<String>,
    /// Whether a connection came before this host connected to another: it is the server.
    is_served: bool,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let is_server = line.starts_with("Server listening on ");
        if is_server || line.starts_with("Client connecting to ") {
            self.heading(line, is_server);
        } else if let Some(rest) = line.strip_prefix("Sending ") {
            self.head.size = rest.split_whitespace().next().and_then(|bytes| bytes.parse().ok());
        } else if let Some(rest) = line.strip_prefix("Write buffer size:") {
            // `1.42 KByte` is rounded, and no size.
            let size = amount(rest, "Byte", 1024.0);
            let is_rounded = rest.split_whitespace().next().is_some_and(|amount| amount.contains('.'));
            self.head.size = size.filter(|_| !is_rounded).map(|bytes| bytes as u32);
        } else if let Some((id, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            let (id, rest) = (id.trim().trim_start_matches('*'), rest.trim());
            if let Some(ends) = rest.strip_prefix("local ") {
                self.connection(number, id, ends)?;
            } else if rest.starts_with("Server Report") {
                self.of_server = true;
            } else if let Some(late) = late_datagrams(rest) {
                self.group.late += late;
                self.of_server = false;
            } else if rest.contains(" sec ") && !rest.contains("-PDF:") {
                self.results(id, rest)?;
            } else if rest.starts_with("WARNING") {
                self.left_out.push(format!("line {}: {rest}", number + 1));
            }
        } else {
            self.head.left_out = self.head.left_out.take().or_else(|| reason_of(line));
        }
        Ok(())
    }

    fn end_group(&mut self) {
        self.groups.push(std::mem::take(&mut self.group));
    }

    fn heading(&mut self, line: &str, is_server: bool) {
        // Connections may be listed before their sum.
        if self.group.has_results {
            self.end_group();
        }
        let transport = line.split_whitespace().find_map(|word| match word {
            "TCP" => Some(Transport::Tcp),
            "UDP" => Some(Transport::Udp),
            _ => None,
        });
        if is_server {
            let port = line.split_once("port ").and_then(|(_, port)| port.split_whitespace().next());
            self.listening = port.map(str::to_owned);
        } else {
            self.is_client = true;
        }
        let word = line.split_once(", ").and_then(|(_, rest)| rest.split_whitespace().next());
        let word =
            word.filter(|word| transport.is_none() && word.bytes().all(|byte| byte.is_ascii_uppercase()));
        let other = word.map(|word| format!("{word}: stacklab has no such transport"));
        self.head = Head { transport, size: None, is_server, left_out: other.or_else(|| reason_of(line)) };
    }

    /// `local A port N connected with B port N ..`, without its first word.
    fn connection(&mut self, line: usize, id: &str, text: &str) -> Result<(), String> {
        if self.group.has_results {
            self.end_group();
        }
        if let Some((_, peer)) = text.split_once("(peer ") {
            self.version = peer.split(')').next().map(str::to_owned);
        }
        self.group.head = self.head.clone();
        self.group.left_out = self.group.left_out.take().or_else(|| reason_of(text));
        let (ends, ports) = ends_of(text).ok_or("this is not a pair of addresses")?;
        self.is_served |= !self.is_client;
        // Of a client that listens: what comes to its port. Of a server: what it begins to the client's.
        let came_back = self.listening.as_deref() == Some(ports[usize::from(self.is_served)]);
        let mut both =
            [format!("{} {}", bare(&ends[0]), ports[0]), format!("{} {}", bare(&ends[1]), ports[1])];
        both.sort_unstable();
        let connection = Connection {
            line,
            name: both.join(" "),
            ends,
            is_reverse: text.contains("(reverse)") || self.is_client && came_back,
            own: None,
            parts: Vec::new(),
            is_open: false,
            server: None,
            began_unix_ns: text.split_once(" on ").and_then(|(_, time)| time_ns(time)),
        };
        match self.group.connections.insert(id.to_owned(), connection) {
            Some(_) => Err("its number is used twice".to_owned()),
            None => Ok(()),
        }
    }

    fn results(&mut self, id: &str, text: &str) -> Result<(), String> {
        if !self.group.has_results {
            self.group.head = self.head.clone();
        }
        self.group.has_results = true;
        // Sums of connections, and of both directions of one.
        if id.starts_with("SUM") || id.starts_with("FD") {
            return Ok(());
        }
        let running = self.groups.iter_mut().rev().take(MOST_RUNNING);
        let mut groups = std::iter::once(&mut self.group).chain(running);
        let group = groups.find(|group| group.connections.contains_key(id));
        let group = group.ok_or_else(|| format!("connection {} was not begun", id.escape_debug()))?;
        let is_left_out = group.left_out.is_some() || group.head.left_out.is_some();
        let Some(connection) = group.connections.get_mut(id).filter(|_| !is_left_out) else {
            self.of_server = false;
            return Ok(());
        };
        let (from, outcome) = outcome(text).ok_or("these are not results of iperf")?;
        connection.is_open = from > 0.0;
        if !self.of_server && connection.parts.len() <= MOST_ROWS {
            connection.parts.push(outcome.part(from));
        }
        let known = if self.of_server { &mut connection.server } else { &mut connection.own };
        self.of_server = false;
        if from == 0.0 && known.as_ref().is_none_or(|known| outcome.seconds > known.seconds) {
            *known = Some(outcome);
        }
        Ok(())
    }
}

/// Why tests with such a line are left out, if they are.
fn reason_of(line: &str) -> Option<String> {
    LEFT_OUT.iter().find(|(word, _)| line.contains(word)).map(|(_, reason)| (*reason).to_owned())
}

/// An address without its zone.
fn bare(address: &str) -> &str {
    address.split('%').next().unwrap_or(address)
}

/// The addresses and ports of `A port N connected with B port N`.
fn ends_of(text: &str) -> Option<([String; 2], [&str; 2])> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [local, "port", port, "connected", "with", peer, "port" | "port:", peer_port, ..] = words[..] else {
        return None;
    };
    Some(([local.to_owned(), peer.to_owned()], [port, peer_port]))
}

/// `0.0-10.0 sec  1 datagrams received out-of-order`: their number.
fn late_datagrams(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once(" sec ")?;
    number(rest.trim().strip_suffix("datagrams received out-of-order")?.trim())
}

/// `2024-01-01 00:00:00.500 (UTC)` in nanoseconds since the Unix epoch.
fn time_ns(text: &str) -> Option<u64> {
    let (time, zone) = text.split_once(" (")?;
    rfc3339_ns(&format!("{}Z", time.trim())).filter(|_| zone.starts_with("UTC"))
}

/// `0.0000-2.0020 sec  2.51 MBytes  10.5 Mbits/sec ..`: the begin, and the results.
fn outcome(text: &str) -> Option<(f64, ResultLine)> {
    let (interval, results) = text.split_once(" sec ")?;
    // Before version 2.0.14, ` 0.0- 1.0`.
    let RowText { from, to, bytes, bits_per_second, more } = RowText::read(interval, results)?;
    let udp = match more[..] {
        // Of TCP, latencies stand there (--trip-times).
        [jitter, "ms", lost_of_sent, ..] if number(jitter).is_some() => {
            // Before version 2.1, `0/ 1811`.
            let (lost, sent) = match lost_of_sent.strip_suffix('/') {
                Some(lost) => (lost, *more.get(3)?),
                None => lost_of_sent.split_once('/')?,
            };
            Some([number(jitter)?, number(lost)?, number(sent)?])
        }
        _ => None,
    };
    let retries = match more[..] {
        [written, retries, window, ..] if written.contains('/') && window.contains('/') => number(retries),
        _ => None,
    };
    // `400K/1500(50) us`: window, round trip and its variation.
    let rtt = match more[..] {
        [_, _, window, "us", ..] => {
            window.split_once('/').and_then(|(_, rtt)| number(rtt.split('(').next()?))
        }
        _ => None,
    };
    let is_exact =
        results.split_whitespace().nth(3).is_some_and(|unit| ["bits/sec", "Bytes/sec"].contains(&unit));
    let rtt = rtt.filter(|rtt| *rtt > 0.0).map(|us| us / 1e3);
    Some((from, ResultLine { seconds: to, bytes, bits_per_second, udp, retries, rtt, is_exact }))
}

fn close(group: TestGroup, tests: &mut Vec<ToolTest>, left_out: &mut Vec<String>) -> Result<(), ImportError> {
    let TestGroup { head, connections, late, left_out: reason, .. } = group;
    let Some(first) = connections.values().next() else { return Ok(()) };
    let is_both = connections.values().any(|other| other.is_reverse != first.is_reverse);
    if let Some(reason) = reason.or(head.left_out).or_else(|| is_both.then(|| BOTH.to_owned())) {
        left_out.push(format!("line {}: {reason}", first.line + 1));
        return Ok(());
    }
    let mut test = ToolTest::new(Probe::Stream);
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
