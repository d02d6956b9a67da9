//! JSON of iperf3, versions 3.0 to 3.21. What differs between versions:
//!
//! - to 3.10: names are there twice with `--bidir`;
//! - before 3.11: of UDP, bytes and rate are what was sent, beside losses and jitter of what arrived, and nothing
//!   more. Such bytes are not taken for received ones;
//! - from 3.2: of TCP, `seconds` of a receiver are the sender's; `end` is its own;
//! - with `-R`, round trips of TCP are not known, and are 0.

use super::iperf_groups::canonical;
use super::iperf3_checks::{find_contradiction, find_unreadable};
use super::iperf3_ways::{DirectionCounts, or_0};
use crate::json::{Documents, Json, Rows, with_rows};
use crate::test::{
    Format, Identity, MAX_ROWS, PORTS, Part, Side, ToolFile, ToolTest, family, nanoseconds, of_flows,
    write_size,
};
use crate::value::{ImportError, MAX_TESTS, mean, share_of_losses, untold};
use stacklab_model::{Direction, Metric, Probe, Role, ToolSeries, Transport, Value};

/// The intervals of a test, or the lines of a stream that are intervals: their sums.
const INTERVALS: Rows = Rows {
    list: "intervals",
    document: Some("{\"event\":\"interval\""),
    fields: &["event", "data", "sum", "start", "end", "bytes", "packets", "lost_packets", "omitted"],
};

pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let Documents { documents: found, beside, rows } = with_rows(text, &[], &INTERVALS)?;
    let mut tests: Vec<ToolTest> = Vec::new();
    let mut left_out = Vec::new();
    // --json-stream-full-output has both: events, and the document of the whole test behind them.
    let (events, mut found): (Vec<Json>, Vec<Json>) =
        found.into_iter().partition(|document| document.get("event").is_some());
    let is_streamed = !events.is_empty();
    found.splice(..0, group_events(events, rows <= MAX_ROWS, &mut left_out));
    // The test of each document.
    let mut places: Vec<Option<usize>> = Vec::new();
    let version = found.iter().find_map(|document| document["start"].text("version"));
    let version = version.map(|version| version.trim_start_matches("iperf ").to_owned());
    for (number, document) in found.iter().enumerate() {
        let failed = |what: &str| ImportError::of_file(format!("test {} has {what}", number + 1));
        places.push(None);
        // --json-stream has only the error if it did not connect.
        if let (None, Some(error)) = (document.get("start"), document.text("error")) {
            left_out.push(format!("test {} failed: {error}", number + 1));
            continue;
        }
        if document.get("start").is_none() {
            return Err(failed(if has_debug_output(text) {
                "debugging output within its JSON: run iperf3 -J without -d"
            } else {
                "no start: this is not JSON of iperf3"
            }));
        }
        let is_measured = !document["end"]["streams"].items().is_empty();
        match (is_measured, document.text("error")) {
            (true, _) if tests.len() == MAX_TESTS => {
                return Err(ImportError::of_file("it has too many tests"));
            }
            (true, _) => match other_transport(document) {
                Some(name) => {
                    left_out.push(format!("test {}: {name}: stacklab has no such transport", number + 1));
                }
                None => {
                    find_unreadable(&document["end"]).map_or(Ok(()), |reason| Err(failed(&reason)))?;
                    places[number] = Some(tests.len());
                    tests.push(test(document));
                }
            },
            (false, Some(error)) => left_out.push(format!("test {} failed: {error}", number + 1)),
            (false, None) => return Err(failed("no end: the file is cut short")),
        }
    }
    for (before, line) in beside {
        // An error behind a test is that test's, if one document is one test.
        let place =
            if is_streamed { places.last() } else { before.checked_sub(1).and_then(|at| places.get(at)) };
        let test = place.copied().flatten().and_then(|at| tests.get_mut(at));
        match test.filter(|_| line.contains("error")) {
            Some(test) => test.invalid.push(format!("a line outside the JSON: {line}")),
            None => left_out.push(format!("a line outside the JSON: {line}")),
        }
    }
    ToolFile::of_tests(Format::Iperf3, version, tests, left_out)
}

/// Whether a text has the JSON that both ends exchange, as `-d` prints it.
fn has_debug_output(text: &str) -> bool {
    ["send_parameters:", "get_parameters:", "send_results", "get_results"]
        .iter()
        .any(|words| text.lines().any(|line| line.trim() == *words))
}

/// The name of a test's transport, if stacklab does not have it. MPTCP is a TCP with an option.
pub(super) fn other_transport(document: &Json) -> Option<String> {
    let asked = &document["start"]["test_start"];
    if ["mptcp", "MPTCP"].iter().any(|name| asked.is_set(name) || document["start"].is_set(name)) {
        return Some("MPTCP".to_owned());
    }
    let name = asked.text("protocol")?;
    let is_known = name.to_ascii_lowercase().parse::<Transport>().is_ok();
    (!is_known).then(|| name.to_owned())
}

/// The tests of `--json-stream`: a line for each event. `has_rows` says whether all intervals are there. An event
/// behind a test's end is not of that test: it is the end of the server.
fn group_events(events: Vec<Json>, has_rows: bool, left_out: &mut Vec<String>) -> Vec<Json> {
    let mut tests: Vec<Vec<(String, Json)>> = Vec::new();
    for event in events {
        let Json::Fields(fields) = event else { continue };
        let mut name = String::new();
        let mut data = Json::Null;
        for (field, value) in fields {
            match (field.as_str(), value) {
                ("event", Json::Text(text)) => name = text,
                ("data", value) => data = value,
                _ => {}
            }
        }
        if name == "start" || tests.is_empty() {
            tests.push(Vec::new());
        }
        let count = tests.len();
        let Some(test) = tests.last_mut() else { continue };
        if test.iter().any(|(name, data)| name == "end" && !data["streams"].items().is_empty()) {
            if name != "end" {
                let text = if let Json::Text(text) = &data { text.as_str() } else { "" };
                left_out.push(format!("an event behind the end of test {count}: {name} {text}"));
            }
            continue;
        }
        match test.last_mut() {
            _ if name != "interval" => test.push((name, data)),
            Some((last, Json::List(rows))) if last == "intervals" && has_rows => rows.push(data),
            _ if has_rows => test.push(("intervals".to_owned(), Json::List(vec![data]))),
            _ => {}
        }
    }
    tests.into_iter().map(Json::Fields).collect()
}

/// The shortest cookie: others are placeholders.
const MIN_COOKIE: usize = 16;

/// What the beginning of a document says of its test, and what was asked for.
fn begin_test(start: &Json, asked: &Json) -> ToolTest {
    let mut test = ToolTest::new(Probe::Stream);
    let connection = start["connected"].items().first();
    test.family = connection.and_then(|of| family(of.text("local_host")?, of.text("remote_host")?));
    test.transport = asked.text("protocol").and_then(|name| name.to_ascii_lowercase().parse().ok());
    test.size = asked.count("blksize").and_then(write_size);
    let cookie = start.text("cookie").filter(|cookie| cookie.len() >= MIN_COOKIE);
    test.identities.extend(cookie.map(|cookie| Identity {
        what: "cookie",
        name: cookie.to_owned(),
        at_s: None,
    }));
    test.identities.extend(identify_ports(start["connected"].items()));
    let rate = asked.count("target_bitrate").or_else(|| start.count("target_bitrate"));
    test.rate = rate.filter(|rate| *rate > 0.0);
    let began = start["timestamp"].count("timesecs").filter(|seconds| *seconds < 9e9);
    test.started_unix_ns = began.map(|seconds| seconds as u64 * 1_000_000_000);
    // With -n and -k it is 0, and the end has the seconds.
    test.duration_ns = asked.count("duration").map_or(0, nanoseconds);
    test
}

pub(crate) fn test(document: &Json) -> ToolTest {
    let start = &document["start"];
    let end = &document["end"];
    let asked = &start["test_start"];
    let mut test = begin_test(start, asked);
    let is_of_file = end["streams"].items().iter().any(|stream| stream.get("diskfile").is_some());
    let is_counted = is_of_file || ["bytes", "blocks"].iter().any(|name| asked.is_set(name));
    // A server tells the same of the other side.
    let is_server = start.get("accepted_connection").is_some();
    test.side = Some(if is_server { Side::Server } else { Side::Client });
    let reverse = asked.is_set("reverse");
    let mut ways = [DirectionCounts::default(), DirectionCounts::default()];
    for stream in end["streams"].items() {
        let one = ["udp", "sender", "receiver"].iter().find_map(|name| stream.get(name));
        let sends =
            one.and_then(|one| one.number("sender")).map_or(reverse == is_server, |sends| sends != 0.0);
        let way = &mut ways[usize::from(sends == is_server)];
        way.sends = sends;
        way.add(stream);
    }
    let [forward, back] = &ways;
    test.direction = match (forward.streams, back.streams) {
        (1.., 1..) => Direction::Both,
        (0, _) => Direction::Reverse,
        _ => Direction::Forward,
    };
    let way = if test.direction == Direction::Reverse { back } else { forward };
    test.flows = way.streams;
    if test.duration_ns == 0 {
        test.duration_ns = nanoseconds(way.end);
    }
    let said = Said { end, is_server, is_counted };
    let throughput = throughput(&test, &said, way, false);
    test.set(Metric::Throughput, throughput);
    if test.direction == Direction::Both {
        let throughput = self::throughput(&test, &said, back, true);
        test.set(Metric::ThroughputReverse, throughput);
    } else {
        test.series = series(document, way.sends);
    }
    figures(&mut test, &said, way);
    if let Some(error) = document.text("error") {
        test.invalid.push(format!("iperf3 says: {error}"));
    }
    for way in ways.iter().filter(|way| way.streams > 0) {
        test.invalid.extend(find_contradiction(document, way, is_server));
    }
    test
}

/// What the files of both ends have: addresses and ports of the streams. `None` if one lacks them.
fn identify_ports(connections: &[Json]) -> Option<Identity> {
    let mut names = Vec::new();
    for connection in connections {
        let mut ends = Vec::new();
        for [host, port] in [["local_host", "local_port"], ["remote_host", "remote_port"]] {
            ends.push(format!("{} {}", canonical(connection.text(host)?), connection.count(port)?));
        }
        ends.sort_unstable();
        names.push(ends.join(" "));
    }
    names.sort_unstable();
    (!names.is_empty()).then(|| Identity { what: PORTS, name: names.join(", "), at_s: None })
}

fn series(document: &Json, sends: bool) -> Option<ToolSeries> {
    let intervals = document["intervals"].items().iter();
    let parts: Vec<Part> = intervals.filter_map(|row| read_part(&row["sum"], sends)).collect();
    of_flows(if sends { Role::Sender } else { Role::Receiver }, &[parts])
}

/// The sum of an interval; `None` if it was omitted, or has no time or bytes.
fn read_part(sum: &Json, sends: bool) -> Option<Part> {
    if sum.is_set("omitted") {
        return None;
    }
    let lost = if sends { 0.0 } else { or_0(sum, "lost_packets") };
    let messages = (or_0(sum, "packets") - lost).max(0.0);
    Some(Part { from: sum.count("start")?, to: sum.count("end")?, bytes: sum.count("bytes")?, messages })
}

/// Warns of datagrams that were lost after the last one that arrived, which iperf3 does not count.
fn late_losses(test: &mut ToolTest, end: &Json, way: &DirectionCounts) {
    let Some(sent) = end["sum_sent"].count("packets") else { return };
    let Some(counted) = end["sum_received"].count("packets") else { return };
    if test.direction != Direction::Both && counted > 0.0 && sent > counted {
        let lost: f64 = way.datagrams.iter().map(|stream| stream.lost).sum();
        let all = 100.0 * (1.0 - (counted - lost).max(0.0) / sent);
        test.warn(
            "tool_loss",
            format!(
                "iperf3 counts losses up to the last datagram that arrived: {sent} were sent, and it counted {counted} of \
                 them"
            ),
            &format!("if the rest was lost too, the loss is {all:.3} %"),
        );
    }
}

/// The end of a document, and whose it is.
struct Said<'a> {
    end: &'a Json,
    is_server: bool,
    /// Whether the test was to end after a number of bytes or blocks, or with a file.
    is_counted: bool,
}

/// What arrived in a direction, Mbit/s.
fn throughput(test: &ToolTest, said: &Said<'_>, way: &DirectionCounts, second: bool) -> Value {
    let Said { end, is_server, is_counted } = *said;
    // A client has the receiver's word; a server that sends has none, and writes 0.
    let is_known = !(is_server && way.sends);
    let (bytes, seconds) = match test.transport {
        Some(Transport::Udp) => {
            let name = if second { "sum_received_bidir_reverse" } else { "sum_received" };
            let Some(sum) = end.get(name) else {
                return Value::Missing(
                    "this version of iperf3 reports the bytes sent, not those received".to_owned(),
                );
            };
            (or_0(sum, "bytes"), or_0(sum, "end") - or_0(sum, "start"))
        }
        _ => (way.received, way.end),
    };
    if way.receivers > 0 && way.receivers < way.streams {
        return untold("the file", "the receiver's counts of every stream");
    }
    match (bytes > 0.0, seconds > 0.0) {
        (true, true) => Value::Measured(bytes * 8.0 / 1e6 / seconds),
        (false, true) if is_known && !is_counted => Value::Measured(0.0),
        (false, true) if is_known => Value::Missing(
            "with -n and -k, and of a file (-F), some versions of iperf3 write 0 for the receiver although everything arrived"
                .to_owned(),
        ),
        _ => untold("the file", "the receiver's counts"),
    }
}

fn figures(test: &mut ToolTest, said: &Said<'_>, way: &DirectionCounts) {
    let Said { end, is_server, .. } = *said;
    if test.direction != Direction::Both {
        test.set(Metric::CpuGeneratorSender, read_cpu_time(said, way.sends));
        test.set(Metric::CpuGeneratorReceiver, read_cpu_time(said, !way.sends));
    }
    for metric in [Metric::CpuSender, Metric::CpuReceiver] {
        test.set(metric, untold("iperf3", "the host's CPU time, only that of iperf3"));
    }
    test.set_retransmits(way.retransmits, way.sent);
    test.set(
        Metric::TcpSrtt,
        match way.rtts[..] {
            [] => untold("the file", "round trips of the sender"),
            _ => Value::Measured(mean(&way.rtts) / 1e3),
        },
    );
    if test.transport != Some(Transport::Udp) {
        return;
    }
    if is_server && way.sends {
        for metric in [Metric::JitterRfc3550, Metric::Loss] {
            let reason = "a sending server does not know the received bytes, and writes 0";
            test.set(metric, Value::Missing(reason.to_owned()));
        }
    } else {
        test.set(Metric::JitterRfc3550, Value::finite(mean(&way.jitters), "the file has no jitter"));
        test.set(Metric::Loss, share_of_losses(&way.datagrams, "the file has no datagrams"));
        late_losses(test, end, way);
    }
    test.set(Metric::OneWayDelay, untold("iperf3", "delays"));
    test.set(Metric::Jitter, untold("iperf3", "any jitter but the smoothed one (RFC 3550)"));
    test.warn_late("iperf3", way.late);
}

/// CPU time of iperf3 in user mode, at this host or at the other one.
fn read_cpu_time(said: &Said<'_>, is_this_host: bool) -> Value {
    if said.is_server && !is_this_host {
        let reason = "a server of iperf3 writes its results before it has the client's CPU time";
        return Value::Missing(reason.to_owned());
    }
    let names = if is_this_host { ["host_total", "host_user"] } else { ["remote_total", "remote_user"] };
    let [all, user] = names.map(|name| said.end["cpu_utilization_percent"].count(name));
    // A server that does not know it sends 0 in all.
    let known = all.filter(|all| *all > 0.0).and(user);
    known.map_or_else(|| untold("the file", "CPU time"), Value::Measured)
}
