//! CSV of iperf 2 (`-y C`): time, address and port of both ends, number of the connection, interval, bytes, bits per
//! second; of UDP also jitter, lost and sent datagrams, share of losses, late ones. It has no version, and no time
//! zone.

use super::forms::{CUT, cut_line, find};
use super::iperf_csv_groups::{IperfCsvRow, group_rows, leave_out_both_directions, mark_flows};
use super::iperf_lines::{IperfLine, LINES};
use super::iperf_tests::NO_REPORT;
use crate::test::{Format, Identity, PORTS, ToolFile, ToolTest, datagram, family, nanoseconds};
use crate::value::{Datagrams, ImportError, number, share_of_losses};
use stacklab_model::{Metric, Probe, Transport, Value, count};
use std::collections::HashMap;

/// How far a rate may be from the bytes over the seconds, as a share, and how far these may be rounded.
const MAX_RATE_ERROR: f64 = 0.05;
const MAX_ROUNDED_S: f64 = 0.1;
/// Maximum number of messages that are listed.
const MAX_LEFT_OUT: usize = 10;
/// Fields of a row of TCP.
const MIN_FIELDS: usize = 9;
/// Maximum number of lines before a report of the server that its connection may have its own line in.
const MAX_BEFORE_REPORT: usize = 256;

/// Whether a line begins with a time as iperf writes it: fourteen digits, in versions from 2.1.9 behind a time zone.
pub(crate) fn is_csv_line(line: &str) -> bool {
    line.split_once(',').is_some_and(|(time, _)| {
        let digits = digits_of(time);
        digits.len() == 14 && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The digits of `20261129051018`, `20261129051018.128` and `+0000:20261129051018.128`.
fn digits_of(time: &str) -> &str {
    let time = time.rsplit(':').next().unwrap_or_default();
    time.split('.').next().unwrap_or_default()
}

/// Whether a line among those of CSV is none: text that iperf or a script writes to the same file, or names of columns.
fn is_text(line: &str) -> bool {
    let has_numbers = line.split(',').any(|field| number(field.trim()).is_some());
    !line.contains(',') || !has_numbers || line.starts_with('[') || find(LINES, line).is_some()
}

#[derive(Default)]
struct IperfCsvReader<'a> {
    rows: Vec<IperfCsvRow<'a>>,
    /// The last row of each connection, by its place.
    last: HashMap<[&'a str; 5], usize>,
    /// Sums of the whole test whose connections are not known.
    sums: Vec<IperfCsvRow<'a>>,
    left_out: Vec<String>,
}

pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let mut reader = IperfCsvReader::default();
    let cut = cut_line(text);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line = line.trim();
        if !is_csv_line(line) && is_text(line) {
            reader.read_text(number, line);
            continue;
        }
        if cut == Some(number) {
            return Err(ImportError::of_line(number, CUT));
        }
        let row = row(number, line).map_err(|reason| ImportError::of_line(number, reason))?;
        // The sum of connections: -1 in old versions, and at a server of 2.2 -2, -3 ..
        if row.connection[4].starts_with('-') {
            reader.read_sum(row);
        } else {
            reader.read_row(row)?;
        }
    }
    let IperfCsvReader { mut rows, sums, mut left_out, .. } = reader;
    if let Some(part) = rows.iter().find(|row| row.from > 0.0) {
        let reason =
            format!("connection {} has no line of the whole test: the file is cut short", part.connection[4]);
        return Err(ImportError::of_file(reason));
    }
    if let Some(first) = sums.first() {
        left_out.push(format!(
            "line {}: {} of connections, whose own lines are missing: run iperf without --sum-only",
            first.line + 1,
            count(sums.len(), "sum")
        ));
    }
    leave_out_both_directions(&mut rows, &mut left_out);
    let tests = group_rows(rows, &mut left_out);
    let tests = tests.iter().map(|rows| test(rows)).collect();
    ToolFile::of_tests(Format::IperfCsv, None, tests, left_out)
}

impl<'a> IperfCsvReader<'a> {
    /// Lists what a line of text says, unless it is a heading.
    fn read_text(&mut self, number: usize, line: &str) {
        if self.left_out.len() >= MAX_LEFT_OUT {
            return;
        }
        let what = match find(LINES, line) {
            Some((IperfLine::Warning | IperfLine::Failure, _)) => format!("iperf says: {line}"),
            Some((IperfLine::LeftOut(reason), _)) => reason.to_owned(),
            Some(_) if !line.starts_with('[') => return,
            _ => "it is text, and not CSV".to_owned(),
        };
        self.left_out.push(format!("line {}: {what}", number + 1));
    }

    fn read_row(&mut self, row: IperfCsvRow<'a>) -> Result<(), ImportError> {
        // Lines of one connection with ever later ends: the last one, from 0, is of the whole test.
        if let Some(place) = self.last.get(&row.connection) {
            let before = &mut self.rows[*place];
            if row.from > 0.0 || before.from > 0.0 || row.to > before.to {
                *before = IperfCsvRow { sum: before.sum, ..row };
                return Ok(());
            }
            // A test of one interval has two lines that are alike.
            let is_alike = row.to == before.to && row.bytes == before.bytes;
            if is_alike && row.time_s.is_some() && row.time_s == before.time_s {
                return Ok(());
            }
        }
        // The client has the server's report behind its own line, with the ends exchanged.
        let [address, port, peer, peer_port, id] = row.connection;
        let own = self.rows.iter_mut().rev().take(MAX_BEFORE_REPORT).find(|own| {
            own.connection == [peer, peer_port, address, port, id]
                && own.udp.is_none()
                && (own.to - row.to).abs() <= 1.0
        });
        if let Some(own) = own.filter(|_| row.udp.is_some()) {
            *own = IperfCsvRow {
                connection: own.connection,
                own_bytes: own.own_bytes,
                sum: own.sum,
                is_contradicted: own.is_contradicted,
                ..row
            };
            return Ok(());
        }
        ImportError::too_many(self.rows.len(), row.line)?;
        self.last.insert(row.connection, self.rows.len());
        self.rows.push(row);
        Ok(())
    }

    /// Takes a sum of connections from the begin of a test: that of its first interval, or of all.
    fn read_sum(&mut self, sum: IperfCsvRow<'a>) {
        if sum.from > 0.0 {
            return;
        }
        if !mark_flows(&mut self.rows, &sum) {
            self.sums.push(sum);
        }
    }
}

/// What no other test has: the ends of its connections, and the time if the file has it.
fn identify(rows: &[IperfCsvRow]) -> Identity {
    let mut names: Vec<String> = rows.iter().map(IperfCsvRow::name_ends).collect();
    names.sort_unstable();
    Identity { what: PORTS, name: names.join(", "), at_s: rows[0].time_s }
}

/// The seconds of a time since 1970; `None` in 1970, which iperf writes for a time that it does not have.
fn seconds_of(time: &str) -> Option<f64> {
    let time = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", digits_of(time)).ok()?;
    let seconds = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
    (time.year() > 1970).then_some(seconds as f64)
}

fn row(place: usize, line: &str) -> Result<IperfCsvRow<'_>, String> {
    let fields: Vec<&str> = line.split(',').collect();
    if fields.len() > 14 {
        let reason = "of -e in versions from 2.1.9, are not read: run iperf without -e, or take its text";
        return Err(format!("its {} fields, {reason}", fields.len()));
    }
    let [time, address, port, peer, peer_port, id, interval, bytes, rate, udp @ ..] = &fields[..] else {
        return Err(describe_cut(fields.len()));
    };
    if !is_csv_line(line) {
        return Err("it does not begin with a time of fourteen digits".to_owned());
    }
    let (from, to) = interval.split_once('-').ok_or("its interval is none")?;
    let udp = match udp {
        [] => None,
        [jitter, lost, sent, _, late] => {
            // Without a report of the server, version 2.2 has none.
            let jitter =
                if jitter.trim_start_matches('-') == "nan" { f64::NAN } else { parse_number(jitter)? };
            Some([jitter, parse_number(lost)?, parse_number(sent)?, parse_number(late)?])
        }
        _ => return Err(describe_cut(fields.len())),
    };
    let bytes = check_count(parse_number(bytes)?)?;
    let rate = check_count(parse_number(rate)?)?;
    let from = parse_number(from)?;
    let to = parse_number(to)?;
    if !is_rate_of(rate, bytes, to - from) {
        return Err(format!(
            "{rate} bits per second are not the rate of {bytes} bytes in {} seconds",
            to - from
        ));
    }
    Ok(IperfCsvRow {
        line: place,
        time_s: seconds_of(time),
        connection: [address, port, peer, peer_port, id],
        from,
        to,
        bytes,
        own_bytes: bytes,
        rate,
        udp,
        sum: None,
        is_contradicted: false,
    })
}

fn describe_cut(fields: usize) -> String {
    format!("it has {}, and iperf writes {MIN_FIELDS} or 14: the file is cut short", count(fields, "field"))
}

fn parse_number(text: &str) -> Result<f64, String> {
    number(text).ok_or_else(|| format!("`{}` is not a number", text.escape_debug()))
}

fn check_count(count: f64) -> Result<f64, String> {
    if count < 0.0 {
        return Err(format!("{count} is below 0: it is too large for this version of iperf"));
    }
    Ok(count)
}

/// Whether a rate is that of bytes in seconds, which are rounded to tenths: old versions have an overflow in it.
fn is_rate_of(rate: f64, bytes: f64, seconds: f64) -> bool {
    let least = rate * (seconds - MAX_ROUNDED_S) * (1.0 - MAX_RATE_ERROR);
    let most = rate * (seconds + MAX_ROUNDED_S) * (1.0 + MAX_RATE_ERROR);
    (least..=most).contains(&(8.0 * bytes))
}

fn test(rows: &[IperfCsvRow]) -> ToolTest {
    let mut test = ToolTest::new(Probe::Stream);
    let first = &rows[0];
    test.family = family(first.connection[0], first.connection[2]);
    test.identities.push(identify(rows));
    test.flows = rows.len() as u32;
    test.duration_ns = nanoseconds(rows.iter().map(|row| row.to).fold(0.0, f64::max));
    let rate = rows.iter().map(|row| row.rate).sum::<f64>() / 1e6;
    let udp: Option<Vec<[f64; 4]>> = rows.iter().map(|row| row.udp).collect();
    let Some(udp) = udp else {
        // Of TCP, or of a client of UDP in old versions.
        test.is_of_client = true;
        test.set(Metric::Throughput, Value::finite(rate, "it is not a number"));
        test.warn(
            "tool_side",
            "iperf's CSV does not state which end counted (a client counts what it wrote, some of which may be in its buffer), the direction (-R), or --bounceback"
                .to_owned(),
            "use the server's file, or longer tests; of -R and --bounceback, the text",
        );
        return test;
    };
    test.transport = Some(Transport::Udp);
    let sum = |place: usize| udp.iter().map(|row| row[place]).sum::<f64>();
    let lost = sum(1);
    let sent = sum(2);
    // Without a report of the server the client writes -1.
    if udp.iter().any(|row| row[2] <= 0.0) {
        for metric in [Metric::Throughput, Metric::Loss, Metric::JitterRfc3550] {
            test.set(metric, Value::Missing("the file has no report of the server".to_owned()));
        }
        return test;
    }
    let bytes = rows.iter().map(|row| row.bytes).sum::<f64>();
    test.size = datagram(bytes / (sent - lost));
    test.set(Metric::Throughput, Value::finite(rate, "it is not a number"));
    let flows: Vec<Datagrams> =
        udp.iter().map(|[_, lost, sent, _]| Datagrams { lost: *lost, sent: *sent }).collect();
    test.set(Metric::Loss, share_of_losses(&flows, NO_REPORT));
    test.set(Metric::JitterRfc3550, Value::finite(sum(0) / udp.len() as f64, "there was no flow"));
    test
}
