//! Text of netperf, version 2.4 to 2.7: tables of `-v 1` and `-v 2`, and `KEY=VALUE` lines of omni tests (`-k`). It has
//! no version. The line `.. TEST from ..` tells test and family; `-P 0` leaves it out.

use super::forms::{Unread, find, not_understood, quote};
use super::netperf_lines::{Columns, HEADINGS, Heading, columns, key_of, megabits_of};
use crate::test::{Format, ToolFile, ToolTest, family, nanoseconds, write_size};
use crate::value::{ImportError, loss, number, untold};
use stacklab_model::{Direction, Family, Metric, Probe, Transport, Value};
use std::collections::BTreeMap;

/// Whether a line is one of an omni test: `KEY=VALUE`.
pub(crate) fn is_assignment(line: &str) -> bool {
    line.split_once('=').is_some_and(|(key, _)| {
        key.len() > 2
            && key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    })
}

/// Whether a text is of netperf: it has a banner, or figures of an omni test that only netperf names so.
pub(crate) fn is_text(text: &str) -> bool {
    const KEYS: [&str; 8] = [
        "THROUGHPUT=",
        "THROUGHPUT_UNITS=",
        "TRANSACTION_RATE=",
        "ELAPSED_TIME=",
        "RT_LATENCY=",
        "MEAN_LATENCY=",
        "LOCAL_SEND_SIZE=",
        "REMOTE_SEND_SIZE=",
    ];
    if text.contains(" TEST from ") {
        return true;
    }
    text.lines().any(|line| {
        let names = line.split(',').filter(|name| key_of(name).is_some()).count();
        names > 1 || KEYS.iter().any(|key| line.trim_start().starts_with(key))
    })
}

const DIFFERENT: &str = "requests and answers differ in length: stacklab has no such probe";
/// The most lines in which the table of an omni test (`-O`) is looked for.
const MAX_HEADINGS: usize = 16;

#[derive(Default)]
struct Lines<'a> {
    place: usize,
    banner: Option<&'a str>,
    assignments: BTreeMap<&'a str, &'a str>,
    /// Whether its figures stand under headings of an omni test.
    is_omni_table: bool,
    columns: Option<(Columns, usize, usize)>,
    /// The unit of its rate.
    unit: Option<&'a str>,
    is_doubtful: bool,
    rows: Vec<Vec<f64>>,
    /// Lines that are not understood, and how many rows came before.
    strange: Vec<(usize, &'a str, usize)>,
    all: Vec<&'a str>,
    /// The keys that the line before named (`-o`).
    names: Option<Vec<Option<&'static str>>>,
}

impl Lines<'_> {
    fn is_test(&self) -> bool {
        self.banner.is_some() || !self.assignments.is_empty()
    }

    fn cut_short(&self) -> String {
        let strange = self
            .strange
            .last()
            .map(|(place, line, _)| format!("; {} is not understood", quote(*place, line)));
        format!("the figures of this test are missing: the file is cut short{}", strange.unwrap_or_default())
    }

    /// Whether a line is within the table, by how many rows stand before it.
    fn is_within(&self, rows_before: usize) -> bool {
        self.banner.is_some() && self.assignments.is_empty() && rows_before < self.rows.len()
    }
}

pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let mut found: Vec<Lines> = Vec::new();
    for (place, raw) in text.lines().enumerate().filter(|(_, raw)| !raw.trim().is_empty()) {
        let line = raw.trim();
        let begins = line.contains(" TEST from ");
        // Without banners each omni test begins with a key that it has already.
        let again = || {
            let key = line.split_once('=').map_or("", |(key, _)| key);
            is_assignment(line) && found.last().is_some_and(|test| test.assignments.contains_key(key))
        };
        if begins || found.is_empty() || again() {
            ImportError::too_many(found.len(), place)?;
            found.push(Lines { place, banner: begins.then_some(line), ..Lines::default() });
        }
        let Some(test) = found.last_mut() else { continue };
        if !begins && test.all.len() < MAX_HEADINGS {
            test.all.push(raw);
        }
        let numbers: Option<Vec<f64>> = line.split_whitespace().map(number).collect();
        match numbers {
            _ if begins => {}
            // -o: a line of names, and a line of values.
            _ if test.names.as_ref().is_some_and(|names| names.len() == line.split(',').count()) => {
                let names = test.names.take().unwrap_or_default();
                let known = names.into_iter().zip(line.split(','));
                test.assignments.extend(known.filter_map(|(name, value)| Some((name?, value.trim()))));
            }
            None if line.contains(',') && !is_assignment(line) => {
                let names: Vec<Option<&str>> = line.split(',').map(key_of).collect();
                test.names = Some(names).filter(|names| names.iter().any(Option::is_some));
                if test.names.is_none() {
                    test.read_heading(place, line);
                }
            }
            _ if is_assignment(line) => {
                test.assignments.extend(line.split_once('='));
            }
            Some(numbers) if !numbers.is_empty() => test.rows.push(numbers),
            _ => test.read_heading(place, line),
        }
    }
    let mut tests = Vec::new();
    let mut left_out = Vec::new();
    let mut unread = Unread::default();
    for lines in found.iter_mut().filter(|lines| lines.assignments.is_empty()) {
        lines.assignments = columns(&lines.all);
        lines.is_omni_table = !lines.assignments.is_empty();
    }
    for lines in &found {
        // Headings of an omni test's table are its figures' names.
        for (place, line, before) in lines.strange.iter().filter(|_| !lines.is_omni_table) {
            if !lines.is_within(*before) {
                unread.add(*place, line);
            }
        }
        if !lines.is_test() {
            continue;
        }
        let failed = |reason: String| ImportError::of_line(lines.place, reason);
        let test = if lines.assignments.is_empty() { read_table(lines) } else { assigned(lines) };
        match test.map_err(failed)? {
            Ok(mut test) => {
                if lines.is_doubtful {
                    let text =
                        "netperf says that the confidence which was asked for was not achieved (!!! WARNING)";
                    test.warn(
                        "tool_confidence",
                        text.to_owned(),
                        "its figures vary: measure longer, or more often",
                    );
                }
                tests.push(test);
            }
            Err(what) => left_out.push(format!("line {}: {what}", lines.place + 1)),
        }
    }
    if tests.is_empty() && left_out.is_empty() {
        let reason = "it has no line `.. TEST from ..` and no KEY=VALUE: run netperf without -P 0";
        return Err(ImportError::of_file(reason));
    }
    left_out.extend(unread.describe());
    ToolFile::of_tests(Format::Netperf, None, tests, left_out)
}

impl<'a> Lines<'a> {
    /// Takes a line without figures.
    fn read_heading(&mut self, place: usize, line: &'a str) {
        match find(HEADINGS, line) {
            Some((Heading::Columns(columns, first, second), fields)) => {
                self.columns = Some((columns, first, second));
                self.unit = Some(fields.text("unit")).filter(|unit| !unit.is_empty());
            }
            Some((Heading::Doubtful, _)) => self.is_doubtful = true,
            Some((Heading::Known, _)) => {}
            None => self.strange.push((place, line, self.rows.len())),
        }
    }
}

/// The family of `.. TEST from A (..) port N AF_INET to B (..) port N AF_INET6 ..`.
fn banner_family(banner: &str) -> Option<Family> {
    let (_, to) = banner.rsplit_once(" to ")?;
    let named = to.split_whitespace().find_map(|word| match word {
        "AF_INET" => Some(Family::Ipv4),
        "AF_INET6" => Some(Family::Ipv6),
        _ => None,
    });
    named.or_else(|| to.split_whitespace().next().and_then(|address| family(address, address)))
}

/// `TCP STREAM` of `MIGRATED TCP STREAM TEST from ..`.
fn test_name(banner: &str) -> &str {
    banner.split(" TEST from ").next().unwrap_or_default().trim_start_matches("MIGRATED ")
}

fn transport(name: &str) -> Option<Transport> {
    match name.split(' ').next() {
        Some("TCP") => Some(Transport::Tcp),
        Some("UDP") => Some(Transport::Udp),
        _ => None,
    }
}

/// As the key DIRECTION has it.
fn direction(name: &str) -> Option<&'static str> {
    match name.split_once(' ')?.1 {
        "REQUEST/RESPONSE" | "Send|Recv" => Some("Send|Recv"),
        "STREAM" | "Send" => Some("Send"),
        "MAERTS" | "Receive" => Some("Receive"),
        _ => None,
    }
}

/// Whether more than one request is under way at a time.
fn has_burst(banner: Option<&str>) -> bool {
    let burst = banner
        .and_then(|banner| banner.split_once("first burst ")?.1.split_whitespace().next()?.parse().ok());
    burst.is_some_and(|burst: u32| burst > 0)
}

/// A test, or what it is if stacklab has nothing that is like it.
type Found = Result<ToolTest, String>;

/// A table. The inner error is a test that is none of stacklab's.
fn read_table(lines: &Lines) -> Result<Found, String> {
    let banner = lines.banner.unwrap_or_default();
    let name = test_name(banner);
    let (transport, kind) = match (transport(name), name.split_once(' ')) {
        (Some(transport), Some((_, kind))) => (transport, kind),
        _ => return Ok(Err(format!("{}: stacklab has no such test", name.escape_debug()))),
    };
    let mut test = match kind {
        "STREAM" | "MAERTS" => ToolTest::new(Probe::Stream),
        "REQUEST/RESPONSE" => ToolTest::new(Probe::Echo),
        _ => return Ok(Err(format!("{}: stacklab has no such test", name.escape_debug()))),
    };
    if let Some((place, line, _)) = lines.strange.iter().find(|(_, _, before)| lines.is_within(*before)) {
        return Ok(Err(not_understood(*place, line)));
    }
    let Some((columns, first, second)) = lines.columns else {
        return match lines.rows.first() {
            Some(_) => Ok(Err("the headings of its columns are not understood".to_owned())),
            None => Err(lines.cut_short()),
        };
    };
    let row = |place: usize, count: usize| match lines.rows.get(place) {
        Some(row) if row.len() == count => Ok(row),
        Some(row) if row.len() > count => {
            Err(format!("a row has {} columns, and {count} are known", row.len()))
        }
        _ => Err(lines.cut_short()),
    };
    let unit = lines.unit.and_then(megabits_of);
    let rate = |rate: f64| match unit {
        Some(megabits) => Value::Measured(rate * megabits),
        None => {
            Value::Missing("its unit is none of bits or bytes per second: run netperf without -f".to_owned())
        }
    };
    (test.transport, test.family) = (Some(transport), banner_family(banner));
    if kind == "MAERTS" {
        test.direction = Direction::Reverse;
    }
    match (kind, transport) {
        ("REQUEST/RESPONSE", _) => {
            let row = row(0, first)?;
            test.size = write_size(row[2]);
            test.duration_ns = nanoseconds(row[4]);
            if row[2] != row[3] {
                return Ok(Err(DIFFERENT.to_owned()));
            }
            // -v 2: alignments and offsets, then the round trip in microseconds, the rate, and both ways' throughput.
            let latency = lines.rows.iter().skip(2).find(|row| row.len() == 8).map(|row| row[4]);
            // With one request at a time the mean round trip is what a transaction takes: -v 2 prints the same.
            // With a unit of data (-f) the rate is none of transactions.
            let is_rate = columns == Columns::Transactions && row[5] > 0.0;
            let by_rate = Some(row[5]).filter(|_| is_rate).map(|rate| 1e6 / rate);
            set_round_trip(&mut test, latency.or(by_rate), has_burst(lines.banner));
        }
        (_, Transport::Tcp) => {
            let row = row(0, first)?;
            test.size = write_size(row[2]);
            test.duration_ns = nanoseconds(row[3]);
            test.set(Metric::Throughput, rate(row[4]));
            // -c and -C: utilisation of both hosts, then their service demand.
            if let (&[_, _, _, _, figure, _, _, near, far, ..], Some(unit)) = (&row[..], unit) {
                set_cpu(
                    &mut test,
                    kind == "MAERTS",
                    [near, far].map(|demand| of_demand(demand, figure * unit)),
                );
            }
        }
        (_, Transport::Udp) => {
            let sent = row(0, first)?;
            let received = row(1, second)?;
            test.size = write_size(sent[1]);
            test.duration_ns = nanoseconds(received[1]);
            test.set(Metric::Throughput, rate(received[3]));
            set_loss(&mut test, sent[3], received[2]);
        }
    }
    Ok(Ok(test))
}

fn assigned(lines: &Lines) -> Result<Found, String> {
    let text = |key: &str| lines.assignments.get(key).copied();
    // What netperf does not know is -1.
    let figure = |key: &str| text(key).and_then(number).filter(|figure| *figure >= 0.0);
    // Where -k names no keys, only the banner tells both.
    let name = lines.banner.map_or("", test_name);
    let direction = text("DIRECTION").or_else(|| direction(name));
    let direction = direction.ok_or("DIRECTION is missing: name it with -k")?;
    let is_echo = direction.contains('|');
    let mut test = ToolTest::new(if is_echo { Probe::Echo } else { Probe::Stream });
    test.transport = match text("PROTOCOL") {
        Some("TCP") => Some(Transport::Tcp),
        Some("UDP") => Some(Transport::Udp),
        Some(other) => {
            return Ok(Err(format!("PROTOCOL {}: stacklab has no such transport", other.escape_debug())));
        }
        None => transport(name),
    };
    let destination = text("DEST_ADDR").and_then(|address| family(address, address));
    test.family = lines.banner.and_then(banner_family).or(destination);
    test.duration_ns = figure("ELAPSED_TIME").map_or(0, nanoseconds);
    if is_echo {
        test.size = figure("REQUEST_SIZE").and_then(write_size);
        if figure("REQUEST_SIZE") != figure("RESPONSE_SIZE") {
            return Ok(Err(DIFFERENT.to_owned()));
        }
        let has_burst = has_burst(lines.banner) || figure("BURST_SIZE").is_some_and(|burst| burst > 0.0);
        set_round_trip(&mut test, figure("RT_LATENCY").or(figure("MEAN_LATENCY")), has_burst);
        // Statistics of latencies are in whole microseconds.
        for (metric, key) in [(Metric::Rtt, "P50_LATENCY"), (Metric::RttP99, "P99_LATENCY")] {
            if let (Some(latency), false) = (figure(key), has_burst) {
                test.set(metric, Value::Measured(latency / 1e3));
            }
        }
        return Ok(Ok(test));
    }
    let is_forward = direction.starts_with("Send");
    let [near, far] = if is_forward { ["LOCAL", "REMOTE"] } else { ["REMOTE", "LOCAL"] };
    if !is_forward {
        test.direction = Direction::Reverse;
    }
    test.size = figure(&format!("{near}_SEND_SIZE")).and_then(write_size);
    let unit = text("THROUGHPUT_UNITS").and_then(megabits_of);
    let arrived = figure(&format!("{far}_RECV_THROUGHPUT")).or(figure("THROUGHPUT"));
    let arrived = arrived.zip(unit).map(|(figure, unit)| figure * unit);
    let throughput = match arrived {
        Some(rate) => Value::Measured(rate),
        None => Value::Missing(
            "THROUGHPUT or THROUGHPUT_UNITS, in bits or bytes, is missing: name both with -k".into(),
        ),
    };
    test.set(Metric::Throughput, throughput);
    // Of a host whose CPU time was not asked for, netperf prints -1.
    let cpu = |host: &str| {
        let count = figure(&format!("{host}_CPU_COUNT")).filter(|count| *count > 0.0)?;
        Some(figure(&format!("{host}_CPU_UTIL"))? * count)
    };
    let by_demand = |host: &str| of_demand(figure(&format!("{host}_SD"))?, arrived?);
    set_cpu(&mut test, !is_forward, ["LOCAL", "REMOTE"].map(|host| cpu(host).or_else(|| by_demand(host))));
    let retransmits = figure(&format!("{near}_TRANSPORT_RETRANS"));
    let sent = figure(&format!("{near}_BYTES_SENT"));
    let sent = sent.or_else(|| Some(arrived? * 1e6 / 8.0 * figure("ELAPSED_TIME")?));
    test.set_retransmits(retransmits, sent.unwrap_or(0.0));
    if test.transport == Some(Transport::Udp) {
        match (figure(&format!("{near}_BYTES_SENT")), figure(&format!("{far}_BYTES_RECVD"))) {
            (Some(sent), Some(received)) => set_loss(&mut test, sent, received),
            _ => test.set(Metric::Loss, untold("the file", "the bytes sent and received")),
        }
    }
    Ok(Ok(test))
}

/// CPU time of a host, % of a core. netperf prints a share of all of its processors, whose number its tables do not
/// have, and the service demand: microseconds of one processor for 1024 bytes.
fn of_demand(demand: f64, megabits: f64) -> Option<f64> {
    Some(demand * megabits * 1e6 / 8.0 / 1024.0 / 1e4).filter(|_| demand > 0.0)
}

fn set_cpu(test: &mut ToolTest, is_reverse: bool, hosts: [Option<f64>; 2]) {
    let metrics = [Metric::CpuSender, Metric::CpuReceiver];
    for (host, percent) in hosts.into_iter().enumerate() {
        if let Some(percent) = percent {
            test.set(metrics[host ^ usize::from(is_reverse)], Value::Measured(percent));
        }
    }
}

fn set_loss(test: &mut ToolTest, sent: f64, received: f64) {
    test.set(Metric::Loss, loss(sent, received));
}

/// The mean round trip, of microseconds.
fn set_round_trip(test: &mut ToolTest, microseconds: Option<f64>, has_burst: bool) {
    let value = match microseconds {
        _ if has_burst => Value::Missing("several requests were under way at a time".to_owned()),
        Some(latency) => Value::Measured(latency / 1e3),
        None => untold("the file", "round trips (-v 2, or RT_LATENCY with -k)"),
    };
    test.set(Metric::RttMean, value);
}
