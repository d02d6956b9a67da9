//! CSV of iperf 2: which lines are of one test.

use super::same::without_repeats;
use super::{file, is_missing, is_near, one, tests};
use crate::Content;
use stacklab_model::Metric;

/// A line of a server: second, client, its port, number, end in seconds, and megabits per second.
fn line(second: u8, client: &str, port: u16, id: i8, to: f64, rate: u32) -> String {
    let bytes = u64::from(rate) * 1_000_000 / 8 * to as u64;
    format!("202606011200{second:02},{client},{port},192.0.2.2,5001,{id},0.0-{to:.1},{bytes},{rate}000000\n")
}

/// Flows and throughput of each test.
fn list(text: &str) -> Vec<(u32, f64)> {
    let found = tests(text.as_bytes());
    found.iter().map(|test| (test.flows, test.values[&Metric::Throughput].measured().unwrap())).collect()
}

#[test]
fn messages_and_headings_are_no_rows() {
    let row = line(10, "192.0.2.1", 41_002, 1, 10.0, 20);
    let heading = "------------------------------------------------------------\n\
                   Client connecting to 192.0.2.2, TCP port 5001\nTCP window size: 4.00 MByte (default)\n";
    let text = format!("listener bind failed: Address already in use\n{heading}{row}hello\n");
    assert_eq!(list(&text), [(1, 20.0)]);
    let left_out = file(text.as_bytes()).left_out;
    let says = "line 1: iperf says: listener bind failed: Address already in use";
    assert_eq!(left_out, [says, "line 6: it is text, and not CSV"]);
    // A row that is cut is none of them.
    let cut = format!("{row}{}\n", &row[..30]);
    let reason = crate::read(cut.as_bytes(), None).unwrap_err().to_string();
    assert_eq!(reason, "line 2: it has 3 fields, and iperf writes 9 or 14: the file is cut short");
}

#[test]
fn lines_of_1970_are_not_summed() {
    let all = file(sample!("iperf-2.1.8-server-seq.csv"));
    assert!(all.content.is_empty());
    let reason = "3 lines from line 1 have no time (1970), so they may be one test or several";
    assert!(all.left_out[0].starts_with(reason), "{:?}", all.left_out);
    // A client that writes to one file counts from 1 in each test.
    let text = String::from_utf8(sample!("iperf-2.1.8-server-seq.csv").to_vec()).unwrap();
    let client = text.replace(",5001,2,", ",5001,1,").replace(",5001,3,", ",5001,1,");
    assert_eq!(list(&client), [(1, 5090.887604), (1, 12340.466703), (1, 9467.762)]);
    // A sum decides, as its bytes are exact.
    let sum = "19700101000000,127.0.0.1,0,127.0.0.1,5001,-1,0.0-2.0,5461639288,21808228702\n";
    let found = file(format!("{text}{sum}").as_bytes());
    let Content::Tests(tests) = &found.content else { panic!() };
    assert_eq!(tests.iter().map(|test| test.flows).collect::<Vec<_>>(), [1, 2]);
    is_near(&tests[1], Metric::Throughput, 12_340.466703 + 9_467.762);
}

#[test]
fn clients_of_two_hosts_in_one_second_are_two_tests() {
    let flows = [2, 1].map(|id| line(10, "192.0.2.1", 41_000 + id as u16, id, 10.0, 20));
    let sum = line(10, "192.0.2.1", 0, -2, 10.0, 40);
    let other = line(10, "192.0.2.9", 41_009, 3, 10.0, 60);
    let expected = [(2, 40.0), (1, 60.0)];
    assert_eq!(list(&[flows.concat(), sum, other.clone()].concat()), expected);
    assert_eq!(list(&[flows[0].clone(), other, flows[1].clone()].concat()), expected);
}

#[test]
fn flows_that_end_in_two_seconds_are_one_test() {
    let flows = [line(10, "192.0.2.1", 41_002, 2, 10.0, 20), line(11, "192.0.2.1", 41_001, 1, 10.0, 20)];
    let sum = line(11, "192.0.2.1", 0, -2, 10.0, 40);
    assert_eq!(list(&flows.concat()), [(2, 40.0)]);
    assert_eq!(list(&[flows.concat(), sum.clone()].concat()), [(2, 40.0)]);
    let missing = file([flows[0].clone(), sum].concat().as_bytes());
    assert!(missing.content.is_empty() && missing.left_out[0].contains("have other bytes than their sum"));
    // Tests of a second, one after another.
    let each = [line(10, "192.0.2.1", 41_002, 1, 1.0, 16), line(11, "192.0.2.1", 41_001, 2, 1.0, 16)];
    assert_eq!(list(&each.concat()), [(1, 16.0), (1, 16.0)]);
    let short = each.concat().replace("0.0-1.0,2000000", "0.0-0.3,600000").replace("120011", "120010");
    let short = file(short.as_bytes());
    assert!(short.content.is_empty() && short.left_out[0].contains("ended within one second"), "{short:?}");
}

#[test]
fn sum_of_missing_lines_is_named_beside_a_test() {
    let text = [line(10, "192.0.2.1", 41_002, 2, 10.0, 20), line(40, "192.0.2.1", 0, -1, 10.0, 40)].concat();
    assert_eq!(list(&text), [(1, 20.0)]);
    assert!(file(text.as_bytes()).left_out[0].starts_with("line 2: 1 sum of connections"));
    assert_eq!(file(sample!("iperf-2.2.1-tcp4-P2.csv")).left_out, Vec::<String>::new());
}

#[test]
fn both_ends_of_a_connection_stay_out() {
    let there = "20260601120010,127.0.0.1,40254,127.0.0.1,5001,19,0.0-2.0,1228013628,4885088821\n";
    let back = "20260601120010,127.0.0.1,5001,127.0.0.1,40254,19,0.0-2.0,583794688,2329975915\n";
    for other in [back.to_owned(), there.replace(",19,", ",20,")] {
        let both = file([there, &other].concat().as_bytes());
        assert!(both.content.is_empty() && both.left_out[0].contains("--full-duplex"), "{both:?}");
    }
    // The line of the only interval is that of the whole test.
    assert_eq!(list(&there.repeat(2)), [(1, 4885.088821)]);
}

/// The line of a client that sends datagrams.
fn own(port: u16, id: u8) -> String {
    format!("20240101000010,192.0.2.1,{port},192.0.2.2,5001,{id},0.0-10.0,1252440,999997\n")
}

/// The server's report, which the client writes too.
fn report(port: u16, id: u8) -> String {
    let figures = "0.0-10.1,1249500,999970,0.008,2,852,0.235,0";
    format!("20240101000010,192.0.2.2,5001,192.0.2.1,{port},{id},{figures}\n")
}

#[test]
fn reports_behind_all_connections_are_theirs() {
    let text = [own(40_000, 3), own(40_001, 4), report(40_000, 3), report(40_001, 4)].concat();
    let test = one(text.as_bytes());
    assert_eq!(test.flows, 2);
    is_near(&test, Metric::Loss, 4.0 / 1704.0);
}

#[test]
fn csv_without_time_counts_once() {
    let lone = sample!("iperf-2.1.8-tcp6.csv");
    let files = without_repeats(&[lone, lone]);
    assert!(files[1].content.is_empty() && files[1].left_out[0].contains("the same ports"), "{:?}", files[1]);
    let warning = one(lone).warnings[0].text.clone();
    assert!(warning.contains("--bounceback") && warning.contains("(-R)"), "{warning}");
}

#[test]
fn losses_of_csv_below_zero_are_missing() {
    let ends = "20260601120010,192.0.2.2,5001,192.0.2.1,41001,1";
    let text = format!("{ends},0.0-10.0,1323000,1058400,0.012,-10,890,-1.12,10\n");
    is_missing(&one(text.as_bytes()), Metric::Loss, "more arrived than was sent");
}
