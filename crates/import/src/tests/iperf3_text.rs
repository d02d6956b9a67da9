//! Text of iperf3.

use super::{TCP, UDP, V4, V6, file, is_missing, is_near, one, read, tests, told};
use stacklab_model::{Direction, Metric};

#[test]
fn a_client_has_the_words_of_both_ends() {
    let tcp = one(sample!("iperf3-3.12-tcp4-verbose.txt"));
    assert_eq!(told(&tcp), (V4, TCP, Some(131_072), 1, Direction::Forward));
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
