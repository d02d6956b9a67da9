//! Where in the stack two arms differ: the processors are sampled while a campaign runs. The tests need root, as
//! sampling the kernel does, and `cc`.

use crate::rates::known_truth::library;
use crate::support;

use serde_json::Value;
use stacklab_model::Factor;
use std::path::Path;
use std::time::Duration;
use support::leftovers::Scene;
use support::others::watch;
use support::program::{Outcome, Program, code, require_root, require_tool};
use support::studies::TestStudy;

/// One arm: a test adds what others differ in.
fn one_arm() -> TestStudy {
    TestStudy::new("One arm is slower, two are alike")
        .offloads(false)
        .family("ipv4")
        .transports(&["udp"])
        .sizes(&[128])
        .stream(&["throughput"])
        .time("500ms")
        .warmup("50ms")
        .blocks(8)
}

/// Arms that differ in a label of their packets only. With 32 the sender spends 5 % more (tests/support/slower.c).
fn arms(candidate: u32) -> TestStudy {
    one_arm().levels(Factor::Dscp, [0, candidate])
}

fn in_turns(study: TestStudy) -> TestStudy {
    study.schedule("interleaved").set("blocks.slice", "4ms")
}

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
    let found = explain(&program, &library, 32);
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

    let found = explain(&program, &library, 2);
    is_sound(&found);
    let different = differing(&found, RARE);
    assert!(different.is_empty(), "{different:?} differ in arms that are alike: {found}");
    scene.assert_restored(&program, &["study.toml", "slower.so"], Duration::from_secs(2));
}

/// Explains the arm with this label beside the one without.
fn explain(program: &Program, library: &Path, candidate: u32) -> Value {
    let study = in_turns(arms(candidate)).compare(Factor::Dscp, 0, candidate);
    program.write("study.toml", study.text());
    let mut command = program.command(&["explain", "study.toml", "--format", "json", "--seed", "1"]);
    command.env("LD_PRELOAD", library);
    explained(&Outcome::of(command).expect(code::DONE))
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
        let names: Vec<&str> = functions.iter().map(|function| function["name"].as_str().unwrap()).collect();
        assert!(names.iter().any(|name| name.contains('6')), "{probe}: no function of IPv6: {functions:?}");
        // A function of IPv6 is beside the one of IPv4 that does the same.
        for alone in ["udpv6_sendmsg", "tcp_v6_rcv", "ipv6_rcv"] {
            assert!(!names.contains(&alone), "{probe}: {functions:?}");
        }
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
    assert_eq!(explained_in(&report(&program, &["--stages", "--format", "json"])), printed);
    let json: Value = serde_json::from_str(&report(&program, &["--format", "json"])).unwrap();
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
        let stages = sum_ns(&why["stages"], arm) + number(&why["unmapped"]["ns"][arm]);
        let stacks = sum_ns(&why["stacks"], arm);
        assert!(stages > 0.0 && (stages - stacks).abs() < 1e-3, "{stages} and {stacks} ns");
    }
    let chains = why["stacks"].as_array().unwrap();
    assert!(chains.len() > 10 && chains.len() <= 1000, "{} call chains", chains.len());
    for name in ["udp_sendmsg", "udpv6_sendmsg"] {
        let mut functions = chains.iter().flat_map(|chain| chain["functions"].as_array().unwrap());
        assert!(functions.any(|function| function.as_str() == Some(name)), "{name}: {chains:?}");
    }
    for format in ["text", "markdown"] {
        let text = report(&program, &["--format", format]);
        assert!(text.contains("Why: stream UDP 128 B") && text.contains("route lookup"), "{text}");
    }
    let csv = report(&program, &["--stages", "--format", "csv"]);
    assert!(csv.lines().any(|line| line.contains(",ipv4,ipv6,whole,busy,")), "{csv}");
    let resumed = program.run(&["run", "--resume", "--out", "why.stacklab"]).expect(code::REQUEST);
    assert!(resumed.stderr.contains("stacklab explain"), "{resumed}");
}

fn report(program: &Program, words: &[&str]) -> String {
    program.run(&[&["report", "why.stacklab"], words].concat()).expect(code::DONE).stdout
}

/// What an arm took in all rows, nanoseconds.
fn sum_ns(rows: &Value, arm: usize) -> f64 {
    rows.as_array().unwrap().iter().map(|row| number(&row["ns"][arm])).sum()
}

#[test]
fn campaign_says_why_an_arm_is_better_if_time_allows() {
    require_root();
    watch();
    let program = Program::new();
    let library = library(&program);
    let study = in_turns(arms(32)).stream(&["sender_cpu_per_message"]).time("200ms");
    program.write("study.toml", study.compare(Factor::Dscp, 0, 32).text());
    let short = run_with(&library, &program, &["study.toml", "--seed", "1", "--explain=1s"]);
    assert_eq!(short["comparisons"][0]["verdict"]["better"], "0", "{}", short["comparisons"]);
    let reason = short["explanations"][0]["why"]["unknown"].as_str().unwrap();
    assert!(reason.contains("the time for it was over") && reason.contains("--explain=12s"), "{reason}");
    // What was not explained before is when the campaign is resumed; its runs and verdicts stay.
    let found = run_with(&library, &program, &["--resume", "--explain"]);
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

/// Runs a campaign with the library that makes a sender slower, and returns its report.
fn run_with(library: &Path, program: &Program, words: &[&str]) -> Value {
    let mut command = program.command(&[&["run", "--out", "better.stacklab"], words].concat());
    command.env("LD_PRELOAD", library);
    Outcome::of(command).expect(code::DONE);
    let json = program.run(&["report", "better.stacklab", "--format", "json"]).expect(code::DONE).stdout;
    serde_json::from_str(&json).unwrap()
}

#[test]
fn what_cannot_be_sampled_is_refused_before_building() {
    require_root();
    require_tool("setpriv", "util-linux");
    let program = Program::new();
    let separate = arms(2).schedule("sequential").compare(Factor::Dscp, 0, 2);
    program.write("separate.toml", separate.text());
    program.write("none.toml", in_turns(arms(2)).text());
    program.write("guest.toml", in_turns(one_arm().systems(&["uml"])).text());
    for (words, reason) in [
        (&["separate.toml"][..], "blocks.schedule"),
        (&["none.toml"], "[[comparison]]"),
        (&["guest.toml"], "another stack than this kernel's"),
        (&["wifi"], "inside a guest"),
        (&["udp", "--factor", "dscp"], "--levels A,B"),
        (
            &["udp", "--factor", "mtu", "--levels", "1500,9000"],
            "udp cannot be explained: its arms are not interleaved",
        ),
        (&["udp", "--format", "htm"], "expected one of"),
    ] {
        program.run(&[&["explain"], words].concat()).expect(code::REQUEST).says(&[reason]);
    }
    let mut command = std::process::Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program.path())
        .args(["explain", "udp"]);
    let outcome = Outcome::of(command).expect(code::TESTBED);
    assert!(outcome.stderr.contains("CAP_PERFMON"), "{outcome}");
}
