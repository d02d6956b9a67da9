//! Comparisons of two records: of one arm, of links with two rates, and of studies with nothing in common.

use crate::support;

use serde_json::Value;
use support::program::{Outcome, Program, code, require_root};
use support::studies::TestStudy;

/// Two families, half a second of measuring. The margin is wide, because the arm is compared with itself on a busy
/// machine.
fn study() -> TestStudy {
    TestStudy::new("a small study")
        .rate("100 Mbit/s")
        .families()
        .transports(&["udp"])
        .sizes(&[512])
        .stream(&["throughput", "message_rate"])
        .time("60ms")
        .warmup("20ms")
        .schedule("sequential")
        .blocks(6)
        .compare_families_within("50 %")
}

/// A folder with the records `a` and `b` of the study, `slow` at half the rate, `other` of another size.
fn measured() -> Program {
    require_root();
    let program = Program::new();
    program.write("study.toml", study().text());
    let slow = ["--set", "testbed.rate=50 Mbit/s", "--set", "factors.size=[512, 1024]"];
    let other = ["--set", "factors.size=[256]", "--set", "blocks.max=2", "--set", "blocks.min=2"];
    for (name, set) in [("a", &[][..]), ("b", &[][..]), ("slow", &slow[..]), ("other", &other[..])] {
        let record = format!("{name}.stacklab");
        let run = ["run", "study.toml", "--out", &record];
        program.run(&[&run[..], set].concat()).expect(code::DONE);
    }
    program
}

#[test]
fn a_worse_record_is_told_from_an_equal_one() {
    let program = measured();
    check_equal_record(&program);
    check_worse_record(&program);
    check_texts(&program);
    check_requests(&program);
}

/// Compares a.stacklab with another record.
fn compare(program: &Program, b: &str, more: &[&str]) -> Outcome {
    program.run(&[&["compare", "a.stacklab", b][..], more].concat())
}

fn json(program: &Program, b: &str, more: &[&str], code: i32) -> Value {
    let outcome = compare(program, b, &[more, &["--format", "json"]].concat()).expect(code);
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

/// Whether other programs disturbed neither record alone: otherwise that may be the reason of a difference.
fn is_comparable(program: &Program) -> bool {
    json(program, "slow.stacklab", &[], code::DONE).get("warning").is_none()
}

fn code_of_worse(is_comparable: bool) -> i32 {
    if is_comparable { code::WORSE } else { code::NOT_COMPARABLE }
}

/// One arm, measured twice: two families by two metrics.
fn check_equal_record(program: &Program) {
    let alike = json(program, "b.stacklab", &["--fail-on", "worse=40%"], code::DONE);
    let figures = alike["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 4);
    for figure in figures {
        assert_eq!(figure["change"], "equivalent", "{figure}");
        assert_eq!((&figure["a"]["n"], &figure["b"]["n"]), (&6.into(), &6.into()), "{figure}");
    }
    let differences = alike["differences"].as_array().unwrap();
    assert!(differences.iter().all(|of| of["what"] == "other load"), "{differences:?}");
}

/// Half the rate: every figure is worse. It exceeds the allowance only if the allowance is less than half.
fn check_worse_record(program: &Program) {
    let is_comparable = is_comparable(program);
    let worse = code_of_worse(is_comparable);
    let slow = json(program, "slow.stacklab", &["--fail-on", "worse=5%"], worse);
    let figures = slow["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 4);
    for figure in figures {
        let change = &figure["change"];
        let fails = &figure["fails"];
        assert_eq!((change.as_str(), fails.as_bool()), (Some("worse"), Some(is_comparable)), "{figure}");
        let ratio = figure["effect"]["estimate"].as_f64().unwrap();
        assert!((0.45..0.55).contains(&ratio), "{figure}");
    }
    json(program, "slow.stacklab", &["--fail-on", "worse=60%"], code::DONE);
    json(program, "slow.stacklab", &[], code::DONE);
    let named = json(program, "slow.stacklab", &["--metric", "throughput"], code::DONE);
    assert_eq!(named["figures"].as_array().unwrap().len(), 2);
}

/// The report lists the differences between the two environments, and the items that only one record measured.
fn check_texts(program: &Program) {
    let worse = code_of_worse(is_comparable(program));
    let slow = json(program, "slow.stacklab", &[], code::DONE);
    let differences: Vec<(&str, &str, &str)> = slow["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| (d["what"].as_str().unwrap(), d["a"].as_str().unwrap(), d["b"].as_str().unwrap()))
        .collect();
    assert!(differences.contains(&("testbed.rate", "100 Mbit/s", "50 Mbit/s")), "{differences:?}");
    assert!(
        differences.iter().any(|(what, a, b)| *what == "testbed" && a.contains("100") && b.contains("50"))
    );
    let outcome = compare(program, "slow.stacklab", &["--fail-on", "worse=5%"]).expect(worse);
    let outcome = outcome.says(&["worse", "by more than 5 %", "throughput ipv4 udp 512 B payload"]);
    for part in ["testbed.rate", "B worse", "only B has 2 cells", "1024 B", "other load disturbed"] {
        assert!(outcome.stdout.contains(part), "no `{part}` in {outcome}");
    }
    let backwards = ["compare", "slow.stacklab", "a.stacklab", "--fail-on", "worse=5%"];
    let outcome = program.run(&backwards).expect(code::DONE);
    assert!(outcome.stdout.contains("B better at 2 of 2 (by"), "{outcome}");
    let csv = compare(program, "slow.stacklab", &["--format", "csv"]).expect(code::DONE).stdout;
    assert_eq!(csv.lines().count(), 1 + 4, "{csv}");
}

/// Nothing in common, and invalid requests.
fn check_requests(program: &Program) {
    let outcome = compare(program, "other.stacklab", &[]).expect(code::REQUEST);
    assert_eq!(outcome.says(&["a.stacklab and other.stacklab have no cell in common"]).stdout, "");
    compare(program, "b.stacklab", &["--metric", "rtt"])
        .expect(code::REQUEST)
        .says(&["do not both have rtt"]);
    compare(program, "b.stacklab", &["--metric", "troughput"])
        .expect(code::REQUEST)
        .says(&["did you mean `throughput`"]);
    compare(program, "b.stacklab", &["--fail-on", "worse=much"]).expect(code::REQUEST).says(&["worse=5%"]);
    compare(program, "nothing.stacklab", &[])
        .expect(code::RECORD)
        .says(&["there is no record nothing.stacklab"]);
}
