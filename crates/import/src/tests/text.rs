//! Text of iperf 2 and netperf with options that change its lines.

use super::{V4, file, is_near, list_facts, one, tests};
use stacklab_model::{Direction, Metric, Transport};

const SERVER: &str = "Server listening on TCP port 5001\nTCP window size: 85.3 KByte (default)\n";
const OF_4: &str = "[  4] local 192.0.2.2 port 5001 connected with 192.0.2.1 port 50000\n";

#[test]
fn lines_of_iperf_that_are_no_results_are_passed_over() {
    let client = "Client connecting to 192.0.2.2, UDP port 5001\nSending 1470 byte datagrams\n\
        [  3] local 192.0.2.1 port 40000 connected with 192.0.2.2 port 5001\n\
        [  3]  0.0-10.0 sec  1.25 MBytes  1.05 Mbits/sec\n[  3] Sent 892 datagrams\n[  3] Server Report:\n\
        [  3]  0.0-10.0 sec  1.25 MBytes  1.05 Mbits/sec   0.010 ms    0/  891 (0%)\n\
        [  3]  0.0-10.0 sec  1 datagrams received out-of-order\n";
    let test = one(client.as_bytes());
    is_near(&test, Metric::Throughput, 1.05);
    is_near(&test, Metric::Loss, 0.0);
    assert!(test.warnings.iter().any(|warning| warning.text.contains("1 were late")), "{:?}", test.warnings);
    // --histograms, and over TCP --trip-times: latencies where UDP has jitter and losses.
    let udp = "Server listening on UDP port 5001\n\
        [  3] local 192.0.2.2 port 5001 connected with 192.0.2.1 port 40000 (peer 2.1.9)\n\
        [  3] 0.00-10.00 sec  12.5 MBytes  10.5 Mbits/sec   0.010 ms    0/ 8918 (0%)  0.5/0.1/1.0/0.2 ms  892 pps  2600\n\
        [  3] 0.00-10.00 sec T8-PDF: bin(w=100us):cnt(8918)=2:4000,5:4000 (5.00/95.00%=2/10)\n";
    is_near(&one(udp.as_bytes()), Metric::Throughput, 10.5);
    let tcp = format!(
        "{SERVER}{OF_4}[  4] 0.00-10.00 sec   125 MBytes   105 Mbits/sec  5.0/1.0/9.0/1.0 ms (1000/131072)  640 KByte 2600\n"
    );
    is_near(&one(tcp.as_bytes()), Metric::Throughput, 105.0);
}

#[test]
fn server_connections_may_begin_while_others_run() {
    let log = format!(
        "{SERVER}{OF_4}[  4]  0.0- 1.0 sec   100 MBytes   839 Mbits/sec\n\
         [  5] local 192.0.2.2 port 5001 connected with 192.0.2.3 port 50001\n\
         [  4]  1.0- 2.0 sec   100 MBytes   839 Mbits/sec\n[  5]  0.0- 1.0 sec   100 MBytes   839 Mbits/sec\n\
         [  4]  0.0- 2.0 sec   200 MBytes   839 Mbits/sec\n[  5]  1.0- 2.0 sec   100 MBytes   839 Mbits/sec\n\
         [  5]  0.0- 2.0 sec   200 MBytes   839 Mbits/sec\n"
    );
    let found = tests(log.as_bytes());
    assert_eq!(found.len(), 2);
    found.iter().for_each(|test| is_near(test, Metric::Throughput, 839.0));
    // It connects to the client's listening port: both directions.
    let both = format!(
        "{SERVER}{OF_4}Client connecting to 192.0.2.1, TCP port 5001\n\
         [  6] local 192.0.2.2 port 40000 connected with 192.0.2.1 port 5001\n\
         [  6]  0.0-10.0 sec   500 MBytes   419 Mbits/sec\n[  4]  0.0-10.0 sec   700 MBytes   587 Mbits/sec\n"
    );
    let both = file(both.as_bytes());
    assert!(
        both.content.is_empty() && both.left_out[0].contains("both directions were measured at once"),
        "{both:?}"
    );
}

#[test]
fn iperf_enhanced_output_and_server_csv_are_read() {
    let enhanced = "Client connecting to 192.0.2.2, TCP port 5001 with pid 1000 (1 flows)\nWrite buffer size: 131072 Byte\n\
        [  1] local 192.0.2.1%eth0 port 40000 connected with 192.0.2.2 port 5001 (ct=1.52 ms) on 2024-01-01 00:00:00.500 (UTC)\n\
        [  1] 0.00-10.00 sec  1250000000 Bytes  1000000000 bits/sec  9537/0         7      400K/1500(50) us  83333\n";
    let test = one(enhanced.as_bytes());
    is_near(&test, Metric::Throughput, 1000.0);
    is_near(&test, Metric::TcpSrtt, 1.5);
    assert_eq!(test.started_unix_ns, Some(1_704_067_200_500_000_000));
    assert!(test.warnings.iter().all(|warning| warning.code != "tool_digits"), "{:?}", test.warnings);
    let csv = "20240101000010,192.0.2.1,40000,192.0.2.2,5001,3,0.0-10.0,1252440,999997\n\
        20240101000010,192.0.2.2,5001,192.0.2.1,40000,3,0.0-10.0,1249500,999970,0.008,2,852,0.235,0\n";
    let test = one(csv.as_bytes());
    assert_eq!(list_facts(&test), (V4, Some(Transport::Udp), Some(1470), 1, Direction::Forward));
    is_near(&test, Metric::Throughput, 0.99997);
    is_near(&test, Metric::Loss, 2.0 / 852.0);
}

#[test]
fn netperf_tells_round_trips_by_its_rate_and_in_csv() {
    let banner = "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 192.0.2.2 () port 0 AF_INET : first burst 0\n";
    let table = format!(
        "{banner}Socket Size   Request  Resp.   Elapsed  Trans.\n\n16384  87380  1        1       10.00    10000.00\n16384  87380\n"
    );
    is_near(&one(table.as_bytes()), Metric::RttMean, 0.1);
    let burst = table.replace("burst 0", "burst 4");
    super::is_missing(&one(burst.as_bytes()), Metric::RttMean, "several requests");
    let csv = banner.replace("TCP", "UDP")
        + "Throughput,Throughput Units,50th Percentile Latency Microseconds,99th Percentile Latency Microseconds,Mean Latency Microseconds\n\
           2000.00,Trans/s,450,600,498.00\n";
    let test = one(csv.as_bytes());
    assert_eq!((test.family, test.transport), (V4, Some(Transport::Udp)));
    is_near(&test, Metric::Rtt, 0.45);
    is_near(&test, Metric::RttP99, 0.6);
    is_near(&test, Metric::RttMean, 0.498);
    // Words are looked for in the whole file.
    let preface = "2024-01-01 00:00:00 netperf -4 -H 192.0.2.2 -t TCP_RR -l 10 &\n".repeat(100);
    is_near(&one((preface + &table).as_bytes()), Metric::RttMean, 0.1);
}
