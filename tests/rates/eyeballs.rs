//! `stacklab eyeballs`: the delays of real clients, which are known because they are set, and clients with faults.

use crate::support;

use serde_json::Value;
use std::time::Duration;
use support::leftovers::Scene;
use support::program::{Program, code, require_root, require_tool};

/// Runs of each scenario. The least of their delays is compared: a busy machine lengthens some.
const RUNS: usize = 4;
/// How far a measured delay may be from the one that is set, ms.
const MARGIN_MS: f64 = 5.0;

/// What `stacklab eyeballs` says of a command, as JSON, with these options.
fn measure(program: &Program, options: &[&str], command: &[&str]) -> Value {
    repeat(RUNS, program, options, command)
}

/// The same with another number of runs.
fn repeat(runs: usize, program: &Program, options: &[&str], command: &[&str]) -> Value {
    let runs = runs.to_string();
    let fixed = ["eyeballs", "--format", "json", "--repeat", &runs, "--seed", "1"];
    let outcome = program.run(&[&fixed, options, &["--"], command].concat()).expect(code::DONE);
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

/// The shortest measured attempt delay, ms.
#[track_caller]
fn least_delay(measured: &Value) -> f64 {
    let delay = &measured["summary"]["attempt_delay"];
    assert_eq!(delay["runs"], RUNS, "{delay}");
    delay["low_ms"].as_f64().unwrap()
}

fn runs<'a>(measured: &'a Value, scenario: &str) -> &'a Vec<Value> {
    let scenarios = measured["scenarios"].as_array().unwrap();
    let found = scenarios.iter().find(|found| found["name"] == scenario);
    found.unwrap_or_else(|| panic!("no {scenario}"))["runs"].as_array().unwrap()
}

fn verdict(measured: &Value, asks: &str) -> String {
    let clauses = measured["summary"]["clauses"].as_array().unwrap();
    let found = clauses.iter().find(|clause| clause["asks"].as_str().unwrap().contains(asks));
    found.unwrap_or_else(|| panic!("no clause `{asks}`"))["verdict"].as_str().unwrap().to_owned()
}

#[test]
fn curls_delay_is_the_one_that_is_set() {
    require_root();
    require_tool("curl", "curl");
    let program = Program::new();
    let scene = Scene::now();
    for (set, expected) in [(Some("50"), 50.0), (None, 200.0), (Some("500"), 500.0)] {
        let mut command = vec!["curl", "-sS", "-o", "/dev/null", "http://{host}/"];
        if let Some(set) = set {
            command.extend(["--happy-eyeballs-timeout-ms", set]);
        }
        let measured = measure(&program, &[], &command);
        let delay = least_delay(&measured);
        assert!((delay - expected).abs() <= MARGIN_MS, "set {expected} ms, measured {delay} ms");
        assert_eq!(measured["summary"]["first_family"], "ipv6");
        for scenario in ["ipv6-drop", "ipv6-reset", "ipv6-unreachable", "only-a"] {
            for run in runs(&measured, scenario) {
                assert_eq!(run["first_byte"]["family"], "ipv4", "{scenario}: {run}");
                assert_eq!(run["end"]["exit_code"], 0, "{scenario}: {run}");
            }
        }
        let reference = measured["reference"]["median_ms"].as_f64().unwrap();
        assert!((reference - 250.0).abs() <= MARGIN_MS, "{reference}");
    }
    scene.assert_restored(&program, &[], Duration::from_secs(20));
}

#[test]
fn tls_and_ssh_clients_are_measured() {
    require_root();
    let commands: [(&str, &str, &[&str]); 3] = [
        ("curl", "curl", &["curl", "-sS", "-o", "/dev/null", "https://{host}/"]),
        ("git", "git", &["git", "ls-remote", "https://{host}/x"]),
        ("ssh", "openssh-client", &["ssh", "-F", "none", "-o", "BatchMode=yes", "{host}"]),
    ];
    let program = Program::new();
    for (tool, package, command) in commands {
        require_tool(tool, package);
        // One that never falls back takes the time limit.
        let measured = repeat(1, &program, &["--limit", "5"], command);
        for (scenario, family) in [("both", "ipv6"), ("ipv6-reset", "ipv4"), ("only-a", "ipv4")] {
            for run in runs(&measured, scenario) {
                assert_eq!(run["first_byte"]["family"], family, "{tool}, {scenario}: {run}");
                if tool == "curl" {
                    assert_eq!(run["end"]["exit_code"], 0, "the certificate is trusted: {run}");
                }
            }
        }
    }
}

/// Runs that two clients need for every verdict.
const PAIRS: &str = "14";

/// curl with this delay against curl with 100 ms: the difference of their attempt delays.
fn compare_curls(program: &Program, delay: &str, exit: i32) -> Value {
    let options = ["eyeballs", "--format", "json", "--repeat", PAIRS, "--fail-on", "worse=5%", "--"];
    let curl = ["curl", "-sS", "http://{host}/", "--happy-eyeballs-timeout-ms"];
    let words = [&options[..], &curl, &["100", "--against", "--"], &curl, &[delay]].concat();
    let outcome = program.run(&words).expect(exit);
    let compared: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let delay = compared["delays"].as_array().unwrap()[0].clone();
    assert_eq!(delay["label"], "attempt delay");
    delay
}

#[test]
fn a_slower_client_fails_against_another() {
    require_root();
    require_tool("curl", "curl");
    let program = Program::new();
    let slower = compare_curls(&program, "150", code::WORSE);
    assert_eq!(slower["verdict"]["better"], "baseline", "{slower}");
    let difference = slower["effect"]["estimate"].as_f64().unwrap();
    assert!((difference - 50.0).abs() <= MARGIN_MS, "{slower}");
    let faster = compare_curls(&program, "50", code::DONE);
    assert_eq!(faster["verdict"]["better"], "candidate", "{faster}");
}

/// Tries one family after the other, as long as three seconds each.
const SEQUENTIAL: &str = "
import socket, sys
for family in (socket.AF_INET6, socket.AF_INET):
    try:
        address = socket.getaddrinfo(sys.argv[1], 80, family, socket.SOCK_STREAM)[0][4]
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.settimeout(3)
        connection.connect(address)
        connection.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
        while connection.recv(4096): pass
        sys.exit()
    except OSError:
        pass
sys.exit(1)
";

#[test]
fn a_client_that_waits_three_seconds_is_found() {
    require_root();
    require_tool("python3", "python3");
    let program = Program::new();
    let script = program.write("sequential.py", SEQUENTIAL);
    let script = script.display().to_string();
    let measured = measure(&program, &[], &["python3", &script, "{host}"]);
    let delay = least_delay(&measured);
    assert!((2_990.0..3_200.0).contains(&delay), "{delay}");
    assert_eq!(verdict(&measured, "start the next attempt"), "no");
    assert_eq!(verdict(&measured, "query AAAA, and A"), "no", "it asks for A when it needs it");
    assert_eq!(verdict(&measured, "try IPv6 first"), "yes");
}

#[test]
fn a_client_without_a_second_attempt_is_found() {
    require_root();
    require_tool("python3", "python3");
    let program = Program::new();
    let script = "import socket, sys\n\
                  connection = socket.create_connection((sys.argv[1], 80))\n\
                  connection.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n\
                  print(connection.recv(100))\n";
    let measured = measure(&program, &["--limit", "2"], &["python3", "-c", script, "{host}"]);
    assert_eq!(measured["summary"]["attempt_delay"]["runs"], 0);
    for run in runs(&measured, "ipv6-drop") {
        assert_eq!(run["end"]["is_killed"], true, "{run}");
        assert!(run["first_byte"].is_null() && run["attempts"][0]["syns"].as_u64() >= Some(2), "{run}");
    }
    for run in runs(&measured, "ipv6-unreachable") {
        assert_eq!(run["first_byte"]["family"], "ipv4", "create_connection tries all addresses: {run}");
    }
}

#[test]
fn an_interrupted_measurement_leaves_nothing() {
    require_root();
    let program = Program::new();
    let scene = Scene::now();
    let mut running =
        program.start(&["eyeballs", "--", "sh", "-c", "setsid sleep 600 & sleep 600", "{host}"]);
    running.wait_for("both families work", Duration::from_secs(30));
    support::program::signal(running.pid(), "INT");
    running.end(Duration::from_secs(10)).expect(code::INTERRUPTED).says(&["interrupted"]);
    scene.assert_restored(&program, &[], Duration::from_secs(10));
}

#[test]
fn says_what_to_do_where_nothing_is_measured() {
    require_root();
    let program = Program::new();
    let cases: [(&[&str], &str); 4] = [
        (&["curl", "http://example.org/"], "the command has no {host}"),
        (&["no-such-program", "{host}"], "cannot start no-such-program"),
        (&["curl", "{host}", "--against", "--"], "on both sides"),
        (&["true", "{host}"], "did not ask DNS for the name"),
    ];
    for (command, reason) in cases {
        let words = [&["eyeballs", "--"], command].concat();
        program.run(&words).expect(code::REQUEST).says(&[reason]);
    }
}
