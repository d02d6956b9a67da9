//! Intervals and the CPU time of hosts.

use super::{is_near, one, tests};
use serde_json::{Value, json};
use stacklab_model::{Metric, Role, ToolSeries};
use std::ops::RangeInclusive;

/// Start of each row in milliseconds, its bytes and messages.
fn rows(series: &ToolSeries) -> Vec<(u64, u64, u64)> {
    series.rows.iter().map(|row| (row.start_ns / 1_000_000, row.bytes, row.messages)).collect()
}

fn series(bytes: &[u8]) -> ToolSeries {
    one(bytes).series.expect("the file has intervals")
}

#[test]
fn keeps_intervals_of_iperf_text() {
    let series = series(sample!("iperf-2.2.1-tcp4-P2.txt"));
    assert_eq!(series.role, Role::Sender);
    assert_eq!(rows(&series), [(0, (986 + 952) << 20, 0), (1000, (963 + 965) << 20, 0)]);
    // One line is the whole test.
    assert_eq!(one(sample!("iperf-2.1.8-udp6.txt")).series, None);
    let server = "Server listening on UDP port 5001\n\
        [  3] local 192.0.2.2 port 5001 connected with 192.0.2.1 port 40000\n\
        [  3]  0.0- 1.0 sec  1000 Bytes  8000 bits/sec   0.010 ms    1/   11 (9%)\n\
        [  3]  1.0- 2.0 sec  2000 Bytes  16000 bits/sec   0.010 ms    0/   20 (0%)\n\
        [  3]  0.0- 2.0 sec  3000 Bytes  12000 bits/sec   0.010 ms    1/   31 (3%)\n";
    let found = self::series(server.as_bytes());
    assert_eq!((found.role, rows(&found)), (Role::Receiver, vec![(0, 1000, 10), (1000, 2000, 20)]));
}

#[test]
fn keeps_intervals_of_iperf3_without_omitted_ones() {
    let found = series(sample!("iperf3-3.12-tcp4.json"));
    assert_eq!(rows(&found), [(0, 2_236_088_320, 0), (1000, 2_258_370_560, 0)]);
    let start = json!({"connected": [], "test_start": {"protocol": "UDP", "blksize": 10, "reverse": 1}});
    let end = json!({"streams": [{"udp": {"jitter_ms": 0, "sender": false}}]});
    let sums = [write_sum(0, true), write_sum(0, false), write_sum(1, false)];
    let expected = vec![(0, 100, 8), (1000, 101, 8)];
    let intervals: Vec<_> = sums.iter().map(|sum| json!({"streams": [{"bytes": 1}], "sum": sum})).collect();
    let document = json!({"start": start, "intervals": intervals, "end": end});
    let found = series(document.to_string().as_bytes());
    assert_eq!((found.role, rows(&found)), (Role::Receiver, expected.clone()));
    let lines: String = sums.into_iter().map(|sum| write_event("interval", &json!({"sum": sum}))).collect();
    let streamed = write_event("start", &start) + &lines + &write_event("end", &end);
    assert_eq!(rows(&series(streamed.as_bytes())), expected);
}

/// The sum of an interval of iperf3.
fn write_sum(start: u32, omitted: bool) -> Value {
    json!({"start": start, "end": start + 1, "bytes": 100 + start,
    "packets": 10, "lost_packets": 2, "omitted": omitted})
}

fn write_event(name: &str, data: &Value) -> String {
    format!("{{\"event\":\"{name}\",\"data\":{data}}}\n")
}

#[test]
fn keeps_time_series_of_flent() {
    let found = series(write_flent("Mbits/s").as_bytes());
    assert_eq!(rows(&found), [(0, 500_000, 0), (500, 0, 0), (1000, 1_000_000, 0)]);
    assert_eq!(one(write_flent("Kbits/s").as_bytes()).series, None, "its rates are in another unit");
}

fn write_flent(units: &str) -> String {
    json!({
        "version": 4, "metadata": {"IP_VERSION": 4, "LENGTH": 2, "SERIES_META": {"TCP upload": {"UNITS": units}}},
        "x_values": [0, 0.5, 1], "raw_values": {}, "results": {"TCP upload": [8, null, 16]},
    })
    .to_string()
}

#[test]
fn keeps_answers_of_irtt_by_second() {
    let trips = [Some(100), Some(300), None, None, Some(500)];
    let trips: Vec<Value> = (0..).zip(trips).map(|(seqno, rtt)| write_trip(seqno, rtt)).collect();
    let document = json!({
        "config": {"ip_version": "IPv6", "params": {"interval": 500_000_000, "length": 60}}, "stats": {},
        "round_trips": trips,
    });
    let found = series(document.to_string().as_bytes());
    assert_eq!(rows(&found), [(0, 120, 2), (1000, 0, 0), (2000, 60, 1)]);
    let delays: Vec<_> = found.rows.iter().map(|row| row.delay_mean_ns).collect();
    assert_eq!(delays, [Some(200.0), None, Some(500.0)]);
}

/// A round trip of irtt, ns.
fn write_trip(seqno: u32, rtt: Option<u32>) -> Value {
    let delay = rtt.map_or(json!({}), |rtt| json!({"rtt": rtt}));
    json!({"seqno": seqno, "delay": delay})
}

#[test]
fn drops_series_with_a_gap_or_too_many_rows() {
    assert_eq!(one(write_text(0..=0, 2).as_bytes()).series, None);
    assert_eq!(series(write_text(0..=0, 1).as_bytes()).rows.len(), 2);
    assert_eq!(one(write_text(0..=19_999, 20_000).as_bytes()).series, None);
}

/// Text of iperf with rows that begin at these seconds, and a last one.
fn write_text(begins: RangeInclusive<u32>, last: u32) -> String {
    let mut text = "Client connecting to 192.0.2.2, TCP port 5001\n\
        [  3] local 192.0.2.1 port 40000 connected with 192.0.2.2 port 5001\n"
        .to_owned();
    for from in begins.chain([last]) {
        text += &format!("[  3] {from}.0-{}.0 sec  10 Bytes  80 bits/sec\n", from + 1);
    }
    text + "[  3]  0.0-90000.0 sec  3000 Bytes  12000 bits/sec\n"
}

#[test]
fn reads_the_hosts_cpu_time_from_netperf() {
    // Two processors, busy all of the time, at both ends.
    let table = one(sample!("netperf-2.7.1-tcp6-cpu.txt"));
    for metric in [Metric::CpuSender, Metric::CpuReceiver] {
        is_near(&table, metric, 2.647 * 6190.8 * 1e6 / 8.0 / 1024.0 / 1e4);
    }
    let keys = "TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 192.0.2.1 () port 0 AF_INET\n\
        DIRECTION=Receive\nTHROUGHPUT=800.00\nTHROUGHPUT_UNITS=10^6bits/s\nELAPSED_TIME=1.00\n\
        LOCAL_CPU_UTIL=25.0\nLOCAL_CPU_COUNT=4\nREMOTE_CPU_UTIL=-1\nREMOTE_SD=1.024\n";
    let test = one(keys.as_bytes());
    is_near(&test, Metric::CpuReceiver, 100.0);
    is_near(&test, Metric::CpuSender, 10.0);
    // Without -c and -C there is none.
    let plain = &tests(sample!("netperf-2.7.1-tcp4.txt"))[0];
    assert!(!plain.values.contains_key(&Metric::CpuSender));
}
