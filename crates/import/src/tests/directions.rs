//! Both directions in one file of iperf, and flows of one test in it.

use super::{file, is_near, one, tests};
use stacklab_model::{Direction, Metric};

#[test]
fn old_and_bidirectional_iperf_are_read_as_they_are() {
    let head = "Client connecting to 10.0.0.2, TCP port 5001\nTCP window size: 85.0 KByte (default)\n";
    let old = format!(
        "{head}[  3] local 10.0.0.1 port 51818 connected with 10.0.0.2 port 5001\n\
         [ ID] Interval       Transfer     Bandwidth\n\
         [  3]  0.0- 1.0 sec   112 MBytes   941 Mbits/sec\n[  3]  0.0- 2.0 sec   224 MBytes   941 Mbits/sec\n"
    );
    is_near(&one(old.as_bytes()), Metric::Throughput, 941.0);
    // -r: the second test is the server's.
    let [there, back] = [
        "[  5] local 10.0.0.1 port 38000 connected with 10.0.0.2 port 5001\n",
        "[  4] local 10.0.0.1 port 5001 connected with 10.0.0.2 port 44000\n",
    ];
    let listening = "Server listening on TCP port 5001\n";
    let [up, down] = [
        "[  5]  0.0-10.0 sec  571 MBytes  479 Mbits/sec\n",
        "[  4]  0.0-10.0 sec  559 MBytes  469 Mbits/sec\n",
    ];
    let found = tests([listening, head, there, up, back, down].concat().as_bytes());
    let told: Vec<_> = found.iter().map(|test| (test.direction, test.flows)).collect();
    assert_eq!(told, [(Direction::Forward, 1), (Direction::Reverse, 1)]);
    is_near(&found[1], Metric::Throughput, 469.0);
    // -d: both at once.
    let both = file([listening, head, there, back, up, down].concat().as_bytes());
    assert!(
        both.content.is_empty() && both.left_out[0].contains("both directions were measured at once"),
        "{both:?}"
    );
    // Of a server's CSV, flows have the server's port in common.
    let test = one([write_row(47396, 4), write_row(47404, 5)].concat().as_bytes());
    assert_eq!(test.flows, 2);
    is_near(&test, Metric::Throughput, 2000.0);
}

fn write_row(port: u16, id: u8) -> String {
    format!("20261125101010,10.0.0.2,5001,10.0.0.1,{port},{id},0.0-2.0,250000000,1000000000\n")
}
