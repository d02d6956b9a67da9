//! The first minutes of a new user: the study of `make run` as an ordinary user, its record in each format, and the
//! samples of the documents.

use super::documented;
use crate::support;

use serde_json::Value;
use std::time::Duration;
use support::leftovers::Scene;
use support::program::{Outcome, Program, code, count, invalid, require_root, require_tool};

const AS_NOBODY: [&str; 6] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c"];

#[test]
fn quickstart_answers_and_is_reported_in_each_format() {
    require_root();
    require_tool("setpriv", "util-linux");
    let program = Program::new();
    program.give_to(65534);
    let scene = Scene::now();
    let study = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/quickstart.toml");
    program.write("study.toml", std::fs::read(study).unwrap());
    // Two blocks; the whole study takes a minute.
    let two_blocks = "--set blocks.min=2 --set blocks.max=2";
    let run = run_as_nobody(&program, &format!("run study.toml --out a.stacklab {two_blocks}"));
    scene.assert_restored(&program, &["study.toml", "a.stacklab"], Duration::from_secs(20));

    for page in ["README.md", "docs/tutorial-research.md"] {
        documented::assert_quickstart_prints(page, &run.stdout);
    }
    let first_table = run.stdout.split("\nVerdicts\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // Throughput and sender CPU per message of TCP and UDP, loss of UDP, and the round trips of both.
    assert_eq!(first_table.matches("\ncontrol IPv4 vs IPv4 ").count(), 7, "{first_table}");
    let record = program.work().join("a.stacklab");
    assert_eq!(invalid(&record), [""; 0], "{run}");
    for family in ["ipv4", "ipv6"] {
        for transport in ["tcp", "udp"] {
            let cell = format!("status = 'valid' AND family = '{family}' AND transport = '{transport}'");
            // Three sizes, streams and echoes, two blocks.
            assert!(count(&record, &cell) >= 12, "{cell}: {run}");
        }
    }
    let findings: Value = serde_json::from_str(&report(&program, "json")).unwrap();
    let comparisons = findings["comparisons"].as_array().unwrap();
    assert_eq!(
        comparisons.len(),
        21,
        "throughput, CPU and round trip of TCP and UDP, loss of UDP, at three sizes"
    );
    let csv = report(&program, "csv");
    let controls = csv.lines().filter(|line| line.contains(",control,")).count();
    assert_eq!(controls, 7, "one for each metric and transport: {csv}");
    assert_eq!(csv.lines().count(), 1 + comparisons.len() + controls);
    for (format, begins) in
        [("text", "IPv4 beside IPv6"), ("markdown", "# IPv4 beside IPv6"), ("html", "<!doctype html>")]
    {
        let text = report(&program, format);
        assert!(
            text.to_lowercase().starts_with(&begins.to_lowercase()),
            "{format}: {}",
            &text[..200.min(text.len())]
        );
    }
}

fn run_as_nobody(program: &Program, words: &str) -> Outcome {
    let command = format!("exec \"$STACKLAB\" {words}");
    Outcome::of(program.script(&AS_NOBODY, &command)).expect(code::DONE)
}

fn report(program: &Program, format: &str) -> String {
    run_as_nobody(program, &format!("report a.stacklab --format {format}")).stdout
}
