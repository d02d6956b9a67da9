//! Figures that are not read because they are not whole: cut at the end of a file, below 0, or in fields that are not
//! known.

use super::{explain_refusal, file, is_missing, is_near, one, read, sample_text};
use stacklab_model::Metric;

const CSV: &str = "20261129051018,10.0.0.1,40000,10.0.0.2,5001,3,0.0-10.0,125000000,100000000\n";
const ROWS: &str = "block,position,started_unix_ns,wall_ns,status,probe,transport,size_of,family,size,metric,number\n\
    0,0,5,60,valid,stream,udp,payload,ipv4,64,throughput,57.3\n";

#[test]
fn last_line_without_its_end_is_refused() {
    for text in [
        CSV.to_owned(),
        ROWS.to_owned(),
        sample_text(sample!("iperf-2.1.8-tcp6.txt")),
        sample_text(sample!("iperf3-3.12-server.txt")),
        sample_text(sample!("netperf-2.7.1-udp4.txt")),
        sample_text(sample!("netperf-2.7.1-keys4.txt")),
        sample_text(sample!("netperf-2.7.1-omni-udp6.txt")),
    ] {
        read(text.as_bytes(), None).unwrap_or_else(|error| panic!("{text}: {error}"));
        let last = text.trim_end().rfind(|letter: char| letter.is_ascii_digit()).unwrap();
        let said = explain_refusal(&text[..last]);
        assert!(said.contains("cut short"), "{said}");
        assert!(explain_refusal(text.trim_end()).contains("this line has no end"), "{text}");
    }
    // Behind times before each line, and where the figure is of another line than the last.
    let timed: String =
        CSV.repeat(2).lines().map(|line| format!("Nov 29 05:00:00 lab iperf[9]: {line}\n")).collect();
    assert!(explain_refusal(timed.trim_end()).contains("line 2: this line has no end"));
    let done = sample_text(sample!("iperf3-3.12-tcp4-P2.txt"));
    assert_eq!(one(done.trim_end().as_bytes()), one(done.as_bytes()));
}

#[test]
fn cut_or_damaged_file_is_refused_with_its_place() {
    for (bytes, part, words) in [
        (sample!("iperf3-3.12-udp6.json"), 60, "line 90, column 21: the JSON is cut short"),
        (sample!("iperf3-3.21-stream.json"), 50, "the JSON is cut short here"),
        (sample!("iperf-2.1.8-tcp4-P2.csv"), 40, "line 3: this line has no end"),
        (sample!("iperf-2.1.8-tcp4-P2.csv"), 67, "cut short"),
        (sample!("iperf-2.1.8-tcp4-P2.txt"), 70, "cut short"),
        (sample!("netperf-2.7.1-tcp4.txt"), 30, "line 1: the figures of this test are missing"),
        (sample!("ditg-2.8.1-udp4.txt"), 40, "cut short"),
        (sample!("flent-2.1.1-ping4.flent.gz"), 60, "of the content: gzip cannot be read on"),
    ] {
        let said = read_error(&bytes[..bytes.len() * part / 100]);
        assert!(said.contains(words), "{words}: {said}");
    }
    for (text, words) in [
        ("", "it is empty"),
        ("hello\n", "unknown format: name one with --format (iperf3, "),
        ("{\"start\": {}, \"intervals\": [1}", "line 1, column 30"),
        ("20261124192232,::1,1,::1,2,x,0-1,1\n", "line 1: it has 8 fields"),
        ("20261124192232,::1,1,::1,2,3,0-1,1,many\n", "line 1: `many` is not a number"),
        ("block,position\n1,2\n", "line 1: there is no column `started_unix_ns`"),
        ("{\"version\": 5, \"metadata\": {}, \"results\": {}}", "its format is 5, and up to 4 are known"),
        ("\u{0}\n", "unknown format"),
    ] {
        let said = explain_refusal(text);
        assert!(said.contains(words), "{text}: {said}");
    }
    assert!(read_error(b"{\"start\": \"\xff").contains("byte 11: this is not text"));
}

fn read_error(bytes: &[u8]) -> String {
    read(bytes, None).unwrap_err().to_string()
}

#[test]
fn csv_of_iperf_is_read_if_its_fields_are_known() {
    is_near(&one(CSV.as_bytes()), Metric::Throughput, 100.0);
    is_near(&one(CSV.replace("2026", "+0000:2026").as_bytes()), Metric::Throughput, 100.0);
    for (from, to, words) in [
        ("100000000\n", "1000\n", "1000 bits per second are not the rate of 125000000 bytes in 10 seconds"),
        ("125000000,100000000", "-125000000,-100000000", "-125000000 is below 0"),
        ("100000000\n", "100000000,1000,0,14,141,150,10\n", "its 15 fields, of -e"),
        ("100000000\n", "100000000,1000,0,14,141\n", "it has 13 fields"),
    ] {
        let said = explain_refusal(&CSV.replace(from, to));
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn figures_below_0_are_missing_or_refused() {
    let table = sample_text(sample!("netperf-2.7.1-tcp4.txt")).replace(" 8654.14", "-8654.14");
    is_missing(&one(table.as_bytes()), Metric::Throughput, "-8654.14 Mbit/s, which is below 0");
    let datagrams = sample_text(sample!("netperf-2.7.1-udp4.txt")).replace(" 39582 ", "-39582 ");
    is_missing(&one(datagrams.as_bytes()), Metric::Loss, "below 0");
    let ditg = sample_text(sample!("ditg-2.8.1-udp4.txt"));
    let dropped =
        ditg.replace("Packets dropped          =             0", "Packets dropped          =            -9");
    assert_ne!(ditg, dropped);
    is_missing(&one(dropped.as_bytes()), Metric::Loss, "more arrived than was sent");
    assert!(
        explain_refusal(&ROWS.replace("57.3", "-5")).contains("line 2: throughput: the file says -5 Mbit/s")
    );
    assert!(explain_refusal(&ROWS.replace("throughput,57.3", "loss,1.5")).contains("a share above 1"));
    let flent = r#"{"version": 4, "metadata": {"LENGTH": 2, "IP_VERSION": 6}, "x_values": [0, 1, 2],
        "results": {"TCP upload": [9, -9, 9]}}"#;
    is_missing(&one(flent.as_bytes()), Metric::Throughput, "TCP upload has a rate below 0");
    assert!(one(flent.as_bytes()).series.is_none());
    let ping = flent.replace("TCP upload", "Ping (ms) UDP");
    is_missing(&one(ping.as_bytes()), Metric::Rtt, "below 0");
    let atlas = r#"[{"type": "ping", "af": 6, "prb_id": 1, "sent": 2, "rcvd": 2, "result": [{"rtt": 9}, {"rtt": -1}]}]"#;
    is_missing(&one(atlas.as_bytes()), Metric::RttOpen, "below 0");
    let irtt = sample_text(sample!("irtt-0.9.0-udp6.json"));
    let negative = irtt.replacen("\"rtt\": 93980", "\"rtt\": -93980", 1);
    is_missing(&one(negative.as_bytes()), Metric::RttOpenMean, "below 0");
}

#[test]
fn counts_of_iperf3_are_numbers_of_0_or_more() {
    let text = sample_text(sample!("iperf3-3.12-tcp4.json"));
    let bytes = "\"bytes\":\t4493148160,";
    assert_eq!(text.matches(bytes).count(), 2);
    for changed in ["\"bytes\":\t\"4493148160\",", "\"bytes\":\t-5,", ""] {
        let said = explain_refusal(&text.replacen(bytes, changed, 1));
        assert!(
            said.contains("test 1 has no number that is 0 or more in `bytes` of its `receiver`"),
            "{said}"
        );
        let (before, behind) = text.rsplit_once(bytes).unwrap();
        let said = explain_refusal(&format!("{before}{changed}{behind}"));
        assert!(said.contains("in `bytes` of its `sum_received`"), "{said}");
    }
}

#[test]
fn rates_of_fewer_than_three_digits_are_missing() {
    let words = "`0.02 Gbits/sec` has fewer than three digits";
    let iperf = sample_text(sample!("iperf-2.1.8-tcp6.txt"));
    let (before, _) = iperf.rsplit_once("  2.49 GBytes").unwrap();
    let rough = format!("{before}  0.03 GBytes  0.02 Gbits/sec  90/0  12  3964K/882 us  3046\n");
    is_missing(&one(rough.as_bytes()), Metric::Throughput, words);
    is_missing(&one(rough.as_bytes()), Metric::Retransmits, words);
    is_near(&one(rough.as_bytes()), Metric::TcpSrtt, 0.882);
    assert!(one(rough.as_bytes()).series.is_none());
    let none = rough.replace("0.03 GBytes  0.02 Gbits/sec", "0.00 Bytes  0.00 Gbits/sec");
    is_near(&one(none.as_bytes()), Metric::Throughput, 0.0);
    let iperf3 = sample_text(sample!("iperf3-3.12-tcp4-verbose.txt"));
    let fixed: String = iperf3
        .lines()
        .map(|line| match line.split_once("its/sec") {
            Some((before, behind)) if behind.ends_with("er") => {
                let bytes = &before[..before.rfind("Bytes").unwrap() + 5];
                format!("{bytes}  0.02 Gbits/sec{behind}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    let left_out = file(fixed.as_bytes()).left_out.join("; ");
    assert!(left_out.contains(words), "{left_out}");
    let table = sample_text(sample!("netperf-2.7.1-tcp6-cpu.txt"));
    let table = table.replace("10^6bits/s ", "10^9bits/s ").replace("6190.80", "0.02   ");
    is_missing(&one(table.as_bytes()), Metric::Throughput, "`0.02 10^9bits/s` has fewer than three digits");
    assert!(!one(table.as_bytes()).values.contains_key(&Metric::CpuSender));
    let keys = sample_text(sample!("netperf-2.7.1-keys4.txt")).replace("8784.53", "0.88");
    is_missing(&one(keys.replace("10^6", "10^9").as_bytes()), Metric::Throughput, "`0.88 10^9bits/s` has");
    let datagrams = sample_text(sample!("netperf-2.7.1-udp4.txt"));
    let none = datagrams.replace("39582            323.73", "    0              0.00");
    is_near(&one(none.as_bytes()), Metric::Throughput, 0.0);
    let slow = sample_text(sample!("netperf-2.7.1-rr4.txt"));
    let slow = &slow[..slow.find("Alignment").unwrap()].replace("37873.04", "    0.50");
    is_missing(&one(slow.as_bytes()), Metric::RttMean, "round trips");
}

#[test]
fn rows_of_netperf_behind_those_of_a_test_are_named() {
    for (text, row, figure) in [
        (
            sample_text(sample!("netperf-2.7.1-tcp4.txt")),
            "131072  16384  16384    1.00     500.00\n",
            8654.14,
        ),
        (
            sample_text(sample!("netperf-2.7.1-udp4.txt")),
            "212992    64   1.00        71765      0     36.74\n212992           1.00        39582            20.27\n",
            323.73,
        ),
        (
            sample_text(sample!("netperf-2.7.1-keys4.txt")),
            "131072  16384  16384    1.00     500.00\n",
            8784.53,
        ),
    ] {
        let place = text.lines().count() + 1;
        is_near(&one(format!("{text}{row}").as_bytes()), Metric::Throughput, figure);
        let left_out = file(format!("{text}{row}").as_bytes()).left_out.join("; ");
        assert!(left_out.starts_with(&format!("line {place}: ")) && left_out.contains("-P 0"), "{left_out}");
        assert_eq!(file(text.as_bytes()).left_out, Vec::<String>::new());
    }
    // -v 2 prints rows of the same test.
    let round_trips = sample_text(sample!("netperf-2.7.1-rr4.txt"));
    assert_eq!(file(round_trips.as_bytes()).left_out, Vec::<String>::new());
    let more = format!("{round_trips}16384  131072 64       64      1.00     5000.00\n16384  131072\n");
    assert!(file(more.as_bytes()).left_out[0].starts_with("line 13: 2 rows behind the figures of this test"));
    is_near(&one(more.as_bytes()), Metric::RttMean, 0.026404);
}
