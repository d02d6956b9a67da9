//! Text of iperf3, versions 3.1 to 3.21: what it prints without `-J`. A test becomes the document that `-J` would have
//! written, as far as the text has it, and is read as that.

use super::forms::{CUT, Unread, begin, cut_line, find, not_understood};
use super::iperf3_ends::{ClientEnd, assign_end};
use super::iperf3_lines::{Iperf3Line, LINES};
use super::iperf3_tests::Iperf3Test;
use crate::test::{Format, ToolFile};
use crate::value::ImportError;

pub(crate) fn is_text(text: &str) -> bool {
    let has = |word: &str| text.contains(word);
    (has("Connecting to host ") || has("Accepted connection from ")) && (has("[ ID]") || has("iperf3: "))
}

pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let mut reader = Iperf3TextReader::default();
    let cut = cut_line(text);
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if cut == Some(place) && line.trim_start().starts_with('[') {
            return Err(ImportError::of_line(place, CUT));
        }
        // The document of a server ends at the margin, and rows of the client may follow.
        if reader.is_in_server_document {
            reader.is_in_server_document = !line.starts_with('}');
            continue;
        }
        ImportError::too_many(reader.tests.len(), place)?;
        reader.read_line(place, line.trim()).map_err(|reason| ImportError::of_line(place, reason))?;
    }
    reader.pass_over_pending();
    reader.tell_early(None);
    let Iperf3TextReader { mut tests, version, mut left_out, unread, ended, .. } = reader;
    for end in &ended {
        assign_end(&mut tests, end, &mut left_out);
    }
    let mut found = Vec::new();
    for (number, test) in tests.iter().enumerate() {
        match test.read(number + 1 == tests.len())? {
            Ok(read) => found.push(read),
            Err(reason) => left_out.push(format!("test {}{reason}", number + 1)),
        }
    }
    left_out.extend(unread.describe());
    ToolFile::of_tests(Format::Iperf3Text, version, found, left_out)
}

#[derive(Default)]
struct Iperf3TextReader<'a> {
    tests: Vec<Iperf3Test<'a>>,
    version: Option<String>,
    is_in_server_output: bool,
    is_in_server_document: bool,
    /// Whether it is in JSON that both ends exchanged.
    is_in_exchange: bool,
    /// An error before its test: in a file it comes before the text that iperf3 still holds in a buffer.
    early: Option<(usize, &'a str)>,
    /// What a server says of clients that ended their tests.
    ended: Vec<ClientEnd<'a>>,
    left_out: Vec<String>,
    /// Lines that are not understood since the last one that is: within a test, or behind it.
    pending: Vec<(usize, &'a str)>,
    unread: Unread<'a>,
}

impl<'a> Iperf3TextReader<'a> {
    fn read_line(&mut self, place: usize, line: &'a str) -> Result<(), String> {
        let found = find(LINES, line);
        if self.is_in_server_output {
            let is_over = matches!(found, Some((Iperf3Line::Client | Iperf3Line::Done, _)));
            self.is_in_server_output = !is_over;
            if !is_over {
                return Ok(());
            }
        }
        if self.is_in_exchange && is_of_exchange(line) {
            self.is_in_exchange = line != "}";
            return Ok(());
        }
        self.is_in_exchange = matches!(found, Some((Iperf3Line::Exchange, _)));
        let Some((kind, fields)) = found else { return self.pass_over(place, line) };
        match kind {
            Iperf3Line::Client | Iperf3Line::Server => {
                self.pass_over_pending();
                let is_server = matches!(kind, Iperf3Line::Server);
                let early = if is_server { None } else { self.early.take() };
                self.tests.push(Iperf3Test::begin(place, is_server, early));
            }
            Iperf3Line::Waiting => {
                self.pass_over_pending();
                self.end_server_test(fields.number("n"));
            }
            Iperf3Line::Version => self.version = Some(format!("3{}", fields.text("version"))),
            Iperf3Line::ServerOutput => {
                self.is_in_server_document = line == "Server JSON output:";
                self.is_in_server_output = !self.is_in_server_document;
                let what = "the server's output of the same test (--get-server-output): it counts once";
                self.left_out.push(format!("line {}: {what}", place + 1));
            }
            Iperf3Line::Message | Iperf3Line::Warning => self.read_message(place, line, fields.text("tail")),
            Iperf3Line::Done => {
                if let Some(test) = self.tests.last_mut() {
                    test.is_over = true;
                    // A test that was completed has no error: it was of one before.
                    let early = test.early.take();
                    self.tell_early(early);
                    self.tell_early(None);
                }
            }
            Iperf3Line::Known | Iperf3Line::Exchange => {}
            _ => {
                let Some(test) = self.tests.last_mut().filter(|test| !test.is_over) else {
                    self.pending.push((place, line));
                    return Ok(());
                };
                if let (Iperf3Line::Row | Iperf3Line::Connection, Some((place, line))) =
                    (kind, self.pending.first())
                {
                    test.leave_out(not_understood(*place, line));
                    self.pending.clear();
                }
                test.read_line(kind, &fields, place, line);
            }
        }
        Ok(())
    }

    /// Ends a test where its server waits for the next one, of this number. A server that is interrupted says so at
    /// once, and this line, which it held in a buffer, follows: it waited already, and its test was complete. Number 1
    /// is of a server that was started anew.
    fn end_server_test(&mut self, number: Option<f64>) {
        let Some(test) = self.tests.last_mut() else { return };
        test.is_over = true;
        let is_same_server = number.is_some_and(|number| number > 1.0);
        if let Some((place, said)) =
            test.error.filter(|(_, said)| is_same_server && said.contains("interrupt"))
        {
            test.error = None;
            self.left_out.push(format!("line {}: {said}", place + 1));
        }
    }

    /// An error makes its test invalid; all else is listed.
    fn read_message(&mut self, place: usize, line: &'a str, text: &'a str) {
        let said = text.trim_start_matches("error - ");
        if line.starts_with("iperf3: ") && text.starts_with("the client has ") {
            self.ended.push(ClientEnd { tests_before: self.tests.len(), place, said });
            return;
        }
        let is_error = line.starts_with("iperf3: ") && (text.contains("error") || text.contains("interrupt"));
        match self.tests.last_mut().filter(|test| is_error && !test.is_over) {
            Some(test) => test.error = test.error.or(Some((place, said))),
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
