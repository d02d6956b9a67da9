//! The program as a client of Debian's iperf3 server, and of servers that lie. The tests need root.

use crate::support;

use serde_json::{Value, json};
use stacklab_model::Family;
use stacklab_protocols::iperf3::{MAX_PARAMETER_BYTES, Parameters, State, frame_text, text_bytes};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use support::iperf3::{Hosts, header_bytes};
use support::others::allowed_on_any_machine;
use support::program::{Outcome, Program, code};

fn json_of(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

fn measured(run: &Value, metric: &str) -> f64 {
    run["values"][metric]["measured"].as_f64().unwrap_or_else(|| panic!("{metric}: {}", run["values"]))
}

/// Headers of a control connection and its texts, and of what no payload is: the interface counts them too.
const MAX_OTHER_BYTES: f64 = 20_000.0;

#[test]
fn measures_to_an_unmodified_server() {
    let hosts = Hosts::new();
    let _server = hosts.their_server();
    for family in Family::ALL.iter().copied() {
        for (what, options) in [
            ("tcp", "-b 40M -t 1 -l 1200"),
            ("tcp", "-b 40M -t 1 -l 1200 -R"),
            ("tcp", "-b 40M -t 1 -P 3 -C reno -M 1000 -N -w 256K -S ef"),
            ("tcp", "-n 100"),
            ("tcp", "-b 40M -t 1 -O 1"),
            ("udp", "-b 40M -t 1 -O 1 -l 1200"),
            ("tcp", "-b 40M -t 1 --bidir"),
            ("udp", "-b 40M -t 1 -l 1200"),
            ("udp", "-b 40M -t 1 -l 1200 -R -P 2"),
            ("udp", "-b 20M -t 1 --bidir"),
            ("udp", "-b 40M -n 1000"),
            ("udp", "-b 40M -n 1000 -R"),
        ] {
            let receiver = if options.contains("-R") { 0 } else { 1 };
            let before = hosts.arrived(receiver);
            let dropped_before = hosts.dropped(receiver);
            let began = Instant::now();
            let outcome = hosts.measure(what, family, &format!("{options} --json")).expect(code::DONE);
            let seconds = began.elapsed().as_secs_f64();
            let arrived = before.payload_until(hosts.arrived(receiver), header_bytes(family, what == "udp"));
            let dropped = hosts.dropped(receiver) - dropped_before;
            let run = json_of(&outcome);
            assert_eq!(run["status"], "valid", "{outcome}");
            assert_eq!(run["warnings"][0]["code"], "peer_word", "{outcome}");
            let ends = run["ends"].as_array().unwrap();
            for side in ends {
                assert_eq!(side["endpoint"]["family"], family.to_string(), "{outcome}");
            }
            let case = format!("{family} {what} {options}, {seconds:.2} s: {outcome}");
            let check = Check { ends, arrived: arrived as f64, dropped: dropped as f64, case: &case };
            check.counts_what_arrived(options);
            check.takes_the_servers_word(options);
            if options.contains("-t 1") {
                let asked = if options.contains("-b 20M") { 20e6 } else { 40e6 };
                check.keeps_the_rate(asked, seconds);
                let throughput = measured(&run, "throughput") * 1e6;
                check.divides_by_the_time_that_passed(throughput, seconds);
                if what == "udp" && options.contains("-l 1200") {
                    let payload = measured(&run, "message_rate") * 8.0 * 1200.0;
                    assert!((payload / throughput - 1.0).abs() < 1e-6, "{payload} bit/s in messages: {case}");
                }
            }
        }
    }
}

/// One test with a server, with bytes of payload that the receiving host's interface counted, and datagrams that its
/// kernel dropped. On a machine that does something else less is sent, later, and read later than sent.
struct Check<'a> {
    ends: &'a [Value],
    arrived: f64,
    dropped: f64,
    case: &'a str,
}

impl Check<'_> {
    fn bytes(&self, end: usize, counts: &str) -> f64 {
        self.ends[end][counts]["bytes"].as_f64().unwrap_or_else(|| panic!("{counts} of {}", self.case))
    }

    /// Bytes that the sender sent, with those of an omitted part, and bytes of one message.
    fn sent(&self) -> (f64, f64) {
        let sent = &self.ends[0]["sent"];
        let size = self.bytes(0, "sent") / sent["measured"].as_f64().unwrap();
        (self.bytes(0, "sent") + sent["warmup"].as_f64().unwrap() * size, size)
    }

    /// This host's own counts are those of the interface: all that was sent arrives. What it receives may end earlier
    /// than what the server sends.
    fn counts_what_arrived(&self, options: &str) {
        let mut own = self.sent().0;
        let mut most = 1.0 + allowed_on_any_machine(0.1);
        if options.contains("-R") {
            own = self.bytes(1, "received");
            most = 1.0 + allowed_on_any_machine(0.5);
        }
        // Segments may be sent twice, and Ethernet's interface does not say which.
        let interface = self.arrived + MAX_OTHER_BYTES;
        assert!(own <= interface, "{own} of {interface} bytes: {}", self.case);
        assert!(self.arrived <= most * own + MAX_OTHER_BYTES, "{own} of {interface} bytes: {}", self.case);
    }

    /// The server's counts are of the same traffic. Of the end it may not have read all, and where it omits a part,
    /// that ends by its clock.
    fn takes_the_servers_word(&self, options: &str) {
        let (sent, size) = self.sent();
        let mut share = self.bytes(1, "received") / sent;
        let wide = allowed_on_any_machine(0.25);
        // With as much omitted as measured, half of it.
        let mut expected = 0.5 - wide.min(0.49)..0.5 + wide.min(0.49);
        if !options.contains("-O") {
            share += self.dropped * size / sent;
            expected = 1.0 - wide..1.03;
        }
        assert!(expected.contains(&share), "{share} of what was sent: {}", self.case);
    }

    /// No more arrived than the rate allows for the time that the command took, and a good part of it.
    fn keeps_the_rate(&self, asked: f64, seconds: f64) {
        // Each of at most three streams begins with a block.
        let most = asked * seconds + 3.0 * 8.0 * 131_072.0;
        let least = asked * (1.0 - allowed_on_any_machine(0.5));
        let bits = 8.0 * self.bytes(1, "received");
        assert!((least..most).contains(&bits), "{bits} of {least} to {most} bits: {}", self.case);
    }

    /// Throughput is of the bytes that arrived, and of a part of the time that the command took.
    fn divides_by_the_time_that_passed(&self, throughput: f64, seconds: f64) {
        let received = &self.ends[1]["received"];
        let window_ns = received["last_ns"].as_u64().unwrap() - received["first_ns"].as_u64().unwrap();
        let window = window_ns as f64 / 1e9;
        assert!(window <= seconds, "{window} s: {}", self.case);
        let bits = 8.0 * self.bytes(1, "received");
        let ratio = throughput * window / bits;
        assert!((ratio - 1.0).abs() < 1e-6, "{throughput} bit/s, {window} s: {}", self.case);
    }
}

#[test]
fn bytes_are_those_of_the_interface() {
    let hosts = Hosts::new();
    let _server = hosts.their_server();
    for family in Family::ALL.iter().copied() {
        for (what, options, receiver) in [("tcp", "", 1), ("tcp", "-R", 0), ("udp", "", 1), ("udp", "-R", 0)]
        {
            let before = hosts.arrived(receiver);
            let dropped_before = hosts.dropped(receiver);
            let outcome = hosts.measure(what, family, &format!("-b 60M -t 2 -l 1200 --json {options}"));
            let counted = before.payload_until(hosts.arrived(receiver), header_bytes(family, what == "udp"));
            let dropped = 1200 * (hosts.dropped(receiver) - dropped_before);
            let run = json_of(&outcome.expect(code::DONE));
            let reported = run["ends"][1]["received"]["bytes"].as_f64().unwrap();
            assert!(
                (reported / (counted - dropped) as f64 - 1.0).abs() < 0.001,
                "{family} {what} {options}: {reported}, {counted} with {dropped} that no socket had room for"
            );
        }
    }
}

#[test]
fn both_families_alternate_on_one_server_with_verdict() {
    let hosts = Hosts::new();
    let _server = hosts.their_server();
    let both = format!("{},{}", hosts.address(1, Family::Ipv4), hosts.address(1, Family::Ipv6));
    for (what, metric) in [("udp -b 20M", "loss"), ("tcp -b 20M -R", "receiver_cpu_per_message")] {
        let (what, options) = what.split_once(' ').unwrap();
        let line =
            format!("\"$STACKLAB\" measure {what} {both} {options} --peer iperf3 --against ipv4 -t 8 --json");
        let outcome = hosts.run(0, &line).expect(code::DONE);
        let found = json_of(&outcome);
        for metric in ["throughput", metric] {
            let compared = found["comparisons"].as_array().unwrap();
            let of =
                compared.iter().find(|one| one["metric"] == metric).unwrap_or_else(|| panic!("{outcome}"));
            assert_eq!([&of["baseline"]["family"], &of["candidate"]["family"]], ["ipv4", "ipv6"]);
            assert!(of["effect"]["pairs"].as_u64().is_some_and(|pairs| pairs >= 6), "{metric}: {outcome}");
        }
        assert_eq!(found["invalid_runs"].as_array().map(Vec::len), Some(0), "{outcome}");
    }
}

/// A server that takes one test of one TCP stream, and says that it received so many times what it did.
fn liar(times: u64) -> (u16, thread::JoinHandle<Parameters>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = thread::spawn(move || {
        let mut control = accept(&listener);
        tell(&mut control, State::ParamExchange);
        let parameters = Parameters::parse(&read_text(&mut control, MAX_PARAMETER_BYTES)).unwrap();
        tell(&mut control, State::CreateStreams);
        let mut stream = accept(&listener);
        tell(&mut control, State::TestStart);
        tell(&mut control, State::TestRunning);
        let began = Instant::now();
        let counting = thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()).unwrap());
        control.read_exact(&mut [0]).unwrap();
        tell(&mut control, State::ExchangeResults);
        let own: Value = serde_json::from_str(&read_text(&mut control, 1 << 20)).unwrap();
        let bytes = own["streams"][0]["bytes"].as_u64().unwrap() * times;
        let end_time = began.elapsed().as_secs_f64();
        let results = json!({ "streams": [{ "id": 1, "bytes": bytes, "end_time": end_time }] });
        control.write_all(&frame_text(&results.to_string())).unwrap();
        tell(&mut control, State::DisplayResults);
        control.read_exact(&mut [0]).unwrap();
        control.shutdown(Shutdown::Both).unwrap();
        counting.join().unwrap();
        parameters
    });
    (port, serve)
}

/// A connection after its cookie.
fn accept(listener: &TcpListener) -> TcpStream {
    let mut stream = listener.accept().unwrap().0;
    stream.read_exact(&mut [0; 37]).unwrap();
    stream
}

fn tell(control: &mut TcpStream, state: State) {
    control.write_all(&[state.byte()]).unwrap();
}

fn read_text(control: &mut TcpStream, most: usize) -> String {
    let mut prefix = [0; 4];
    control.read_exact(&mut prefix).unwrap();
    let mut bytes = vec![0; text_bytes(prefix, most).unwrap()];
    control.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Measures TCP to a server of this machine.
fn measure_tcp(program: &Program, port: u16, options: &[&str]) -> Outcome {
    let port = port.to_string();
    program.run(&[&["measure", "tcp", "127.0.0.1", "--peer", "iperf3", "-p", &port], options].concat())
}

#[test]
fn lying_server_is_told_apart_from_own_counts() {
    let program = Program::new();
    let (port, server) = liar(1);
    let honest = measure_tcp(&program, port, &["-n", "100"]).expect(code::DONE);
    assert!(
        honest.stdout.contains("reports that it received 13107200 bytes; this host sent 13107200 bytes"),
        "{honest}"
    );
    let asked = server.join().unwrap();
    assert_eq!((asked.block_bytes, asked.blocks, asked.parallel), (131_072, 100, 1));
    let (port, server) = liar(2);
    let lie = measure_tcp(&program, port, &["-n", "100"]).expect(code::INVALID);
    assert!(lie.stdout.contains("26214400 bytes received of stream 1; this host sent 13107200"), "{lie}");
    server.join().unwrap();
}

#[test]
fn a_server_that_is_not_there_or_not_iperf3_is_said() {
    let program = Program::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let speak = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.write_all(b"220 mail").unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let refused = measure_tcp(&program, port, &[]).expect(code::HOST);
    refused.says(&["which is not a state of iperf3", "iperf3 -s"]);
    speak.join().unwrap();
    measure_tcp(&program, port, &[]).expect(code::HOST).says(&["no iperf3 server could be reached"]);
    for (options, word) in
        [(&["--size-of", "payload"][..], "--size-of"), (&["-O", "0.5"], "-O"), (&["-P", "200"], "128")]
    {
        measure_tcp(&program, port, options).expect(code::REQUEST).says(&[word, "an agent"]);
    }
}

#[test]
fn a_server_that_is_killed_ends_the_measurement() {
    let hosts = Hosts::new();
    for options in ["tcp -t 60", "udp -b 10M -t 60 -R"] {
        let mut server = hosts.their_server();
        let (what, options) = options.split_once(' ').unwrap();
        let other = Program::new();
        let to = hosts.address(1, Family::Ipv6);
        let running = other
            .started(hosts.command(0, &format!("\"$STACKLAB\" measure {what} {to} --peer iperf3 {options}")));
        thread::sleep(Duration::from_millis(800));
        assert!(server.kill());
        running.end(Duration::from_secs(15)).expect(code::HOST).says(&["could not"]);
    }
}
