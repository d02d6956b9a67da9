//! Text of iperf 2 (`-e`, and without it), versions 2.0 to 2.2. Its figures have three digits.

use super::forms::{CUT, Fields, Unread, begin, cut_line, find, not_understood};
use super::iperf_groups::{Connection, Head, ResultLine, SumLine, TestGroup, canonical};
use super::iperf_lines::{BOUNCEBACK, HEADS, IperfLine, LINES, LOAD, NOTES, Note, ROWS};
use super::iperf_roles::{IperfProcess, Origin};
use super::iperf_tests::close;
use crate::test::{Format, MAX_ROWS, ToolFile};
use crate::value::{ImportError, MAX_TESTS, is_precise, rfc3339_ns};
use stacklab_model::Transport;

/// How many tests before the last one may still run.
const MAX_RUNNING: usize = 1000;

pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let mut reader = IperfTextReader::default();
    let cut = cut_line(text);
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if cut == Some(place) && line.trim_start().starts_with('[') {
            return Err(ImportError::of_line(place, CUT));
        }
        reader.read_line(place, line.trim()).map_err(|reason| ImportError::of_line(place, reason))?;
        if reader.groups.len() > MAX_TESTS || reader.group.connections.len() > 10_000 {
            return Err(ImportError::of_line(place, "there are too many tests"));
        }
    }
    reader.end_group();
    reader.pass_over_pending();
    let mut tests = Vec::new();
    let mut left_out = reader.left_out;
    // The last one may be cut short.
    let last = reader.groups.len().checked_sub(1).filter(|_| !reader.is_stopped);
    for (number, group) in reader.groups.into_iter().enumerate() {
        close(group, last == Some(number), &mut tests, &mut left_out)?;
    }
    left_out.extend(reader.unread.describe());
    ToolFile::of_tests(Format::IperfText, reader.version, tests, left_out)
}

#[derive(Default)]
struct IperfTextReader<'t> {
    head: Head,
    /// Whether the settings of a heading may follow.
    is_in_settings: bool,
    version: Option<String>,
    /// A server's log has connections that begin while others run: groups are closed at the end.
    groups: Vec<TestGroup>,
    group: TestGroup,
    /// Whether the server's report of a datagram test follows.
    of_server: bool,
    left_out: Vec<String>,
    /// Lines that are not understood since the last one that is: within a test, or behind it.
    pending: Vec<(usize, &'t str)>,
    unread: Unread<'t>,
    process: IperfProcess,
    /// Whether a server was interrupted: what has no result then is not cut short.
    is_stopped: bool,
    /// The connection of the last row.
    last_row: Option<&'t str>,
}

impl<'t> IperfTextReader<'t> {
    fn read_line(&mut self, place: usize, line: &'t str) -> Result<(), String> {
        let Some((kind, fields)) = find(LINES, line) else { return self.pass_over(place, line) };
        match kind {
            IperfLine::Listening | IperfLine::Connecting => self.read_heading(place, line, &fields),
            IperfLine::Dashes => self.is_in_settings = false,
            IperfLine::Size => self.head.size = fields.number("size").map(|bytes| bytes as u32),
            // `1.42 KByte` is rounded, and no size.
            IperfLine::Buffer if fields.text("bytes").contains('.') => {}
            IperfLine::Buffer => self.head.size = fields.bytes().map(|bytes| bytes as u32),
            IperfLine::Connection => self.read_connection(place, line, &fields),
            IperfLine::ServerReport => self.of_server = true,
            IperfLine::Late => self.read_late(&fields),
            IperfLine::Row => return self.read_row(place, line, &fields),
            IperfLine::Version => self.version = Some(fields.text("version").to_owned()),
            IperfLine::Warning => self.tell(place, bare_line(line)),
            IperfLine::Failure if self.is_in_settings || !self.is_in_test() => self.tell(place, line),
            IperfLine::Failure => self.group.fail(place, line),
            IperfLine::LeftOut(reason) if line.starts_with('[') => self.group.leave_out(reason),
            // A client of bounceback says first that it sends bursts.
            IperfLine::LeftOut(BOUNCEBACK) => self.head.left_out = Some(BOUNCEBACK.to_owned()),
            IperfLine::LeftOut(reason) => {
                self.head.left_out.get_or_insert_with(|| reason.to_owned());
            }
            IperfLine::Stopped => self.is_stopped = true,
            IperfLine::Known => {}
        }
        Ok(())
    }

    /// Lists what iperf says, which may come many times.
    fn tell(&mut self, place: usize, text: &str) {
        if self.left_out.last().is_none_or(|last| !last.ends_with(text)) {
            self.left_out.push(format!("line {}: {text}", place + 1));
        }
    }

    /// Takes a line that is not understood. In brackets it is iperf's; among settings it may be one of them.
    fn pass_over(&mut self, place: usize, line: &'t str) -> Result<(), String> {
        if let Some((_, fields, rest)) = begin(&[((), "[ <*>{id}] ")], line) {
            let is_row = begin(&[((), "{from}- {to} sec")], rest).is_some();
            match self.group_of(fields.text("id")) {
                Some(group) if group.is_left_out() => {}
                Some(_) if is_row => return Err("these are not results of iperf".to_owned()),
                Some(group) => group.leave_out(not_understood(place, line)),
                None if is_row => {
                    return Err(format!("connection {} was not begun", fields.text("id").escape_debug()));
                }
                // `[1] 4711` and `[1]+ Done ..` are of a shell.
                None => self.pending.push((place, line)),
            }
        } else if self.is_in_settings {
            self.head.left_out.get_or_insert_with(|| not_understood(place, line));
        } else {
            self.pending.push((place, line));
        }
        Ok(())
    }

    /// Counts lines that stand in no test.
    fn pass_over_pending(&mut self) {
        for (place, line) in self.pending.drain(..) {
            self.unread.add(place, line);
        }
    }

    /// The group of a connection that was begun last.
    fn group_of(&mut self, id: &str) -> Option<&mut TestGroup> {
        let running = self.groups.iter_mut().rev().take(MAX_RUNNING);
        std::iter::once(&mut self.group).chain(running).find(|group| group.connections.contains_key(id))
    }

    /// Whether what fails is of a test: of a client, its heading is enough.
    fn is_in_test(&self) -> bool {
        let is_connecting =
            self.head.transport.is_some() && !self.head.is_server && !self.process.is_server();
        is_connecting || !self.group.connections.is_empty()
    }

    fn end_group(&mut self) {
        self.groups.push(std::mem::take(&mut self.group));
    }

    fn read_heading(&mut self, place: usize, line: &'t str, fields: &Fields<'t>) {
        // Connections may be listed before their heading.
        let has_failed = self.group.connections.is_empty() && !self.group.failures.is_empty();
        if self.group.has_results || has_failed {
            self.end_group();
        }
        if has_failed {
            self.process.end();
        }
        self.pass_over_pending();
        self.is_in_settings = true;
        let name = fields.text("transport");
        let transport: Option<Transport> = name.to_ascii_lowercase().parse().ok();
        let (reason, port) = match find(HEADS, fields.text("tail")) {
            _ if transport.is_none() => (Some(format!("{name}: stacklab has no such transport")), ""),
            Some((None, head)) if !["", "0"].contains(&head.text("load")) => {
                (Some(LOAD.to_owned()), head.text("port"))
            }
            Some((reason, head)) => (reason.map(str::to_owned), head.text("port")),
            None => (Some(not_understood(place, line)), ""),
        };
        let is_server = line.starts_with("Server listening on ");
        if is_server {
            self.process.listen(port);
        } else {
            self.process.connect();
        }
        let flows = number_of_flows(fields);
        self.head = Head { transport, size: None, is_server, left_out: reason, flows };
    }

    fn read_connection(&mut self, place: usize, line: &'t str, fields: &Fields<'t>) {
        if self.group.has_results {
            self.end_group();
        }
        self.is_in_settings = false;
        match self.pending.first() {
            Some((place, line)) if !self.group.connections.is_empty() => {
                self.group.leave_out(not_understood(*place, line));
                self.pending.clear();
            }
            _ => self.pass_over_pending(),
        }
        let id = fields.text("id");
        let is_doubled = self.group.connections.contains_key(id);
        if is_doubled {
            self.group.leave_out(format!("connection {} has no result", id.escape_debug()));
            self.end_group();
        }
        self.group.line.get_or_insert(place);
        let ends = ["local", "peer"].map(|name| fields.text(name).to_owned());
        let ports = ["port", "peer_port"].map(|name| fields.text(name));
        let own_head = self.process.find_head(ports[0], &self.head);
        self.group.keeps_head = own_head.is_some();
        self.group.head = own_head.unwrap_or(&self.head).clone();
        // What could not connect has no port.
        if ports[0] == "0" {
            self.group.fail(place, &format!("connection {} was not made", id.escape_debug()));
            return;
        }
        let mut both = [
            format!("{} {}", canonical(&ends[0]), ports[0]),
            format!("{} {}", canonical(&ends[1]), ports[1]),
        ];
        both.sort_unstable();
        let name = both.join(" ");
        let origin = self.process.find_origin(&name, &ends[1], ports[0], &self.head);
        let mut connection = Connection {
            line: place,
            name,
            ends,
            is_reverse: origin == Origin::Server,
            is_served: origin == Origin::Server && self.process.is_server(),
            own: None,
            parts: Vec::new(),
            has_rough_parts: false,
            is_doubled,
            is_open: false,
            server: None,
            sum: None,
            late: 0.0,
            began_unix_ns: None,
        };
        self.read_notes(&mut connection, fields.text("tail"), || not_understood(place, line));
        self.group.connections.insert(id.to_owned(), connection);
    }

    /// Reads what stands behind a connection in its line.
    fn read_notes(
        &mut self,
        connection: &mut Connection,
        mut notes: &'t str,
        refuse: impl FnOnce() -> String,
    ) {
        while !notes.is_empty() {
            let Some((note, fields, rest)) = begin(NOTES, notes) else {
                self.group.leave_out(refuse());
                break;
            };
            match note {
                Note::Version => self.version = Some(fields.text("version").to_owned()),
                Note::Reverse => connection.is_reverse = true,
                Note::Begin => connection.began_unix_ns = time_ns(&fields),
                Note::LeftOut(reason) => self.group.leave_out(reason),
                Note::Plain => {}
            }
            notes = rest.trim();
        }
    }

    fn read_row(&mut self, place: usize, line: &'t str, fields: &Fields<'t>) -> Result<(), String> {
        if !self.group.has_results && !self.group.keeps_head {
            self.group.head = self.head.clone();
        }
        self.group.has_results = true;
        let id = fields.text("id");
        // Sums of connections, and of both directions of one.
        if id.starts_with("SUM") {
            self.read_sum(place, fields);
            return Ok(());
        }
        if id.starts_with("FD") {
            return Ok(());
        }
        self.last_row = Some(id);
        let of_server = std::mem::take(&mut self.of_server);
        let pending = std::mem::take(&mut self.pending);
        let group = self.group_of(id);
        let group = group.ok_or_else(|| format!("connection {} was not begun", id.escape_debug()))?;
        if let Some((place, line)) = pending.first() {
            group.leave_out(not_understood(*place, line));
        }
        if group.is_left_out() {
            return Ok(());
        }
        let Some((from, outcome)) = outcome(fields) else {
            group.leave_out(not_understood(place, line));
            return Ok(());
        };
        let Some(connection) = group.connections.get_mut(id) else { return Ok(()) };
        // Whether the row before is from the begin of the test too.
        let is_again = !of_server && from == 0.0 && !connection.is_open;
        connection.is_open = from > 0.0;
        if !of_server && connection.parts.len() <= MAX_ROWS {
            connection.parts.push(outcome.part(from));
            connection.has_rough_parts |= !outcome.has_precise_bytes;
        }
        let known = if of_server { &mut connection.server } else { &mut connection.own };
        if is_again && contradicts(known.as_ref(), &outcome, connection.is_doubled) {
            group.leave_out(MIXED);
            return Ok(());
        }
        if from == 0.0 && known.as_ref().is_none_or(|known| outcome.seconds > known.seconds) {
            *known = Some(outcome);
        }
        Ok(())
    }

    /// Keeps a sum of connections with the one before it, which is of the same hosts.
    fn read_sum(&mut self, place: usize, fields: &Fields) {
        self.group.line.get_or_insert(place);
        self.group.has_sum = true;
        let whole = fields.number("from").filter(|from| *from == 0.0);
        let Some(((_, seconds), bytes)) = whole.zip(fields.number("to")).zip(fields.bytes()) else { return };
        let Some(id) = self.last_row else { return };
        let Some(connection) = self.group_of(id).and_then(|group| group.connections.get_mut(id)) else {
            return;
        };
        if connection.sum.is_none_or(|known| seconds > known.seconds) {
            connection.sum = Some(SumLine { seconds, bytes });
        }
    }

    /// Keeps how many datagrams of a whole test were late: intervals have such lines too.
    fn read_late(&mut self, fields: &Fields) {
        self.of_server = false;
        let late = fields.number("late").filter(|_| fields.number("from") == Some(0.0)).unwrap_or(0.0);
        let id = fields.text("id");
        let connection = self.group_of(id).and_then(|group| group.connections.get_mut(id));
        if let Some(connection) = connection {
            connection.late = connection.late.max(late);
        }
    }
}

/// How many connections a client is to make, by its heading.
fn number_of_flows(fields: &Fields) -> Option<usize> {
    let (_, head) = find(HEADS, fields.text("tail"))?;
    head.text("flows").parse().ok()
}

/// A line without the number of its connection.
fn bare_line(line: &str) -> &str {
    begin(&[((), "[ {id}] ")], line).map_or(line, |(_, _, rest)| rest)
}

/// `2024-01-01 00:00:00.500 (UTC)` in nanoseconds since the Unix epoch; `None` in 1970, which iperf writes for a time
/// that it does not have.
fn time_ns(fields: &Fields) -> Option<u64> {
    if fields.text("date").starts_with("1970-") {
        return None;
    }
    let time = format!("{} {}Z", fields.text("date"), fields.text("time"));
    rfc3339_ns(&time).filter(|_| fields.text("zone") == "UTC")
}

/// Why a connection with two results is left out.
const MIXED: &str = "two rows of the whole test for one connection: lines of several iperf are mixed, so write each to its own file";

/// Whether a row from the begin of a test cannot be of the connection that has another one: it has fewer bytes, or
/// another connection of the same number had no result. The row of an only interval is that of the whole test.
fn contradicts(known: Option<&ResultLine>, row: &ResultLine, is_doubled: bool) -> bool {
    known.is_some_and(|known| row.bytes < known.bytes || is_doubled && row.bytes != known.bytes)
}

/// The begin of a row, and its results.
fn outcome(row: &Fields) -> Option<(f64, ResultLine)> {
    let (_, more) = find(ROWS, row.text("tail"))?;
    let udp = more.number("sent").zip(more.number("lost")).zip(more.number("jitter"));
    let is_exact = row
        .text("rate")
        .split_whitespace()
        .nth(1)
        .is_some_and(|unit| ["bits/sec", "Bytes/sec"].contains(&unit));
    let rate = row.text("rate");
    let bytes = row.bytes()?;
    // Without a byte the rate is 0.
    let has_precise_bytes = is_precise(row.text("bytes"));
    let is_rough = !(is_precise(rate) || bytes == 0.0 && has_precise_bytes);
    let result = ResultLine {
        seconds: row.number("to")?,
        bytes,
        bits_per_second: row.rate()?,
        udp: udp.map(|((sent, lost), jitter)| [jitter, lost, sent]),
        retries: more.number("retries"),
        rtt: more.number("rtt").filter(|rtt| *rtt > 0.0).map(|us| us / 1e3),
        is_exact,
        rough_rate: is_rough.then(|| rate.to_owned()),
        has_precise_bytes,
    };
    Some((row.number("from")?, result))
}
