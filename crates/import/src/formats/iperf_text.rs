//! Text of iperf 2 (`-e`, and without it), versions 2.0 to 2.2. Its figures have three digits.

use super::forms::{Fields, Unread, begin, cut_line, find, not_understood};
use super::iperf_lines::{HEADS, Kind, LINES, NOTES, Note, ROWS};
use super::iperf_tests::{Connection, Head, ResultLine, TestGroup, close};
use crate::test::{Format, MAX_ROWS, ToolFile};
use crate::value::{ImportError, MAX_TESTS, rfc3339_ns};
use stacklab_model::Transport;

/// How many tests before the last one may still run.
const MAX_RUNNING: usize = 1000;

pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let mut reader = Reader { cut: cut_line(text), ..Reader::default() };
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        reader.read_line(place, line.trim()).map_err(|reason| ImportError::of_line(place, reason))?;
        if reader.groups.len() > MAX_TESTS || reader.group.connections.len() > 10_000 {
            return Err(ImportError::of_line(place, "there are too many tests"));
        }
    }
    reader.end_group();
    reader.pass_over_pending();
    let mut tests = Vec::new();
    let mut left_out = reader.left_out;
    for group in reader.groups {
        close(group, &mut tests, &mut left_out)?;
    }
    left_out.extend(reader.unread.describe());
    ToolFile::of_tests(Format::IperfText, reader.version, tests, left_out)
}

#[derive(Default)]
struct Reader<'t> {
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
    /// The line that the file may be cut in.
    cut: Option<usize>,
    /// A client that tests both directions listens too (-d and -r), on this port.
    is_client: bool,
    listening: Option<String>,
    /// Whether a connection came before this host connected to another: it is the server.
    is_served: bool,
}

impl<'t> Reader<'t> {
    fn read_line(&mut self, place: usize, line: &'t str) -> Result<(), String> {
        let Some((kind, fields)) = find(LINES, line) else { return self.pass_over(place, line) };
        match kind {
            Kind::Listening | Kind::Connecting => self.read_heading(place, line, &fields),
            Kind::Dashes => self.is_in_settings = false,
            Kind::Size => self.head.size = fields.number("size").map(|bytes| bytes as u32),
            // `1.42 KByte` is rounded, and no size.
            Kind::Buffer if fields.text("bytes").contains('.') => {}
            Kind::Buffer => self.head.size = fields.bytes().map(|bytes| bytes as u32),
            Kind::Connection => return self.read_connection(place, line, &fields),
            Kind::ServerReport => self.of_server = true,
            Kind::Late => {
                self.group.late += fields.number("late").unwrap_or(0.0);
                self.of_server = false;
            }
            Kind::Row => return self.read_row(place, line, &fields),
            Kind::Version => self.version = Some(fields.text("version").to_owned()),
            Kind::Warning => self.tell(place, bare_line(line)),
            Kind::Failure if self.group.connections.is_empty() || self.is_in_settings => {
                self.tell(place, line)
            }
            Kind::Failure => {
                self.group.failures.push(format!("iperf says: {line}"));
                self.group.failures.dedup();
            }
            Kind::LeftOut(reason) if line.starts_with('[') => self.group.leave_out(reason),
            Kind::LeftOut(reason) => {
                self.head.left_out.get_or_insert_with(|| reason.to_owned());
            }
            Kind::Known => {}
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

    fn end_group(&mut self) {
        self.groups.push(std::mem::take(&mut self.group));
    }

    fn read_heading(&mut self, place: usize, line: &'t str, fields: &Fields<'t>) {
        // Connections may be listed before their sum.
        if self.group.has_results {
            self.end_group();
        }
        self.pass_over_pending();
        self.is_in_settings = true;
        let name = fields.text("transport");
        let transport: Option<Transport> = name.to_ascii_lowercase().parse().ok();
        let (reason, port) = match find(HEADS, fields.text("tail")) {
            _ if transport.is_none() => (Some(format!("{name}: stacklab has no such transport")), ""),
            Some((reason, head)) => (reason.map(str::to_owned), head.text("port")),
            None => (Some(not_understood(place, line)), ""),
        };
        let is_server = line.starts_with("Server listening on ");
        if is_server {
            self.listening = Some(port.to_owned());
        } else {
            self.is_client = true;
        }
        self.head = Head { transport, size: None, is_server, left_out: reason };
    }

    fn read_connection(&mut self, place: usize, line: &'t str, fields: &Fields<'t>) -> Result<(), String> {
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
        self.group.head = self.head.clone();
        let ends = ["local", "peer"].map(|name| fields.text(name).to_owned());
        let ports = ["port", "peer_port"].map(|name| fields.text(name));
        self.is_served |= !self.is_client;
        // Of a client that listens: what comes to its port. Of a server: what it begins to the client's.
        let came_back = self.listening.as_deref() == Some(ports[usize::from(self.is_served)]);
        let mut both =
            [format!("{} {}", bare(&ends[0]), ports[0]), format!("{} {}", bare(&ends[1]), ports[1])];
        both.sort_unstable();
        let mut connection = Connection {
            line: place,
            name: both.join(" "),
            ends,
            is_reverse: self.is_client && came_back,
            own: None,
            parts: Vec::new(),
            is_open: false,
            server: None,
            began_unix_ns: None,
        };
        let mut notes = fields.text("tail");
        while !notes.is_empty() {
            let Some((note, fields, rest)) = begin(NOTES, notes) else {
                self.group.leave_out(not_understood(place, line));
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
        match self.group.connections.insert(fields.text("id").to_owned(), connection) {
            Some(_) => Err("its number is used twice".to_owned()),
            None => Ok(()),
        }
    }

    fn read_row(&mut self, place: usize, line: &'t str, fields: &Fields<'t>) -> Result<(), String> {
        if !self.group.has_results {
            self.group.head = self.head.clone();
        }
        self.group.has_results = true;
        let id = fields.text("id");
        // Sums of connections, and of both directions of one.
        if id.starts_with("SUM") || id.starts_with("FD") {
            return Ok(());
        }
        let of_server = std::mem::take(&mut self.of_server);
        let pending = std::mem::take(&mut self.pending);
        let is_cut = self.cut == Some(place);
        let group = self.group_of(id);
        let group = group.ok_or_else(|| format!("connection {} was not begun", id.escape_debug()))?;
        if let Some((place, line)) = pending.first() {
            group.leave_out(not_understood(*place, line));
        }
        if group.is_left_out() {
            return Ok(());
        }
        let Some((from, outcome)) = outcome(fields) else {
            if is_cut {
                return Err("this row is not understood: the file is cut short".to_owned());
            }
            group.leave_out(not_understood(place, line));
            return Ok(());
        };
        let Some(connection) = group.connections.get_mut(id) else { return Ok(()) };
        connection.is_open = from > 0.0;
        if !of_server && connection.parts.len() <= MAX_ROWS {
            connection.parts.push(outcome.part(from));
        }
        let known = if of_server { &mut connection.server } else { &mut connection.own };
        if from == 0.0 && known.as_ref().is_none_or(|known| outcome.seconds > known.seconds) {
            *known = Some(outcome);
        }
        Ok(())
    }
}

/// An address without its zone.
fn bare(address: &str) -> &str {
    address.split('%').next().unwrap_or(address)
}

/// A line without the number of its connection.
fn bare_line(line: &str) -> &str {
    begin(&[((), "[ {id}] ")], line).map_or(line, |(_, _, rest)| rest)
}

/// `2024-01-01 00:00:00.500 (UTC)` in nanoseconds since the Unix epoch.
fn time_ns(fields: &Fields) -> Option<u64> {
    let time = format!("{} {}Z", fields.text("date"), fields.text("time"));
    rfc3339_ns(&time).filter(|_| fields.text("zone") == "UTC")
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
    let result = ResultLine {
        seconds: row.number("to")?,
        bytes: row.bytes()?,
        bits_per_second: row.rate()?,
        udp: udp.map(|((sent, lost), jitter)| [jitter, lost, sent]),
        retries: more.number("retries"),
        rtt: more.number("rtt").filter(|rtt| *rtt > 0.0).map(|us| us / 1e3),
        is_exact,
    };
    Some((row.number("from")?, result))
}
