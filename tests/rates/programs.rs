//! Programs of a study's own: a server that is slower is found, and those that fail say so. The tests need root.

use crate::support;

use serde_json::Value;
use stacklab_model::{Factor, Family, Metric, Role, RunRecord};
use std::collections::BTreeMap;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::leftovers::Scene;
use support::program::{Outcome, Program, Running, code, count, invalid, require_root, require_tool, signal};
use support::records::{figure, runs, side};
use support::studies::TestStudy;

const SERVER: &str = include_str!("../support/answers/server.pl");
const CLIENT: &str = include_str!("../support/answers/client.pl");
const STUDY: &str = include_str!("../support/answers/study.toml");

fn with_files() -> Program {
    require_root();
    require_tool("perl", "perl");
    let program = Program::new();
    program.write("server.pl", SERVER);
    program.write("client.pl", CLIENT);
    program.write("study.toml", STUDY);
    program
}

#[test]
fn a_server_that_takes_longer_is_found() {
    let program = with_files();
    let outcome = program.run(&["run", "study.toml", "--out", "x.stacklab"]).expect(code::DONE);
    let record = program.work().join("x.stacklab");
    let all = runs(&record);
    assert_eq!(all.len(), 3 * 2 * 16);
    for run in &all {
        check_run(run);
    }
    let report = program.run(&["report", "x.stacklab", "--format", "json"]).expect(code::DONE).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    let compared = report["comparisons"].as_array().unwrap().iter();
    let mut found = 0;
    for one in compared.filter(|one| one["factor"] == "program") {
        let ratio = one["effect"]["estimate"].as_f64().unwrap_or_else(|| panic!("{one}"));
        if one["candidate"]["settings"]["program"] == "slower" {
            assert!(one["verdict"].to_string().contains("plain") && ratio > 1.1, "{one}");
        } else {
            assert!((0.8..1.25).contains(&ratio), "{one}");
        }
        found += 1;
    }
    assert_eq!(found, 4, "{outcome}");
    // What a program has not is not shown.
    let mut shown = vec![outcome.stdout, program.run(&["plan", "study.toml"]).expect(code::DONE).stdout];
    for format in ["csv", "markdown", "latex"] {
        shown.push(program.run(&["report", "x.stacklab", "--format", format]).expect(code::DONE).stdout);
    }
    for text in shown {
        for word in ["TCP", " 0 B", "payload", "size in bytes"] {
            assert!(!text.contains(word), "`{word}` in {text}");
        }
        assert!(text.contains("slower"), "{text}");
    }
}

fn check_run(run: &RunRecord) {
    let delay_ms = if run.trial.cell.level(Factor::Program) == "slower" { 400.0 * 0.1 } else { 0.0 };
    let duration = figure(run, Metric::Duration);
    let [of_client, of_server] = [Metric::CpuClient, Metric::CpuServer].map(|metric| figure(run, metric));
    assert!(duration > delay_ms + 5.0, "{duration} ms");
    // Each answer takes its CPU time, and little more.
    assert!((delay_ms..delay_ms + 200.0).contains(&of_server), "{of_server} ms, {delay_ms} of delay");
    assert!(of_client > 1.0 && of_client < duration + 20.0, "{of_client} of {duration} ms");
    let client = side(run, Role::Sender).tool.clone().expect("what it said is kept");
    assert_eq!(client.output, "400 answers\n");
    let host = if run.trial.cell.family == Family::Ipv4 { "198.18." } else { "2001:2:" };
    assert!(client.command.starts_with(&format!("perl client.pl {host}")), "{}", client.command);
}

/// Runs the built-in study `quic` without some of its programs, with endpoints that the workspace builds beside this
/// program.
fn run_quic(without: &[&str], blocks: &str) -> (Program, Outcome) {
    require_root();
    let program = Program::new();
    let folder = Path::new(env!("CARGO_BIN_EXE_stacklab")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let limits = [format!("blocks.min={blocks}"), format!("blocks.max={blocks}")];
    let mut words = vec!["run", "quic", "--out", "x.stacklab", "--set", &limits[0], "--set", &limits[1]];
    without.iter().for_each(|name| words.extend(["--without", name]));
    let mut command = program.command(&words);
    command.env("PATH", path);
    let outcome = Outcome::of(command).expect(code::DONE);
    for run in runs(&program.work().join("x.stacklab")) {
        let [client, server] = [Role::Sender, Role::Receiver].map(|role| side(&run, role));
        let of_udp = server.counters.get("udp.OutDatagrams") + server.counters.get("udp6.OutDatagrams");
        let is_quic = ["quic", "http3"].contains(&run.trial.cell.level(Factor::Program).as_str());
        // 100 MB, and some per cent of headers. On a busy machine QUIC sends more again.
        let bytes = client.counters.get("interface.rx_bytes") as f64;
        let most = if is_quic { 2.0e8 } else { 1.2e8 };
        assert!((1.0e8..most).contains(&bytes), "{}: {bytes} bytes", run.trial);
        assert_eq!(of_udp > 1000, is_quic, "{}: {of_udp} datagrams", run.trial);
    }
    (program, outcome)
}

#[test]
fn quic_costs_more_than_tls_over_tcp() {
    let (_, outcome) = run_quic(&["http1", "http2", "http3", "nginx1", "nginx2"], "9");
    assert!(outcome.stdout.contains("quic has "), "{outcome}");
    assert!(outcome.stdout.contains("programs: tls (stacklab-quic "), "{outcome}");
}

#[test]
fn three_versions_of_http_carry_one_file() {
    require_tool("caddy", "caddy");
    let (program, outcome) = run_quic(&["tls", "quic", "nginx1", "nginx2"], "2");
    assert!(outcome.stdout.contains("http3 (caddy "), "{outcome}");
    let all = runs(&program.work().join("x.stacklab"));
    assert_eq!((all.len(), count(&program.work().join("x.stacklab"), "status = 'valid'")), (12, 12));
    for run in &all {
        let client = side(run, Role::Sender).tool.clone().expect("what it printed is kept");
        assert_eq!(client.output, "1 answers, 100000000 bytes\n", "{}", run.trial);
    }
}

/// Runs a study of one program with these commands, and a limit if there is one; gives the outcome, the record's
/// reasons, and how many runs are valid.
fn run_one(server: &str, client: &str, limit: Option<&str>) -> (Outcome, String, u64) {
    let program = with_files();
    let mut one = BTreeMap::from([("name", "one"), ("server", server), ("client", client)]);
    if let Some(limit) = limit {
        one.insert("limit", limit);
    }
    let study = TestStudy::new("One").set("program", vec![one]).family("ipv4");
    program.write("one.toml", study.probe("program", &["duration"]).blocks(2).text());
    let before = Scene::now();
    let outcome = program.run(&["run", "one.toml", "--out", "one.stacklab"]);
    let files = ["client.pl", "one.stacklab", "one.toml", "server.pl", "study.toml"];
    before.assert_restored(&program, &files, Duration::from_secs(5));
    let record = program.work().join("one.stacklab");
    (outcome, invalid(&record).join("\n"), count(&record, "status = 'valid'"))
}

const GOOD_SERVER: &str = "perl server.pl {host} {port} 0";
const GOOD_CLIENT: &str = "perl client.pl {host} {port} 10";

#[test]
fn programs_that_fail_say_why_and_leave_nothing() {
    for (server, client, limit, words) in [
        (
            "echo no such thing; exit 3",
            GOOD_CLIENT,
            None,
            "no such thing; it had not listened on tcp port 7000",
        ),
        ("sleep 100", GOOD_CLIENT, None, "did not listen on tcp port 7000 within 10 s"),
        (GOOD_SERVER, "echo I give up; exit 2", None, "it printed: I give up"),
        (GOOD_SERVER, "sleep 100 & sleep 100", Some("1s"), "did not end within 1 s"),
        (GOOD_SERVER, "true", None, "carried nothing both ways"),
        (
            "perl server.pl {host} {port} 0 & sleep 0.3; exit 4",
            "sleep 0.6",
            None,
            "the server on receiver ended with an error (exit status: 4)",
        ),
    ] {
        let (outcome, reasons, valid) = run_one(server, client, limit);
        assert_eq!(valid, 0, "{server}, {client}: {outcome}");
        assert!(reasons.contains(words), "{server}, {client}: {reasons}");
    }
}

#[test]
fn what_programs_leave_behind_is_ended() {
    let stubborn = "(trap '' TERM; exec perl server.pl {host} {port} 0) & wait";
    for (server, client) in [
        // In the background, as a daemon goes: the next run needs its port.
        ("perl server.pl {host} {port} 0 & sleep 0.2", GOOD_CLIENT),
        ("setsid perl server.pl {host} {port} 0 & true", GOOD_CLIENT),
        (stubborn, GOOD_CLIENT),
        // Where no other process is.
        ("setsid unshare -n sleep 1000 & exec perl server.pl {host} {port} 0", GOOD_CLIENT),
        (GOOD_SERVER, "sleep 1000 & perl client.pl {host} {port} 10"),
        (GOOD_SERVER, "timeout 20 perl client.pl {host} {port} 10"),
    ] {
        let (outcome, reasons, valid) = run_one(server, client, None);
        assert_eq!((valid, reasons.as_str()), (2, ""), "{server}, {client}: {outcome}");
    }
}

/// Starts the study, and waits until its first client has begun.
fn start_client(program: &Program) -> Running {
    let mut running = program.start(&["run", "study.toml", "--out", "x.stacklab"]);
    let began = Instant::now();
    while !program.work().join("begun").exists() {
        assert!(began.elapsed() < Duration::from_secs(20) && running.is_running());
        sleep(Duration::from_millis(20));
    }
    running
}

#[test]
fn an_interrupted_run_of_a_program_leaves_nothing() {
    let program = with_files();
    let study = STUDY.replace("perl client.pl {host} {port} 400", "touch begun; timeout 100 sleep 100");
    program.write("study.toml", study);
    let before = Scene::now();
    let running = start_client(&program);
    signal(running.pid(), "INT");
    let advice = "Resume with: stacklab run study.toml --resume --out x.stacklab";
    running.end(Duration::from_secs(10)).expect(code::INTERRUPTED).says(&[advice]);
    let files = ["begun", "client.pl", "server.pl", "study.toml", "x.stacklab"];
    before.assert_restored(&program, &files, Duration::from_secs(5));
}

#[test]
fn a_killed_run_leaves_no_server_in_the_background() {
    let program = with_files();
    // It goes into the background twice, as daemons do, ignores what can be ignored, and makes a network namespace.
    let server = "trap '' TERM INT HUP; \
        (setsid sh -c 'unshare -n sleep 501 & sleep 0.5; perl server.pl {host} {port} 0 & sleep 500' &) & wait";
    let client = "touch begun; timeout 100 sleep 100";
    let one = BTreeMap::from([("name", "one"), ("server", server), ("client", client)]);
    let study = TestStudy::new("One").set("program", vec![one]).family("ipv4");
    program.write("study.toml", study.probe("program", &["duration"]).blocks(2).text());
    let before = Scene::now();
    let running = start_client(&program);
    signal(running.pid(), "KILL");
    let files = ["begun", "client.pl", "server.pl", "study.toml", "x.stacklab"];
    before.assert_restored_but(&program, &files, Duration::from_secs(3), "x.stacklab-");
}

fn run_into(program: &Program, words: &[&str]) -> Outcome {
    program.run(&[&["run"], words, &["--out", "x.stacklab"]].concat())
}

#[test]
fn a_record_with_commands_is_not_resumed_by_itself() {
    let program = with_files();
    let fewer = ["--set", "blocks.min=2", "--set", "blocks.max=2"];
    // Settings that change the commands are the record's own, too.
    let other =
        "program=[{name=\"plain\",server=\"touch here; perl server.pl {host} {port} 0\",client=\"true\"}]";
    let study = &STUDY[..STUDY.find("[[comparison]]").unwrap()];
    program.write("study.toml", study);
    let all = [&["study.toml", "--set", other][..], &fewer].concat();
    run_into(&program, &all).expect(code::NOTHING_VALID);
    std::fs::remove_file(program.work().join("here")).unwrap();
    for words in [&["--resume"][..], &["study.toml", "--resume"]] {
        run_into(&program, words)
            .expect(code::REQUEST)
            .says(&["would run the commands that it holds", "run STUDY --resume"]);
    }
    assert!(!program.work().join("here").exists());
    run_into(&program, &[&all[..], &["--resume"]].concat()).expect(code::NOTHING_VALID);
}
