//! Lines that the readers of text do not understand: what is left out, what is listed, and what is refused.

use super::{TCP, UDP, V4, V6, file, is_missing, is_near, list_facts, one, read, tests};
use stacklab_model::{Direction, Metric};

const IPERF: &str = "Client connecting to 2001:db8::2, TCP port 5001\nTCP window size: 85.0 KByte (default)\n\
    ------------------------------------------------------------\n\
    [  3] local 2001:db8::1 port 40000 connected with 2001:db8::2 port 5001\n\
    [ ID] Interval       Transfer     Bandwidth\n\
    [  3]  0.0- 1.0 sec   112 MBytes   941 Mbits/sec\n[  3]  0.0- 2.0 sec   224 MBytes   941 Mbits/sec\n";
const IPERF3: &str = "Connecting to host 192.0.2.2, port 5201\n\
    [  5] local 192.0.2.1 port 4000 connected to 192.0.2.2 port 5201\n\
    [ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n\
    [  5]   0.00-1.00   sec   949 MBytes  7.95 Gbits/sec    0   1.75 MBytes\n\
    - - - - - - - - - - - - - - - - - - - - - - - - -\n\
    [ ID] Interval           Transfer     Bitrate         Retr\n\
    [  5]   0.00-1.00   sec   949 MBytes  7.95 Gbits/sec    0             sender\n\
    [  5]   0.00-1.01   sec   948 MBytes  7.89 Gbits/sec                  receiver\n\niperf Done.\n";
const NETPERF: &str = "MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 192.0.2.1 () port 0 AF_INET : demo\n\
    Recv   Send    Send                          \nSocket Socket  Message  Elapsed              \n\
    Size   Size    Size     Time     Throughput  \nbytes  bytes   bytes    secs.    10^6bits/sec  \n\n\
    131072  16384  16384    1.00     7629.20   \n";

/// Why the only test of a text is left out.
fn why_left_out(text: &str) -> String {
    let found = file(text.as_bytes());
    assert!(found.content.is_empty(), "{text}");
    found.left_out.join("; ")
}

#[test]
fn foreign_lines_around_a_test_are_counted_and_named() {
    for text in [IPERF, IPERF3, NETPERF] {
        let around = format!("$ ./measure.sh --now\n\nnode1 is up\n{text}\nreal\t0m2.013s\nuser\t0m0.010s\n");
        let plain = one(text.as_bytes()).values[&Metric::Throughput].measured().unwrap();
        is_near(&one(around.as_bytes()), Metric::Throughput, plain);
        assert_eq!(
            file(around.as_bytes()).left_out,
            ["4 lines were not read: line 1: `$ ./measure.sh --now` and 3 more"]
        );
        let job = format!("[1] 4711\n{text}[1]+  Done                    iperf -s\n");
        assert_eq!(file(job.as_bytes()).left_out, ["2 lines were not read: line 1: `[1] 4711` and 1 more"]);
        assert_eq!(file(text.as_bytes()).left_out, Vec::<String>::new());
    }
}

#[test]
fn line_not_understood_leaves_its_test_out_by_name() {
    let strange = "Frobnicating every 3rd segment";
    for (text, before) in [
        (IPERF, "TCP window"),
        (IPERF, "[  3]  0.0- 2.0"),
        (IPERF3, "[  5]   0.00-1.01"),
        (NETPERF, "131072  16384"),
    ] {
        let place = text[..text.find(before).unwrap()].lines().count() + 1;
        let said = why_left_out(&text.replacen(before, &format!("{strange}\n{before}"), 1));
        assert!(said.contains(&format!("line {place}: `{strange}` is not understood")), "{said}");
    }
    for (text, from, to) in [
        (IPERF, "[  3]  0.0- 1.0", "[  3] WINDOWED mode\n[  3]  0.0- 1.0"),
        (IPERF, "224 MBytes   941 Mbits/sec", "224 MBytes   941 Mbits/sec  12 widgets"),
        (IPERF, "port 5001\n[ ID]", "port 5001 (halved)\n[ ID]"),
        (IPERF, ", TCP port 5001\n", ", TCP port 5001 (doubled)\n"),
        (IPERF3, "0             sender", "0  7 widgets    sender"),
        (IPERF3, "[ ID] Interval           Transfer     Bitrate         Retr\n", "[  5] halved\n"),
        (NETPERF, "secs.    10^6bits/sec", "secs.    10^6bits/sec  widgets"),
    ] {
        assert!(text.contains(from), "{from}");
        let said = why_left_out(&text.replacen(from, to, 1));
        assert!(said.contains("not understood"), "{said}");
    }
    // A file that ends within a row is cut short.
    for (text, end) in [(IPERF, "12 wid"), (IPERF3.trim_end_matches("\n\niperf Done.\n"), "7")] {
        let said = read(format!("{}{end}", text.trim_end()).as_bytes(), None).unwrap_err().to_string();
        assert!(said.contains("cut short"), "{said}");
    }
    // Another unit is no result.
    for (text, from) in [(IPERF, "941 Mbits/sec"), (IPERF3, "7.89 Gbits/sec")] {
        let damaged = text.replace(from, "941 Mpages/sec");
        let said = read(damaged.as_bytes(), None).unwrap_err().to_string();
        assert!(said.starts_with("line ") && said.contains("these are not results"), "{said}");
    }
}

#[test]
fn iperf_rows_are_read_in_all_version_forms() {
    let head = "Server listening on UDP (v6) port 5001 with pid 6552\n\
        [  1] local fe80::1%eth0 port 5001 connected with fe80::2 port 53045 (peer 2.2.1-rc) on 2026-11-24 23:44:26.311 (UTC)\n";
    let row = "[  1] 0.0000-2.0013 sec  2.50 MBytes  10.5 Mbits/sec";
    for tail in [
        "0.001 ms 1/1810 (0.055%)",
        "0.001 ms    1/ 1810 (0.055%)      905 pps",
        "0.001 ms 1/1810 (0.055%) -/-/-/- ms 905 pps",
        "0.001 ms 1/1810 (0.055%) 0.007/0.002/0.051/0.002 ms  905 pps  2600",
        "0.001 ms 1/1810 (0.055%) 0.007/0.002/0.051/0.002 ms 903 pps 903/0(0) pkts 208077",
        "0.001 ms 1/1810 (0.055%) 0.007/0.002/0.051/0.002 ms -0 pps 1811/0/0 196669",
        "0.001 ms 1/1810 (0.055%) 0.007/0.002/0.051/0.002 ms 904 pps 904/0(0) pkts 0/0/0 196669",
    ] {
        let test = one(format!("{head}{row}   {tail}\n").as_bytes());
        assert_eq!(list_facts(&test), (V6, UDP, None, 1, Direction::Forward));
        is_near(&test, Metric::Loss, 1.0 / 1810.0);
        is_near(&test, Metric::JitterRfc3550, 0.001);
    }
    let head = "Client connecting to 192.0.2.2, TCP port 5001 with pid 9 via eth0 (1/0 flows/load)\nWrite buffer size: 131072 Byte\n\
        [  1] local 192.0.2.1%eth0 port 40000 connected with 192.0.2.2 port 5001 (sock=3) (icwnd/mss/irtt=14/1448/340) (ct=0.5 ms)\n";
    for tail in [
        "41/0          7     3964K/882 us  1990328.76",
        "41/0          7     3964K/882(81) us  3046",
        "41/0/0        7       51K(18)/882(81) us  3046",
        "41/0          7        0K(0)/51K(18)/882(81) us  3046",
        "41/0          7          NA/882 us  inf",
        "41/0          7     3964K/882 us  3046  0.1/0.0/1.0/0.1 ms (41)",
    ] {
        let test = one(format!("{head}{row}   {tail}\n").as_bytes());
        assert_eq!(list_facts(&test), (V4, TCP, Some(131_072), 1, Direction::Forward));
        is_near(&test, Metric::TcpSrtt, 0.882);
        is_near(&test, Metric::Retransmits, 7.0 * 131_072.0 * 8.0 / (10.5e6 * 2.0013));
    }
}

#[test]
fn what_iperf_says_that_failed_makes_its_test_invalid() {
    let cut = one(format!("{IPERF}write failed: Connection reset by peer\n").as_bytes());
    assert_eq!(cut.invalid, ["iperf says: write failed: Connection reset by peer"]);
    // One before a test is of no test.
    let again = format!("tcp connect failed: Connection refused\n{IPERF}");
    assert!(one(again.as_bytes()).invalid.is_empty());
    assert_eq!(file(again.as_bytes()).left_out, ["line 1: tcp connect failed: Connection refused"]);
}

#[test]
fn server_output_in_a_client_file_is_the_same_test() {
    let server = IPERF3.replace("Connecting to host 192.0.2.2", "Accepted connection from 192.0.2.1");
    let server = server.replace("\niperf Done.\n", "");
    let both = IPERF3.replace("iperf Done.", &format!("Server output:\n{server}\n\niperf Done."));
    is_near(&one(both.as_bytes()), Metric::Throughput, 7890.0);
    let left_out = file(both.as_bytes()).left_out;
    assert!(left_out[0].contains("--get-server-output"), "{left_out:?}");
    assert_eq!(tests(format!("{both}{IPERF3}").as_bytes()).len(), 2);
}

#[test]
fn an_error_of_iperf3_may_stand_before_its_test() {
    let stopped = IPERF3
        .replace("\niperf Done.\n", "")
        .replace("948 MBytes  7.89 Gbits/sec", "0.00 Bytes  0.00 bits/sec");
    let said = "iperf3: interrupt - the client has terminated\n";
    let test = one(format!("{said}{stopped}").as_bytes());
    assert!(test.invalid[0].contains("interrupt - the client has terminated"), "{:?}", test.invalid);
    let refused = "iperf3: error - unable to connect to server: Connection refused\n";
    let retried = format!("{refused}{refused}{IPERF3}");
    assert!(one(retried.as_bytes()).invalid.is_empty());
    assert_eq!(file(retried.as_bytes()).left_out.len(), 2);
    let begun = format!("{refused}Connecting to host 192.0.2.2, port 5201\n");
    assert_eq!(
        file(begun.as_bytes()).left_out,
        ["test 1 failed: unable to connect to server: Connection refused"]
    );
}

#[test]
fn netperf_tables_are_read_by_column_headings() {
    let banner = "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 192.0.2.2 () port 0 AF_INET : first burst 0\n";
    let cpu = format!(
        "{banner}Local /Remote\n\
         Socket Size   Request Resp.  Elapsed Trans.   CPU    CPU    S.dem   S.dem\n\
         Send   Recv   Size    Size   Time    Rate     local  remote local   remote\n\
         bytes  bytes  bytes   bytes  secs.   per sec  % S    % S    us/Tr   us/Tr\n\n\
         16384  87380  1       1      10.00   10000.00  1.00   2.00   3.000   4.000\n16384  87380\n"
    );
    is_near(&one(cpu.as_bytes()), Metric::RttMean, 0.1);
    // -f: a rate of data is none of transactions.
    let data = format!(
        "{banner}Local /Remote\nSocket Size   Request  Resp.   Elapsed  \n\
         Send   Recv   Size     Size    Time     Throughput \nbytes  Bytes  bytes    bytes   secs.    10^6bits/sec   \n\n\
         16384  87380  1        1       10.00    10.00\n16384  87380\n"
    );
    is_missing(&one(data.as_bytes()), Metric::RttMean, "round trips");
    let latency = cpu.replace("Elapsed Trans. ", "Elapsed Latency").replace("per sec ", "per tran");
    assert!(why_left_out(&latency).contains("is not understood"));
    let padded = NETPERF
        .replace("Send                          \n", "Send   Utilization       Service Demand\n")
        .replace("secs.    10^6bits/sec  ", "secs.    MBytes  /s  % S      % S      us/KB   us/KB")
        .replace("7629.20   ", "100.00   10.00    10.00    1.000   1.000");
    is_near(&one(padded.as_bytes()), Metric::Throughput, 100.0 * 8.0 * 1.048576);
    let interim = NETPERF.replace(
        "Recv ",
        "Interim result: 7600.00 10^6bits/s over 1.014 seconds ending at 1780315200.123\nRecv ",
    );
    is_near(&one(interim.as_bytes()), Metric::Throughput, 7629.2);
    let doubtful = NETPERF.replace("Recv ", "!!! WARNING\n!!! Desired confidence was not achieved within the specified iterations.\n\
        !!! Confidence intervals: Throughput      : 12.345%\n!!!                       Local CPU util  : 0.000%\n\nRecv ");
    assert!(one(doubtful.as_bytes()).warnings.iter().any(|warning| warning.code == "tool_confidence"));
    let connecting = NETPERF.replace("TCP STREAM", "TCP Connect/Request/Response");
    assert!(why_left_out(&connecting).contains("TCP Connect/Request/Response: stacklab has no such test"));
    let brand = NETPERF.replace("7629.20   ", "7629.20   before");
    let said = read(brand.as_bytes(), None).unwrap_err().to_string();
    assert!(said.contains("the figures of this test are missing"), "{said}");
}

#[test]
fn ditg_flow_with_a_strange_line_or_unit_is_left_out() {
    let text = String::from_utf8(sample!("ditg-2.8.1-udp4.txt").to_vec()).unwrap();
    for (from, to) in [("Kbit/s", "Gbit/s"), ("Average jitter", "Doubled jitter")] {
        let said = why_left_out(&text.replacen(from, to, 1));
        assert!(said.contains("the flow of line 4: line ") && said.contains("not understood"), "{said}");
    }
    let around = format!("$ ITGDec log\n{text}$ \n");
    assert_eq!(
        file(around.as_bytes()).left_out,
        ["2 lines were not read: line 1: `$ ITGDec log` and 1 more"]
    );
}

/// iperf 2.1 marks the connection that a server begins by an asterisk.
#[test]
fn connection_begun_by_a_server_is_of_the_same_test() {
    let log = "Server listening on TCP port 5001\n\
        [  6] local 192.0.2.2%eth0 port 5001 connected with 192.0.2.1 port 49786 (sock=7) (peer 2.1.8)\n\
        Client connecting to 192.0.2.1, TCP port 5001 with pid 3 (1 flows)\n\
        [ *7] local 192.0.2.2%eth0 port 49794 connected with 192.0.2.1 port 5001 (reverse) (sock=5)\n\
        [ ID] Interval            Transfer    Bandwidth       Reads=Dist\n\
        [  6] 0.0000-1.0146 sec   325 MBytes  2.69 Gbits/sec  2639=17:1:0:18:24:1:0:2578\n\
        [ *7] 0.0000-1.0152 sec   252 MBytes  2.08 Gbits/sec  2012/0         11     1534K/966(1788) us  268923\n";
    let said = why_left_out(log);
    assert!(said.contains("both directions were measured at once"), "{said}");
}
