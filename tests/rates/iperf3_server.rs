//! The program as a server for Debian's iperf3: each option, many clients, what the interface counts, and peers that
//! are killed. The tests need root.

use crate::support;

use serde_json::Value;
use stacklab_model::Family;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};
use support::iperf3::{Hosts, header_bytes, threads};
use support::program::{Program, code, signal};

/// Longer than the ten seconds for which the server waits for streams that do not come.
const SOON: Duration = Duration::from_secs(20);

/// Sums a number over the streams of a result: sender's and receiver's of TCP, or both of UDP.
fn sum(json: &Value, path: &[&str]) -> f64 {
    let streams = json["end"]["streams"].as_array().unwrap_or_else(|| panic!("{json}"));
    let mut sum = 0.0;
    for stream in streams {
        let value = path.iter().fold(stream, |value, name| &value[*name]);
        sum += value.as_f64().unwrap_or_else(|| panic!("{path:?} of {json}"));
    }
    sum
}

/// Waits until a condition holds.
#[track_caller]
fn soon(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < SOON, "not within {SOON:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn each_option_of_a_client_is_served_in_both_families() {
    let hosts = Hosts::new();
    let server = hosts.server("");
    for family in Family::ALL.iter().copied() {
        let force = if family == Family::Ipv4 { "-4" } else { "-6" };
        for options in
            ["-n 3M", "-k 30", "-R -n 3M", "-l 1000 -n 1M", "-t 1 -b 20M -P 3", "-t 1 -b 20M --bidir"]
        {
            let json = hosts.client(family, &format!("{force} {options}"));
            let sent = sum(&json, &["sender", "bytes"]);
            let received = sum(&json, &["receiver", "bytes"]);
            // Who receives counts until the test ends; what is under way then is not in the sum.
            let blocks = if options.contains("-R") || options.contains("--bidir") { 4.0 } else { 1.0 };
            let few = blocks * 131_072.0;
            assert!(
                sent >= received && sent - received <= few,
                "{options}: {sent} sent, {received} received"
            );
            assert!(received > 900_000.0, "{options}: {received}");
        }
        for options in [
            "-k 300 -b 20M",
            "-R -t 1 -b 10M",
            "-t 1 -b 10M -P 3 -l 500",
            "-t 1 -b 10M --bidir",
            "-l 9000 -t 1",
        ] {
            let json = hosts.client(family, &format!("{force} -u {options}"));
            let packets = sum(&json, &["udp", "packets"]);
            let lost = sum(&json, &["udp", "lost_packets"]);
            assert!(packets > 10.0 && lost <= packets / 100.0, "{options}: {lost} of {packets} lost");
        }
        let reno =
            hosts.client(family, &format!("{force} -R -t 1 -b 50M -C reno -M 1000 -N -S 0x10 -w 256K -O 1"));
        assert_eq!(reno["end"]["sender_tcp_congestion"], "reno", "{reno}");
        let seconds = sum(&reno, &["receiver", "seconds"]);
        assert!((0.8..1.3).contains(&seconds), "the omitted second is left out: {seconds}");
        let output = hosts.client(family, &format!("{force} -n 1M --get-server-output"));
        let output = output["server_output_text"].as_str().unwrap_or_else(|| panic!("{output}")).to_owned();
        assert!(output.contains("stacklab") && output.contains("received 1048576 bytes"), "{output}");
    }
    soon("no socket is left", || hosts.sockets() == 0);
    signal(server.pid(), "INT");
    let said = server.end(SOON).expect(code::DONE).stderr;
    assert!(!said.contains("the test of"), "{said}");
}

#[test]
fn bytes_are_those_of_the_interface() {
    let hosts = Hosts::new();
    let _server = hosts.server("");
    for family in Family::ALL.iter().copied() {
        for (options, receiver) in [("-b 60M", 1), ("-b 60M -R", 0), ("-u -b 60M", 1), ("-u -b 60M -R", 0)] {
            let is_udp = options.contains("-u");
            let before = hosts.arrived(receiver);
            let dropped_before = hosts.dropped(receiver);
            let json = hosts.client(family, &format!("{options} -t 2 -l 1200"));
            let counted = before.payload_until(hosts.arrived(receiver), header_bytes(family, is_udp));
            let dropped = 1200 * (hosts.dropped(receiver) - dropped_before);
            let reported =
                if is_udp { sum(&json, &["udp", "bytes"]) } else { sum(&json, &["receiver", "bytes"]) };
            let counted = counted as f64;
            // A receiver of TCP stops counting when the time is over; some milliseconds are queued by then. Beside
            // the streams there are the control connection, its parameters and results. iperf3 may count datagrams
            // that no socket had room for.
            let queued = if is_udp { dropped as f64 } else { 0.02 * 60e6 / 8.0 };
            assert!(
                (-0.001 * counted..queued + 0.001 * counted).contains(&(counted - reported)),
                "{family} {options}: {reported} reported, {counted} counted"
            );
        }
    }
}

#[test]
fn serves_sixteen_clients_of_two_addresses_at_once() {
    let hosts = Hosts::new();
    let server = hosts.server("");
    let base = threads(server.pid());
    let kinds = ["-b 2M", "-b 2M -R", "-u -b 2M", "-u -b 2M -R", "-b 2M --bidir -P 2"];
    let running: Vec<_> = (0..16)
        .map(|place| {
            let family = Family::ALL[place / 4 % 2];
            let options = kinds[place % kinds.len()];
            let mut command =
                hosts.command(0, &format!("iperf3 -J -c {} -t 3 {options}", hosts.address(1, family)));
            let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
            (options, child)
        })
        .collect();
    soon("all have their threads", || threads(server.pid()) >= base + 40);
    for (options, child) in running {
        let output = child.wait_with_output().unwrap();
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(output.status.success() && json.get("error").is_none(), "{options}: {json}");
        let bytes = if options.contains("-u") { &["udp", "bytes"] } else { &["receiver", "bytes"] };
        let streams = json["end"]["streams"].as_array().unwrap().len() as f64;
        let each = sum(&json, bytes) / streams;
        assert!(
            (each / 750_000.0 - 1.0).abs() < 0.25,
            "{options}: {each} bytes in each of {streams} streams"
        );
    }
    soon("no thread is left", || threads(server.pid()) == base);
    assert_eq!(hosts.sockets(), 0);
}

#[test]
fn killed_peers_leave_nothing() {
    let hosts = Hosts::new();
    let mut server = hosts.server("");
    let base = threads(server.pid());
    for family in Family::ALL.iter().copied() {
        for options in ["-P 2", "-R", "-u -b 10M", "-u -b 10M -R", "--bidir"] {
            let other = Program::new();
            let command =
                hosts.command(0, &format!("iperf3 -c {} -t 60 {options}", hosts.address(1, family)));
            let mut client = other.started(command);
            soon("traffic is under way", || threads(server.pid()) >= base + 2);
            thread::sleep(Duration::from_millis(200));
            assert!(client.kill());
            let threads_end = format!("{family} {options}: the threads of its test end");
            soon(&threads_end, || threads(server.pid()) == base);
            soon(&format!("{family} {options}: its sockets are gone"), || hosts.sockets() == 0);
        }
    }
    // The client hears of a server that is killed.
    for options in ["-R", "-u -b 10M"] {
        let other = Program::new();
        let to = hosts.address(1, Family::Ipv6);
        let client = other.started(hosts.command(0, &format!("iperf3 -c {to} -t 60 {options}")));
        soon("traffic is under way", || threads(server.pid()) >= base + 2);
        assert!(server.kill());
        client.end(SOON).expect(code::ELSE);
        server = hosts.server("");
    }
}

#[test]
fn limits_refuse_in_the_words_of_iperf3() {
    let hosts = Hosts::new();
    let server = hosts.server("--max-duration 5 --max-rate 100 --clients 1");
    let to = hosts.address(1, Family::Ipv4);
    for (options, words) in [
        ("-t 6", "test duration too long"),
        ("-R -b 60M -P 2 -t 1", "total required bandwidth is larger than server limit"),
        ("-w 32M -t 1", "socket buffer size too large"),
    ] {
        let refused = hosts.run(0, &format!("iperf3 -c {to} {options}")).expect(code::ELSE);
        refused.says(&[words]);
    }
    // A flood of the server's is as fast as it may be.
    let json = hosts.client(Family::Ipv6, "-R -t 2");
    let rate = json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    assert!((80e6..105e6).contains(&rate), "{rate}");
    // A test without an end has the longest time, and the next client waits.
    let other = Program::new();
    let endless = other.started(hosts.command(0, &format!("iperf3 -c {to} -b 1M -n 1G")));
    thread::sleep(Duration::from_secs(1));
    hosts.run(0, &format!("iperf3 -c {to} -t 1")).expect(code::ELSE).says(&["the server is busy"]);
    endless.end(Duration::from_secs(20)).expect(code::ELSE).says(&["the server has terminated"]);
    hosts.client(Family::Ipv4, "-n 1M");
    signal(server.pid(), "INT");
    server.end(SOON).expect(code::DONE).says(&["refused: a test of 6 s", "it took longer than it may"]);
}

#[test]
fn strangers_hold_up_nobody() {
    let program = Program::new();
    let mut server = program.start(&["agent", "--listen", "127.0.0.1:0", "--iperf3"]);
    server.wait_for("an iperf3 server on", SOON);
    let said = server.stderr();
    let port: u16 = said.split("-c HOST -p ").nth(1).unwrap().split('`').next().unwrap().parse().unwrap();
    let base = threads(server.pid());
    let silent: Vec<TcpStream> = (0..5).map(|_| connect(port)).collect();
    let cookie = [b'a'; 37];
    // Parameters of two gigabytes, of no JSON, and streams that never come.
    for (place, text) in
        [&[0x7f, 0xff, 0xff, 0xff][..], b"\0\0\0\x01{", b"\0\0\0\x0c{\"tcp\":true}"].into_iter().enumerate()
    {
        let mut stream = connect(port);
        let mut own = cookie;
        own[0] += place as u8;
        stream.write_all(&own).unwrap();
        let mut state = [0];
        stream.read_exact(&mut state).unwrap();
        assert_eq!(state, [9], "it asks for the parameters");
        stream.write_all(text).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(matches!(rest[..], [] | [254, ..] | [10]), "{rest:?}");
    }
    soon("no thread is left", || threads(server.pid()) == base);
    drop(silent);
    let done = std::process::Command::new("iperf3")
        .args(["-c", "127.0.0.1", "-p", &port.to_string(), "-n", "1M"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    signal(server.pid(), "INT");
    server.end(SOON).expect(code::DONE);
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}
