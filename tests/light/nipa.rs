//! The executor for NIPA, with a program in place of stacklab: the format of its results.

use crate::support::program::Program;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const EXECUTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/nipa/executor.py");

fn git(folder: &Path, words: &[&str]) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
    let done = Command::new("git").arg("-C").arg(folder).args(identity).args(words).output().unwrap();
    assert!(done.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// Runs the executor on a list of two branches, with a shell script as stacklab.
fn run(program: &Program, script: &str) -> Output {
    let work = program.work();
    let origin = work.join("origin");
    if !origin.exists() {
        fs::create_dir(&origin).unwrap();
        git(&origin, &["init", "-q"]);
        for branch in ["main", "net-next-1", "net-next-2"] {
            git(&origin, &["checkout", "-q", "-B", branch]);
            git(&origin, &["commit", "-q", "--allow-empty", "-m", branch]);
        }
        git(&work, &["clone", "-q", "origin", "linux"]);
        let list = json!([
            { "branch": "net-next-2", "date": "2026-11-26T00:00:00+00:00", "base": "origin/main" },
            { "branch": "net-next-1", "date": "2026-11-25T00:00:00+00:00", "base": "origin/main" },
        ]);
        program.write("branches.json", list.to_string());
    }
    program.write("stacklab", format!("#!/bin/sh\necho \"$@\" > words\n{script}\n"));
    Command::new("chmod").arg("755").arg(work.join("stacklab")).status().unwrap();
    let words = ["--branches", "branches.json", "--tree", "linux", "--results", "results", "--url"];
    let mut command = Command::new("python3");
    command.arg(EXECUTOR).args(words).args(["https://example.org/r/", "--stacklab", "./stacklab", "--once"]);
    let done = command.current_dir(&work).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    done
}

fn results(program: &Program, name: &str) -> Value {
    let text = fs::read(program.work().join("results").join(name)).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn nipa_executor_writes_a_test_for_each_cell() {
    let program = Program::new();
    let found = json!({ "checks": [
        { "cell": "udp/128", "condition": "ipv6 > 8", "change": 59.5, "is_bad": true },
        { "cell": "udp/128", "condition": "ipv6 > 8", "change": 0.0, "is_bad": false },
        { "cell": "connect", "condition": "ipv6 > 8", "change": 0.0, "is_bad": false },
    ] });
    run(&program, &format!("echo '{found}'; exit 1"));
    let manifest = json!([{
        "url": "https://example.org/r/results-net-next-2.json", "branch": "net-next-2", "executor": "stacklab"
    }]);
    assert_eq!(results(&program, "results.json"), manifest, "the newest branch alone");
    let entry = results(&program, "results-net-next-2.json");
    let log = "https://example.org/r/results-net-next-2.log";
    assert_eq!(
        (&entry["executor"], &entry["branch"], &entry["link"]),
        (&"stacklab".into(), &"net-next-2".into(), &log.into())
    );
    let mut tests = Vec::new();
    for test in entry["results"].as_array().unwrap() {
        assert_eq!(
            (&test["group"], &test["link"], &test["crashes"]),
            (&"stacklab-regress".into(), &log.into(), &json!([]))
        );
        assert!(test["time"].as_f64().unwrap() >= 0.0 && test["retry"] == test["result"], "{test}");
        let nested = test["results"].as_array().unwrap();
        let nested: Vec<_> = nested.iter().map(|one| (one["test"].clone(), one["result"].clone())).collect();
        tests.push((test["test"].clone(), test["result"].clone(), nested));
    }
    let [pass, fail, condition] = ["pass", "fail", "ipv6 > 8"].map(Value::from);
    let expected = [
        ("udp-128".into(), fail.clone(), vec![(condition.clone(), fail), (condition.clone(), pass.clone())]),
        ("connect".into(), pass.clone(), vec![(condition, pass)]),
    ];
    assert_eq!(tests, expected);
    let tree = program.work().join("linux");
    let [base, branch] = ["origin/main", "origin/net-next-2"].map(|name| git(&tree, &["rev-parse", name]));
    let words = fs::read_to_string(program.work().join("words")).unwrap();
    assert_eq!(words, format!("regress --tree linux --baseline {base} --candidate {branch} --format json\n"));
    // It has a result now.
    run(&program, "touch called");
    assert!(!program.work().join("called").exists());
}

#[test]
fn nipa_executor_reports_a_kernel_that_does_not_boot() {
    for (code, outcome, crashes) in [(125, "fail", json!(["Kernel panic"])), (128, "skip", json!([]))] {
        let program = Program::new();
        run(&program, &format!("echo a step >&2; echo Kernel panic >&2; exit {code}"));
        let tests = results(&program, "results-net-next-2.json")["results"].clone();
        let [test] = &tests.as_array().unwrap()[..] else { panic!("{tests}") };
        assert_eq!(
            (&test["test"], &test["result"], &test["crashes"]),
            (&"boot".into(), &outcome.into(), &crashes)
        );
    }
}
