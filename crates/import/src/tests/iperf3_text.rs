//! Text of iperf3.

use super::{TCP, UDP, V4, V6, file, is_missing, is_near, list_facts, one, read, sample_text, tests};
use crate::{Content, ToolFile, leave_out_repeats};
use stacklab_model::{Direction, Metric};

#[test]
fn a_client_has_the_words_of_both_ends() {
    let tcp = one(sample!("iperf3-3.12-tcp4-verbose.txt"));
    assert_eq!(list_facts(&tcp), (V4, TCP, Some(131_072), 1, Direction::Forward));
    is_near(&tcp, Metric::Throughput, 12_400.0);
    is_near(&tcp, Metric::Retransmits, 7.0 * 131_072.0 / 1.55e9);
    is_near(&tcp, Metric::CpuGeneratorSender, 0.9);
    is_near(&tcp, Metric::CpuGeneratorReceiver, 2.5);
    assert_eq!(file(sample!("iperf3-3.12-tcp4-verbose.txt")).version.as_deref(), Some("3.12"));
    let udp = one(sample!("iperf3-3.12-udp4.txt"));
    assert_eq!((udp.family, udp.transport, udp.direction), (V4, UDP, Direction::Forward));
    is_near(&udp, Metric::Throughput, 10.2);
    is_near(&udp, Metric::Loss, 0.0);
    is_near(&udp, Metric::JitterRfc3550, 0.106);
    let flows = one(sample!("iperf3-3.12-tcp4-P2.txt"));
    assert_eq!(flows.flows, 2);
    is_near(&flows, Metric::Throughput, 7_890.0 + 7_880.0);
    let both = one(sample!("iperf3-3.12-tcp4-bidir.txt"));
    assert_eq!(both.direction, Direction::Both);
    is_near(&both, Metric::Throughput, 6_830.0);
    is_near(&both, Metric::ThroughputReverse, 5_450.0);
    assert!(both.warnings.iter().any(|warning| warning.code == "tool_digits"));
}

#[test]
fn a_server_knows_what_it_received() {
    let [reverse, forward] = tests(sample!("iperf3-3.12-server.txt")).try_into().expect("two tests");
    assert_eq!((reverse.direction, reverse.transport), (Direction::Reverse, TCP));
    is_missing(&reverse, Metric::Throughput, "the receiver's counts");
    assert_eq!((forward.direction, forward.transport), (Direction::Forward, UDP));
    is_near(&forward, Metric::Throughput, 10.2);
}

#[test]
fn debugging_output_changes_no_figure() {
    let tcp = one(sample!("iperf3-3.12-tcp6-debug.txt"));
    assert_eq!((tcp.family, tcp.transport, tcp.direction), (V6, TCP, Direction::Forward));
    is_near(&tcp, Metric::Throughput, 450.0);
    let udp = one(sample!("iperf3-3.12-udp4-reverse-debug.txt"));
    assert_eq!((udp.family, udp.transport, udp.direction), (V4, UDP, Direction::Reverse));
    is_near(&udp, Metric::Throughput, 1.04);
    is_near(&udp, Metric::JitterRfc3550, 1.122);
    assert_eq!(file(sample!("iperf3-3.12-tcp6-debug.txt")).left_out, [""; 0]);
}

#[test]
fn debugging_output_of_a_server_is_read() {
    let all = tests(sample!("iperf3-3.12-server-debug.txt"));
    let told: Vec<_> =
        all.iter().map(|test| (test.family, test.transport, test.flows, test.direction)).collect();
    assert_eq!(
        told,
        [
            (V6, TCP, 1, Direction::Forward),
            (V6, TCP, 1, Direction::Reverse),
            (V4, UDP, 2, Direction::Forward),
            (V4, UDP, 1, Direction::Reverse),
            (V4, TCP, 1, Direction::Both),
            (V4, TCP, 1, Direction::Forward),
        ]
    );
    is_near(&all[0], Metric::Throughput, 3.04);
    is_near(&all[2], Metric::Throughput, 2.0 * 0.957);
    is_near(&all[5], Metric::Throughput, 4.18);
}

#[test]
fn strange_lines_in_an_exchange_are_named() {
    let debug = std::str::from_utf8(sample!("iperf3-3.12-tcp6-debug.txt")).unwrap();
    let strange = debug.replacen("\t\"congestion_used\":\t\"bbr\",", "the link went down", 1);
    let left_out = file(strange.as_bytes()).left_out;
    assert!(left_out[0].contains("`the link went down` is not understood"), "{left_out:?}");
}

#[test]
fn old_versions_have_one_udp_row_and_errors_are_named() {
    let head = "Connecting to host 192.0.2.2, port 5201\n[  4] local 192.0.2.1 port 4000 connected to 192.0.2.2 port 5201\n";
    let table = "[ ID] Interval           Transfer     Bandwidth       Jitter    Lost/Total Datagrams\n";
    let row = "[  4]   0.00-1.00   sec  2.32 MBytes  19.5 Mbits/sec  0.005 ms  256/1781 (14%)  \n";
    let old = one(format!("{head}- - - - -\n{table}{row}[  4] Sent 1781 datagrams\n").as_bytes());
    is_missing(&old, Metric::Throughput, "not those received");
    is_near(&old, Metric::Loss, 256.0 / 1781.0);
    let cut = read(format!("{head}{table}").as_bytes(), None).expect_err("cut").to_string();
    assert!(cut.starts_with("line 1: ") && cut.contains("cut short"), "{cut}");
    let failed =
        file(format!("{head}{table}iperf3: error - control socket has closed unexpectedly\n").as_bytes());
    assert_eq!(failed.left_out, ["test 1 failed: control socket has closed unexpectedly"]);
    let damaged = read(format!("{head}- - -\n{table}[  4]   0.00-1.00   sec  2.32\n").as_bytes(), None)
        .expect_err("damaged");
    assert!(damaged.to_string().starts_with("line 5: these are not results"), "{damaged}");
}

/// The text of a sample that ends with the line that has these words.
fn cut_behind(sample: &[u8], words: &str) -> String {
    let text = std::str::from_utf8(sample).unwrap();
    let end = text.find(words).unwrap() + words.len();
    format!("{}\n", &text[..end])
}

#[test]
fn refuses_text_cut_between_rows_of_ends() {
    for (bytes, words, stream) in [
        (sample!("iperf3-3.12-tcp4-P2.txt"), "949 MBytes  7.95 Gbits/sec    0             sender", "5"),
        (sample!("iperf3-3.12-tcp4-P2.txt"), "948 MBytes  7.89 Gbits/sec                  receiver", "7"),
        (sample!("iperf3-3.12-tcp4-bidir.txt"), "5.54 Gbits/sec    3             sender", "7"),
        (sample!("iperf3-3.12-udp4.txt"), "0.000 ms  0/39 (0%)  sender", "5"),
        (sample!("iperf3-3.12-udp4-reverse-debug.txt"), "0.000 ms  0/4 (0%)  sender", "5"),
    ] {
        let said = read(cut_behind(bytes, words).as_bytes(), None).expect_err(words).to_string();
        assert!(said.contains(&format!("stream {stream} of this test")), "{said}");
        assert!(said.contains("cut short"), "{said}");
    }
    // The sums are not read.
    let whole = cut_behind(sample!("iperf3-3.12-tcp4-P2.txt"), "7.88 Gbits/sec                  receiver");
    is_near(&one(whole.as_bytes()), Metric::Throughput, 7_890.0 + 7_880.0);
    // A server prints its own end, as far as it got.
    let server = std::str::from_utf8(sample!("iperf3-3.12-server.txt")).unwrap();
    let old = server.replace(
        "39 (0%)  receiver",
        "39 (0%)  receiver\n[  5]   0.00-1.00   sec  0.00 Bytes  0.00 bits/sec  0.000 ms  0/0 (0%)  sender",
    );
    assert_eq!(tests(old.as_bytes()).len(), 2);
    let second = "[  5] local 127.0.0.1 port 25301 connected to 127.0.0.1 port 50032\n";
    let two = old.replace(second, &format!("{second}{}", second.replace("[  5]", "[  6]")));
    let two = two.replace("0/0 (0%)  sender", "0/0 (0%)  sender\n[  6]   0.00-1.00   sec  1.22 MBytes  10.2 Mbits/sec  0.106 ms  0/39 (0%)  receiver");
    assert!(read(two.as_bytes(), None).expect_err("cut").to_string().contains("cut short"));
}

/// How many tests are left of files without repeats.
pub(super) fn count_without_repeats(contents: &[&[u8]]) -> usize {
    let mut files: Vec<ToolFile> = contents.iter().map(|bytes| file(bytes)).collect();
    let names = vec!["a file".to_owned(); files.len()];
    leave_out_repeats(&mut files, &names);
    let mut count = 0;
    for file in files {
        if let Content::Tests(tests) = file.content {
            count += tests.len();
        }
    }
    count
}

#[test]
fn cookie_in_verbose_text_counts_a_test_once() {
    let text = std::str::from_utf8(sample!("iperf3-3.12-tcp4-verbose.txt")).unwrap();
    let named = text.replace("Cookie: -", "Cookie: vwzby6oidqj6ginhqgypjlnt3t5trnpjmisz");
    assert_eq!(count_without_repeats(&[named.as_bytes(), named.as_bytes()]), 1);
    assert_eq!(count_without_repeats(&[format!("{named}{named}").as_bytes()]), 1);
    let other = text.replace("12.4 Gbits", "12.5 Gbits");
    assert_eq!(count_without_repeats(&[text.as_bytes(), other.as_bytes()]), 2);
}

#[test]
fn interrupt_of_a_waiting_server_spoils_no_test() {
    let server = std::str::from_utf8(sample!("iperf3-3.12-server.txt")).unwrap();
    for (end, reasons) in [
        ("Server listening on 25301 (test #3)\n", 0),
        // Within the test, and before another server.
        ("", 1),
        ("Server listening on 25301 (test #1)\n", 1),
    ] {
        let text = format!("{server}iperf3: interrupt - the server has terminated\n{end}");
        assert_eq!(tests(text.as_bytes()).pop().unwrap().invalid.len(), reasons, "{end}");
    }
}

#[test]
fn a_file_that_was_sent_has_no_zero() {
    let text = std::str::from_utf8(sample!("iperf3-3.12-tcp4-verbose.txt")).unwrap();
    let silent = text.replace("1.45 GBytes  12.4 Gbits/sec                  ", "0.00 Bytes  0.00 bits/sec  ");
    is_near(&one(silent.as_bytes()), Metric::Throughput, 0.0);
    let sent =
        silent.replace("CPU Util", "        Sent 1.24 KByte / 1.24 KByte (100%) of /etc/passwd\nCPU Util");
    is_missing(&one(sent.as_bytes()), Metric::Throughput, "-F");
}

#[test]
fn streams_that_verbose_text_lacks_are_named() {
    let text = std::str::from_utf8(sample!("iperf3-3.12-tcp4-verbose.txt")).unwrap();
    let test = one(text.replace("TCP, 1 streams", "TCP, 3 streams").as_bytes());
    assert_eq!(test.invalid, ["the file names 3 streams, and has results of 1"]);
}

#[test]
fn client_that_was_killed_ends_its_test_alone() {
    let log = sample_text(sample!("iperf3-3.12-server-killed-client.txt"));
    let found = file(log.as_bytes());
    let left_out = ["test 2 failed: the client has unexpectedly closed the connection"];
    assert_eq!(found.left_out[1..], left_out, "{:?}", found.left_out);
    let both = tests(log.as_bytes());
    assert_eq!(both.iter().map(|test| test.invalid.len()).collect::<Vec<_>>(), [0, 0]);
    is_near(&both[0], Metric::Throughput, 6000.0);
    assert_eq!(both[1].direction, Direction::Reverse);
    // Without the server's words.
    let silent = log.replace("iperf3: the client has unexpectedly closed the connection\n", "");
    assert!(file(silent.as_bytes()).left_out.iter().any(|why| why.contains("it was broken off")));
    // One that a client terminated has a sum: it may be the one before, or the one behind.
    let rows = "[  5]   0.00-2.00   sec  1.66 GBytes  7.12 Gbits/sec                  receiver\n";
    let heading = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";
    let terminated = log.replace("unexpectedly closed the connection", "terminated").replace(
        "7.25 Gbits/sec                  \n",
        &format!("7.25 Gbits/sec                  \n{heading}{rows}"),
    );
    let invalid: Vec<usize> = tests(terminated.as_bytes()).iter().map(|test| test.invalid.len()).collect();
    assert_eq!(invalid, [1, 1, 0]);
    // By -V the first one lasted as long as was asked for.
    let asked = "Starting Test: protocol: TCP, 1 streams, 131072 byte blocks, omitting 0 seconds, 1 second test, tos 0\n";
    let verbose = terminated.replacen("[ ID] Interval", &format!("{asked}[ ID] Interval"), 1);
    let invalid: Vec<usize> = tests(verbose.as_bytes()).iter().map(|test| test.invalid.len()).collect();
    assert_eq!(invalid, [0, 1, 0]);
}

#[test]
fn late_datagrams_of_all_streams_are_a_warning() {
    let test = one(sample!("iperf3-3.12-udp4-late.txt"));
    let late = test.warnings.iter().find(|warning| warning.code == "tool_loss").unwrap();
    assert!(late.text.contains("30 were late"), "{}", late.text);
}
