//! A study against itself: with two equal arms, hardly any comparison may report a better one.

use crate::support;

use serde_json::Value;
use stacklab_model::Factor;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};
use support::leftovers::Scene;
use support::program::{Program, code, require_root};
use support::studies::TestStudy;

/// Two replicas of 36 cells, each compared by three metrics: 108 comparisons.
///
/// By the rule of every verdict at most one in twenty of the claims of a report is expected to be false. Where no arm
/// differs each `better` is: hardly any may be claimed.
fn study() -> TestStudy {
    TestStudy::new("an arm against itself")
        .families()
        .transports(&["udp", "tcp"])
        .sizes(&[64, 128, 256, 384, 512, 640, 896, 1152, 1408])
        .levels(Factor::Replica, ["a", "b"])
        .stream(&["throughput", "jitter"])
        .time("30ms")
        .warmup("5ms")
        .echo(&["rtt"])
        .time("15ms")
        .warmup("3ms")
        .schedule("sequential")
        .blocks(6)
        .compare(Factor::Replica, "a", "b")
}

const COMPARISONS: usize = 108;
/// Fewer than one in twenty.
const MAX_BETTER: usize = 5;

#[test]
fn an_arm_is_hardly_ever_better_than_itself() {
    require_root();
    let program = Program::new();
    program.write("study.toml", study().text());
    let scene = Scene::now();
    let start = Instant::now();
    program.run(&["run", "study.toml", "--out", "x.stacklab"]).expect(code::DONE);
    let json = program.run(&["report", "x.stacklab", "--format", "json"]).expect(code::DONE).stdout;
    let findings: Value = serde_json::from_str(&json).unwrap();

    let mut verdicts: BTreeMap<String, usize> = BTreeMap::new();
    let mut better = String::new();
    for comparison in findings["comparisons"].as_array().unwrap() {
        let verdict = match &comparison["verdict"] {
            Value::String(verdict) => verdict.clone(),
            Value::Object(verdict) => verdict.keys().next().unwrap().clone(),
            other => panic!("{other} is no verdict"),
        };
        if verdict == "better" {
            let Value::Object(cell) = &comparison["baseline"] else { panic!("no cell: {comparison}") };
            let metric = &comparison["metric"];
            let effect = &comparison["effect"];
            let _ = writeln!(better, "{metric} {cell:?}: {effect}");
        }
        *verdicts.entry(verdict).or_default() += 1;
    }
    let valid = &findings["valid_runs"];
    let invalid = &findings["invalid_runs"];
    println!("{verdicts:?} of {COMPARISONS} in {:?}; {valid} valid runs, invalid {invalid}", start.elapsed());
    print!("{better}");

    assert_eq!(verdicts.values().sum::<usize>(), COMPARISONS);
    let named = |verdict: &str| verdicts.get(verdict).copied().unwrap_or(0);
    assert!(
        named("better") <= MAX_BETTER,
        "an arm beats itself in {} of {COMPARISONS}:\n{better}",
        named("better")
    );
    // A comparison without an answer is not evidence.
    assert!(named("equivalent") + named("inconclusive") >= 100, "{verdicts:?}; invalid runs: {invalid}");
    scene.assert_restored(&program, &["study.toml", "x.stacklab"], Duration::from_secs(20));
}
