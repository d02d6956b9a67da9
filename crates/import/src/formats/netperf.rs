//! Text of netperf, version 2.4 to 2.7: tables of `-v 1` and `-v 2`, and `KEY=VALUE` lines of omni tests (`-k`). It has
//! no version. The line `.. TEST from ..` tells test and family; `-P 0` leaves it out.

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

/// Mbit/s of a unit (`-f`); `None` of another one. Bits are in powers of 1000, bytes in powers of 1024.
fn megabits_of(unit: &str) -> Option<f64> {
    const KIBI: f64 = 1024.0;
    Some(match unit.strip_suffix("ec").unwrap_or(unit) {
        "bits/s" | "10^0bits/s" => 1e-6,
        "10^3bits/s" => 1e-3,
        "10^6bits/s" => 1.0,
        "10^9bits/s" => 1e3,
        "Bytes/s" => 8e-6,
        "KBytes/s" => 8e-6 * KIBI,
        "MBytes/s" => 8e-6 * KIBI * KIBI,
        "GBytes/s" => 8e-6 * KIBI * KIBI * KIBI,
        _ => return None,
    })
}

const DIFFERENT: &str = "requests and answers differ in length: stacklab has no such probe";
/// The most lines in which the table of an omni test (`-O`) is looked for.
const MOST_HEADINGS: usize = 16;

#[derive(Default)]
struct Lines<'a> {
    place: usize,
    banner: Option<&'a str>,
    assignments: BTreeMap<&'a str, &'a str>,
    rows: Vec<Vec<f64>>,
    headings: Vec<&'a str>,
    all: Vec<&'a str>,
    /// The keys that the line before named (`-o`).
    names: Option<Vec<Option<&'static str>>>,
}

/// The key of a figure by its name in netperf's CSV (`-o`).
fn key_of(name: &str) -> Option<&'static str> {
    Some(match name.trim() {
        "Throughput" => "THROUGHPUT",
        "Throughput Units" => "THROUGHPUT_UNITS",
        "Elapsed Time (sec)" | "Elapsed Time" => "ELAPSED_TIME",
        "Protocol" => "PROTOCOL",
        "Direction" => "DIRECTION",
        "Request Size Bytes" => "REQUEST_SIZE",
        "Response Size Bytes" => "RESPONSE_SIZE",
        "Initial Burst Requests" => "BURST_SIZE",
        "Round Trip Latency usec/tran" => "RT_LATENCY",
        "Mean Latency Microseconds" => "MEAN_LATENCY",
        "50th Percentile Latency Microseconds" => "P50_LATENCY",
        "99th Percentile Latency Microseconds" => "P99_LATENCY",
        "Local Send Size" => "LOCAL_SEND_SIZE",
        "Remote Send Size" => "REMOTE_SEND_SIZE",
        "Local Bytes Sent" => "LOCAL_BYTES_SENT",
        "Remote Bytes Sent" => "REMOTE_BYTES_SENT",
        "Local Bytes Received" => "LOCAL_BYTES_RECVD",
        "Remote Bytes Received" => "REMOTE_BYTES_RECVD",
        "Local Recv Throughput" => "LOCAL_RECV_THROUGHPUT",
        "Remote Recv Throughput" => "REMOTE_RECV_THROUGHPUT",
        "Local CPU Util %" => "LOCAL_CPU_UTIL",
        "Remote CPU Util %" => "REMOTE_CPU_UTIL",
        "Local Service Demand" => "LOCAL_SD",
        "Remote Service Demand" => "REMOTE_SD",
        "Local Transport Retransmissions" => "LOCAL_TRANSPORT_RETRANS",
        "Remote Transport Retransmissions" => "REMOTE_TRANSPORT_RETRANS",
        _ => return None,
    })
}

/// The figures of an omni test's table (`-O`): names run downwards over their values, in columns of one width.
fn columns<'a>(lines: &[&'a str]) -> BTreeMap<&'a str, &'a str> {
    let of_row = |(row, values): (usize, &&'a str)| {
        let ends = values.split_whitespace().map(|value| value.as_ptr() as usize - values.as_ptr() as usize);
        let starts: Vec<usize> = ends.collect();
        let known = starts.iter().enumerate().filter_map(|(column, start)| {
            let next = starts.get(column + 1).copied().unwrap_or(usize::MAX);
            let parts = lines[..row].iter().filter_map(|line| line.get(*start..next.min(line.len())));
            let words: Vec<&str> = parts.map(str::trim).filter(|part| !part.is_empty()).collect();
            Some((key_of(&words.join(" "))?, values[*start..].split_whitespace().next()?))
        });
        let known: BTreeMap<_, _> = known.collect();
        // A line of headings is not a line of values.
        let is_text = |key: &str| ["THROUGHPUT_UNITS", "PROTOCOL", "DIRECTION"].contains(&key);
        let is_value = |(key, value): (&&str, &&str)| is_text(key) || number(value).is_some();
        (known.len() > 1 && known.iter().all(is_value)).then_some(known)
    };
    lines.iter().enumerate().skip(1).find_map(of_row).unwrap_or_default()
}

pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    let mut found: Vec<Lines> = Vec::new();
    for (place, raw) in text.lines().enumerate() {
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
        if !begins && test.all.len() < MOST_HEADINGS {
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
            }
            _ if is_assignment(line) => {
                test.assignments.extend(line.split_once('='));
            }
            Some(numbers) if !numbers.is_empty() => test.rows.push(numbers),
            _ => test.headings.push(line),
        }
    }
    let (mut tests, mut left_out) = (Vec::new(), Vec::new());
    for lines in found.iter_mut().filter(|lines| lines.assignments.is_empty()) {
        lines.assignments = columns(&lines.all);
    }
    for lines in found.iter().filter(|lines| lines.banner.is_some() || !lines.assignments.is_empty()) {
        let failed = |reason: String| ImportError::of_line(lines.place, reason);
        let test = if lines.assignments.is_empty() { tabled(lines) } else { assigned(lines) };
        match test.map_err(failed)? {
            Ok(test) => tests.push(test),
            Err(what) => left_out.push(format!("line {}: {what}", lines.place + 1)),
        }
    }
    if tests.is_empty() && left_out.is_empty() {
        let reason = "it has no line `.. TEST from ..` and no KEY=VALUE: run netperf without -P 0";
        return Err(ImportError::of_file(reason));
    }
    ToolFile::of_tests(Format::Netperf, None, tests, left_out)
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
fn tabled(lines: &Lines) -> Result<Found, String> {
    let banner = lines.banner.unwrap_or_default();
    let name = test_name(banner);
    let (transport, kind) = match (transport(name), name.split_once(' ')) {
        (Some(transport), Some((_, kind))) => (transport, kind),
        _ => return Ok(Err(format!("{}: stacklab has no such test", name.escape_debug()))),
    };
    let row = |place: usize, least: usize| {
        let row = lines.rows.get(place).filter(|row| row.len() >= least);
        row.ok_or_else(|| "the figures of this test are missing: the file is cut short".to_owned())
    };
    let unit = lines.headings.iter().flat_map(|line| line.split_whitespace()).find_map(megabits_of);
    let rate = |rate: f64| match unit {
        Some(megabits) => Value::Measured(rate * megabits),
        None => {
            Value::Missing("its unit is none of bits or bytes per second: run netperf without -f".to_owned())
        }
    };
    let mut test = match kind {
        "STREAM" | "MAERTS" => ToolTest::new(Probe::Stream),
        "REQUEST/RESPONSE" => ToolTest::new(Probe::Echo),
        _ => return Ok(Err(format!("{}: stacklab has no such test", name.escape_debug()))),
    };
    (test.transport, test.family) = (Some(transport), banner_family(banner));
    if kind == "MAERTS" {
        test.direction = Direction::Reverse;
    }
    match (kind, transport) {
        ("REQUEST/RESPONSE", _) => {
            let row = row(0, 6)?;
            test.size = write_size(row[2]);
            test.duration_ns = nanoseconds(row[4]);
            if row[2] != row[3] {
                return Ok(Err(DIFFERENT.to_owned()));
            }
            // -v 2: alignments and offsets, then the round trip in microseconds, the rate, and both ways' throughput.
            let latency = lines.rows.iter().skip(2).find(|row| row.len() == 8).map(|row| row[4]);
            // With one request at a time the mean round trip is what a transaction takes: -v 2 prints the same.
            // With a unit of data (-f) the rate is none of transactions.
            let by_rate = Some(row[5]).filter(|rate| *rate > 0.0 && unit.is_none()).map(|rate| 1e6 / rate);
            set_round_trip(&mut test, latency.or(by_rate), has_burst(lines.banner));
        }
        (_, Transport::Tcp) => {
            let row = row(0, 5)?;
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
            let (sent, received) = (row(0, 6)?, row(1, 4)?);
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
