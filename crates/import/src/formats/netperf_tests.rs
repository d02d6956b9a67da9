//! Tests of netperf from a table, or from figures with keys.

use super::forms::not_understood;
use super::netperf_lines::{Columns, megabits_of};
use super::netperf_rows::{NumberRow, TestLines};
use crate::test::{ToolTest, family, nanoseconds, write_size};
use crate::value::{has_three_digits, loss, number, too_few_digits, untold};
use stacklab_model::{Direction, Family, Metric, Probe, Transport, Value};

const DIFFERENT: &str = "requests and answers differ in length: stacklab has no such probe";

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
type TestOrDescription = Result<ToolTest, String>;

/// A rate of a table or of a key, Mbit/s; missing if its unit is not known or it has fewer than three digits.
fn read_rate(figure: &str, unit: Option<&str>) -> Value {
    let Some(megabits) = unit.and_then(megabits_of) else {
        return Value::Missing(
            "its unit is none of bits or bytes per second: run netperf without -f".to_owned(),
        );
    };
    match number(figure) {
        Some(_) if !has_three_digits(figure) => {
            Value::Missing(too_few_digits(&format!("{figure} {}", unit.unwrap_or_default())))
        }
        Some(rate) => Value::finite(rate * megabits, "it is not a number"),
        None => Value::Missing("its rate is not a number".to_owned()),
    }
}

/// A table. The inner error is a test that is none of stacklab's.
pub(super) fn read_table(lines: &TestLines) -> Result<TestOrDescription, String> {
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
    (test.transport, test.family) = (Some(transport), banner_family(banner));
    if kind == "MAERTS" {
        test.direction = Direction::Reverse;
    }
    match (kind, transport) {
        ("REQUEST/RESPONSE", _) => {
            let row = lines.row(0, first)?;
            if row.numbers[2] != row.numbers[3] {
                return Ok(Err(DIFFERENT.to_owned()));
            }
            set_transactions(&mut test, lines, row, columns);
        }
        (_, Transport::Tcp) => {
            let found = lines.row(0, first)?;
            let row = &found.numbers;
            test.size = write_size(row[2]);
            test.duration_ns = nanoseconds(row[3]);
            let rate = read_rate(found.words[4], lines.unit);
            // -c and -C: utilisation of both hosts, then their service demand.
            if let (&[_, _, _, _, _, _, _, near, far, ..], Value::Measured(rate)) = (&row[..], &rate) {
                set_cpu(&mut test, kind == "MAERTS", [near, far].map(|demand| of_demand(demand, *rate)));
            }
            test.set(Metric::Throughput, rate);
        }
        (_, Transport::Udp) => {
            let sent = lines.row(0, first)?;
            let received = lines.row(1, second)?;
            test.size = write_size(sent.numbers[1]);
            test.duration_ns = nanoseconds(received.numbers[1]);
            let is_nothing = received.numbers[2] == 0.0 && received.numbers[3] == 0.0;
            let rate = read_rate(received.words[3], lines.unit);
            test.set(Metric::Throughput, if is_nothing { Value::Measured(0.0) } else { rate });
            set_loss(&mut test, sent.numbers[3], received.numbers[2]);
        }
    }
    Ok(Ok(test))
}

/// Sets the round trip of a table of transactions, from its row.
fn set_transactions(test: &mut ToolTest, lines: &TestLines, row: &NumberRow<'_>, columns: Columns) {
    let NumberRow { numbers, words, .. } = row;
    test.size = write_size(numbers[2]);
    test.duration_ns = nanoseconds(numbers[4]);
    // -v 2: alignments and offsets, then the round trip in microseconds, the rate, and both ways' throughput.
    let details = lines.details.iter().find(|row| row.numbers.len() == 8);
    let latency = details.map(|row| row.numbers[4]);
    // With one request at a time the mean round trip is what a transaction takes: -v 2 prints the same. With a unit of
    // data (-f) the rate is none of transactions.
    let is_rate = columns == Columns::Transactions && numbers[5] > 0.0 && has_three_digits(words[5]);
    let by_rate = Some(numbers[5]).filter(|_| is_rate).map(|rate| 1e6 / rate);
    set_round_trip(test, latency.or(by_rate), has_burst(lines.banner));
}

/// A test of which each figure has a key. The inner error is a test that is none of stacklab's.
pub(super) fn read_keys(lines: &TestLines) -> Result<TestOrDescription, String> {
    // Where -k names no keys, only the banner has both.
    let name = lines.banner.map_or("", test_name);
    let direction = lines.text("DIRECTION").or_else(|| direction(name));
    let direction = direction.ok_or("DIRECTION is missing: name it with -k")?;
    let is_echo = direction.contains('|');
    let mut test = ToolTest::new(if is_echo { Probe::Echo } else { Probe::Stream });
    test.transport = match lines.text("PROTOCOL") {
        Some("TCP") => Some(Transport::Tcp),
        Some("UDP") => Some(Transport::Udp),
        Some(other) => {
            return Ok(Err(format!("PROTOCOL {}: stacklab has no such transport", other.escape_debug())));
        }
        None => transport(name),
    };
    let destination = lines.text("DEST_ADDR").and_then(|address| family(address, address));
    test.family = lines.banner.and_then(banner_family).or(destination);
    test.duration_ns = lines.figure("ELAPSED_TIME").map_or(0, nanoseconds);
    if is_echo {
        if lines.figure("REQUEST_SIZE") != lines.figure("RESPONSE_SIZE") {
            return Ok(Err(DIFFERENT.to_owned()));
        }
        set_echo(&mut test, lines);
    } else {
        set_stream(&mut test, lines, direction);
    }
    Ok(Ok(test))
}

/// Sets the figures of round trips.
fn set_echo(test: &mut ToolTest, lines: &TestLines) {
    test.size = lines.figure("REQUEST_SIZE").and_then(write_size);
    let has_burst = has_burst(lines.banner) || lines.figure("BURST_SIZE").is_some_and(|burst| burst > 0.0);
    set_round_trip(test, lines.figure("RT_LATENCY").or(lines.figure("MEAN_LATENCY")), has_burst);
    // Statistics of latencies are in whole microseconds.
    for (metric, key) in [(Metric::Rtt, "P50_LATENCY"), (Metric::RttP99, "P99_LATENCY")] {
        if let (Some(latency), false) = (lines.figure(key), has_burst) {
            test.set(metric, Value::Measured(latency / 1e3));
        }
    }
}

/// Sets the figures of a stream.
fn set_stream(test: &mut ToolTest, lines: &TestLines, direction: &str) {
    let is_forward = direction.starts_with("Send");
    let [near, far] = if is_forward { ["LOCAL", "REMOTE"] } else { ["REMOTE", "LOCAL"] };
    if !is_forward {
        test.direction = Direction::Reverse;
    }
    test.size = lines.figure(&format!("{near}_SEND_SIZE")).and_then(write_size);
    let unit = lines.text("THROUGHPUT_UNITS").filter(|unit| megabits_of(unit).is_some());
    let keys = [format!("{far}_RECV_THROUGHPUT"), "THROUGHPUT".to_owned()];
    let rate = keys.iter().find(|key| lines.figure(key).is_some()).and_then(|key| lines.text(key));
    let throughput = match rate {
        Some(rate) if unit.is_some() => read_rate(rate, unit),
        _ => Value::Missing(
            "THROUGHPUT or THROUGHPUT_UNITS, in bits or bytes, is missing: name both with -k".into(),
        ),
    };
    let arrived = throughput.measured();
    test.set(Metric::Throughput, throughput);
    set_cpu(test, !is_forward, ["LOCAL", "REMOTE"].map(|host| read_cpu_time(lines, host, arrived)));
    let retransmits = lines.figure(&format!("{near}_TRANSPORT_RETRANS"));
    let sent = lines.figure(&format!("{near}_BYTES_SENT"));
    let sent = sent.or_else(|| Some(arrived? * 1e6 / 8.0 * lines.figure("ELAPSED_TIME")?));
    test.set_retransmits(retransmits, sent.unwrap_or(0.0));
    if test.transport == Some(Transport::Udp) {
        match (lines.figure(&format!("{near}_BYTES_SENT")), lines.figure(&format!("{far}_BYTES_RECVD"))) {
            (Some(sent), Some(received)) => set_loss(test, sent, received),
            _ => test.set(Metric::Loss, untold("the file", "the bytes sent and received")),
        }
    }
}

/// CPU time of a host, % of a core.
fn read_cpu_time(lines: &TestLines, host: &str, arrived: Option<f64>) -> Option<f64> {
    // Of a host whose CPU time was not asked for, netperf prints -1.
    let count = lines.figure(&format!("{host}_CPU_COUNT")).filter(|count| *count > 0.0);
    let share = lines.figure(&format!("{host}_CPU_UTIL"));
    if let (Some(count), Some(share)) = (count, share) {
        return Some(share * count);
    }
    of_demand(lines.figure(&format!("{host}_SD"))?, arrived?)
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
