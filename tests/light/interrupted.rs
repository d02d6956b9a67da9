//! Measurements by hand that are cut short, and errors whose advice fits them.

use crate::support;

use serde_json::Value;
use std::net::UdpSocket;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;
use support::listening::Listening;
use support::program::{Outcome, Program, code, signal};

const SOON: Duration = Duration::from_secs(20);

/// Starts `measure` with these arguments, and sends a signal when it has measured for a while.
fn interrupted(agent: &Listening, name: &str, args: &[&str]) -> Outcome {
    let running = agent.program.start(&[&["measure"], args, &["-p", agent.port.as_str()]].concat());
    sleep(Duration::from_secs(3));
    signal(running.pid(), name);
    running.end(SOON)
}

#[test]
fn interrupted_measurement_has_the_figures_until_then() {
    let agent = Listening::start("127.0.0.1", &[]);
    for (name, args) in [
        ("TERM", &["udp", "127.0.0.1", "-b", "1M", "-t", "600", "--json"][..]),
        ("INT", &["tcp", "127.0.0.1", "-b", "8M", "-l", "1000", "-R", "-t", "600", "--json"]),
        ("INT", &["echo", "127.0.0.1", "-t", "600", "--json"]),
        ("INT", &["connect", "127.0.0.1", "-t", "600", "--json"]),
    ] {
        let outcome = interrupted(&agent, name, args).expect(code::INTERRUPTED);
        let run: Value =
            serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"));
        assert_eq!(run["status"], "valid", "{run:#}");
        let outcome = outcome.says(&["the figures are of", "until the interruption"]);
        // A rate that is held is found whatever the time was.
        if let Some(rate) = match args[0] {
            "udp" => Some(1.0),
            "tcp" => Some(8.0),
            _ => None,
        } {
            let found = run["values"]["throughput"]["measured"].as_f64().unwrap_or_else(|| panic!("{run:#}"));
            assert!((found / rate - 1.0).abs() < 0.1, "{outcome}");
        }
    }
    // The text, as for a whole measurement.
    let text = interrupted(&agent, "INT", &["udp", "127.0.0.1", "-b", "1M", "-t", "600"]);
    assert!(text.stdout.contains("\nthroughput "), "{text}");
    agent.serves();
}

#[test]
fn comparison_that_ends_early_names_its_record() {
    let agent = Listening::start("", &[]);
    // A block of both families takes two seconds or more.
    let args = ["udp", "127.0.0.1,::1", "-b", "1M", "--against", "ipv4", "-t", "600", "--out"];
    let running =
        agent.program.start(&[&["measure"], &args[..], &["a.stacklab", "-p", &agent.port]].concat());
    sleep(Duration::from_millis(1_500));
    signal(running.pid(), "INT");
    let outcome = running.end(SOON).expect(code::INTERRUPTED);
    let outcome = outcome.says(&["no block is complete", "The record: a.stacklab"]);
    assert_eq!(outcome.stdout, "", "{outcome}");
    // The agent dies later.
    let running =
        agent.program.start(&[&["measure"], &args[..], &["b.stacklab", "-p", &agent.port]].concat());
    while !has_runs(&agent.program.work().join("b.stacklab"), 8) {
        sleep(Duration::from_millis(100));
    }
    signal(agent.agent.pid(), "TERM");
    let outcome =
        running.end(SOON).expect(code::HOST).says(&["disconnected during", "The record: b.stacklab"]);
    assert!(outcome.stdout.contains("throughput"), "{outcome}");
    assert!(
        !outcome.stderr.contains("--resume") && !outcome.stderr.contains("agent on the agent"),
        "{outcome}"
    );
}

fn has_runs(record: &Path, least: u64) -> bool {
    record.exists() && support::program::count(record, "1") >= least
}

#[test]
fn advice_fits_the_error() {
    let program = Program::new();
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port().to_string();
    let refused = program.run(&["measure", "tcp", "127.0.0.1", "-p", &port]).expect(code::HOST);
    refused.says(&["start `stacklab agent --listen"]);
    for (args, said) in [
        // An address of the documentation's network (RFC 5737), which is nobody's.
        (&["measure", "tcp", "127.0.0.1", "--from", "192.0.2.9"][..], "name an address of this host"),
        (&["measure", "tcp", "127.0.0.1", "--from", "::1"], "is of another family than 127.0.0.1"),
        (
            &["measure", "tcp", "127.0.0.1,::1", "--against", "ipv4", "--from", "127.0.0.1"],
            "--from 127.0.0.1 has no ipv6 address",
        ),
        (
            &["measure", "tcp", "127.0.0.1,::1", "--against", "ipv4", "--from", "127.0.0.1,2001:db8::9"],
            "cannot measure --from 2001:db8::9",
        ),
        (
            &["measure", "udp", "127.0.0.1", "--peer", "iperf3", "--from", "192.0.2.9"],
            "name an address of this host",
        ),
    ] {
        let outcome = program.run(args).expect(code::REQUEST).says(&[said]);
        assert!(!outcome.stderr.contains("agent --listen"), "{outcome}");
    }
    let outcome = program.run(&["agent", "--listen", "192.0.2.9", "--no-auth"]).expect(code::ELSE);
    assert!(!outcome.stderr.contains("another agent"), "{outcome}");
    outcome.says(&["name an address of this host"]);
}

#[test]
fn an_error_is_json_where_json_was_asked_for() {
    let program = Program::new();
    for (args, exit_code) in [
        (&["measure", "tcp", "127.0.0.1", "--from", "192.0.2.9", "--json"][..], code::REQUEST),
        (&["measure", "tcp", "--no-such-option", "--json"], code::REQUEST),
        (&["path", "ftp://a", "--format", "json"], code::REQUEST),
        (&["report", "none.stacklab", "--format", "json"], code::RECORD),
    ] {
        let outcome = program.run(args).expect(exit_code);
        let error: Value =
            serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"));
        assert_eq!(error["exit_code"], exit_code, "{outcome}");
        assert!(!error["error"].as_str().unwrap().is_empty(), "{outcome}");
        assert!(!outcome.stderr.is_empty());
    }
    assert_eq!(program.run(&["report", "none.stacklab"]).expect(code::RECORD).stdout, "");
}
