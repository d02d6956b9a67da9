//! An ordinary user measures like root, in a user namespace, and leaves nothing else behind.

use crate::support;
use crate::support::studies::TestStudy;

use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;
use support::leftovers::Scene;
use support::program::{Outcome, Program, code, count, invalid, require_root, require_tool};

/// All probes and both transports, in both families.
fn study() -> TestStudy {
    TestStudy::new("whoever runs it")
        .rate("200 Mbit/s")
        .families()
        .transports(&["udp", "tcp"])
        .sizes(&[512])
        .stream(&["throughput", "one_way_delay", "loss"])
        .time("200ms")
        .echo(&["rtt"])
        .time("50ms")
        .connect(&["connect_time"])
        .time("50ms")
        .schedule("sequential")
        .blocks(3)
        .compare_families()
}

/// Runs in each block: four of stream, four of echo and, for TCP only, two of connect.
const RUNS: u64 = 3 * 10;

/// The user and group "nobody", in no other group.
const NOBODY: u32 = 65534;
const AS_NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// Runs the study as a user and checks that it succeeds.
fn measures(user: u32, prefix: &[&str], words: &[&str]) -> Outcome {
    require_root();
    require_tool("setpriv", "util-linux");
    let program = Program::new();
    program.write("study.toml", study().text());
    program.give_to(user);
    let scene = Scene::now();

    let run = ["run", "study.toml", "--out", "x.stacklab"];
    let outcome = run_as_user(&program, prefix, &run).expect(code::DONE).says(words);
    scene.assert_restored(&program, &["study.toml", "x.stacklab"], Duration::from_secs(20));

    let path = program.work().join("x.stacklab");
    let record = fs::metadata(&path).unwrap();
    assert_eq!((record.uid(), record.gid()), (user, user), "the record is its user's");
    assert_eq!(invalid(&path), [""; 0], "{outcome}");
    assert_eq!(count(&path, "status = 'valid'"), RUNS);
    for family in ["ipv4", "ipv6"] {
        assert_eq!(count(&path, &format!("status = 'valid' AND family = '{family}'")), RUNS / 2, "{family}");
    }

    let report = ["report", "x.stacklab", "--format", "json"];
    let json = run_as_user(&program, prefix, &report).expect(code::DONE).stdout;
    let findings: Value = serde_json::from_str(&json).unwrap();
    let comparisons = findings["comparisons"].as_array().unwrap();
    // UDP: throughput, delay, loss and round trip; TCP: throughput, delay, round trip and time to connect.
    assert_eq!(comparisons.len(), 8, "{json}");
    for comparison in comparisons {
        let answered = comparison["effect"]["pairs"] == 3 && comparison["verdict"].get("nothing").is_none();
        assert!(answered, "no verdict: {comparison}");
    }
    outcome
}

/// Runs the program as the user whom the prefix makes of root.
fn run_as_user(program: &Program, prefix: &[&str], args: &[&str]) -> Outcome {
    let stacklab = program.path().display().to_string();
    let line = [prefix, &[stacklab.as_str()], args].concat();
    Outcome::of(program.script(&line[..line.len() - 1], line[line.len() - 1]))
}

#[test]
fn an_ordinary_user_measures_in_a_user_namespace() {
    measures(NOBODY, &AS_NOBODY, &["not root: building the testbed in a user namespace"]);
}

#[test]
fn root_measures_without_a_user_namespace() {
    let outcome = measures(0, &["env"], &[]);
    assert!(!outcome.stderr.contains("user namespace"), "{outcome}");
}

#[test]
fn doctor_tells_a_user_that_studies_can_be_run() {
    require_tool("setpriv", "util-linux");
    let program = Program::new();
    let scene = Scene::now();
    let line = [&AS_NOBODY[..], &["sh", "-c"]].concat();
    let outcome = Outcome::of(program.script(&line, "exec \"$STACKLAB\" doctor")).expect(code::DONE);
    for text in ["Not root", "  yes  network namespace", "  yes  veth", "This machine can run studies"] {
        assert!(outcome.stdout.contains(text), "`{text}` is not said by {outcome}");
    }
    for family in ["ipv4", "ipv6"] {
        assert!(outcome.stdout.contains(&format!("  yes  tcp_segment_framing_{family}")), "{outcome}");
    }
    scene.assert_restored(&program, &[], Duration::from_secs(20));
}
