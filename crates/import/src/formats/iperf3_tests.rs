//! A test of iperf3 as its text has it, and as the document that `-J` would have written.

use super::forms::{Fields, find, not_understood};
use super::iperf3_lines::{Iperf3Line, ROWS, RowOwner};
use crate::formats::iperf3_json;
use crate::json::{self, Json};
use crate::test::ToolTest;
use crate::value::{ImportError, is_precise, number, too_few_digits};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Iperf3Test<'a> {
    line: usize,
    pub(super) is_server: bool,
    is_reverse: bool,
    is_udp: bool,
    /// As `-V` has it.
    cookie: Option<&'a str>,
    /// As `-V` counts them.
    flows: Option<f64>,
    /// Whether it sends or writes a file (`-F`).
    is_of_file: bool,
    /// As `-V` names it.
    protocol: Option<&'a str>,
    /// Whether a server waits for the next test already.
    pub(super) is_over: bool,
    /// As `-V` asks for them.
    asked_seconds: Option<f64>,
    /// Host and port of this end and of the other, of each connection.
    connections: Vec<[&'a str; 4]>,
    /// Datagrams that came late, of all streams: that is how they are printed, even of one.
    late: f64,
    size: Option<f64>,
    /// User and all CPU time in per cent, of this host and of the other.
    cpu: Option<[[f64; 2]; 2]>,
    streams: BTreeMap<&'a str, Iperf3Stream>,
    /// The line of an error within it, and the error.
    pub(super) error: Option<(usize, &'a str)>,
    /// The line of an error that stands before its begin, and the error.
    pub(super) early: Option<(usize, &'a str)>,
    is_behind_dashes: bool,
    /// Why it is left out, if it is.
    pub(super) left_out: Option<String>,
}

#[derive(Default)]
pub(super) struct Iperf3Stream {
    /// Whether this host sends; only tests of both directions say it.
    sends: Option<bool>,
    sender: Option<RowFigures>,
    receiver: Option<RowFigures>,
    /// Of UDP before 3.7: one row, whose bytes are those sent and whose losses are the receiver's.
    only: Option<RowFigures>,
    late: f64,
    /// Whether its begin was left out (`-O`).
    has_omitted: bool,
}

#[derive(Clone, Copy)]
struct RowFigures {
    seconds: f64,
    bits_per_second: f64,
    retransmits: Option<f64>,
    /// Jitter in ms, datagrams lost, and all of them.
    udp: Option<[f64; 3]>,
}

impl<'a> Iperf3Test<'a> {
    pub(super) fn begin(line: usize, is_server: bool, early: Option<(usize, &'a str)>) -> Self {
        Iperf3Test { line, is_server, early, ..Iperf3Test::default() }
    }

    /// Leaves it out for a reason; the first one counts.
    pub(super) fn leave_out(&mut self, reason: String) {
        self.left_out.get_or_insert(reason);
    }

    /// Whether a row with this number is one of its rows.
    pub(super) fn is_of(&self, id: &str) -> bool {
        id == "SUM" || self.streams.contains_key(id)
    }

    /// Takes what a line says of a test.
    pub(super) fn read_line(&mut self, kind: Iperf3Line, fields: &Fields<'a>, place: usize, line: &str) {
        let id = fields.text("id");
        match kind {
            Iperf3Line::Dashes => self.is_behind_dashes = true,
            Iperf3Line::Reverse => self.is_reverse = true,
            Iperf3Line::UdpHeading => self.is_udp = true,
            Iperf3Line::Cookie => self.cookie = Some(fields.text("cookie")),
            Iperf3Line::File => self.is_of_file = true,
            Iperf3Line::Setting => {
                self.flows = number(fields.text("flows"));
                self.protocol = Some(fields.text("protocol"));
                self.size = fields.number("size");
                self.asked_seconds = fields.number("seconds");
            }
            Iperf3Line::Cpu => {
                let percents =
                    ["user", "all", "remote_user", "remote_all"].map(|name| number(fields.text(name)));
                if let [Some(user), Some(all), Some(remote_user), Some(remote_all)] = percents {
                    self.cpu = Some([[user, all], [remote_user, remote_all]]);
                }
            }
            Iperf3Line::Connection => {
                self.connections.push(["local", "port", "peer", "peer_port"].map(|name| fields.text(name)));
                self.streams.insert(id, Iperf3Stream::default());
            }
            Iperf3Line::Late if id == "SUM" => {
                self.late = self.late.max(fields.number("late").unwrap_or(0.0))
            }
            Iperf3Line::Row if id == "SUM" => {}
            Iperf3Line::Row | Iperf3Line::Late => {
                let is_behind_dashes = self.is_behind_dashes;
                let Some(stream) = self.streams.get_mut(id) else {
                    self.leave_out(format!("line {}: connection {id} was not begun", place + 1));
                    return;
                };
                let role = fields.text("role");
                stream.sends = Some(role.starts_with("TX")).filter(|_| !role.is_empty()).or(stream.sends);
                match fields.number("late") {
                    Some(late) => stream.late = late,
                    None if !stream.read_row(fields, is_behind_dashes) => {
                        self.leave_out(not_understood(place, line));
                    }
                    None if is_behind_dashes && !is_rate_precise(fields) => {
                        let reason = too_few_digits(fields.text("rate"));
                        self.leave_out(format!("line {}: {reason}, or take -J", place + 1));
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }

    /// What lacks of the results of the whole test. A client prints a row of each end for each stream, a server one
    /// row, and UDP before 3.7 has one row.
    pub(super) fn find_missing_rows(&self) -> Option<String> {
        if self.streams.is_empty() {
            return Some("this test has no results of the whole test".to_owned());
        }
        for (id, stream) in &self.streams {
            let mut alike = self.streams.values().filter(|other| other.sends == stream.sends);
            let is_whole = match stream.rows() {
                [false, false] => stream.only.is_some(),
                rows if self.is_server => alike.all(|other| other.rows() == rows),
                rows => rows == [true, true],
            };
            if !is_whole {
                return Some(format!(
                    "stream {id} of this test has no results of the whole test from both ends"
                ));
            }
        }
        None
    }

    /// Whether it lasted as long as was asked for; `None` if the text does not say that.
    pub(super) fn is_complete(&self) -> Option<bool> {
        let rows = self.streams.values().flat_map(|stream| [stream.sender, stream.receiver, stream.only]);
        let lasted = rows.flatten().map(|row| row.seconds).fold(0.0, f64::max);
        self.asked_seconds.map(|asked| lasted >= asked)
    }

    /// The test as its document has it. The inner error is why it is left out. Without all of its rows the last test of
    /// a file may be cut short; another one was broken off.
    pub(super) fn read(&self, is_last: bool) -> Result<Result<ToolTest, String>, ImportError> {
        if let Some(reason) = &self.left_out {
            return Ok(Err(format!(": {reason}")));
        }
        if let Some(reason) = self.find_missing_rows() {
            let error = self.error.or(self.early);
            if error.is_none() && (self.is_over || !is_last) {
                return Ok(Err(format!(": {reason}: it was broken off")));
            }
            let Some((_, error)) = error else {
                let reason = format!("{reason}: the file is cut short");
                return Err(ImportError::of_line(self.line, reason));
            };
            return Ok(Err(format!(" failed: {error}")));
        }
        let document = self.document()?;
        if let Some(name) = iperf3_json::other_transport(&document) {
            return Ok(Err(format!(": {name}: stacklab has no such transport")));
        }
        let mut read = iperf3_json::test(&document);
        read.warn(
            "tool_digits",
            "iperf3's text has three digits".to_owned(),
            "differences below 1 % may be rounding: take -J",
        );
        // One that was interrupted ends with the results until then.
        if let Some((place, error)) = self.early {
            read.invalid.push(format!("iperf3 says in line {}, before this test: {error}", place + 1));
        }
        Ok(Ok(read))
    }
}

/// The ends of a connection, as the document has them.
fn describe_connection([local, port, peer, peer_port]: &[&str; 4]) -> Value {
    json!({
        "local_host": local, "local_port": number(port), "remote_host": peer, "remote_port": number(peer_port),
    })
}

/// Whether a row's rate has three digits, or is 0 because no byte was counted.
fn is_rate_precise(row: &Fields) -> bool {
    is_precise(row.text("rate")) || row.bytes() == Some(0.0) && is_precise(row.text("bytes"))
}

impl Iperf3Stream {
    /// Whether it has rows of the whole test from its sender and from its receiver.
    fn rows(&self) -> [bool; 2] {
        [self.sender.is_some(), self.receiver.is_some()]
    }

    /// Takes a row; false if it is not understood.
    fn read_row(&mut self, fields: &Fields, is_behind_dashes: bool) -> bool {
        let Some((end, more)) = find(ROWS, fields.text("tail")) else { return false };
        let (Some(from), Some(seconds), Some(bits_per_second)) =
            (fields.number("from"), fields.number("to"), fields.rate())
        else {
            return false;
        };
        let udp = more.number("jitter").zip(more.number("lost")).zip(more.number("all"));
        let udp = udp.map(|((jitter, lost), all)| [jitter, lost, all]);
        let row = Some(RowFigures { seconds, bits_per_second, retransmits: more.number("retries"), udp });
        match end {
            _ if !is_behind_dashes || from != 0.0 => {}
            RowOwner::Sender => self.sender = row,
            RowOwner::Receiver => self.receiver = row,
            RowOwner::Unnamed if udp.is_some() => self.only = row,
            RowOwner::Unnamed | RowOwner::Omitted => {}
        }
        self.has_omitted |= end == RowOwner::Omitted;
        true
    }
}

impl RowFigures {
    fn bytes(&self) -> f64 {
        self.bits_per_second * self.seconds / 8.0
    }

    fn end(&self, sends: bool) -> Value {
        json!({
            "start": 0.0, "end": self.seconds, "bytes": self.bytes(), "retransmits": self.retransmits, "sender": sends,
        })
    }
}

impl Iperf3Test<'_> {
    fn sends(&self, stream: &Iperf3Stream) -> bool {
        if let Some(sends) = stream.sends {
            return sends;
        }
        // A server does not say that a test is in reverse: then only the sender's row counts something.
        if self.is_server {
            return counts_bits(stream.sender) && !counts_bits(stream.receiver);
        }
        !self.is_reverse
    }

    /// Whether a stream goes from the client to the server.
    fn is_forward(&self, stream: &Iperf3Stream) -> bool {
        self.sends(stream) != self.is_server
    }

    fn document(&self) -> Result<Json, ImportError> {
        let is_reverse =
            self.is_reverse || self.is_server && self.streams.values().all(|stream| self.sends(stream));
        let hosts: Vec<Value> = self.connections.iter().map(describe_connection).collect();
        let mut start = json!({
            "connected": hosts,
            "test_start": {
                "protocol": self.protocol.unwrap_or(if self.is_udp { "UDP" } else { "TCP" }), "blksize": self.size, "reverse": is_reverse,
            },
        });
        if self.is_server {
            start["accepted_connection"] = Value::Null;
        }
        start["cookie"] = self.cookie.into();
        start["test_start"]["num_streams"] = self.flows.into();
        start["test_start"]["omit"] = self.streams.values().any(|stream| stream.has_omitted).into();
        let mut streams: Vec<Value> = self.streams.values().map(|stream| self.stream(stream)).collect();
        let is_late_of_stream = self.streams.values().any(|stream| stream.late > 0.0);
        if let Some(stream) =
            streams.iter_mut().find(|stream| stream.get("udp").is_some() && !is_late_of_stream)
        {
            stream["udp"]["out_of_order"] = self.late.into();
        }
        let mut end = json!({ "streams": streams });
        for (name, sum) in [
            ("sum_sent", self.sum_rows(true, |stream| stream.sender)),
            ("sum_received", self.sum_rows(true, |stream| stream.receiver)),
            ("sum_received_bidir_reverse", self.sum_rows(false, |stream| stream.receiver)),
        ] {
            if let Some(sum) = sum {
                end[name] = sum;
            }
        }
        if let Some([[user, all], [remote_user, remote_all]]) = self.cpu {
            end["cpu_utilization_percent"] = json!({
                "host_user": user, "host_total": all, "remote_user": remote_user, "remote_total": remote_all,
            });
        }
        let mut document = json!({ "start": start, "end": end });
        if let Some((_, error)) = self.error {
            document["error"] = error.into();
        }
        json::document(&document.to_string())
    }

    /// The sum of datagrams in one direction, or in all if there is only one; `None` if a stream has no such row.
    fn sum_rows(&self, is_forward: bool, row_of: fn(&Iperf3Stream) -> Option<RowFigures>) -> Option<Value> {
        if !self.is_udp {
            return None;
        }
        let is_both = self.streams.values().any(|stream| self.is_forward(stream))
            && self.streams.values().any(|stream| !self.is_forward(stream));
        let mut rows = Vec::new();
        for stream in self.streams.values() {
            if !is_both || self.is_forward(stream) == is_forward {
                rows.push(row_of(stream)?);
            }
        }
        let packets: f64 = rows.iter().filter_map(|row| row.udp).map(|[_, _, all]| all).sum();
        let seconds = rows.iter().map(|row| row.seconds).fold(0.0, f64::max);
        let bytes: f64 = rows.iter().map(RowFigures::bytes).sum();
        Some(json!({ "start": 0.0, "end": seconds, "bytes": bytes, "packets": packets }))
    }

    fn stream(&self, stream: &Iperf3Stream) -> Value {
        let sends = self.sends(stream);
        let mut found = json!({});
        if self.is_of_file {
            found["diskfile"] = json!({});
        }
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

fn counts_bits(row: Option<RowFigures>) -> bool {
    row.is_some_and(|row| row.bits_per_second > 0.0)
}
