//! Text of iperf3, versions 3.1 to 3.21: what it prints without `-J`. A test becomes the document that `-J` would have
//! written, as far as the text has it, and is read as that.

use crate::formats::iperf3_json;
use crate::json::{self, Json};
use crate::test::{Format, ToolFile};
use crate::value::{ImportError, RowText, number};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(crate) fn is_text(text: &str) -> bool {
    let has = |word: &str| text.contains(word);
    (has("Connecting to host ") || has("Accepted connection from ")) && (has("[ ID]") || has("iperf3: "))
}

#[derive(Default)]
struct Test<'a> {
    line: usize,
    is_server: bool,
    is_reverse: bool,
    is_udp: bool,
    /// As `-V` names it.
    protocol: Option<&'a str>,
    /// Whether a server waits for the next test already.
    is_over: bool,
    hosts: Option<[&'a str; 2]>,
    size: Option<f64>,
    /// User and all CPU time in per cent, of this host and of the other.
    cpu: Option<[[f64; 2]; 2]>,
    streams: BTreeMap<&'a str, Stream>,
    error: Option<&'a str>,
}

#[derive(Default)]
struct Stream {
    /// Whether this host sends; only tests of both directions say it.
    sends: Option<bool>,
    sender: Option<Row>,
    receiver: Option<Row>,
    /// Of UDP before 3.7: one row, whose bytes are those sent and whose losses are the receiver's.
    only: Option<Row>,
    late: f64,
}

#[derive(Clone, Copy)]
struct Row {
    seconds: f64,
    bits_per_second: f64,
    retransmits: Option<f64>,
    /// Jitter in ms, datagrams lost, and all of them.
    udp: Option<[f64; 3]>,
}

pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let mut tests: Vec<Test> = Vec::new();
    let (mut version, mut left_out) = (None, Vec::new());
    // A table of a whole test comes behind a line of dashes.
    let mut is_behind_dashes = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("Connecting to host ") || line.starts_with("Accepted connection from ") {
            ImportError::too_many(tests.len(), number)?;
            let is_server = line.starts_with('A');
            tests.push(Test { line: number, is_server, ..Test::default() });
            is_behind_dashes = false;
        } else if let Some(found) = line.strip_prefix("iperf 3") {
            version = Some(format!("3{}", found.split_whitespace().next().unwrap_or_default()));
        }
        if let Some(test) = tests.last_mut().filter(|_| line.starts_with("Server listening on ")) {
            test.is_over = true;
        }
        let error = line.split_once("iperf3: ").map(|(_, error)| error.trim_start_matches("error - "));
        let Some(test) = tests.last_mut().filter(|test| !test.is_over) else {
            left_out.extend(error.map(|error| format!("line {}: {error}", number + 1)));
            continue;
        };
        let is_error = line.contains("error") || line.contains("interrupt");
        test.error = test.error.or(error.filter(|_| is_error));
        is_behind_dashes |= line.starts_with("- - -");
        take(test, line, is_behind_dashes)
            .ok_or_else(|| ImportError::of_line(number, "these are not results of iperf3"))?;
    }
    let mut found = Vec::new();
    for (number, test) in tests.iter().enumerate() {
        let rows = |stream: &Stream| stream.sender.or(stream.receiver).or(stream.only).is_some();
        match test.error {
            _ if !test.streams.is_empty() && test.streams.values().all(rows) => {
                let document = test.document()?;
                if let Some(name) = iperf3_json::other_transport(&document) {
                    left_out.push(format!("test {}: {name}: stacklab has no such transport", number + 1));
                    continue;
                }
                let mut read = iperf3_json::test(&document);
                read.warn(
                    "tool_digits",
                    "iperf3's text has three digits".to_owned(),
                    "differences below 1 % may be rounding: take -J",
                );
                found.push(read);
            }
            Some(error) => left_out.push(format!("test {} failed: {error}", number + 1)),
            None => {
                let reason =
                    format!("test {} has no results of the whole test: the file is cut short", number + 1);
                return Err(ImportError::of_line(test.line, reason));
            }
        }
    }
    ToolFile::of_tests(Format::Iperf3Text, version, found, left_out)
}

/// Takes what a line says of a test; `None` if it has results that cannot be read.
fn take<'a>(test: &mut Test<'a>, line: &'a str, is_behind_dashes: bool) -> Option<()> {
    if line.starts_with("Reverse mode") {
        test.is_reverse = true;
    } else if line.starts_with('[') && (line.contains("Jitter") || line.contains("Total Datagrams")) {
        test.is_udp = true;
    } else if let Some((before, _)) = line.split_once(" byte blocks") {
        let protocol = line.split_once("protocol: ").and_then(|(_, rest)| rest.split([',', ' ']).next());
        test.protocol = protocol.or(test.protocol);
        test.size = before.rsplit(' ').next().and_then(number);
    } else if let Some(said) = line.strip_prefix("CPU Utilization: ") {
        test.cpu = cpu(said);
    } else if let Some((id, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
        let (id, rest) = (id.trim(), rest.trim_start());
        // `[TX-C]`, `[RX-S]`
        let (role, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((role, rest)) => (Some(role.starts_with("TX")), rest.trim_start()),
            None => (None, rest),
        };
        if id == "ID" || id == "SUM" {
        } else if let Some(ends) = rest.strip_prefix("local ") {
            let words: Vec<&str> = ends.split_whitespace().collect();
            let [local, "port", _, "connected", "to", peer, ..] = words[..] else { return None };
            test.hosts.get_or_insert([local, peer]);
            test.streams.insert(id, Stream::default());
        } else if let (Some(stream), Some((interval, results))) =
            (test.streams.get_mut(id), rest.split_once(" sec "))
        {
            stream.sends = role.or(stream.sends);
            let from = number(interval.split_once('-')?.0.trim())?;
            if let Some(late) = results.trim().strip_suffix("datagrams received out-of-order") {
                stream.late = number(late.trim())?;
            } else if is_behind_dashes && from == 0.0 && !results.contains("(omitted)") {
                let row = row(RowText::read(interval, results)?)?;
                match results.split_whitespace().last() {
                    Some("sender") => stream.sender = Some(row),
                    Some("receiver") => stream.receiver = Some(row),
                    _ if row.udp.is_some() => stream.only = Some(row),
                    _ => {}
                }
            }
        }
    }
    Some(())
}

/// `1.22 MBytes  10.2 Mbits/sec  0.106 ms  0/39 (0%)  receiver`, of a whole test.
fn row(RowText { to, bits_per_second, more, .. }: RowText) -> Option<Row> {
    let udp = match more[..] {
        [jitter, "ms", lost, ..] => {
            let (lost, all) = lost.split_once('/')?;
            Some([number(jitter)?, number(lost)?, number(all)?])
        }
        _ => None,
    };
    let retransmits = more.first().and_then(|count| number(count)).filter(|_| udp.is_none());
    Some(Row { seconds: to, bits_per_second, retransmits, udp })
}

/// `local/sender 26.9% (0.9%u/26.0%s), remote/receiver 41.2% (2.5%u/38.7%s)`.
fn cpu(text: &str) -> Option<[[f64; 2]; 2]> {
    let host = |part: &str| {
        let (all, user) = part.split_once(' ')?.1.split_once("% (")?;
        Some([number(user.split_once("%u")?.0)?, number(all)?])
    };
    let (local, remote) = text.split_once(", ")?;
    Some([host(local)?, host(remote)?])
}

impl Row {
    fn bytes(&self) -> f64 {
        self.bits_per_second * self.seconds / 8.0
    }

    fn end(&self, sends: bool) -> Value {
        json!({
            "start": 0.0, "end": self.seconds, "bytes": self.bytes(), "retransmits": self.retransmits, "sender": sends,
        })
    }
}

impl Test<'_> {
    fn sends(&self, stream: &Stream) -> bool {
        // A server does not say that a test is in reverse: then only the sender's row counts something.
        let counts = |row: Option<Row>| row.is_some_and(|row| row.bits_per_second > 0.0);
        let server = || counts(stream.sender) && !counts(stream.receiver);
        stream.sends.unwrap_or_else(|| if self.is_server { server() } else { !self.is_reverse })
    }

    fn document(&self) -> Result<Json, ImportError> {
        let is_reverse =
            self.is_reverse || self.is_server && self.streams.values().all(|stream| self.sends(stream));
        let hosts = self.hosts.iter();
        let hosts = hosts.map(|[local, peer]| json!({ "local_host": local, "remote_host": peer }));
        let hosts: Vec<Value> = hosts.collect();
        let mut start = json!({
            "connected": hosts,
            "test_start": {
                "protocol": self.protocol.unwrap_or(if self.is_udp { "UDP" } else { "TCP" }), "blksize": self.size, "reverse": is_reverse,
            },
        });
        if self.is_server {
            start["accepted_connection"] = Value::Null;
        }
        let streams: Vec<Value> = self.streams.values().map(|stream| self.stream(stream)).collect();
        let mut end = json!({ "streams": streams });
        let forward = |stream: &&Stream| self.sends(stream) != self.is_server;
        let is_both = self.streams.values().any(|stream| forward(&stream))
            && self.streams.values().any(|stream| !forward(&stream));
        let mut sum = |name: &str, is_forward: bool, of: fn(&Stream) -> Option<Row>| {
            let of_way = |stream: &&Stream| !is_both || forward(stream) == is_forward;
            let rows: Option<Vec<Row>> = self.streams.values().filter(of_way).map(of).collect();
            let Some(rows) = rows.filter(|_| self.is_udp) else { return };
            let packets: f64 = rows.iter().filter_map(|row| row.udp).map(|[_, _, all]| all).sum();
            let seconds = rows.iter().map(|row| row.seconds).fold(0.0, f64::max);
            let bytes: f64 = rows.iter().map(Row::bytes).sum();
            end[name] = json!({ "start": 0.0, "end": seconds, "bytes": bytes, "packets": packets });
        };
        sum("sum_sent", true, |stream| stream.sender);
        sum("sum_received", true, |stream| stream.receiver);
        sum("sum_received_bidir_reverse", false, |stream| stream.receiver);
        if let Some([[user, all], [remote_user, remote_all]]) = self.cpu {
            end["cpu_utilization_percent"] = json!({
                "host_user": user, "host_total": all, "remote_user": remote_user, "remote_total": remote_all,
            });
        }
        let mut document = json!({ "start": start, "end": end });
        if let Some(error) = self.error {
            document["error"] = error.into();
        }
        json::document(&document.to_string())
    }

    fn stream(&self, stream: &Stream) -> Value {
        let sends = self.sends(stream);
        let mut found = json!({});
        for (name, row) in [("sender", stream.sender), ("receiver", stream.receiver)] {
            if let Some(row) = row {
                found[name] = row.end(sends);
            }
        }
        let seen = stream.receiver.or(stream.only).or(stream.sender).and_then(|row| row.udp);
        if let Some([jitter, lost, all]) = seen {
            found["udp"] = json!({
                "jitter_ms": jitter, "lost_packets": lost, "packets": all, "out_of_order": stream.late, "sender": sends,
            });
        }
        found
    }
}
