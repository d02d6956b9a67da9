//! Text of iperf3, versions 3.1 to 3.21: what it prints without `-J`. A test becomes the document that `-J` would have
//! written, as far as the text has it, and is read as that.

use super::forms::{Fields, Unread, begin, cut_line, find, not_understood};
use super::iperf3_lines::{End, Kind, LINES, ROWS};
use crate::formats::iperf3_json;
use crate::json::{self, Json};
use crate::test::{Format, ToolFile, ToolTest};
use crate::value::{ImportError, number};
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
    /// The line of an error that stands before its begin, and the error.
    early: Option<(usize, &'a str)>,
    is_behind_dashes: bool,
    /// Why it is left out, if it is.
    left_out: Option<String>,
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
    let mut reader = Reader { cut: cut_line(text), ..Reader::default() };
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        ImportError::too_many(reader.tests.len(), place)?;
        reader.read_line(place, line.trim()).map_err(|reason| ImportError::of_line(place, reason))?;
    }
    reader.pass_over_pending();
    reader.tell_early(None);
    let Reader { tests, version, mut left_out, unread, .. } = reader;
    let mut found = Vec::new();
    for (number, test) in tests.iter().enumerate() {
        match test.read()? {
            Ok(read) => found.push(read),
            Err(reason) => left_out.push(format!("test {}{reason}", number + 1)),
        }
    }
    left_out.extend(unread.describe());
    ToolFile::of_tests(Format::Iperf3Text, version, found, left_out)
}

#[derive(Default)]
struct Reader<'a> {
    tests: Vec<Test<'a>>,
    version: Option<String>,
    is_in_server_output: bool,
    /// Whether it is in JSON that both ends exchanged.
    is_in_exchange: bool,
    /// An error before its test: in a file it comes before the text that iperf3 still holds in a buffer.
    early: Option<(usize, &'a str)>,
    left_out: Vec<String>,
    /// Lines that are not understood since the last one that is: within a test, or behind it.
    pending: Vec<(usize, &'a str)>,
    unread: Unread<'a>,
    /// The line that the file may be cut in.
    cut: Option<usize>,
}

impl<'a> Reader<'a> {
    fn read_line(&mut self, place: usize, line: &'a str) -> Result<(), String> {
        let found = find(LINES, line);
        if self.is_in_server_output {
            let is_over = matches!(found, Some((Kind::Client | Kind::Done, _)));
            self.is_in_server_output = !is_over;
            if !is_over {
                return Ok(());
            }
        }
        if self.is_in_exchange && is_of_exchange(line) {
            self.is_in_exchange = line != "}";
            return Ok(());
        }
        self.is_in_exchange = matches!(found, Some((Kind::Exchange, _)));
        let Some((kind, fields)) = found else { return self.pass_over(place, line) };
        match kind {
            Kind::Client | Kind::Server => {
                self.pass_over_pending();
                let is_server = matches!(kind, Kind::Server);
                let early = if is_server { None } else { self.early.take() };
                self.tests.push(Test { line: place, is_server, early, ..Test::default() });
            }
            Kind::Waiting => {
                self.pass_over_pending();
                self.tests.last_mut().into_iter().for_each(|test| test.is_over = true);
            }
            Kind::Version => self.version = Some(format!("3{}", fields.text("version"))),
            Kind::ServerOutput => {
                self.is_in_server_output = true;
                let what = "the server's output of the same test (--get-server-output): it counts once";
                self.left_out.push(format!("line {}: {what}", place + 1));
            }
            Kind::Message | Kind::Warning => self.read_message(place, line, fields.text("tail")),
            Kind::Done => {
                if let Some(test) = self.tests.last_mut() {
                    test.is_over = true;
                    // A test that was completed has no error: it was of one before.
                    let early = test.early.take();
                    self.tell_early(early);
                    self.tell_early(None);
                }
            }
            Kind::Known | Kind::Exchange => {}
            _ => {
                let Some(test) = self.tests.last_mut().filter(|test| !test.is_over) else {
                    self.pending.push((place, line));
                    return Ok(());
                };
                if let (Kind::Row | Kind::Connection, Some((place, line))) = (kind, self.pending.first()) {
                    test.leave_out(not_understood(*place, line));
                    self.pending.clear();
                }
                let was_understood = test.left_out.is_none();
                test.read_line(kind, &fields, place, line);
                if self.cut == Some(place) && was_understood && test.left_out.is_some() {
                    return Err("this row is not understood: the file is cut short".to_owned());
                }
            }
        }
        Ok(())
    }

    /// An error makes its test invalid; all else is listed.
    fn read_message(&mut self, place: usize, line: &'a str, text: &'a str) {
        let said = text.trim_start_matches("error - ");
        let is_error = line.starts_with("iperf3: ") && (text.contains("error") || text.contains("interrupt"));
        match self.tests.last_mut().filter(|test| is_error && !test.is_over) {
            Some(test) => test.error = test.error.or(Some(said)),
            None if is_error => self.tell_early(Some((place, said))),
            None => self.left_out.push(format!("line {}: {said}", place + 1)),
        }
    }

    /// Lists the error that came before, which is of no test, and keeps this one.
    fn tell_early(&mut self, error: Option<(usize, &'a str)>) {
        if let Some((place, said)) = std::mem::replace(&mut self.early, error) {
            self.left_out.push(format!("line {}: {said}", place + 1));
        }
    }

    /// Takes a line that is not understood. In brackets it is iperf3's.
    fn pass_over(&mut self, place: usize, line: &'a str) -> Result<(), String> {
        let test = self.tests.last_mut().filter(|test| !test.is_over);
        let bracket = begin(&[((), "[ {id}]<[{role}]> ")], line);
        match (test, bracket) {
            (Some(test), Some((_, fields, rest))) if test.is_of(fields.text("id")) => {
                if begin(&[((), "{from}- {to} sec")], rest).is_some() {
                    return Err("these are not results of iperf3".to_owned());
                }
                test.leave_out(not_understood(place, line));
            }
            // `[1] 4711` and `[1]+ Done ..` are of a shell.
            _ => self.pending.push((place, line)),
        }
        Ok(())
    }

    /// Counts lines that stand in no test.
    fn pass_over_pending(&mut self) {
        for (place, line) in self.pending.drain(..) {
            self.unread.add(place, line);
        }
    }
}

/// Whether a line is of the JSON that both ends exchange, as iperf3 prints it: a brace, or a key with its value.
fn is_of_exchange(line: &str) -> bool {
    let is_key = line.starts_with('"') && line.contains("\":");
    is_key || ["{", "}", "}]", "}],", "}, {"].contains(&line)
}

impl<'a> Test<'a> {
    /// Leaves it out for a reason; the first one counts.
    fn leave_out(&mut self, reason: String) {
        self.left_out.get_or_insert(reason);
    }

    /// Whether a row with this number is one of its rows.
    fn is_of(&self, id: &str) -> bool {
        id == "SUM" || self.streams.contains_key(id)
    }

    /// Takes what a line says of a test.
    fn read_line(&mut self, kind: Kind, fields: &Fields<'a>, place: usize, line: &str) {
        let id = fields.text("id");
        match kind {
            Kind::Dashes => self.is_behind_dashes = true,
            Kind::Reverse => self.is_reverse = true,
            Kind::UdpHeading => self.is_udp = true,
            Kind::Setting => {
                self.protocol = Some(fields.text("protocol"));
                self.size = fields.number("size");
            }
            Kind::Cpu => {
                let percents =
                    ["user", "all", "remote_user", "remote_all"].map(|name| number(fields.text(name)));
                if let [Some(user), Some(all), Some(remote_user), Some(remote_all)] = percents {
                    self.cpu = Some([[user, all], [remote_user, remote_all]]);
                }
            }
            Kind::Connection => {
                self.hosts.get_or_insert([fields.text("local"), fields.text("peer")]);
                self.streams.insert(id, Stream::default());
            }
            Kind::Row | Kind::Late if id == "SUM" => {}
            Kind::Row | Kind::Late => {
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
                    None => {}
                }
            }
            _ => {}
        }
    }

    /// The test as its document has it. The inner error is why it is left out.
    fn read(&self) -> Result<Result<ToolTest, String>, ImportError> {
        if let Some(reason) = &self.left_out {
            return Ok(Err(format!(": {reason}")));
        }
        let has_rows = |stream: &Stream| stream.sender.or(stream.receiver).or(stream.only).is_some();
        if self.streams.is_empty() || !self.streams.values().all(has_rows) {
            let Some(error) = self.error.or(self.early.map(|(_, error)| error)) else {
                let reason = "this test has no results of the whole test: the file is cut short";
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

impl Stream {
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
        let row = Some(Row { seconds, bits_per_second, retransmits: more.number("retries"), udp });
        match end {
            _ if !is_behind_dashes || from != 0.0 => {}
            End::Sender => self.sender = row,
            End::Receiver => self.receiver = row,
            End::Unnamed if udp.is_some() => self.only = row,
            End::Unnamed | End::Omitted => {}
        }
        true
    }
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
