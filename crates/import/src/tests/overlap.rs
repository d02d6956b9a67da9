//! Text of iperf 2: tests at once, connections that fail, and one test in the files of both ends.

use super::same::without_repeats;
use super::{V4, V6, file, is_missing, is_near, one, tests};
use crate::{Content, ToolFile};
use stacklab_model::{Direction, Metric};

const SERVER: &str = "Server listening on TCP port 5001 with pid 4040\n";
const CLIENT: &str = "Client connecting to 192.0.2.2, TCP port 5001\nTCP window size: 16.0 KByte (default)\n\
    ------------------------------------------------------------\n";

/// The line of a connection of a server.
fn connection(id: u8, peer: &str, second: u8) -> String {
    format!(
        "[  {id}] local 192.0.2.2%eth0 port 5001 connected with {peer} port 5072{id} (peer 2.2.1) on 2026-06-01 12:00:{second:02}.714 (UTC)\n"
    )
}

/// The line of a whole test.
fn row(id: &str, megabytes: f64, rate: f64) -> String {
    format!("[{id:>3}] 0.0000-10.0080 sec  {megabytes} MBytes  {rate:.1} Mbits/sec\n")
}

/// Flows and throughput of each test.
fn list(text: &str) -> Vec<(u32, f64)> {
    let found = tests(text.as_bytes());
    found.iter().map(|test| (test.flows, test.values[&Metric::Throughput].measured().unwrap())).collect()
}

fn count(file: &ToolFile) -> usize {
    let Content::Tests(tests) = &file.content else { panic!() };
    tests.len()
}

/// Why the only test of a text is left out.
fn why(text: &str) -> String {
    let found = file(text.as_bytes());
    assert!(found.content.is_empty(), "{text}");
    found.left_out.join("; ")
}

#[test]
fn both_families_at_once_are_two_tests() {
    let found = tests(sample!("iperf-2.1.8-server-both.txt"));
    let tests: Vec<_> = found.iter().map(|test| (test.family, test.flows)).collect();
    assert_eq!(tests, [(V4, 1), (V6, 1)]);
    is_near(&found[0], Metric::Throughput, 42.3);
    is_near(&found[1], Metric::Throughput, 21.3);
}

#[test]
fn clients_of_two_hosts_are_two_tests() {
    let begin = [SERVER, &connection(1, "192.0.2.1", 0), &connection(2, "192.0.2.9", 5)].concat();
    let apart = [begin, row("1", 23.8, 20.0), row("2", 47.7, 40.0)].concat();
    assert_eq!(list(&apart), [(1, 20.0), (1, 40.0)]);
    let mut pairs = SERVER.to_owned();
    for (id, peer) in [(1, "192.0.2.1"), (2, "192.0.2.1"), (3, "192.0.2.9"), (4, "192.0.2.9")] {
        pairs += &connection(id, peer, id / 3);
    }
    for (id, megabytes, rate) in [
        ("1", 23.8, 20.0),
        ("2", 23.8, 20.0),
        ("SUM", 47.7, 40.0),
        ("3", 35.8, 30.0),
        ("4", 35.8, 30.0),
        ("SUM", 71.5, 60.0),
    ] {
        pairs += &row(id, megabytes, rate);
    }
    assert_eq!(list(&pairs), [(2, 40.0), (2, 60.0)]);
}

#[test]
fn sum_line_decides_what_is_one_test() {
    let begin = [SERVER, &connection(1, "192.0.2.1", 0), &connection(2, "192.0.2.1", 0)].concat();
    let rows = [row("1", 23.8, 20.0), row("2", 47.7, 40.0)].concat();
    let log = [begin, rows].concat();
    assert_eq!(list(&(log.clone() + &row("SUM", 71.5, 60.0))), [(2, 60.0)]);
    assert!(why(&(log.clone() + &row("SUM", 143.0, 120.0))).contains("so they are not one test"));
    let longer = row("SUM", 71.5, 40.0).replace("10.0080", "15.0080");
    assert!(why(&(log.clone() + &longer)).contains("[SUM] line is of 15.0 s"));
    let apart = log.replacen("12:00:00", "12:00:05", 1);
    assert!(why(&apart).contains("began 5.0 s apart"));
}

#[test]
fn begin_in_1970_is_not_a_time() {
    let begin = [SERVER, &connection(1, "192.0.2.1", 0), &connection(2, "192.0.2.1", 0)].concat();
    let log = [begin, row("1", 23.8, 20.0), row("2", 47.7, 40.0)].concat();
    let log = log.replacen("2026-06-01 12:00:00.714", "1970-01-01 00:00:00", 1);
    assert_eq!(list(&log), [(2, 60.0)]);
    let none = one(log.replace("2026-06-01", "1970-01-01").as_bytes());
    assert_eq!(none.started_unix_ns, None);
}

#[test]
fn sums_without_their_connections_are_named() {
    let text = format!("{CLIENT}{}", row("SUM-2", 47.7, 40.0));
    assert!(why(&text).starts_with("line 4: a sum of connections, whose own lines are missing"));
    let listed = [SERVER, &connection(1, "192.0.2.1", 0), &row("SUM", 47.7, 40.0)].concat();
    assert!(why(&listed).contains("--sum-only"));
}

#[test]
fn refused_connection_leaves_other_tests() {
    let refused = String::from_utf8(sample!("iperf-2.1.8-refused.txt").to_vec()).unwrap();
    let reason =
        "line 5: iperf says: tcp connect failed: Connection refused; iperf says: connection 1 was not made";
    assert_eq!(why(&refused), reason);
    let good = format!(
        "{CLIENT}[  1] local 192.0.2.1 port 40000 connected with 192.0.2.2 port 5001\n{}",
        row("1", 23.8, 20.0)
    );
    for text in [[refused.as_str(), &good].concat(), [good.as_str(), &refused].concat()] {
        let found = file(text.as_bytes());
        assert!(found.left_out[0].contains("Connection refused"), "{:?}", found.left_out);
        assert!(one(text.as_bytes()).invalid.is_empty());
    }
    let served = [refused.as_bytes(), sample!("iperf-2.1.8-server-both.txt")].concat();
    assert!(tests(&served).iter().all(|test| test.direction == Direction::Forward));
    // One of two connections.
    let half = good.replace("port 5001\nTCP", "port 5001 with pid 4151 (2 flows)\nTCP");
    assert_eq!(one(half.as_bytes()).invalid, ["iperf was to make 2 connections, and the file has 1"]);
    let refused = half.replace("[  1] local", "tcp connect failed: Connection refused\n[  1] local");
    assert_eq!(one(refused.as_bytes()).invalid[0], "iperf says: tcp connect failed: Connection refused");
}

#[test]
fn handshakes_and_broken_tests_are_left_out() {
    let handshake = "[  1] local 192.0.2.1 port 50178 connected with 192.0.2.2 port 5001\n".repeat(3);
    let only = format!("{CLIENT}TCP three-way-handshake (3WHS) only\n{handshake}");
    assert!(why(&only).contains("a handshake, and no stream"));
    let other = CLIENT.replace("port 5001\n", "port 5001 with pid 9 (1/2 flows/load)\n");
    let load = [other.as_str(), &handshake[..handshake.len() / 3], &row("1", 23.8, 20.0)].concat();
    assert!(why(&load).contains("--working-load"));
    // A number comes again: the test before has no result.
    let log = [SERVER, &connection(4, "192.0.2.1", 0), &connection(4, "192.0.2.9", 9), &row("4", 23.8, 20.0)];
    assert_eq!(list(&log.concat()), [(1, 20.0)]);
    assert_eq!(file(log.concat().as_bytes()).left_out, ["line 2: connection 4 has no result"]);
}

#[test]
fn files_of_both_ends_without_time_count_once() {
    let row = row("1", 23.8, 20.0);
    let begun = "[  1] local 192.0.2.1%eth0 port 50721 connected with 192.0.2.2 port 5001 (reverse) on 2026-06-01 12:00:00 (UTC)\n";
    let served =
        "[  1] local ::ffff:192.0.2.2%eth0 port 5001 connected with ::ffff:192.0.2.1 port 50721 (reverse)\n";
    let client = [CLIENT, begun, &row].concat();
    let server = [SERVER, served, &row].concat();
    let files = without_repeats(&[client.as_bytes(), server.as_bytes()]);
    assert_eq!((count(&files[0]), count(&files[1])), (1, 0), "{:?}", files[1].left_out);
    assert_eq!(one(server.as_bytes()).direction, Direction::Reverse);
    // Two tests of a client with fixed ports.
    let plain = client.replace(" on 2026-06-01 12:00:00 (UTC)", "");
    let files = without_repeats(&[plain.as_bytes(), plain.replace("20.0 Mbits", "21.0 Mbits").as_bytes()]);
    assert_eq!((count(&files[0]), count(&files[1])), (1, 1));
}

#[test]
fn losses_below_zero_are_missing() {
    let head = "Server listening on UDP port 5001\n[  3] local 192.0.2.2 port 5001 connected with 192.0.2.1 port 41001\n";
    let late = "[  3] 0.00-1.00 sec  10 datagrams received out-of-order\n";
    let text = format!(
        "{head}[  3]  0.0-10.0 sec  1.26 MBytes  1.06 Mbits/sec   0.012 ms  -10/  893 (-1.1%)\n{late}{}",
        late.replace("1.00", "10.00")
    );
    let test = one(text.as_bytes());
    is_missing(&test, Metric::Loss, "more arrived than was sent");
    assert!(
        test.warnings.iter().any(|warning| warning.text.contains("and 10 were late")),
        "{:?}",
        test.warnings
    );
    is_missing(&one(text.replace("-10/", "900/").as_bytes()), Metric::Loss, "more was lost than was sent");
}

#[test]
fn datagrams_that_a_server_sends_back_are_sent() {
    let log = "Server listening on UDP port 5001\n\
        [  4] local 192.0.2.2 port 5001 connected with 192.0.2.1 port 50000\n\
        [  4]  0.0-10.0 sec  1.25 MBytes  1.05 Mbits/sec   0.010 ms    0/  891 (0%)\n\
        Client connecting to 192.0.2.1, UDP port 5001\n\
        [  6] local 192.0.2.2 port 40000 connected with 192.0.2.1 port 5001\n\
        [  6]  0.0-10.0 sec  2.50 MBytes  2.10 Mbits/sec\n";
    let found = tests(log.as_bytes());
    assert_eq!([found[0].direction, found[1].direction], [Direction::Forward, Direction::Reverse]);
    is_near(&found[0], Metric::Throughput, 1.05);
    is_missing(&found[1], Metric::Throughput, "no report of the server");
}

#[test]
fn server_log_behind_a_client_with_r_counts_once() {
    let contents = [
        sample!("iperf-2.1.8-server-after-r.txt"),
        sample!("iperf-2.1.8-tcp4-r.txt"),
        sample!("iperf-2.1.8-tcp4-P2-after-r.txt"),
    ];
    let server = tests(contents[0]);
    let directions: Vec<_> = server.iter().map(|test| (test.direction, test.flows)).collect();
    let [forward, reverse] = [Direction::Forward, Direction::Reverse];
    assert_eq!(directions, [(forward, 1), (forward, 1), (reverse, 1), (forward, 1), (forward, 2)]);
    // Of the four that it received it has the receiver's word, of that which it sent it has not.
    let counts_sender: Vec<bool> =
        server.iter().map(|test| test.warnings.iter().any(|warning| warning.code == "tool_side")).collect();
    assert_eq!(counts_sender, [false, false, true, false, false]);
    let files = without_repeats(&contents);
    assert_eq!(files.iter().map(count).collect::<Vec<_>>(), [5, 0, 0]);
    // A client's file behind that of its server.
    let joined = [contents[0], contents[2]].concat();
    let behind = tests(&joined);
    assert_eq!((behind.len(), behind[5].direction, behind[5].flows), (6, forward, 2));
}

#[test]
fn server_of_datagrams_behind_a_client_with_r() {
    let text = "Server listening on UDP port 5001\nReceiving 1470 byte datagrams\n\
        [  3] local 10.0.0.2 port 5001 connected with 10.0.0.1 port 40000\n\
        [  3]  0.0-10.0 sec  1.19 MBytes  1.00 Mbits/sec   0.010 ms   43/  893 (4.8%)\n\
        Client connecting to 10.0.0.1, UDP port 5001\nSending 1470 byte datagrams\n\
        [  4] local 10.0.0.2 port 50000 connected with 10.0.0.1 port 5001\n\
        [  4]  0.0-10.0 sec  1.25 MBytes  1.05 Mbits/sec\n[  4] Server Report:\n\
        [  4]  0.0-10.0 sec  1.13 MBytes   945 Kbits/sec   0.020 ms   89/  893 (10%)\n\
        [  3] local 10.0.0.2 port 5001 connected with 10.0.0.7 port 40002\n\
        [  3]  0.0-10.0 sec  1.13 MBytes   950 Kbits/sec   0.030 ms   85/  893 (9.5%)\n";
    let found = tests(text.as_bytes());
    assert_eq!(
        found.iter().map(|test| test.direction == Direction::Reverse).collect::<Vec<_>>(),
        [false, true, false]
    );
    for (test, rate) in found.iter().zip([1.0, 0.945, 0.95]) {
        is_near(test, Metric::Throughput, rate);
    }
}

#[test]
fn rows_of_two_iperf_in_one_log_are_left_out() {
    let connections = "[  1] local 10.0.0.2 port 5001 connected with 10.0.0.1 port 40000\n\
        [  1] local fd00::2 port 5002 connected with fd00::1 port 40002\n";
    for (one, other) in
        [(row("1", 119.0, 100.0), row("1", 59.6, 50.0)), (row("1", 59.6, 50.0), row("1", 119.0, 100.0))]
    {
        let found = file([SERVER, connections, &one, &other].concat().as_bytes());
        let left_out = found.left_out.join("; ");
        assert!(
            found.content.is_empty() && left_out.contains("lines of several iperf are mixed"),
            "{found:?}"
        );
    }
}
