//! A single measurement by hand: its output and its failures.

use crate::support;

use serde_json::Value;
use std::io::Write;
use std::net::TcpListener;
use std::thread;
use support::listening::Listening;
use support::program::{Outcome, Program, code, require_root, require_tool};
use support::relay::Relay;

const LOOPBACKS: [(&str, &str); 2] = [("ipv4", "127.0.0.1"), ("ipv6", "::1")];

/// The whole standard output, which must be one run.
fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

fn measured(run: &Value, metric: &str) -> f64 {
    run["values"][metric]["measured"].as_f64().unwrap_or_else(|| panic!("{metric}: {}", run["values"]))
}

#[test]
fn every_probe_measures_in_both_families() {
    let there = Listening::start("", &[]);
    for (family, host) in LOOPBACKS {
        for (args, words) in [
            (
                &["tcp", host, "-t", "0.3", "-i", "0.1"][..],
                &["interval", "throughput", "retransmits", "CPU"][..],
            ),
            (
                &["udp", host, "-t", "0.3"],
                &["interval", "throughput", "lost", "jitter", "one-way delay   median"],
            ),
            (&["udp", host, "-t", "0.3", "-b", "1M"], &["one-way delay   median", "pacing error"]),
            (&["echo", host, "-t", "0.3"], &["round trip      min", "p99.9", "lost"]),
            (&["echo", host, "--tcp", "-n", "100"], &["round trip      min", "p99"]),
            (&["echo", host, "--pps", "500", "-n", "50"], &["round trip      min", "pacing error"]),
            (&["connect", host, "-n", "50"], &["50 connections", "connect time", "median"]),
        ] {
            let outcome = there.measure(args).expect(code::DONE);
            let heading = format!("over {family}\n");
            for word in words.iter().chain([&heading.as_str(), &"(here) to"]) {
                assert!(outcome.stdout.contains(word), "`{word}` is not said by {outcome}");
            }
            assert!(!outcome.stdout.contains("INVALID"), "{outcome}");
        }
    }
}

#[test]
fn families_are_measured_in_turns_with_a_verdict() {
    let there = Listening::start("", &[]);
    let both = "127.0.0.1,::1";
    for (args, metrics) in [
        (
            &["udp", both][..],
            &["throughput", "loss", "sender_cpu_per_message", "receiver_cpu_per_message"][..],
        ),
        (&["udp", both, "-b", "20M", "-R"], &["throughput", "one_way_delay", "jitter"]),
        (&["tcp", both, "-P", "2", "-C", "cubic"], &["throughput", "sender_cpu_per_message"]),
        (&["echo", both, "--tcp"], &["rtt"]),
    ] {
        let options = ["--against", "ipv4", "-t", "1.5", "--json"];
        let outcome = there.measure(&[args, &options].concat()).expect(code::DONE);
        let found = json(&outcome);
        let compared: Vec<&Value> = found["comparisons"].as_array().unwrap().iter().collect();
        for metric in metrics {
            let of = compared.iter().find(|one| one["metric"] == *metric);
            let of = of.unwrap_or_else(|| panic!("{metric} is not compared: {outcome}"));
            let levels = [&of["baseline"]["family"], &of["candidate"]["family"]];
            assert_eq!(levels, ["ipv4", "ipv6"], "{outcome}");
            assert!(of["effect"]["pairs"].as_u64().unwrap() >= 2, "{metric}: {outcome}");
        }
        assert_eq!(found["invalid_runs"].as_array().map(Vec::len), Some(0), "{outcome}");
    }
    // As text the answer stands first, and the record is kept where it is asked for.
    let kept = ["udp", both, "--against", "ipv6", "-t", "1", "--out", "kept.stacklab"];
    let outcome = there.measure(&kept).expect(code::DONE);
    assert!(outcome.stdout.to_lowercase().contains("over udp"), "{outcome}");
    there.program.run(&["report", "kept.stacklab"]).expect(code::DONE);
    let rows = there.program.run(&["export", "kept.stacklab", "--slices"]).expect(code::DONE).stdout;
    assert!(rows.lines().count() > 100 && rows.starts_with("block,position,"), "{rows}");
    there.measure(&kept).expect(code::RECORD).says(&["kept.stacklab"]);
}

#[test]
fn what_does_not_fit_a_family_comparison_is_refused() {
    let there = Listening::start("", &[]);
    for (args, word) in [
        (&["tcp", "127.0.0.1,::1", "-n", "10"][..], "-n"),
        (&["tcp", "127.0.0.1,::1", "--bidir"], "--bidir"),
        (&["echo", "127.0.0.1,::1", "--pps", "10"], "--pps"),
        (&["udp", "127.0.0.1,::1", "-4"], "--ipv4"),
    ] {
        let asked = [args, &["--against", "ipv4"]].concat();
        there.measure(&asked).expect(code::REQUEST).says(&[word, "--against"]);
    }
    let missing = there.measure(&["udp", "127.0.0.1", "--against", "ipv4"]).expect(code::HOST);
    missing.says(&["127.0.0.1 has no ipv6 address", "192.0.2.7,2001:db8::7"]);
    there.serves();
}

#[test]
fn connect_times_of_both_families_are_compared() {
    let there = Listening::start("", &[]);
    let found =
        there.measure(&["connect", "127.0.0.1,::1", "--against", "ipv4", "-t", "3s"]).expect(code::DONE);
    assert!(found.stdout.contains("IPv6 vs IPv4") && found.stdout.contains("connect time"), "{found}");
    there.serves();
}

#[test]
fn both_directions_at_once_are_one_run() {
    let there = Listening::start("", &[]);
    for (_, host) in LOOPBACKS {
        let args = ["tcp", host, "-t", "500ms", "-l", "64K", "--bidir"];
        assert!(there.measure(&args).expect(code::DONE).stdout.contains("and back"));
        let run = json(&there.measure(&[&args[..], &["--json"]].concat()).expect(code::DONE));
        assert_eq!(run["ends"].as_array().map(Vec::len), Some(4));
        assert!(measured(&run, "throughput") > 0.0 && measured(&run, "throughput_reverse") > 0.0);
        assert_eq!(run["ends"][0]["endpoint"]["local"], run["ends"][1]["endpoint"]["peer"]);
        assert_ne!(run["ends"][2]["endpoint"]["local"], run["ends"][0]["endpoint"]["local"]);
        assert_eq!(run["ends"][1]["cpu"]["scope"], "shared");
    }
    let polled = json(&there.measure(&["echo", "127.0.0.1", "-n", "10", "--poll", "50", "--json"]));
    assert_eq!(polled["spec"]["poll_ns"], 50_000);
}

#[test]
fn json_is_one_run_with_figures_that_agree() {
    let there = Listening::start("", &[]);
    for (family, host) in LOOPBACKS {
        let outcome = there.measure(&["tcp", host, "-n", "300", "-l", "64K", "--json"]).expect(code::DONE);
        let run = json(&outcome);
        assert_eq!((&run["format"], &run["status"]), (&Value::from(1), &Value::from("valid")));
        assert_eq!(run["spec"]["family"], family);
        let [sent, received] = [&run["ends"][0]["sent"], &run["ends"][1]["received"]];
        assert_eq!(sent["measured"], 300);
        assert_eq!(
            (&received["measured"], &received["bytes"]),
            (&Value::from(300), &Value::from(300 * 65_536))
        );
        let window = received["last_ns"].as_f64().unwrap() - received["first_ns"].as_f64().unwrap();
        let after_first = 300.0 * 65_536.0 - received["bytes_at_first"].as_f64().unwrap();
        let expected = after_first * 8e3 / window;
        let throughput = measured(&run, "throughput");
        assert!((throughput / expected - 1.0).abs() < 1e-9, "{throughput} and {expected}");
        assert_eq!(run["hosts"][0]["boot_id"], run["hosts"][1]["boot_id"], "one machine");
        // Messages of a flood are coalesced, unless their delay is requested.
        assert!(run["ends"][1]["delays"].is_null(), "{run}");
        let asked =
            json(&there.measure(&["tcp", host, "-n", "300", "--delays", "--json"]).expect(code::DONE));
        assert!(measured(&asked, "one_way_delay") > 0.0);

        let echo =
            json(&there.measure(&["echo", host, "-n", "300", "--at-interface", "--json"]).expect(code::DONE));
        let program = measured(&echo, "rtt");
        let interface = measured(&echo, "rtt_interface");
        assert!(0.0 < interface && interface <= program, "{interface} and {program} ms");

        let args = ["tcp", host, "-n", "300", "-P", "3", "--json"];
        let run = json(&there.measure(&args).expect(code::DONE));
        let flows = run["ends"][1]["flow_bytes"].as_array().unwrap();
        let sum: u64 = flows.iter().map(|bytes| bytes.as_u64().unwrap()).sum();
        assert_eq!((flows.len(), sum), (3, 300 << 17), "{run}");

        let run =
            json(&there.measure(&["udp", host, "--pps", "2000", "-n", "400", "--json"]).expect(code::DONE));
        let sent = &run["ends"][0]["sent"]["measured"];
        let received = &run["ends"][1]["received"]["measured"];
        assert_eq!(sent, 400);
        let lost = 400.0 - received.as_f64().unwrap();
        assert!((measured(&run, "loss") - lost / 400.0).abs() < 1e-12, "{run}");
        // 399 gaps of half a millisecond, on a machine with any load: a schedule never runs ahead.
        let span = run["ends"][0]["sent"]["last_ns"].as_u64().unwrap()
            - run["ends"][0]["sent"]["first_ns"].as_u64().unwrap();
        assert!(span >= 399 * 490_000, "{span}");
        assert!(measured(&run, "one_way_delay") > 0.0);
    }
}

#[test]
fn reverse_has_the_other_host_send() {
    for (reverse, asked, not_asked, words) in [
        (&[][..], "listen", "send", "(here) to 127.0.0.1"),
        (&["-R"], "send", "listen", "(there) to 127.0.0.1"),
    ] {
        let program = Program::new();
        for probe in ["tcp", "udp", "echo"] {
            let relay = Relay::start(&program, |answer| answer);
            let args = [&["measure", probe, "127.0.0.1", "-t", "0.2", "-p", &relay.port], reverse].concat();
            let outcome = program.run(&args).expect(code::DONE);
            assert!(outcome.stdout.contains(words), "{outcome}");
            assert!(relay.was_asked(asked) && !relay.was_asked(not_asked), "{probe} {reverse:?}");
        }
    }
}

/// Simulates another machine, by another boot ID of the kernel.
fn of_another_boot(answer: String) -> String {
    match answer.find("\"boot_id\":\"") {
        Some(at) => format!("{}x{}", &answer[..at + 11], &answer[at + 12..]),
        None => answer,
    }
}

/// Simulates another machine whose reports of the messages that it answered are wrong: without them its clock cannot be
/// compared.
fn of_a_wrong_counter(answer: String) -> String {
    const SENT: &str = "\"sent\":{\"warmup\":0,\"measured\":";
    let answer = of_another_boot(answer);
    let Some(role) = answer.find("\"role\":\"receiver\"") else { return answer };
    let Some(sent) = answer[role..].find(SENT) else { return answer };
    let (before, count) = answer.split_at(role + sent + SENT.len());
    // The receiver of a stream sends nothing.
    if count.starts_with('0') { answer } else { format!("{before}9{count}") }
}

fn measure_to_another_machine(change: fn(String) -> String, args: &[&str]) -> Outcome {
    let program = Program::new();
    let relay = Relay::start(&program, change);
    let args = [&["measure"], args, &["127.0.0.1", "-t", "0.2", "-p", &relay.port]].concat();
    program.run(&args).expect(code::DONE)
}

#[test]
fn uncomparable_clocks_leave_one_way_delay_missing() {
    for args in [&["udp", "--json"][..], &["udp", "-R", "--json"]] {
        let run = json(&measure_to_another_machine(of_a_wrong_counter, args));
        assert_ne!(run["hosts"][0]["boot_id"], run["hosts"][1]["boot_id"]);
        for metric in ["one_way_delay", "one_way_delay_mean", "jitter", "jitter_rfc3550", "pdv"] {
            let reason =
                run["values"][metric]["missing"].as_str().unwrap_or_else(|| panic!("{metric}: {run}"));
            assert!(reason.starts_with("clock: "), "{reason}");
        }
        assert!(run["ends"][1]["delays"].is_null() && measured(&run, "throughput") > 0.0);
        assert_eq!(run["ends"][1]["cpu"]["scope"], "host");
    }
    let echo = json(&measure_to_another_machine(of_another_boot, &["echo", "--json"]));
    assert!(measured(&echo, "rtt") > 0.0);
    let text = measure_to_another_machine(of_a_wrong_counter, &["udp"]).stdout;
    assert!(text.contains("one-way delay   missing: clock: "), "{text}");
}

/// The measured offset of the receiver's clock, and its maximum error, nanoseconds.
fn compared(run: &Value, side: usize) -> (i64, i64) {
    let compared = &run["ends"][side]["delay_points"]["compared"];
    let [offset, bound] = ["offset_ns", "bound_ns"]
        .map(|name| compared[name].as_i64().unwrap_or_else(|| panic!("no {name}: {run}")));
    (offset, bound)
}

#[test]
fn two_machines_are_compared_whatever_their_clocks() {
    // Both are really one clock.
    for args in [&["udp", "--json"][..], &["tcp", "-R", "--delays", "--json"]] {
        let run = json(&measure_to_another_machine(of_another_boot, args));
        let (offset, bound) = compared(&run, 1);
        assert!(offset.abs() <= bound, "{offset} ns, wrong by {bound} at most");
        assert!(bound < 50_000_000, "{bound} ns");
    }
}

#[test]
fn clock_ahead_by_a_quarter_of_an_hour_is_found() {
    require_root();
    require_tool("unshare", "util-linux");
    const AHEAD: i64 = 1_000_000_000_000;
    let there = Listening::with_a_clock_ahead(1000);
    let mut beyond = 0;
    for (_, host) in LOOPBACKS {
        for (args, ahead) in [
            (&["udp", "--pps", "500"][..], AHEAD),
            (&["tcp", "--pps", "500"], AHEAD),
            (&["tcp", "-R", "--delays"], -AHEAD),
            (&["tcp", "--bidir", "--delays"], AHEAD),
        ] {
            let args = [args, &[host, "-t", "0.3", "--json"]].concat();
            let run = json(&there.measure(&args).expect(code::DONE));
            assert_eq!(run["hosts"][0]["boot_id"], run["hosts"][1]["boot_id"]);
            let (offset, bound) = compared(&run, 1);
            assert!((offset - ahead).abs() <= bound, "{args:?}: {offset} ns, wrong by {bound} at most");
            let both = args.contains(&"--bidir");
            let count = run["ends"].as_array().map_or(0, Vec::len);
            assert_eq!(count, if both { 4 } else { 2 }, "{args:?}: {run}");
            if both {
                let (offset, bound) = compared(&run, 3);
                assert!(
                    (offset + ahead).abs() <= bound,
                    "{args:?}: {offset} ns back, wrong by {bound} at most"
                );
            }
            match run["values"]["one_way_delay"]["measured"].as_f64() {
                Some(ms) => {
                    assert!(ms > bound as f64 / 1e6 && ms < 1000.0, "{args:?}: {ms} ms");
                    beyond += 1;
                }
                None => {
                    let reason = run["values"]["one_way_delay"]["missing"].as_str().unwrap_or_default();
                    assert!(reason.starts_with("clock: "), "{args:?}: {run}");
                }
            }
        }
    }
    // A busy machine disturbs a flood more than the echoes.
    assert!(beyond > 0, "no delay was larger than the clocks' bound");
}

#[test]
fn measurement_that_contradicts_its_plan_has_own_code() {
    let there = Listening::start("", &[]);
    for (_, host) in LOOPBACKS {
        // No segment holds this many bytes.
        let args = ["tcp", host, "--size-of", "payload", "-l", "128K", "-n", "200"];
        let outcome = there.measure(&args).expect(code::INVALID).says(&["not valid"]);
        assert!(
            outcome.stdout.contains("INVALID") && outcome.stdout.contains("planned is 131072"),
            "{outcome}"
        );
        let outcome = there.measure(&[&args[..], &["--json"]].concat()).expect(code::INVALID);
        assert!(json(&outcome)["status"]["invalid"][0].as_str().is_some(), "{outcome}");
    }
    // A message shorter than its header is refused before any agent is contacted.
    there.measure(&["tcp", "127.0.0.1", "-n", "1", "-l", "16"]).expect(code::REQUEST).says(&["-l 32"]);
}

#[test]
fn where_no_agent_is_it_says_how_to_start_one() {
    let program = Program::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    for (_, host) in LOOPBACKS {
        let start = format!("start `stacklab agent --listen :{free}` on {host}");
        let outcome = program.run(&["measure", "tcp", host, "-p", &free]).expect(code::HOST);
        let outcome = outcome.says(&[host, &free, &start]);
        assert_eq!(outcome.stdout, "");
    }
    program
        .run(&["measure", "udp", "nowhere.invalid"])
        .expect(code::HOST)
        .says(&["`nowhere.invalid`", "check its name"]);
    for host in ["127.0.0.1:5999", "[::1]:5999", "somewhere.invalid:5999"] {
        program.run(&["measure", "udp", host]).expect(code::REQUEST).says(&[host, "--port"]);
    }
    program.run(&["measure", "udp", "127.0.0.1", "-6"]).expect(code::HOST).says(&["no ipv6 address"]);
    let link_local = program.run(&["measure", "udp", "fe80::1"]);
    link_local.expect(code::REQUEST).says(&["link-local"]);
    let elsewhere = program.run(&["measure", "udp", "127.0.0.1", "--from", "192.0.2.9", "-p", &free]);
    elsewhere.expect(code::REQUEST).says(&["--from 192.0.2.9", "an address of this host"]);
}

#[test]
fn what_listens_but_is_no_agent_is_told_from_one() {
    let program = Program::new();
    for answer in ["SSH-2.0-OpenSSH_9.9\r\n", "", "{\"id\":1,\"body\":{\"facts\":0}}\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let serving = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(answer.as_bytes());
        });
        let outcome = program.run(&["measure", "tcp", "127.0.0.1", "-p", &port]);
        outcome.expect(code::HOST).says(&["is not a stacklab agent", &port]);
        serving.join().unwrap();
    }
}
