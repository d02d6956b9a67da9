//! One test in several files, and what is left out with its reason.

use super::{V6, file, is_missing, is_near, list_facts, one, read, tests};
use crate::{Content, Format, ToolFile, leave_out_empty, leave_out_repeats, runs};
use stacklab_model::{Direction, Metric, SizeOf, Transport};

fn count(files: &[ToolFile]) -> usize {
    let mut count = 0;
    for file in files {
        if let Content::Tests(tests) = &file.content {
            count += tests.len();
        }
    }
    count
}

fn connection(id: u8, words: &str) -> String {
    format!("[  {id}] local 192.0.2.2%eth0 port 5001 connected with 192.0.2.1 port 5072{id} {words}\n")
}

fn row(id: &str) -> String {
    format!("[{id}] 0.0000-2.0080 sec  5.13 MBytes  21.4 Mbits/sec  43=1:0:0:2:0:0:0:40\n")
}

fn ping(sent: u8, rcvd: u8, answers: &str) -> String {
    format!(
        r#"{{"af":4,"prb_id":1,"msm_id":2,"type":"ping","proto":"ICMP","size":64,"timestamp":1,"sent":{sent},"rcvd":{rcvd},"result":[{answers}]}}"#
    )
}

/// The files after repeats were left out.
pub(super) fn without_repeats(contents: &[&[u8]]) -> Vec<ToolFile> {
    let mut files: Vec<ToolFile> = contents.iter().map(|bytes| file(bytes)).collect();
    let names: Vec<String> = (0..files.len()).map(|number| format!("file {number}")).collect();
    leave_out_repeats(&mut files, &names);
    files
}

#[test]
fn test_counts_once_by_cookie_ports_or_time() {
    for bytes in [
        sample!("iperf3-3.12-tcp4.json"),
        sample!("irtt-0.9.0-udp6.json"),
        sample!("flent-2.3.0-ping4.flent.gz"),
        sample!("iperf-2.2.1-tcp4-P2.csv"),
        sample!("iperf-2.2.1-tcp4.txt"),
    ] {
        let files = without_repeats(&[bytes, bytes]);
        assert_eq!((count(&files[..1]), count(&files[1..])), (1, 0), "{:?}", files[1].left_out);
        assert!(files[1].left_out.iter().any(|why| why.starts_with("test 1 is test 1 of file 0")));
    }
    // Tables of netperf have nothing that names a test.
    let table = sample!("netperf-2.7.1-tcp4.txt");
    assert_eq!(count(&without_repeats(&[table, table])), 2);
    // A server's file of the same iperf test, with another clock.
    let [client, server] = [
        "20240101000010,192.0.2.1,40000,192.0.2.2,5001,3,0.0-10.0,1252440,999997\n",
        "20240101000011,192.0.2.2,5001,192.0.2.1,40000,4,0.0-10.0,1252440,999990\n",
    ];
    assert_eq!(count(&without_repeats(&[client.as_bytes(), server.as_bytes()])), 1);
    let later = server.replace("000011", "000511");
    assert_eq!(count(&without_repeats(&[client.as_bytes(), later.as_bytes()])), 2);
}

#[test]
fn sums_of_iperf_are_no_flows_whatever_their_number() {
    let rows = "20260601120010,192.0.2.1,41002,192.0.2.2,5001,2,0.0-10.0,25000000,20000000\n\
        20260601120010,192.0.2.1,41001,192.0.2.2,5001,1,0.0-10.0,25000000,20000000\n";
    let sum = "20260601120010,192.0.2.1,0,192.0.2.2,5001,-2,0.0-10.0,50000000,40000000\n";
    let test = one([rows, sum].concat().as_bytes());
    assert_eq!(test.flows, 2);
    is_near(&test, Metric::Throughput, 40.0);
    assert!(file(sum.as_bytes()).left_out[0].contains("--sum-only"));
    let back = "20260601120010,192.0.2.1,41001,192.0.2.2,5001,1,0.0-10.0,30000000,24000000\n";
    let both = file([&rows[rows.find('\n').unwrap() + 1..], back].concat().as_bytes());
    assert!(both.content.is_empty() && both.left_out[0].contains("--full-duplex"), "{both:?}");
}

#[test]
fn iperf_tests_that_are_no_one_way_stream_stay_out() {
    let head = "Server listening on TCP port 5001 with pid 4040\n";
    let log = [
        head.to_owned(),
        connection(1, "(peer 2.2.1)"),
        row("  1"),
        connection(2, "(full-duplex) (peer 2.2.1)"),
        row(" *2"),
        row("  2"),
        "[FD2] 0.0000-2.0037 sec  10.3 MBytes  42.9 Mbits/sec\n".to_owned(),
        connection(3, "(bb w/quickack req/reply/hold=100/100/0)"),
        "[  3] 0.0000-2.0047 sec  3.91 KBytes  16.0 Kbits/sec    20=0.355/0.027/5.943/1.316 ms\n".to_owned(),
    ]
    .concat();
    is_near(&one(log.as_bytes()), Metric::Throughput, 21.4);
    let left_out = file(log.as_bytes()).left_out;
    assert!(left_out[0].starts_with("line 4: both directions"), "{left_out:?}");
    assert!(left_out[1].starts_with("line 8: bounceback"), "{left_out:?}");
    let other = log
        .replace("on TCP port", "on SCTP port")
        .replace("Server listening", "Client connecting to h, SCTP; ");
    let other = other.replace("h, SCTP; ", "192.0.2.2, SCTP port 5001 ");
    assert!(file(other.as_bytes()).left_out[0].contains("SCTP: stacklab has no such transport"));
}

#[test]
fn other_transports_of_iperf3_are_named() {
    let tcp = String::from_utf8(sample!("iperf3-3.12-tcp4.json").to_vec()).unwrap();
    assert!(tcp.contains("\"TCP\""));
    let sctp = file(tcp.replace("\"TCP\"", "\"SCTP\"").as_bytes());
    assert!(sctp.content.is_empty());
    assert_eq!(sctp.left_out, ["test 1: SCTP: stacklab has no such transport"]);
    let text = String::from_utf8(sample!("iperf3-3.12-tcp4-verbose.txt").to_vec()).unwrap();
    let sctp = file(text.replace("protocol: TCP", "protocol: SCTP").as_bytes());
    assert_eq!(sctp.left_out, ["test 1: SCTP: stacklab has no such transport"]);
}

#[test]
fn an_event_behind_a_tests_end_is_the_servers() {
    let stream = String::from_utf8(sample!("iperf3-3.21-stream.json").to_vec()).unwrap();
    let end = "{\"event\":\"error\",\"data\":\"interrupt - the server has terminated\"}\n{\"event\":\"end\",\"data\":{}}\n";
    let log = format!("{}\n{end}", stream.trim_end());
    let found = file(log.as_bytes());
    assert_eq!(tests(log.as_bytes()).last().unwrap().invalid, Vec::<String>::new());
    assert!(
        found.left_out.iter().any(|why| why.contains("error interrupt - the server")),
        "{:?}",
        found.left_out
    );
}

#[test]
fn text_before_each_line_is_taken_off() {
    let text = String::from_utf8(sample!("iperf3-3.12-tcp4-verbose.txt").to_vec()).unwrap();
    let json = format!(
        "{:#}",
        serde_json::from_slice::<serde_json::Value>(sample!("iperf3-3.12-tcp4.json")).unwrap()
    );
    let old = String::from_utf8(sample!("iperf-2.2.1-tcp4.txt").to_vec()).unwrap();
    for plain in [text.as_str(), &json, &old] {
        let expected = one(plain.as_bytes()).values[&Metric::Throughput].measured().unwrap();
        for prefix in [
            "Mon Jun  1 12:00:00 2026 ",
            "1780315200 ",
            "run6:  ",
            "2026-06-01T12:00:00.123456789Z ",
            "2026-06-01T12:00:00.123456789+02:00 stdout F ",
            "Jun 01 12:00:00 host1 iperf3[123]: ",
            "iperf-1  | ",
            "[2026-06-01 12:00:00] ",
        ] {
            let lines = plain.lines().enumerate().map(|(number, line)| {
                format!("{}{line}\n", prefix.replace("12:00:00", &format!("12:00:{:02}", number % 60)))
            });
            let lines: String = lines.collect();
            is_near(&one(lines.as_bytes()), Metric::Throughput, expected);
            assert!(file(lines.as_bytes()).left_out[0].starts_with("what stands before each line"));
        }
        let logged: String = plain
            .lines()
            .map(|line| {
                serde_json::json!({"log": format!("{line}\n"), "stream": "stdout"}).to_string() + "\n"
            })
            .collect();
        is_near(&one(logged.as_bytes()), Metric::Throughput, expected);
    }
}

#[test]
fn documents_in_a_list_and_indented_ones_are_read() {
    let json = String::from_utf8(sample!("iperf3-3.12-tcp4.json").to_vec()).unwrap();
    let json = json.trim();
    assert_eq!(tests(format!("[{json},\n{json}]").as_bytes()).len(), 2);
    assert_eq!(tests(format!("[\n  {json},\n  {json}\n]\n").as_bytes()).len(), 2);
    assert_eq!(tests(format!("  {}\n", json.replace('\n', "\n  ")).as_bytes()).len(), 1);
    assert!(read(format!("[{json},").as_bytes(), None).unwrap_err().to_string().contains("cut short"));
    let wide: Vec<u8> = json.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(tests(&wide).len(), 1);
}

#[test]
fn what_was_answered_twice_or_never_sent_is_no_figure() {
    let test = one(ping(3, 3, r#"{"rtt":22.5},{"rtt":20.5,"dup":1},{"rtt":21.0},{"rtt":23.5}"#).as_bytes());
    is_near(&test, Metric::RttOpen, 22.5);
    is_near(&test, Metric::RttOpenMean, 67.0 / 3.0);
    let silent = one(ping(0, 0, "").as_bytes());
    is_missing(&silent, Metric::EchoLoss, "nothing was sent");
    assert_eq!(silent.invalid, ["nothing was sent"]);
    is_missing(&one(ping(1, 2, r#"{"rtt":1.5}"#).as_bytes()), Metric::EchoLoss, "more arrived than was sent");
    let irtt = String::from_utf8_lossy(sample!("irtt-0.9.0-udp6.json"))
        .replace("\"packets_sent\": 3", "\"packets_sent\": 0")
        .replace("\"packets_received\": 3", "\"packets_received\": 0");
    is_missing(&one(irtt.as_bytes()), Metric::EchoLoss, "nothing was sent");
}

#[test]
fn files_that_are_not_read_are_named_by_their_kind() {
    for (bytes, words) in [
        (b"BZh91AY&SY".as_slice(), "bzip2"),
        (b"\xfd7zXZ\0\0", "xz"),
        (b"\x28\xb5\x2f\xfd1", "zstd"),
        (b"PK\x03\x04", "zip"),
        (b"Run Statistics\nHostname  Throughput   Operations\n", "uperf"),
        (b"  ------ Forward statistics for port 0 ------\nThroughput (since last show)\n", "testpmd"),
        (b"PING 192.0.2.2 (192.0.2.2): 56 data bytes\n64 bytes from 192.0.2.2: seq=0 ttl=64 time=0.083 ms\n", "text of ping"),
        (b"[1780315200.123] PING h (192.0.2.2) 56(84) bytes of data.\nno answer yet for icmp_seq=1\n", "text of ping"),
        (b"PING6(56=40+8+8 bytes) fe80::1%en0 --> fe80::2%en0\n", "text of ping6"),
        (b"192.0.2.2 : [0], 64 bytes, 0.05 ms (0.05 avg, 0% loss)\n", "text of fping"),
        (b"ID=7\nNAME=abc\nTHREADS=4\n", "unknown format"),
    ] {
        let said = read(bytes, None).unwrap_err().to_string();
        assert!(said.contains(words) && !said.contains("netperf without"), "{said}");
    }
}

#[test]
fn netperf_units_are_bits_of_1000_and_bytes_of_1024() {
    let table = String::from_utf8(sample!("netperf-2.7.1-tcp4.txt").to_vec()).unwrap();
    let keys = String::from_utf8(sample!("netperf-2.7.1-keys4.txt").to_vec()).unwrap();
    for (unit, megabits) in [("10^9bits/s", 1e3), ("10^3bits/s", 1e-3), ("MBytes/s", 8.0 * 1.048576)] {
        let test = one(table.replace("10^6bits/s", unit).as_bytes());
        is_near(&test, Metric::Throughput, 8654.14 * megabits);
        let test = one(keys.replace("10^6bits/s", unit).as_bytes());
        is_near(&test, Metric::Throughput, 8784.53 * megabits);
    }
}

#[test]
fn streams_of_flent_have_numbers_and_labels() {
    let text = r#"{"version": 4, "x_values": [], "metadata": {"HOST": "h", "IP_VERSION": 6, "LENGTH": 4}, "results": {
        "TCP upload::0 (CS0)": [14], "TCP upload::bulk": [9], "TCP upload BE::2": [7], "TCP upload avg": [10], "TCP upload sum": [30],
        "TCP upload fairness": [1], "TCP upload::0 (CS0)::tcp_cwnd": [99], "TCP upload::tcp_rtt": [99],
        "Ping (ms)::UDP 0 (CS0)": [1], "Ping (ms) UDP::owd_up": [1], "Ping (ms) avg": [1]}}"#;
    let test = one(text.as_bytes());
    assert_eq!(list_facts(&test), (V6, Some(Transport::Tcp), None, 3, Direction::Forward));
    is_near(&test, Metric::Throughput, 30.0);
    let left_out = file(text.as_bytes()).left_out;
    assert!(left_out[0].starts_with("Ping (ms)::UDP 0 (CS0)"), "{left_out:?}");
    assert!(
        left_out[1].contains("TCP upload::tcp_rtt, Ping (ms) UDP::owd_up, Ping (ms) avg: computed"),
        "{left_out:?}"
    );
}

#[test]
fn rows_of_an_export_are_read_one_after_another() {
    let head = "block,position,started_unix_ns,wall_ns,status,reasons,probe,transport,size_of,family,size,metric,number,missing\n";
    let rows =
        (0..3000).map(|block| format!("{block},0,5,60,valid,,stream,udp,payload,ipv4,64,throughput,57.3,\n"));
    let text: String = std::iter::once(head.to_owned()).chain(rows).collect();
    assert!(crate::starts_rows(text.as_bytes()));
    let Content::Runs(runs) = crate::read_rows(text.as_bytes()).unwrap().content else { panic!() };
    assert_eq!(runs.len(), 3000);
    let endless = format!("{head}0,0,\"{}", "x".repeat(3 << 20));
    assert!(
        crate::read_rows(endless.as_bytes()).unwrap_err().to_string().contains("a row is longer than 1 MiB")
    );
    assert_eq!(file(text.as_bytes()).format, Format::Csv);
}

/// Two files of iperf3, of UDP over IPv4 and IPv6, with these sizes.
fn datagrams(sizes: [u32; 2]) -> Vec<ToolFile> {
    let mut files = vec![file(sample!("iperf3-3.21-udp4.json")), file(sample!("iperf3-3.12-udp6.json"))];
    for (file, size) in files.iter_mut().zip(sizes) {
        let Content::Tests(tests) = &mut file.content else { panic!() };
        tests[0].size = Some(size);
    }
    files
}

/// The size of each run, and what it is of.
fn list_sizes(files: &[ToolFile]) -> Vec<(SizeOf, u32)> {
    let runs = runs(files).unwrap();
    runs.into_iter().map(|(_, run, _)| (run.trial.cell.size_of, run.trial.cell.size)).collect()
}

#[test]
fn datagrams_of_equal_packets_are_compared_by_frame() {
    assert_eq!(list_sizes(&datagrams([1448, 1428])), [(SizeOf::Frame, 1494); 2]);
    assert_eq!(list_sizes(&datagrams([1200, 1200])), [(SizeOf::Write, 1200); 2]);
    assert_eq!(list_sizes(&datagrams([1448, 1400])), [(SizeOf::Write, 1448), (SizeOf::Write, 1400)]);
    // Where one family has both sizes, those that are the same are paired.
    let both = [datagrams([1448, 1428]), datagrams([1448, 1448])].concat();
    assert!(list_sizes(&both).iter().all(|(size_of, _)| *size_of == SizeOf::Write));
    let run = &runs(&datagrams([1448, 1428])).unwrap()[0].1;
    assert!(run.warnings.iter().any(|warning| warning.code == "tool_size"), "{:?}", run.warnings);
}

#[test]
fn metrics_that_no_run_has_a_figure_of_are_left_out() {
    let files = datagrams([1448, 1428]);
    let mut all = runs(&files).unwrap();
    let empty = leave_out_empty(&files, &mut all, &[Metric::Jitter]);
    assert!(empty.contains_key(&(Transport::Udp, Metric::OneWayDelay)), "{empty:?}");
    for (_, run, _) in &all {
        assert!(!run.values.contains_key(&Metric::OneWayDelay) && run.values.contains_key(&Metric::Jitter));
        assert!(run.values[&Metric::Throughput].measured().is_some());
        assert_eq!(run.spec.probe.metrics, run.values.keys().copied().collect::<Vec<_>>());
    }
}

#[test]
fn text_of_iperf3_counts_once_by_its_ports() {
    let client = "Connecting to host 192.0.2.2, port 5201\n\
        [  5] local 192.0.2.1 port 50078 connected to 192.0.2.2 port 5201\n\
        [ ID] Interval           Transfer     Bitrate         Retr\n\
        - - - - - - - - - - - - -\n\
        [  5]   0.00-2.00   sec  1.59 GBytes  6.84 Gbits/sec    4             sender\n\
        [  5]   0.00-2.01   sec  1.59 GBytes  6.82 Gbits/sec                  receiver\n\niperf Done.\n";
    let server = "Accepted connection from 192.0.2.1, port 35266\n\
        [  5] local 192.0.2.2 port 5201 connected to 192.0.2.1 port 50078\n\
        [ ID] Interval           Transfer     Bitrate\n- - - - - - - - - - - - -\n\
        [  5]   0.00-2.01   sec  1.59 GBytes  6.82 Gbits/sec                  receiver\n";
    assert_eq!(count(&without_repeats(&[client.as_bytes(), server.as_bytes()])), 1);
    let again = [client, client].concat();
    let files = without_repeats(&[again.as_bytes()]);
    assert_eq!(count(&files), 1);
    assert!(files[0].left_out[0].contains("the same ports"), "{:?}", files[0].left_out);
    // A client may choose its port (--cport): then figures differ.
    let other = client.replace("6.82", "6.91");
    assert_eq!(count(&without_repeats(&[[client, &other].concat().as_bytes()])), 2);
    // The client's JSON and the server's text.
    let json = sample!("iperf3-3.12-tcp4.json");
    let document: serde_json::Value = serde_json::from_slice(json).unwrap();
    let port = document["start"]["connected"][0]["local_port"].to_string();
    let address = document["start"]["connected"][0]["local_host"].as_str().unwrap().to_owned();
    let peer = document["start"]["connected"][0]["remote_port"].to_string();
    let server = server.replace("192.0.2.2 port 5201", &format!("{address} port {peer}"));
    let server = server.replace("192.0.2.1 port 50078", &format!("{address} port {port}"));
    let files = without_repeats(&[server.as_bytes(), json]);
    assert_eq!((count(&files[..1]), count(&files[1..])), (0, 1));
}

#[test]
fn runs_of_an_export_count_once() {
    let rows = "block,position,started_unix_ns,wall_ns,status,probe,transport,size_of,family,size,metric,number\n\
        0,0,5,60,valid,stream,udp,payload,ipv4,64,throughput,57.3\n0,0,5,60,valid,stream,udp,payload,ipv4,64,loss,0\n\
        1,0,9,60,valid,stream,udp,payload,ipv4,64,throughput,58.1\n";
    let sorted = "block,position,started_unix_ns,wall_ns,status,probe,transport,size_of,family,size,metric,number\r\n\
        0,0,5,60,valid,stream,udp,payload,ipv4,64,loss,0\r\n0,0,5,60,valid,stream,udp,payload,ipv4,64,throughput,57.3\r\n";
    let files = without_repeats(&[rows.as_bytes(), sorted.as_bytes()]);
    let counts =
        files.iter().map(|file| if let Content::Runs(runs) = &file.content { runs.len() } else { 0 });
    assert_eq!(counts.collect::<Vec<_>>(), [2, 0]);
    assert!(
        files[1].left_out[0].starts_with("1 run of the same begin, cell and figures"),
        "{:?}",
        files[1].left_out
    );
}
