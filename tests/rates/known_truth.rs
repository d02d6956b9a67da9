//! An arm that is slower by a known part: interleaved trials recover it within their interval. The tests need root,
//! `cc` and `tc`.

use crate::support;

use serde_json::Value;
use stacklab_model::{Factor, Family, LinkConfig};
use stacklab_study::builder::level;
use stacklab_testbed::{Testbed, enter};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::listening::Listening;
use support::others::{allowed, watch};
use support::program::{Outcome, Program, code, require_root, require_tool};
use support::studies::TestStudy;

/// The shares by which an arm is slower, and the DSCP of a sender that is (tests/support/slower.c).
const SLOWER: [(&str, f64); 4] = [("8", 0.005), ("16", 0.01), ("24", 0.02), ("32", 0.05)];
/// How far the truth may be from an estimate, in halves of its 95 % interval: few blocks have few degrees of freedom,
/// of which standard errors know nothing. With the fewest that settle a comparison, six, of which four are kept, a
/// sound program fails once in some hundred runs of this file.
const HALVES: f64 = 4.0;

/// Arms that differ in a label of their packets only, which nothing here heeds but what makes them slower.
fn study() -> TestStudy {
    let mut study = TestStudy::new("Arms that are slower")
        .offloads(false)
        .family("ipv4")
        .transports(&["udp"])
        .sizes(&[128])
        .levels(Factor::Dscp, [0, 8, 16, 24, 32])
        .stream(&["throughput", "sender_cpu_per_message"])
        .time("200ms")
        .warmup("20ms")
        .schedule("interleaved")
        .blocks(10);
    for (dscp, _) in SLOWER {
        study = study.compare(Factor::Dscp, level("0"), level(dscp));
    }
    study
}

/// A compared metric: the estimate of candidate over baseline, half of its 95 % interval, and its blocks.
struct Found {
    ratio: f64,
    half95: f64,
    pairs: u64,
}

impl Found {
    /// Of the candidate whose DSCP this is, or else the only one.
    fn of(report: &Value, metric: &str, dscp: Option<&str>) -> Self {
        let mut comparisons = report["comparisons"].as_array().unwrap().iter();
        let of = comparisons
            .find(|one| one["metric"] == metric && one["candidate"]["settings"]["dscp"].as_str() == dscp);
        let effect = &of.unwrap_or_else(|| panic!("{metric} is not compared: {report}"))["effect"];
        let [low, high] = ["low", "high"].map(|end| effect["interval95"][end].as_f64().unwrap());
        let ratio = effect["estimate"].as_f64().unwrap();
        Found { ratio, half95: (high - low) / 2.0, pairs: effect["pairs"].as_u64().unwrap() }
    }

    /// Fails unless the truth is recovered, which is known but for `unknown`. Returns whether it is told from none, or
    /// smaller than `told`, which need not be.
    fn recovers(&self, truth: f64, unknown: f64, largest_noise: f64, of: &str) -> bool {
        let Found { ratio, half95, pairs } = *self;
        println!("note: {of}: the truth is {truth:.4}, found {ratio:.4} +- {half95:.5} in {pairs} blocks");
        let allowed_error = HALVES * half95 + unknown;
        assert!((ratio - truth).abs() <= allowed_error, "{of}: {ratio} +- {half95}, not {truth}");
        (ratio - 1.0).abs() > half95 || (truth - 1.0).abs() < allowed(largest_noise)
    }
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

/// Builds the library that makes a sender slower.
pub(crate) fn library(program: &Program) -> PathBuf {
    let path = program.work().join("slower.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/support/slower.c");
    let mut command = Command::new("cc");
    command.args(["-O2", "-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&path).args([source, "-ldl"]);
    assert!(command.status().expect("cc is installed").success(), "{command:?}");
    path
}

#[test]
fn known_extra_cost_of_each_call_is_recovered() {
    require_root();
    watch();
    let program = Program::new();
    let library = library(&program);
    program.write("study.toml", study().text());
    for seed in 1..=TRIES {
        let seed = seed.to_string();
        let record = format!("study-{seed}.stacklab");
        let mut command = program.command(&["run", "study.toml", "--out", &record, "--seed", &seed]);
        command.env("LD_PRELOAD", &library);
        Outcome::of(command).expect(code::DONE);
        let report = json(&program.run(&["report", &record, "--format", "json"]).expect(code::DONE));
        if SLOWER.iter().all(|(dscp, share)| recovers_cost(&report, dscp, *share)) {
            return;
        }
    }
    panic!(
        "in {TRIES} campaigns what was found may be none: they hold the truth, and their intervals are wide"
    );
}

/// Whether both figures of a planted cost differ from none; each of them must hold the truth.
fn recovers_cost(report: &Value, dscp: &str, share: f64) -> bool {
    let mut are_seen = true;
    for (metric, truth) in [("sender_cpu_per_message", 1.0 + share), ("throughput", 1.0 / (1.0 + share))] {
        let of = format!("{metric}, {:.1} % spent more", 100.0 * share);
        are_seen &= Found::of(report, metric, Some(dscp)).recovers(truth, 0.0, 0.009, &of);
    }
    are_seen
}

/// Bytes of a message of 1408 and its headers on a link, by Linux's queues: Ethernet's header, and no frame check
/// sequence.
const FRAME: [(&str, f64); 2] = [("ip", 1408.0 + 8.0 + 20.0 + 14.0), ("ipv6", 1408.0 + 8.0 + 40.0 + 14.0)];
const RATE: f64 = 50e6;
/// A bucket holds 1600 bytes, and a slice of some 40 messages begins with a full one: what its first frame leaves,
/// which is 20 bytes less over IPv6, is sent beyond the rate.
const BUCKETS: f64 = 0.0004;
/// How often a link is measured at most until the truth is told: while a machine stands still, the link's time is lost
/// to one arm, and the interval is wide. It has the truth each time.
const TRIES: usize = 3;

#[test]
fn known_slowness_of_a_link_for_a_family_is_recovered() {
    require_root();
    watch();
    require_tool("tc", "iproute2");
    enter().unwrap_or_else(|error| panic!("{error}"));
    let link = LinkConfig { rate: None, mtu: 1500, offloads: false };
    let testbed = Testbed::build(&link, Path::new("sleep"), &["600"]).unwrap();
    let [here, there] = testbed.hosts().each_ref().map(|host| host.pid().to_string());
    run_tc(&here, "qdisc replace dev st0 root handle 1: htb");
    let addresses = [Family::Ipv4, Family::Ipv6].map(|family| testbed.hosts()[1].address(family).to_string());
    let listening = Listening::in_namespace(&there, "");
    for (_, share) in SLOWER {
        for (class, (protocol, _)) in FRAME.iter().enumerate() {
            let rate = RATE * (1.0 - share * class as f64);
            let id = class + 1;
            let htb = format!("htb rate {rate}bit burst 1600 cburst 1600 quantum 1600");
            run_tc(&here, &format!("class replace dev st0 parent 1: classid 1:{id} {htb}"));
            let filter = format!("protocol {protocol} prio {id} u32 match u32 0 0 classid 1:{id}");
            run_tc(&here, &format!("filter replace dev st0 parent 1: {filter}"));
        }
        let shell = ["nsenter", "-t", &here, "-n", "sh", "-c"];
        // A class lets a batch of datagrams (UDP_SEGMENT) through as one packet, and a slice has only some of these.
        let measure = format!(
            "exec \"$STACKLAB\" measure udp {} -l 1408 --against ipv4 -t 8 --io sendmmsg --json -p {}",
            addresses.join(","),
            listening.port
        );
        let truth = (1.0 - share) * FRAME[0].1 / FRAME[1].1;
        let of = format!("throughput, a link with {:.1} % less", 100.0 * share);
        let is_recovered = (0..TRIES).any(|_| {
            let outcome = Outcome::of(listening.program.script(&shell, &measure)).expect(code::DONE);
            Found::of(&json(&outcome), "throughput", None).recovers(truth, BUCKETS, 0.004, &of)
        });
        assert!(is_recovered, "{of}: what was found may be none, {TRIES} times");
    }
}

/// Runs `tc` in the namespace of a process.
fn run_tc(pid: &str, words: &str) {
    let mut command = Command::new("nsenter");
    command.args(["-t", pid, "-n", "tc"]).args(words.split_whitespace());
    assert!(command.status().unwrap().success(), "{command:?}");
}
