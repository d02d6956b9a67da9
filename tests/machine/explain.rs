//! Where in the stack two arms differ: the processors are sampled while a campaign runs. The tests need root, as
//! sampling the kernel does, and `cc`.

use crate::rates::known_truth::library;
use crate::support;

use serde_json::Value;
use std::time::Duration;
use support::leftovers::Scene;
use support::others::watch;
use support::program::{Outcome, Program, code, require_root, require_tool};

/// Arms that differ in a label of their packets only. With 32 the sender spends 5 % more (tests/support/slower.c).
const STUDY: &str = r#"
title = "One arm is slower, two are alike"
[testbed]
offloads = false
[factors]
family = ["ipv4"]
transport = ["udp"]
size = [128]
dscp = [0, CANDIDATE]
[probe.stream]
metrics = ["throughput"]
length = { time = "500ms" }
warmup = "50ms"
[blocks]
min = 8
max = 8
schedule = "interleaved"
slice = "4ms"
"#;

fn explained(outcome: &Outcome) -> Value {
    explained_in(&outcome.stdout)
}

fn explained_in(text: &str) -> Value {
    let json: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let all = json["explained"].as_array().unwrap();
    assert_eq!(all.len(), 1, "{json}");
    all[0].clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// The level of the program's own claims.
const CLAIMED: f64 = 0.05;
/// Of arms that are alike one explanation in twenty claims a difference, as promised; one in a thousand does at this.
const RARE: f64 = 0.001;

/// The stages that differ at a level, by name.
fn differing(found: &Value, level: f64) -> Vec<&str> {
    let stages = found["stages"].as_array().unwrap().iter();
    stages
        .filter(|stage| number(&stage["adjusted_p"]) < level)
        .map(|stage| stage["name"].as_str().unwrap())
        .collect()
}

/// Fails unless stages add up to the whole, and samples describe the stack.
fn is_sound(found: &Value) {
    let parts = found["stages"].as_array().unwrap().iter().chain([&found["unmapped"], &found["not_sampled"]]);
    let sum: f64 = parts.map(|part| number(&part["difference_ns"])).sum();
    let busy = number(&found["busy"]["difference_ns"]);
    assert!((sum - busy).abs() < 1e-3, "parts add up to {sum}, not {busy}: {found}");
    // The stages alone add up to it within 2 % of the clock.
    let missing = &found["not_sampled"];
    let allowed = 0.02 * number(&found["busy"]["ns"][0]);
    let error = number(&missing["error_ns"]);
    println!("note: not sampled {missing}");
    assert!(number(&missing["difference_ns"]).abs() < allowed + 3.0 * error, "{missing} of {allowed}");
    let health = &found["health"];
    println!("note: {health}");
    assert!(number(&health["coverage"]) > 0.8 && number(&health["coverage"]) < 1.1, "{health}");
    assert!(number(&health["lock_ratio"]) < 1.1, "{health}");
    assert!(number(&health["unmapped"]) < 0.03, "{health}");
    assert!(number(&health["overhead"]) > 0.0 && number(&health["overhead"]) < 0.5, "{health}");
}

#[test]
fn added_cost_is_found_and_equal_arms_do_not_differ() {
    require_root();
    watch();
    let program = Program::new();
    let scene = Scene::now();
    let library = library(&program);
    let explain = |candidate: u32| {
        let comparison =
            format!("[[comparison]]\nfactor = \"dscp\"\nbaseline = 0\ncandidate = {candidate}\n");
        program.write("study.toml", STUDY.replace("CANDIDATE", &candidate.to_string()) + &comparison);
        let mut command = program.command(&["explain", "study.toml", "--format", "json", "--seed", "1"]);
        command.env("LD_PRELOAD", &library);
        explained(&Outcome::of(command).expect(code::DONE))
    };
    let found = explain(32);
    is_sound(&found);
    let stages = found["stages"].as_array().unwrap();
    let user = stages.iter().find(|stage| stage["name"] == "user (stacklab)").unwrap();
    let busy = &found["busy"];
    println!("note: user {user}, busy {busy}");
    assert!(differing(&found, CLAIMED).contains(&"user (stacklab)"), "{found}");
    // The sender spends its 5 % in its own code: what the clock shows more is there, within the errors of both.
    let more = number(&user["difference_ns"]);
    let all = number(&busy["difference_ns"]);
    let error = number(&user["error_ns"]).hypot(number(&busy["error_ns"]));
    assert!(more > 0.0 && (more - all).abs() < 4.0 * error, "{more} and {all} +- {error}");
    let others: Vec<&str> =
        differing(&found, CLAIMED).into_iter().filter(|name| *name != "user (stacklab)").collect();
    assert!(others.len() <= 1, "{others:?} differ, too: {found}");

    let found = explain(2);
    is_sound(&found);
    let different = differing(&found, RARE);
    assert!(different.is_empty(), "{different:?} differ in arms that are alike: {found}");
    scene.assert_restored(&program, &["study.toml", "slower.so"], Duration::from_secs(2));
}

#[test]
fn both_families_are_explained_without_a_study() {
    require_root();
    require_tool("tayga", "tayga");
    watch();
    let program = Program::new();
    for probe in ["udp", "tcp", "echo"] {
        let words = ["explain", probe, "--seconds", "3s", "--functions", "--format", "json", "--seed", "1"];
        let found = explained(&program.run(&words).expect(code::DONE));
        let health = &found["health"];
        println!("note: {probe}: {health}");
        assert!(number(&health["unmapped"]) < 0.03, "{probe}: {health}");
        assert!(number(&health["samples"]) > 1000.0, "{probe}: {health}");
        let functions = found["functions"].as_array().unwrap();
        let has =
            |name: &str| functions.iter().any(|function| function["name"].as_str().unwrap().contains(name));
        assert!(has("6"), "{probe}: no function of IPv6: {functions:?}");
        // A function of IPv6 is beside the one of IPv4 that does the same.
        let alone = ["udpv6_sendmsg", "tcp_v6_rcv", "ipv6_rcv"];
        let is_alone = |function: &Value| alone.iter().any(|name| function["name"] == *name);
        assert!(!functions.iter().any(is_alone), "{probe}: {functions:?}");
        assert_eq!(found["arms"], serde_json::json!(["ipv4", "ipv6"]));
    }
    // A translator is a process: its own code is a stage, and its time is busy time outside the arms' threads.
    let words =
        ["explain", "udp", "--factor", "mechanism", "--seconds", "4s", "--format", "json", "--seed", "1"];
    let found = explained(&program.run(&words).expect(code::DONE));
    println!("note: nat64: {}", found["health"]);
    assert_eq!(found["arms"], serde_json::json!(["native", "nat64"]));
    assert!(differing(&found, CLAIMED).contains(&"user (tayga)"), "{found}");
    let tayga =
        found["stages"].as_array().unwrap().iter().find(|stage| stage["name"] == "user (tayga)").unwrap();
    // It may still translate what the slice before sent.
    assert!(number(&tayga["ns"][0]) < 0.3 * number(&tayga["ns"][1]), "{tayga}");
    assert!(number(&found["outside"]["ns"][1]) > number(&tayga["ns"][1]), "{found}");
    // A time with fewer windows than say anything.
    let short = program.run(&["explain", "udp", "--seconds", "200ms"]).expect(code::NOTHING_VALID);
    let said = short.stdout.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("Not explained: too few samples") && said.contains("--seconds"), "{short}");
    let outcome = program.run(&["explain", "udp", "--seconds", "3s"]).expect(code::DONE);
    let text = &outcome.stdout;
    let answer = text.find("ns of CPU time").unwrap_or_else(|| panic!("no answer: {text}"));
    assert!(
        text.find("\nbusy ").is_some_and(|table| answer < table) && text.contains("route lookup"),
        "{text}"
    );
    // A record that is not kept is not named, and there are no verdicts to count.
    assert!(!outcome.stderr.contains(".stacklab") && !outcome.stderr.contains("settled"), "{outcome}");
    assert!(outcome.stderr.contains(" left"), "{outcome}");
    assert!(text.contains("samples (cpu-clock)") || text.contains("samples (cycles)"), "{text}");
}

#[test]
fn explanation_is_kept_and_reported_without_a_verdict() {
    require_root();
    watch();
    let program = Program::new();
    let explain = ["explain", "udp", "--seconds", "8s", "--out", "why.stacklab", "--format", "json"];
    let printed = explained(&program.run(&explain).expect(code::DONE));
    let report = |words: &[&str]| {
        program.run(&[&["report", "why.stacklab"], words].concat()).expect(code::DONE).stdout
    };
    assert_eq!(explained_in(&report(&["--stages", "--format", "json"])), printed);
    let json: Value = serde_json::from_str(&report(&["--format", "json"])).unwrap();
    let why = &json["explanations"][0]["why"]["costs"];
    assert_eq!(*why, printed);
    // Each comparison says why it has no verdict.
    let comparisons = json["comparisons"].as_array().unwrap();
    assert!(!comparisons.is_empty());
    for comparison in comparisons {
        assert!(comparison["verdict"]["nothing"].as_str().unwrap().contains("sampled"), "{comparison}");
    }
    // The call chains of each arm add up to what was sampled of it.
    for arm in [0, 1] {
        let sum = |rows: &Value| -> f64 {
            rows.as_array().unwrap().iter().map(|row| number(&row["ns"][arm])).sum()
        };
        let stages = sum(&why["stages"]) + number(&why["unmapped"]["ns"][arm]);
        let stacks = sum(&why["stacks"]);
        assert!(stages > 0.0 && (stages - stacks).abs() < 1e-3, "{stages} and {stacks} ns");
    }
    let chains = why["stacks"].as_array().unwrap();
    assert!(chains.len() > 10 && chains.len() <= 1000, "{} call chains", chains.len());
    let calls = |name: &str| {
        let functions = chains.iter().flat_map(|chain| chain["functions"].as_array().unwrap());
        functions.clone().any(|function| function.as_str() == Some(name))
    };
    assert!(calls("udp_sendmsg") && calls("udpv6_sendmsg"), "{chains:?}");
    for format in ["text", "markdown"] {
        let text = report(&["--format", format]);
        assert!(text.contains("Why: stream UDP 128 B") && text.contains("route lookup"), "{text}");
    }
    assert!(
        report(&["--stages", "--format", "csv"]).lines().any(|line| line.contains(",ipv4,ipv6,whole,busy,"))
    );
    let resumed = program.run(&["run", "--resume", "--out", "why.stacklab"]).expect(code::REQUEST);
    assert!(resumed.stderr.contains("stacklab explain"), "{resumed}");
}

#[test]
fn campaign_says_why_an_arm_is_better_if_time_allows() {
    require_root();
    watch();
    let program = Program::new();
    let library = library(&program);
    let study = STUDY.replace("CANDIDATE", "32");
    let study =
        study.replace("\"500ms\"", "\"200ms\"").replace("[\"throughput\"]", "[\"sender_cpu_per_message\"]");
    program.write("study.toml", study + "[[comparison]]\nfactor = \"dscp\"\nbaseline = 0\ncandidate = 32\n");
    let run = |words: &[&str]| {
        let mut command = program.command(&[&["run", "--out", "better.stacklab"], words].concat());
        command.env("LD_PRELOAD", &library);
        Outcome::of(command).expect(code::DONE);
        let json = program.run(&["report", "better.stacklab", "--format", "json"]).expect(code::DONE).stdout;
        serde_json::from_str::<Value>(&json).unwrap()
    };
    let short = run(&["study.toml", "--seed", "1", "--explain=1s"]);
    assert_eq!(short["comparisons"][0]["verdict"]["better"], "0", "{}", short["comparisons"]);
    let reason = short["explanations"][0]["why"]["unknown"].as_str().unwrap();
    assert!(reason.contains("the time for it was over") && reason.contains("--explain=12s"), "{reason}");
    // What was not explained before is when the campaign is resumed; its runs and verdicts stay.
    let found = run(&["--resume", "--explain"]);
    assert_eq!(found["comparisons"], short["comparisons"]);
    assert_eq!(found["explanations"].as_array().unwrap().len(), 1, "{found}");
    let costs = &found["explanations"][0]["why"]["costs"];
    is_sound(costs);
    assert!(differing(costs, CLAIMED).contains(&"user (stacklab)"), "{costs}");
    let text = program.run(&["report", "better.stacklab"]).expect(code::DONE).stdout;
    // The answer may break anywhere between two words.
    let answer = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    let (_, why) = answer.split_once("Why, stream IPv4 UDP 128 B: ").unwrap_or_else(|| panic!("{text}"));
    // A wide interval gives "at least N %" of it in place of "mostly".
    let first = why.strip_prefix("mostly ").unwrap_or(why);
    assert!(first.starts_with("user (stacklab)"), "{text}");
}

#[test]
fn what_cannot_be_sampled_is_refused_before_building() {
    require_root();
    require_tool("setpriv", "util-linux");
    let program = Program::new();
    let refused = |words: &[&str], expected: i32, reason: &str| {
        let outcome = program.run(words).expect(expected);
        assert!(outcome.stderr.contains(reason), "{outcome}");
    };
    let study = STUDY.replace("CANDIDATE", "2");
    let separate = study.replace("interleaved", "sequential").replace("slice = \"4ms\"\n", "");
    program.write(
        "separate.toml",
        separate + "[[comparison]]\nfactor = \"dscp\"\nbaseline = 0\ncandidate = 2\n",
    );
    refused(&["explain", "separate.toml"], code::REQUEST, "blocks.schedule");
    program.write("none.toml", &study);
    refused(&["explain", "none.toml"], code::REQUEST, "[[comparison]]");
    let guest = STUDY.replace("family =", "os = [\"uml\"]\nfamily =").replace("dscp = [0, CANDIDATE]\n", "");
    program.write("guest.toml", guest);
    refused(&["explain", "guest.toml"], code::REQUEST, "another stack than this kernel's");
    refused(&["explain", "wifi"], code::REQUEST, "inside a guest");
    refused(&["explain", "udp", "--factor", "dscp"], code::REQUEST, "--levels A,B");
    refused(
        &["explain", "udp", "--factor", "mtu", "--levels", "1500,9000"],
        code::REQUEST,
        "udp cannot be explained: its arms are not interleaved",
    );
    refused(&["explain", "udp", "--format", "htm"], code::REQUEST, "expected one of");
    let mut command = std::process::Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program.path())
        .args(["explain", "udp"]);
    let outcome = Outcome::of(command).expect(code::TESTBED);
    assert!(outcome.stderr.contains("CAP_PERFMON"), "{outcome}");
}
