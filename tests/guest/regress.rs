//! Kernels that are compiled from source, compared by exact counts. The tests need QEMU with plugins, what a kernel is
//! built with, and Debian's package of Linux source, which `image build uml-full` has fetched.

use crate::support;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::program::{Outcome, Program, code, require_tool};

/// Exit codes of `stacklab regress`.
const GOOD: i32 = 0;
const BAD: i32 = 1;
const SKIP: i32 = 125;
const STOP: i32 = 128;

fn kernel_tree(words: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/support/kernel-tree");
    let made = Command::new(script).args(words).output().expect("python3 is installed");
    assert!(made.status.success(), "kernel-tree {words:?}: {}", String::from_utf8_lossy(&made.stderr));
}

/// A repository of Linux with the tag `base`. It is kept: the next run compiles nothing anew.
fn repository() -> PathBuf {
    let cache = PathBuf::from(std::env::var("STACKLAB_CACHE").expect("scripts/test sets STACKLAB_CACHE"));
    let folder = cache.join("tests/linux");
    if !folder.join(".git/refs/tags/base").exists() {
        let _ = fs::remove_dir_all(&folder);
        let archives = cache.join("apt/linux-source/archives");
        let packages = fs::read_dir(&archives).into_iter().flatten().flatten().map(|entry| entry.path());
        let package = packages.filter(|path| path.extension().is_some_and(|end| end == "deb")).max();
        let package = package.unwrap_or_else(|| {
            panic!("{} has no linux-source-*.deb: stacklab image build uml-full", archives.display())
        });
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        kernel_tree(&["source", package.to_str().unwrap(), folder.to_str().unwrap()]);
    }
    folder
}

#[test]
fn regress_finds_the_changed_family_and_function() {
    for (tool, package) in [("qemu-system-x86_64", "qemu-system-x86"), ("git", "git"), ("bison", "bison")] {
        require_tool(tool, package);
    }
    let tree = repository();
    let tree = tree.to_str().unwrap();
    for change in ["slower", "broken", "panics", "without-ipv6"] {
        kernel_tree(&["change", tree, change]);
    }
    let program = Program::new();
    let slower = compare_to_base(&program, tree, "slower").expect(BAD);
    let found: Value = serde_json::from_str(&slower.stdout).unwrap();
    assert_eq!((&found["outcome"], &found["is_bad"]), (&"ipv6_only".into(), &true.into()), "{found:#}");
    for cell in found["cells"].as_array().unwrap().iter().filter(|cell| cell["name"] != "connect") {
        // A search of eight entries for each packet: 59 instructions, and twice as many with an acknowledgement.
        let function = &cell["functions"][0];
        assert_eq!(function["name"], "ip_output / ip6_output", "{cell:#}");
        let [ipv4, ipv6] = compute_changes(cell);
        let [of_function, others] = compute_changes(function);
        assert!(ipv4.abs() < 8.0 && of_function == 0.0, "{cell:#}");
        assert!(others > 30.0 && (ipv6 - others).abs() < 8.0, "{cell:#}");
    }
    // Nothing of the user's repository has changed.
    let status = Command::new("git").args(["-C", tree, "status", "--porcelain"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), "");

    for (candidate, words) in [
        ("broken", &["counted before", "cannot compile the kernel", "error:"][..]),
        ("panics", &["Kernel panic - not syncing: a test"]),
        ("without-ipv6", &["cannot have CONFIG_IPV6=y"]),
    ] {
        compare_to_base(&program, tree, candidate).expect(SKIP).says(words);
    }
    compare_to_base(&program, tree, "base").expect(GOOD);
}

fn compare_to_base(program: &Program, tree: &str, candidate: &str) -> Outcome {
    let words =
        ["regress", "--tree", tree, "--baseline", "base", "--candidate", candidate, "--format", "json"];
    program.run(&words)
}

/// By how much each family's count in a row has changed.
fn compute_changes(row: &Value) -> [f64; 2] {
    [0, 1]
        .map(|family| row["candidate"][family].as_f64().unwrap() - row["baseline"][family].as_f64().unwrap())
}

fn regress(program: &Program, words: &[&str]) -> Outcome {
    program.run(&[&["regress"], words].concat())
}

#[test]
fn regress_exits_with_the_codes_of_git_bisect_run() {
    require_tool("qemu-system-x86_64", "qemu-system-x86");
    let program = Program::new();
    let cache = std::env::var("STACKLAB_CACHE").expect("scripts/test sets STACKLAB_CACHE");
    let file = format!("{cache}/images/linux-6.1/kernel");
    let wrong = program.write("vmlinuz", "not a kernel").display().to_string();
    for (words, expected, says) in [
        (&["--candidate", "."][..], STOP, "--baseline"),
        (&["--baseline", "linux-6.1", "--candidate", "v0.1"], STOP, "neither a system such as linux-6.1"),
        (
            &["--baseline", "linux-6.1", "--candidate", ".", "--fail-if", "ipv6 >> 1"],
            STOP,
            "  ipv6 >> 1\n        ^",
        ),
        (&["--baseline", "linux-6.1", "--candidate", "."], STOP, "is not a Linux source tree"),
        (&["--baseline", "linux-6.1", "--candidate", &wrong], STOP, "is not a kernel for x86-64"),
        (&["--baseline", &file, "--candidate", "linux-6.1"], STOP, "no port named stacklab"),
    ] {
        regress(&program, words).expect(expected).says(&[says]);
    }
}

#[test]
fn regress_skips_a_candidate_that_does_not_answer() {
    require_tool("qemu-system-x86_64", "qemu-system-x86");
    let program = Program::new();
    let cache = std::env::var("STACKLAB_CACHE").expect("scripts/test sets STACKLAB_CACHE");
    let file = format!("{cache}/images/linux-6.1/kernel");
    let outcome = regress(&program, &["--baseline", "linux-6.1", "--candidate", &file]);
    outcome.expect(SKIP).says(&["no port named stacklab"]);
}

#[test]
fn regress_of_one_kernel_is_good() {
    require_tool("qemu-system-x86_64", "qemu-system-x86");
    let program = Program::new();
    let same = ["--baseline", "linux-6.1", "--candidate", "linux-6.1", "--format", "ktap"];
    let outcome = regress(&program, &same).expect(GOOD);
    assert!(outcome.stdout.starts_with("KTAP version 1\n1..8\n"), "{outcome}");
    assert!(outcome.stdout.lines().filter(|line| line.starts_with("ok ")).count() == 8, "{outcome}");
    let verified = regress(&program, &["--verify", "linux-6.1", "linux-6.1"]);
    verified.expect(BAD).says(&["is not bad against linux-6.1"]);
}

#[test]
fn bisect_needs_a_repository() {
    let program = Program::new();
    program.run(&["bisect", "a", "b", "/"]).expect(code::REQUEST).says(&["not in a git repository"]);
}
