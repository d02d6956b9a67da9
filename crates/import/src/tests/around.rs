//! What terminals, shells, journals and other programs add to the text of a tool, and files that have no test.

use super::{Content, TCP, V4, explain_refusal, file, is_near, list_facts, one, read, sample_text, tests};
use stacklab_model::{Direction, Metric};

const CONNECTION: &str = "Client connecting to 10.0.0.2, TCP port 5001\n\
    [  3] local 10.0.0.1 port 40000 connected with 10.0.0.2 port 5001\n\
    [  3]  0.0-10.0 sec   112 MBytes  94.0 Mbits/sec\n";
const CSV: &str = "20261129051018,10.0.0.1,40000,10.0.0.2,5001,3,0.0-10.0,125000000,100000000\n";

/// What is left out of a file without a test.
fn why(text: &str) -> String {
    let found = file(text.as_bytes());
    assert!(found.content.is_empty(), "{text}");
    found.left_out.join("; ")
}

/// A text as the journal of a host has it.
fn add_journal(text: &str) -> String {
    let lines = text.lines().enumerate();
    lines.map(|(second, line)| format!("Nov 29 05:00:{second:02} lab-1 x[9]: {line}\n")).collect()
}

/// A text as the log of a container has it.
fn add_name(name: &str, text: &str) -> String {
    text.lines().map(|line| format!("{name}  | {line}\n")).collect()
}

#[test]
fn codes_of_a_terminal_are_taken_off() {
    let plain = sample_text(sample!("iperf3-3.12-tcp4-P2.txt"));
    let typescript = format!(
        "Script started on 2026-11-29\r\n\u{1b}[?2004h\u{1b}]0;eng@lab: ~\u{7}\u{1b}[01;32meng@lab\u{1b}[00m:$ iperf3\r\n\
         \u{1b}[?2004l\r{}\u{1b}[?2004h$ exit\r\n",
        plain.replace('\n', "\r\n")
    );
    assert_eq!(one(typescript.as_bytes()).values, one(plain.as_bytes()).values);
    let json = sample_text(sample!("iperf3-3.12-tcp4.json"));
    let typescript =
        format!("Script started\r\n$ iperf3 -J\r\n\u{1b}[?2004l\r{json}\u{1b}]0;title\u{1b}\\$ exit\r\n");
    assert_eq!(one(typescript.as_bytes()), one(json.as_bytes()));
}

#[test]
fn row_behind_control_c_is_of_the_whole_test() {
    let stopped = format!("{CONNECTION}^C[  3]  0.0-15.0 sec   120 MBytes  67.1 Mbits/sec\n");
    is_near(&one(stopped.as_bytes()), Metric::Throughput, 67.1);
}

#[test]
fn files_of_a_failed_tool_have_its_words() {
    for text in [
        "iperf3: error - the server is busy running a test. try again later\n",
        "tcp connect failed: Connection refused\n",
        "establish control: are you sure there is a netserver listening on 10.0.0.2 at port 12865?\n",
        "[Connecting] connecting to 127.0.0.1\nError: read udp4: read: connection refused\n",
    ] {
        let last = text.trim_end().lines().last().unwrap();
        assert!(why(text).ends_with(&format!(": {last}")), "{}", why(text));
    }
    assert!(explain_refusal("hello\n").starts_with("unknown format"));
}

#[test]
fn text_among_lines_of_csv_is_named() {
    let names = "timestamp,source_address,source_port,destination_address\n";
    let line = "-".repeat(60);
    let heading = format!(
        "{line}\nClient connecting to 10.0.0.2, TCP port 5001\nTCP window size: 85.0 KByte (default)\n"
    );
    let failed = "listener bind failed: Address already in use\n";
    let says = "line 1: iperf says: listener bind failed: Address already in use";
    for (text, named) in [
        (format!("{names}{CSV}"), &["line 1: it is text, and not CSV"][..]),
        (format!("{CSV}{heading}"), &[]),
        (format!("{failed}{CSV}"), &[says]),
    ] {
        is_near(&one(text.as_bytes()), Metric::Throughput, 100.0);
        assert_eq!(file(text.as_bytes()).left_out, named);
    }
    let damaged = format!("{CSV}129051018,10.0.0.1,40000,10.0.0.2\n");
    assert!(explain_refusal(&damaged).contains("line 2: "), "{}", explain_refusal(&damaged));
}

#[test]
fn names_before_lines_of_any_tool_are_taken_off() {
    let old = sample_text(sample!("netperf-2.7.1-tcp4.txt")).replace("MIGRATED ", "");
    let keys = sample_text(sample!("netperf-2.7.1-keys4.txt"));
    let keys = &keys[keys.find('\n').unwrap() + 1..];
    // A space of more than one byte.
    assert!(explain_refusal("\u{3000}\u{a0}x\n").starts_with("unknown format"));
    for text in [CSV, &old, keys] {
        assert_eq!(one(add_journal(text).as_bytes()).values, one(text.as_bytes()).values, "{text}");
    }
}

#[test]
fn lines_of_two_programs_in_turn_are_refused() {
    let text = sample_text(sample!("iperf3-3.12-tcp4-P2.txt"));
    let mixed: String =
        text.lines().map(|line| add_name("client4-1", line) + &add_name("client6-1", line)).collect();
    assert!(explain_refusal(&mixed).contains("lines of two programs are mixed, `client4-1` and `client6-1`"));
    assert_eq!(tests((add_name("client4-1", &text) + &add_name("client6-1", &text)).as_bytes()).len(), 2);
}

#[test]
fn servers_output_behind_client_text_counts_once() {
    let client = sample_text(sample!("iperf3-3.12-tcp4-bidir.txt"));
    let server = sample_text(sample!("iperf3-3.12-tcp4.json"));
    let both = client.replace("iperf Done.", &format!("Server JSON output:\n{server}\niperf Done."));
    let test = one(both.as_bytes());
    assert_eq!(list_facts(&test), list_facts(&one(client.as_bytes())));
    assert_eq!((test.family, test.transport, test.direction), (V4, TCP, Direction::Both));
    assert_eq!(test.values, one(client.as_bytes()).values);
}

#[test]
fn rows_behind_a_servers_document_are_the_clients() {
    let client = sample_text(sample!("iperf3-3.12-tcp4-bidir.txt"));
    let server = sample_text(sample!("iperf3-3.12-tcp4.json"));
    let at = client.find("[  7][RX-C]   0.00-1.01").or(client.rfind("[  7][RX-C]")).unwrap();
    let both = format!("{}Server JSON output:\n{server}{}", &client[..at], &client[at..]);
    assert_eq!(one(both.as_bytes()).values, one(client.as_bytes()).values);
}

#[test]
fn several_outputs_of_itgdec_are_read() {
    let text = sample_text(sample!("ditg-2.8.1-udp4.txt"));
    let twice = format!("{text}{text}");
    assert_eq!(tests(twice.as_bytes()).len(), 2 * tests(text.as_bytes()).len());
    let cut = text.find("TOTAL RESULTS").unwrap();
    let said = explain_refusal(&format!("{}\n{text}", &text[..cut - 20]));
    assert!(said.contains("the total results before here are missing"), "{said}");
}

#[test]
fn server_that_was_interrupted_is_not_cut_short() {
    let server = CONNECTION.replace("Client connecting to 10.0.0.2,", "Server listening on");
    let open = "[  4] local 10.0.0.2 port 5001 connected with 10.0.0.1 port 40002\n";
    let waiting = "Waiting for server threads to complete. Interrupt again to force quit.\n";
    let text = format!("{server}{open}{waiting}");
    is_near(&one(text.as_bytes()), Metric::Throughput, 94.0);
    assert!(file(text.as_bytes()).left_out[0].contains("connection 4 has no result of the whole test"));
    assert!(explain_refusal(&format!("{server}{open}")).contains("cut short"));
}

#[test]
fn settings_of_iperf_are_known_in_all_forms() {
    let settings = "Client connecting to 10.0.0.2, TCP port 5001\nTCP congestion control set to cubic\n";
    let text = CONNECTION.replace("Client connecting to 10.0.0.2, TCP port 5001\n", settings);
    is_near(&one(text.as_bytes()), Metric::Throughput, 94.0);
    let bounce = "Client connecting to 10.0.0.2, TCP port 5001\nBursting:  100 Byte writes 10 times every 1.00 second(s)\n\
        Bounce-back test (size= 100 Byte) (server hold req=0 usecs & tcp_quickack)\n";
    let text = CONNECTION.replace("Client connecting to 10.0.0.2, TCP port 5001\n", bounce);
    assert!(why(&text).contains("bounceback"), "{}", why(&text));
}

#[test]
fn other_tools_are_named() {
    for (text, name) in [
        (
            "Pinging example.com [2001:db8::1] with 32 bytes of data:\n\nPing statistics for 2001:db8::1:\n",
            "ping",
        ),
        ("[1795928978.123] 64 bytes from ::1: icmp_seq=1 ttl=64 time=0.05 ms\n", "ping"),
        ("Tracing route to example.com [2001:db8::1]\n", "tracert"),
        ("NTTTCP for Linux 1.4.0\n", "ntttcp"),
        ("seq=0 rtt=283us rd=91.2us sd=191us ipdv=n/a\n", "irtt"),
        ("PAR1\u{15}\u{4}\n", "Parquet"),
    ] {
        assert!(explain_refusal(text).contains(name), "{}", explain_refusal(text));
    }
    let rows = read(sample!("iperf3-3.12-server.txt"), None).unwrap();
    assert!(matches!(rows.content, Content::Tests(_)) && rows.left_out.is_empty(), "{:?}", rows.left_out);
}
