//! CSV of iperf 2 (`-y C`): time, address and port of both ends, number of the connection, interval, bytes, bits per
//! second; of UDP also jitter, lost and sent datagrams, share of losses, late ones. It has no version, and no time
//! zone.

use crate::test::{Format, Identity, ToolFile, ToolTest, datagram, family, nanoseconds};
use crate::value::{ImportError, number};
use stacklab_model::{Metric, Probe, Transport, Value};
use std::collections::{HashMap, HashSet};

/// Maximum number of lines without figures in messages.
const MAX_LEFT_OUT: usize = 10;

/// Whether a field is a time as iperf writes it: fourteen digits.
pub(crate) fn is_csv_time(field: &str) -> bool {
    let digits = field.split('.').next().unwrap_or_default();
    digits.len() == 14 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

struct Row<'a> {
    time: &'a str,
    /// Both ends, and the number of the connection: as the line has them.
    connection: [&'a str; 5],
    from: f64,
    to: f64,
    bytes: f64,
    rate: f64,
    /// Jitter in ms, datagrams lost, sent and late.
    udp: Option<[f64; 4]>,
}

pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let mut rows: Vec<Row> = Vec::new();
    let mut last = HashMap::new();
    let mut left_out = Vec::new();
    let mut sums = 0;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        // Version 2.0.14 has the server's report as text in it.
        if line.starts_with('[') {
            if left_out.len() < MAX_LEFT_OUT {
                left_out.push(format!("line {}: it is text, and not CSV", number + 1));
            }
            continue;
        }
        let row = row(line.trim()).map_err(|reason| ImportError::of_line(number, reason))?;
        // The sum of connections: -1 in old versions, and at a server of 2.2 -2, -3 ..
        if row.connection[4].starts_with('-') {
            sums += 1;
            continue;
        }
        // Lines of one connection with ever later ends: the last one, from 0, is of the whole test.
        if let Some(place) = last.get(&row.connection) {
            let before: &mut Row = &mut rows[*place];
            if row.from > 0.0 || before.from > 0.0 || row.to > before.to {
                *before = row;
                continue;
            }
        }
        // The client has the server's report behind its own line, with the ends exchanged.
        let [address, port, peer, peer_port, id] = row.connection;
        let own = rows.last_mut().filter(|own| {
            own.connection == [peer, peer_port, address, port, id] && own.udp.is_none() && own.to == row.to
        });
        if let Some(own) = own.filter(|_| row.udp.is_some()) {
            let connection = own.connection;
            *own = Row { connection, ..row };
            continue;
        }
        ImportError::too_many(rows.len(), number)?;
        last.insert(row.connection, rows.len());
        rows.push(row);
    }
    if let Some(part) = rows.iter().find(|row| row.from > 0.0) {
        let reason =
            format!("connection {} has no line of the whole test: the file is cut short", part.connection[4]);
        return Err(ImportError::of_file(reason));
    }
    if rows.is_empty() && sums > 0 {
        left_out.push(format!(
            "{sums} sums of connections, whose own lines are missing: run iperf without --sum-only"
        ));
    }
    leave_out_both_directions(&mut rows, &mut left_out);
    // Flows of one test end together, and each has a number.
    let mut tests: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        let beside = |test: &Vec<Row>| {
            let first = &test[0];
            // At the client the server's port is one, at the server its own.
            let is_one = |field: usize| first.connection[field] == row.connection[field];
            first.time == row.time
                && is_one(2)
                && (is_one(3) || is_one(1))
                && (first.to - row.to).abs() < 0.2
                && test.iter().all(|other| other.connection[4] != row.connection[4])
        };
        match tests.last_mut() {
            Some(test) if beside(test) => test.push(row),
            _ => tests.push(vec![row]),
        }
    }
    let tests = tests.iter().map(|rows| test(rows)).collect();
    ToolFile::of_tests(Format::IperfCsv, None, tests, left_out)
}

/// Leaves out connections with two results of the same time: what was sent and what was received (--full-duplex).
fn leave_out_both_directions(rows: &mut Vec<Row>, left_out: &mut Vec<String>) {
    let mut known: HashMap<([&str; 5], &str), f64> = HashMap::new();
    let mut both: HashSet<[&str; 5]> = HashSet::new();
    for row in rows.iter() {
        let before = known.insert((row.connection, row.time), row.bytes);
        if before.is_some_and(|bytes| bytes != row.bytes) {
            both.insert(row.connection);
        }
    }
    rows.retain(|row| !both.contains(&row.connection));
    let mut ids: Vec<&str> = both.iter().map(|connection| connection[4]).collect();
    ids.sort_unstable();
    left_out.extend(ids.iter().map(|id| {
        format!(
            "connection {id}: both directions were measured at once (--full-duplex): test one after the other"
        )
    }));
}

/// Both ends of a connection, alike in the file of either.
fn name_ends(row: &Row) -> String {
    let [address, port, peer, peer_port, _] = row.connection;
    let mut ends = [(address, port), (peer, peer_port)];
    ends.sort_unstable();
    format!("{ends:?}")
}

/// What no other test has: the ends of its connections, and the time.
fn identity(rows: &[Row]) -> Option<Identity> {
    let digits = rows[0].time.split('.').next()?;
    let time = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", digits).ok()?;
    let at_s = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second() as f64;
    let mut names: Vec<String> = rows.iter().map(name_ends).collect();
    names.sort_unstable();
    Some(Identity { what: "ports and time", name: names.concat(), at_s: Some(at_s) })
}

fn row(line: &str) -> Result<Row<'_>, String> {
    let fields: Vec<&str> = line.split(',').collect();
    let cut = || format!("it has {} fields, and iperf writes 9 or 14: the file is cut short", fields.len());
    let [time, address, port, peer, peer_port, id, interval, bytes, rate, udp @ ..] = &fields[..] else {
        return Err(cut());
    };
    if !is_csv_time(time) {
        return Err("it does not begin with a time of fourteen digits".to_owned());
    }
    let read = |text: &str| number(text).ok_or_else(|| format!("`{}` is not a number", text.escape_debug()));
    let (from, to) = interval.split_once('-').ok_or("its interval is none")?;
    let udp = match udp {
        [] => None,
        [jitter, lost, sent, _, late, ..] => {
            // Without a report of the server, version 2.2 has none.
            let jitter = if jitter.trim_start_matches('-') == "nan" { f64::NAN } else { read(jitter)? };
            Some([jitter, read(lost)?, read(sent)?, read(late)?])
        }
        _ => return Err(cut()),
    };
    Ok(Row {
        time,
        connection: [address, port, peer, peer_port, id],
        from: read(from)?,
        to: read(to)?,
        bytes: read(bytes)?,
        rate: read(rate)?,
        udp,
    })
}

fn test(rows: &[Row]) -> ToolTest {
    let mut test = ToolTest::new(Probe::Stream);
    let first = &rows[0];
    test.family = family(first.connection[0], first.connection[2]);
    test.identity = identity(rows);
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
            "iperf's CSV does not state which end counted: a client counts what it wrote, some of which may be in its buffer"
                .to_owned(),
            "use the server's file, or longer tests",
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
    test.set(Metric::Loss, Value::finite(lost / sent, "nothing was sent"));
    test.set(Metric::JitterRfc3550, Value::finite(sum(0) / udp.len() as f64, "there was no flow"));
    test
}
