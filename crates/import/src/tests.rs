mod directions;
mod kept;
mod text;

use super::*;
use stacklab_model::Value;
use stacklab_model::{Direction, Family, Metric, Probe, Transport};

macro_rules! sample {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/samples/", $name)).as_slice()
    };
}

mod around;
mod echoes;
mod flent;
mod forms_of_files;
mod intervals;
mod iperf3_json;
mod iperf3_text;
mod lines;
mod overlap;
mod overlap_csv;
mod same;
mod whole;

fn file(bytes: &[u8]) -> ToolFile {
    read(bytes, None).unwrap_or_else(|error| panic!("{error}"))
}

fn tests(bytes: &[u8]) -> Vec<ToolTest> {
    match file(bytes).content {
        Content::Tests(tests) => tests,
        Content::Runs(_) => panic!("these are runs"),
    }
}

/// Why a text is refused.
fn explain_refusal(text: &str) -> String {
    read(text.as_bytes(), None).unwrap_err().to_string()
}

fn sample_text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn one(bytes: &[u8]) -> ToolTest {
    let mut tests = tests(bytes);
    assert_eq!(tests.len(), 1);
    tests.remove(0)
}

fn is_near(test: &ToolTest, metric: Metric, expected: f64) {
    let found = test.values.get(&metric).and_then(Value::measured);
    let near = found.is_some_and(|found| (found - expected).abs() <= 1e-6 * expected.abs().max(1e-9));
    assert!(near, "{metric} is {:?}, not {expected}", test.values.get(&metric));
}

/// Whether a figure is missing, and the reason has these words.
fn is_missing(test: &ToolTest, metric: Metric, words: &str) {
    match test.values.get(&metric) {
        Some(Value::Missing(reason)) => assert!(reason.contains(words), "{reason}"),
        other => panic!("{metric} is {other:?}"),
    }
}

fn list_facts(test: &ToolTest) -> (Option<Family>, Option<Transport>, Option<u32>, u32, Direction) {
    (test.family, test.transport, test.size, test.flows, test.direction)
}

const V4: Option<Family> = Some(Family::Ipv4);
const V6: Option<Family> = Some(Family::Ipv6);
const TCP: Option<Transport> = Some(Transport::Tcp);
const UDP: Option<Transport> = Some(Transport::Udp);

#[test]
fn only_new_iperf3_tells_received_udp_bytes() {
    let new = one(sample!("iperf3-3.21-udp4.json"));
    assert_eq!(list_facts(&new), (V4, UDP, Some(1200), 1, Direction::Forward));
    assert_eq!((new.rate, new.started_unix_ns), (Some(2e7), Some(1_795_548_455_000_000_000)));
    // 2239200 bytes arrived in 1.013055 s; its `sum` is of the 2528400 that were sent.
    is_near(&new, Metric::Throughput, 2_239_200.0 * 8.0 / 1e6 / 1.013055);
    is_near(&new, Metric::Loss, 241.0 / 2107.0);
    is_near(&new, Metric::CpuGeneratorSender, 0.420887050297236);
    let old = one(sample!("iperf3-3.1.3-udp4.json"));
    is_missing(&old, Metric::Throughput, "not those received");
    is_near(&old, Metric::Loss, 256.0 / 1781.0);
    is_near(&old, Metric::JitterRfc3550, 0.005);
    let middle = one(sample!("iperf3-3.12-udp6.json"));
    assert_eq!(list_facts(&middle), (V6, UDP, Some(1200), 1, Direction::Forward));
    is_near(&middle, Metric::Throughput, 4_998_000.0 * 8.0 / 1e6 / 2.000223);
    let back = one(sample!("iperf3-3.21-udp6-reverse.json"));
    assert_eq!(back.direction, Direction::Reverse);
    is_near(&back, Metric::Throughput, 2_498_400.0 * 8.0 / 1e6 / 1.000286);
}

#[test]
fn names_that_are_there_twice_are_both_read() {
    let test = one(sample!("iperf3-3.7-tcp4-bidir.json"));
    assert_eq!(list_facts(&test), (V4, TCP, Some(131_072), 1, Direction::Both));
    is_near(&test, Metric::Throughput, 689_304_576.0 * 8.0 / 1e6 / 1.081421);
    is_near(&test, Metric::ThroughputReverse, 514_981_888.0 * 8.0 / 1e6 / 1.081421);
    is_near(&test, Metric::Retransmits, 2.0 * 131_072.0 / 698_610_688.0);
    let test = one(sample!("iperf3-3.7-udp4-bidir.json"));
    is_missing(&test, Metric::Throughput, "not those received");
    is_missing(&test, Metric::ThroughputReverse, "not those received");
    is_near(&test, Metric::JitterRfc3550, 0.6849781850412813);
}

#[test]
fn receiver_clock_ends_throughput_and_rtt_0_is_none() {
    let test = one(sample!("iperf3-3.12-tcp4.json"));
    // `seconds` are 2.004411, the sender's.
    is_near(&test, Metric::Throughput, 4_493_148_160.0 * 8.0 / 1e6 / 2.00951);
    is_near(&test, Metric::TcpSrtt, 0.171);
    is_missing(&test, Metric::CpuSender, "only that of iperf3");
    let back = one(sample!("iperf3-3.1.3-tcp6-reverse.json"));
    assert_eq!(list_facts(&back), (V6, TCP, Some(131_072), 2, Direction::Reverse));
    is_near(&back, Metric::Throughput, (465_029_632.0 + 456_679_560.0) * 8.0 / 1e6 / 1.000349);
    is_missing(&back, Metric::TcpSrtt, "round trips");
    is_near(&back, Metric::Retransmits, 12.0 * 131_072.0 / (470_403_584.0 + 461_984_160.0));
    let streamed = file(sample!("iperf3-3.21-stream.json"));
    assert_eq!(streamed.version.as_deref(), Some("3.21"));
    is_near(
        &one(sample!("iperf3-3.21-stream.json")),
        Metric::Throughput,
        1_391_853_568.0 * 8.0 / 1e6 / 1.00234,
    );
}

#[test]
fn a_test_of_iperf3_that_failed_is_left_out_and_said() {
    let refused = file(sample!("iperf3-3.12-refused.json"));
    assert!(refused.content.is_empty());
    assert_eq!(refused.left_out, ["test 1 failed: unable to connect to server: Connection refused"]);
    // One file may have several.
    let both = [sample!("iperf3-3.12-refused.json"), sample!("iperf3-3.12-tcp4.json")].concat();
    assert_eq!(tests(&both).len(), 1);
}

#[test]
fn iperf_csv_has_a_total_line_and_no_transport() {
    let test = one(sample!("iperf-2.1.8-tcp4-P2.csv"));
    assert_eq!(list_facts(&test), (V4, None, None, 2, Direction::Forward));
    is_near(&test, Metric::Throughput, 10_451.992902 + 6_172.410791);
    assert_eq!(test.cell(), Err(vec![Untold::Transport, Untold::Size]));
    let mut tcp = test.clone();
    tcp.tell(V4, TCP, Some(131_072)).unwrap();
    assert_eq!(tcp.cell().unwrap().settings.flows, Some(2));
    assert_eq!(tcp.tell(V6, None, None), Err(Untold::Family), "the file says IPv4");
    let mut udp = test;
    udp.tell(None, UDP, Some(1470)).unwrap();
    is_missing(&udp, Metric::Throughput, "what arrived");
    // A client that has no report of its server.
    let test = one(sample!("iperf-2.1.8-udp6.csv"));
    assert_eq!(list_facts(&test), (V6, UDP, None, 1, Direction::Forward));
    is_missing(&test, Metric::Loss, "no report of the server");
    assert_eq!(tests(&[sample!("iperf-2.1.8-tcp6.csv"), sample!("iperf-2.1.8-tcp6.csv")].concat()).len(), 2);
}

#[test]
fn text_of_iperf_is_of_the_receiver_where_it_tells() {
    let test = one(sample!("iperf-2.1.8-udp6.txt"));
    assert_eq!(list_facts(&test), (V6, UDP, Some(1450), 1, Direction::Forward));
    is_near(&test, Metric::Throughput, 10.5);
    is_near(&test, Metric::Loss, 0.0);
    let test = one(sample!("iperf-2.1.8-tcp4-P2.txt"));
    assert_eq!(list_facts(&test), (V4, TCP, Some(131_072), 2, Direction::Forward));
    is_near(&test, Metric::Throughput, 19_100.0 + 23_400.0);
    let bytes = (19.1e9 * 2.0067 + 23.4e9 * 2.0064) / 8.0;
    is_near(&test, Metric::Retransmits, 7.0 * 131_072.0 / bytes);
    assert!(test.warnings.iter().any(|warning| warning.code == "tool_side"));
    let test = one(sample!("iperf-2.1.8-tcp6.txt"));
    is_near(&test, Metric::Retransmits, 31.0 * 131_072.0 * 8.0 / (10.6e9 * 2.0165));
    let served = file(sample!("iperf-2.1.8-server-tcp4.txt"));
    assert_eq!(served.version.as_deref(), Some("2.1.8"));
    let served = tests(sample!("iperf-2.1.8-server-tcp4.txt"));
    assert_eq!(served.iter().map(|test| test.flows).collect::<Vec<_>>(), [1, 2, 1, 2]);
    is_near(&served[3], Metric::Throughput, 6_210.0 + 10_500.0);
    is_missing(&served[0], Metric::Retransmits, "retransmissions");
}

#[test]
fn tables_of_netperf_are_read_by_their_test() {
    let test = one(sample!("netperf-2.7.1-tcp4.txt"));
    assert_eq!(list_facts(&test), (V4, TCP, Some(16_384), 1, Direction::Forward));
    is_near(&test, Metric::Throughput, 8654.14);
    let test = one(sample!("netperf-2.7.1-tcp6-cpu.txt"));
    assert_eq!(test.family, V6);
    is_near(&test, Metric::Throughput, 6190.80);
    let test = one(sample!("netperf-2.7.1-udp4.txt"));
    assert_eq!(list_facts(&test), (V4, UDP, Some(1024), 1, Direction::Forward));
    is_near(&test, Metric::Throughput, 323.73);
    is_near(&test, Metric::Loss, 1.0 - 39_582.0 / 71_765.0);
    assert_eq!(one(sample!("netperf-2.7.1-maerts4.txt")).direction, Direction::Reverse);
    let test = one(sample!("netperf-2.7.1-rr4.txt"));
    assert_eq!((test.probe, test.size), (Probe::Echo, Some(1)));
    is_near(&test, Metric::RttMean, 0.026404);
    let burst =
        String::from_utf8(sample!("netperf-2.7.1-rr4.txt").to_vec()).unwrap().replace("burst 0", "burst 8");
    is_missing(&one(burst.as_bytes()), Metric::RttMean, "several requests");
    let unit = String::from_utf8(sample!("netperf-2.7.1-tcp4.txt").to_vec())
        .unwrap()
        .replace("10^6bits/s", "KBytes/s");
    is_near(&one(unit.as_bytes()), Metric::Throughput, 8654.14 * 1024.0 * 8.0 / 1e6);
    let other = unit.replace("KBytes/s", "Pages/s");
    is_missing(&one(other.as_bytes()), Metric::Throughput, "unit");
}

#[test]
fn keys_of_netperfs_omni_tests_are_read() {
    let test = one(sample!("netperf-2.7.1-keys4.txt"));
    assert_eq!(list_facts(&test), (V4, TCP, Some(16_384), 1, Direction::Forward));
    is_near(&test, Metric::Throughput, 8784.53);
    is_near(&test, Metric::Retransmits, 17.0 * 16_384.0 * 8.0 / 8784.53e6);
    let test = one(sample!("netperf-2.7.1-omni-rr6.txt"));
    assert_eq!((test.family, test.transport, test.size, test.probe), (V6, UDP, Some(1), Probe::Echo));
    for (metric, expected) in [(Metric::RttMean, 0.02337), (Metric::Rtt, 0.014), (Metric::RttP99, 0.033)] {
        is_near(&test, metric, expected);
    }
    let test = one(sample!("netperf-2.7.1-omni-udp6.txt"));
    is_near(&test, Metric::Throughput, 355.67);
    is_near(&test, Metric::Loss, 1.0 - 44_462_400.0 / 83_948_400.0);
    // -P 0: no banner, so that the family is not known.
    let bare =
        "THROUGHPUT=5.5\nTHROUGHPUT_UNITS=10^6bits/s\nDIRECTION=Send\nPROTOCOL=TCP\nLOCAL_SEND_SIZE=10\n";
    assert_eq!(one(bare.as_bytes()).cell(), Err(vec![Untold::Family]));
    assert_eq!(tests(format!("{bare}{bare}").as_bytes()).len(), 2);
}

#[test]
fn iperf_and_netperf_versions_read_the_same() {
    for (bytes, expected, megabits) in [
        (sample!("iperf-2.0.14a-tcp4.txt"), (V4, TCP, Some(131_072), 1), 17_900.0),
        (sample!("iperf-2.0.14a-tcp4-P2.csv"), (V4, None, None, 2), 4_392.092928 + 3_738.138167),
        (sample!("iperf-2.0.14a-tcp4-P2.txt"), (V4, TCP, None, 2), 3_930.0 + 7_540.0),
        // Its `1.42 KByte` are rounded.
        (sample!("iperf-2.0.14a-udp6.txt"), (V6, UDP, None, 1), 10.5),
        (sample!("iperf-2.2.1-tcp4.txt"), (V4, TCP, Some(131_072), 1), 8_790.0),
        (sample!("iperf-2.2.1-tcp4-P2.csv"), (V4, None, None, 2), 4_971.518232 + 12_547.963126),
        // A connection is told before the head of all.
        (sample!("iperf-2.2.1-tcp4-P2.txt"), (V4, TCP, None, 2), 8_120.0 + 7_990.0),
        (sample!("iperf-2.2.1-udp6.txt"), (V6, UDP, Some(1450), 1), 10.5),
        (sample!("netperf-2.6.0-tcp4.txt"), (V4, TCP, Some(16_384), 1), 9_034.20),
        (sample!("netperf-2.6.0-udp4.txt"), (V4, UDP, Some(1200), 1), 548.72),
        // Only the banner tells transport and direction.
        (sample!("netperf-2.6.0-keys4.txt"), (V4, TCP, Some(16_384), 1), 6_671.84),
        (sample!("netperf-2.7.0-tcp4.txt"), (V4, TCP, Some(16_384), 1), 7_629.20),
        (sample!("netperf-2.7.0-udp4.txt"), (V4, UDP, Some(1200), 1), 529.89),
        (sample!("netperf-2.7.0-keys4.txt"), (V4, TCP, Some(16_384), 1), 6_804.31),
    ] {
        let test = one(bytes);
        let (family, transport, size, flows) = expected;
        assert_eq!(list_facts(&test), (family, transport, size, flows, Direction::Forward));
        is_near(&test, Metric::Throughput, megabits);
    }
    let expected = 131_072.0 * 8.0 / (17.9e9 * 2.0006);
    is_near(&one(sample!("iperf-2.0.14a-tcp4.txt")), Metric::Retransmits, expected);
    is_near(&one(sample!("iperf-2.2.1-tcp4.txt")), Metric::Retransmits, 0.0);
    is_near(&one(sample!("iperf-2.2.1-udp6.txt")), Metric::Loss, 0.0);
    is_near(&one(sample!("netperf-2.6.0-rr4.txt")), Metric::RttMean, 0.024153);
    is_near(&one(sample!("netperf-2.7.0-rr4.txt")), Metric::RttMean, 0.024087);
    // CSV of a client without a report of its server: 2.0.14 puts it there as text, 2.2 has no number for the jitter.
    for (bytes, lines) in [(sample!("iperf-2.0.14a-udp6.csv"), 3), (sample!("iperf-2.2.1-udp6.csv"), 0)] {
        assert_eq!(file(bytes).left_out.len(), lines);
        assert_eq!((one(bytes).family, one(bytes).transport), (V6, UDP));
        is_missing(&one(bytes), Metric::Loss, "no report of the server");
    }
    let served = file(sample!("iperf-2.2.1-server-udp6.txt"));
    assert_eq!(served.version.as_deref(), Some("2.2.1-rc"));
    assert_eq!(tests(sample!("iperf-2.2.1-server-udp6.txt")).len(), 2);
}

#[test]
fn itgdec_tells_neither_transport_nor_which_delay() {
    let test = one(sample!("ditg-2.8.1-tcp6.txt"));
    assert_eq!(list_facts(&test), (V6, None, Some(512), 1, Direction::Forward));
    is_near(&test, Metric::Throughput, 3.630375642);
    is_missing(&test, Metric::OneWayDelayMean, "one-way or round-trip (it says 0.066 ms)");
    let four = one(sample!("ditg-2.8.1-udp4.txt"));
    assert_eq!((four.family, four.cell()), (V4, Err(vec![Untold::Transport])));
    assert_eq!(file(sample!("ditg-2.8.1-udp4.txt")).version.as_deref(), Some("2.8.1"));
}

#[test]
fn flent_series_of_udp_are_read_and_icmp_is_named() {
    for (bytes, version, median) in [
        (sample!("flent-1.3.2-ping4.flent.gz"), "1.3.2", None),
        (
            sample!("flent-2.1.1-ping4.flent.gz"),
            "2.1.1",
            Some((0.1875907690051019 + 0.19833602242429266) / 2.0),
        ),
        (sample!("flent-2.3.0-ping4.flent.gz"), "2.3.0", Some((0.1518126 + 0.1605148) / 2.0)),
    ] {
        let found = file(bytes);
        assert_eq!(found.version.as_deref(), Some(version));
        assert_eq!(found.left_out, ["Ping (ms) ICMP: stacklab has no such transport"]);
        let test = one(bytes);
        assert_eq!((list_facts(&test).0, test.probe), (V4, Probe::EchoOpenLoop));
        assert_eq!(test.cell(), Err(vec![Untold::Size]));
        let found = test.values[&Metric::RttOpen].measured().unwrap();
        assert!(median.is_none_or(|median| (found - median).abs() < 0.01), "{version}: {found}");
    }
    // iperf's UDP is what was sent.
    let flood = file(sample!("flent-2.3.0-udp-flood4.flent.gz"));
    assert!(flood.content.is_empty() && flood.left_out.len() == 2, "{:?}", flood.left_out);
    let text = r#"{"version": 4, "metadata": {"IP_VERSION": 6, "LENGTH": 2, "HOST": "h"}, "x_values": [], "results":
        {"TCP download BE": [10, null, 20], "TCP download BK": [1, 1, 1], "TCP totals": [11, 0, 21]}}"#;
    let test = one(text.as_bytes());
    assert_eq!(list_facts(&test), (V6, TCP, None, 2, Direction::Reverse));
    is_near(&test, Metric::Throughput, 16.0);
    // Both directions at once, and round trips meanwhile.
    let text = r#"{"version": 4, "metadata": {"IP_VERSION": 6, "LENGTH": 2, "HOST": "h"}, "x_values": [], "results":
        {"TCP download BE": [10, 20], "TCP upload BE": [4, 6], "TCP upload EF": [1, 1], "Ping (ms) UDP BE": [3, 4]}}"#;
    let found = file(text.as_bytes());
    let [left_out] = &found.left_out[..] else { panic!("{:?}", found.left_out) };
    assert!(left_out.starts_with("Ping (ms) UDP BE"), "{left_out}");
    let test = one(text.as_bytes());
    assert_eq!(list_facts(&test), (V6, TCP, None, 2, Direction::Both));
    is_near(&test, Metric::Throughput, 6.0);
    is_near(&test, Metric::ThroughputReverse, 15.0);
}

#[test]
fn what_would_fill_the_memory_is_refused() {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![b' '; 1 << 20];
    (0..65).for_each(|_| std::io::Write::write_all(&mut writer, &zeros).unwrap());
    let bomb = writer.finish().unwrap();
    assert!(read(&bomb, None).unwrap_err().to_string().contains("longer than 64 MiB"));
    let many = format!("{{\"start\": [{}1]}}", "1,".repeat(1 << 20));
    assert!(read(many.as_bytes(), Some(Format::Iperf3)).unwrap_err().to_string().contains("too many values"));
    let deep = "{\"a\":".repeat(1 << 18);
    assert!(read(deep.as_bytes(), Some(Format::Flent)).unwrap_err().to_string().contains("recursion limit"));
}

#[test]
fn tests_of_a_cell_differ_by_tool_and_rate_if_needed() {
    let mut files = [file(sample!("iperf3-3.21-udp4.json")), file(sample!("iperf3-3.12-udp6.json"))];
    assert_eq!(list_replicas(&files), [(0, String::new()), (1, String::new())]);
    let Content::Tests(tests) = &mut files[1].content else { panic!() };
    tests[0].rate = None;
    assert_eq!(list_replicas(&files), [(0, "20 Mbit/s".to_owned()), (1, "no limit".to_owned())]);
    files[1].format = Format::Flent;
    assert_eq!(list_replicas(&files)[1].1, "flent, no limit");
    assert_eq!(runs(&[file(sample!("ditg-2.8.1-udp4.txt"))]).unwrap_err(), (0, 0));
}

fn list_replicas(files: &[ToolFile]) -> Vec<(u32, String)> {
    let runs = runs(files).unwrap();
    runs.into_iter().map(|(_, run, _)| (run.trial.block, run.trial.cell.replica)).collect()
}

#[test]
fn rows_of_an_export_are_runs_in_their_blocks() {
    let head = "block,position,started_unix_ns,wall_ns,status,reasons,probe,transport,size_of,family,size,replica,metric,unit,number,missing,flows\n";
    let rows = "0,0,5,60,valid,,stream,udp,payload,ipv4,64,,throughput,Mbit/s,57.3,,2\n\
                0,1,5,60,valid,,stream,udp,payload,ipv6,64,,throughput,Mbit/s,,no arrivals,2\n\
                7,0,9,60,invalid,'=a; b,stream,udp,payload,ipv4,64,x,loss,ratio,0.5,,\n";
    let found = file(format!("{head}{rows}").as_bytes());
    let both = runs(&[found.clone(), found]).unwrap();
    let places: Vec<_> =
        both.iter().map(|(file, run, _)| (*file, run.trial.block, run.trial.position)).collect();
    assert_eq!(places, [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 2, 0), (1, 2, 1), (1, 3, 0)]);
    let run = &both[0].1;
    assert_eq!(
        (!run.spec.schedule.is_alone(), run.trial.cell.settings.flows),
        (true, Some(2)),
        "they began together"
    );
    assert_eq!(both[1].1.values[&Metric::Throughput], Value::Missing("no arrivals".to_owned()));
    assert_eq!(both[2].1.status, stacklab_model::RunStatus::Invalid(vec!["=a".to_owned(), "b".to_owned()]));
    for (from, to, words) in [
        ("57.3", "many", "line 2: the column `number` has `many`, which is not a number"),
        ("ipv6", "ipx", "line 3: `ipx` is not a valid family"),
        ("0,1,5", "0,0,5", "line 3: block 0 has two runs at position 0"),
        (",2\n0,1", ",none\n0,1", "line 2: `none` is not a level of flows"),
        ("ratio,0.5,,\n", "ratio", "line 4: it has 14 fields, and the first line 17"),
    ] {
        let said =
            read(format!("{head}{rows}").replacen(from, to, 1).as_bytes(), None).unwrap_err().to_string();
        assert!(said.starts_with(words), "{words}: {said}");
    }
}
