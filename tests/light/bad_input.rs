//! Requests that the program must refuse. The message says what is wrong, where, and what to do; the exit code is as
//! `stacklab --help` lists; no partial files remain.

use crate::support;

use serde_json::Value;
use std::fs;
use std::time::Duration;
use support::leftovers::Scene;
use support::program::{Outcome, Program, code, count, require_root, require_tool};

/// A short study in both families; line numbers count from its first line.
pub(super) const SMALL: &str = r#"title = "small"
[testbed]
mtu = 1500
[factors]
family = ["ipv4", "ipv6"]
transport = ["udp", "tcp"]
size = [64, 1024]
[probe.stream]
metrics = ["throughput", "jitter"]
length = { time = "50ms" }
warmup = "10ms"
[blocks]
schedule = "sequential"
min = 2
max = 2
[[comparison]]
factor = "family"
baseline = "ipv4"
candidate = "ipv6"
[scale.quick]
"#;

/// Fails unless `run` and `plan` both refuse a study with a replacement, with each of the texts, and no record is
/// created.
#[track_caller]
fn refused(old: &str, new: &str, texts: &[&str]) {
    assert!(SMALL.contains(old), "the study has no `{old}`");
    let program = Program::new();
    program.write("study.toml", SMALL.replacen(old, new, 1));
    for verb in ["run", "plan"] {
        let outcome = program.run(&[verb, "study.toml"]).expect(code::REQUEST).says(texts);
        assert_eq!(outcome.stdout, "", "{outcome}");
    }
    assert_eq!(program.files(), ["study.toml"], "a study that is refused leaves no record");
}

/// A line of the study (of the first nine), with carets below the invalid text.
fn pointed_at(line: &str, fault: &str) -> String {
    let column = line.find(fault).expect("the fault is on the line");
    format!("{line}\n  | {}{}", " ".repeat(column), "^".repeat(fault.len()))
}

#[test]
fn an_unknown_key_is_shown_with_the_nearest_one() {
    refused(
        "mtu = 1500",
        "mut = 1500",
        &[
            "there is no key `testbed.mut`",
            "study.toml:3:1",
            &pointed_at("mut = 1500", "mut"),
            "rate, mtu, offloads",
        ],
    );
    refused(
        "metrics",
        "metric",
        &["there is no key `probe.stream.metric`", "study.toml:9:1", "did you mean `metrics`?"],
    );
}

#[test]
fn all_mistakes_are_said_at_once_in_file_order() {
    let program = Program::new();
    let study =
        SMALL.replace("mtu =", "mut =").replace("\"ipv6\"]", "\"ipv9\"]").replace("\"jitter\"", "\"jiter\"");
    program.write("study.toml", study);
    let outcome = program.run(&["run", "study.toml"]).expect(code::REQUEST);
    let places: Vec<usize> = ["study.toml:3:1", "study.toml:5:19", "study.toml:9:26"]
        .iter()
        .map(|place| outcome.stderr.find(place).unwrap_or_else(|| panic!("no {place} in {outcome}")))
        .collect();
    assert!(places.is_sorted(), "{outcome}");
    outcome.says(&["there is no family `ipv9`", "did you mean `jitter`?"]);
}

#[test]
fn impossible_size_is_shown_with_the_bounds() {
    let line = "size = [64, 0]";
    let place = &pointed_at(line, "0");
    refused("size = [64, 1024]", line, &["study.toml:7:13", place, "a whole number from 1 to 1048576"]);
    // Larger than a TCP segment, and the two families' segments differ.
    let line = "size = [64, 1450]";
    let texts = [
        "study.toml:7:13",
        &pointed_at(line, "1450"),
        "1450 bytes do not fit one TCP segment over ipv6 at an MTU of 1500",
        "size_of = [\"write\"]",
    ];
    refused("size = [64, 1024]", line, &texts);
}

#[test]
fn a_size_below_the_probes_own_header_is_refused() {
    let line = "size = [31, 1024]";
    let texts = [
        "a message of 31 bytes is smaller than the probe's header",
        "study.toml:7:9",
        &pointed_at(line, "31"),
        "expected at least 32",
    ];
    refused("size = [64, 1024]", line, &texts);
    // The smallest possible size is accepted.
    let program = Program::new();
    program.write("study.toml", SMALL.replace("size = [64, 1024]", "size = [32]"));
    program.run(&["plan", "study.toml"]).expect(code::DONE);
}

#[test]
fn unknown_family_is_shown_with_the_known_ones() {
    let line = "family = [\"ipv4\", \"ipv5\"]";
    let texts =
        ["there is no family `ipv5`", "study.toml:5:19", &pointed_at(line, "\"ipv5\""), "one of ipv4, ipv6"];
    refused("family = [\"ipv4\", \"ipv6\"]", line, &texts);
}

#[test]
fn an_empty_factor_is_refused() {
    let line = "transport = []";
    let texts =
        ["`factors.transport`", "study.toml:6:13", &pointed_at(line, "[]"), "expected at least one item"];
    refused("transport = [\"udp\", \"tcp\"]", line, &texts);
}

#[test]
fn broken_toml_is_shown_where_it_breaks() {
    let line = "size = [64, 1024";
    refused("size = [64, 1024]", line, &["not TOML", "study.toml:8:1"]);
    refused("title = \"small\"", "title = small", &["not TOML", "study.toml:1:9"]);
}

#[test]
fn a_study_file_that_is_not_there_is_named() {
    let program = Program::new();
    for verb in ["run", "plan"] {
        program
            .run(&[verb, "no-such.toml"])
            .expect(code::REQUEST)
            .says(&["could not read the study no-such.toml", "No such file"]);
    }
    assert!(program.files().is_empty());
}

#[test]
fn a_setting_that_is_wrong_is_shown_like_a_file() {
    let program = Program::new();
    program.write("study.toml", SMALL);
    for (setting, texts) in [
        (
            "blocks.mni=3",
            &["there is no key `blocks.mni`", "--set:1:8", "one of min, max, until, target, budget"][..],
        ),
        ("blocks.min", &["this sets nothing", "--set:1:1", "KEY=VALUE"]),
        ("blocks.min=many", &["`blocks.min`", "--set:1:12", "expected a whole number"]),
        ("factors.family=[\"ipv4\", \"ipv8\"]", &["there is no family `ipv8`", "--set:1:25"]),
        ("factors.size=[8]", &["a message of 8 bytes", "--set:1:15"]),
    ] {
        program.run(&["run", "study.toml", "--set", setting]).expect(code::REQUEST).says(texts);
    }
    assert_eq!(program.files(), ["study.toml"]);
}

#[test]
fn unknown_scale_is_refused_with_those_of_the_study() {
    let program = Program::new();
    program.write("study.toml", SMALL);
    program.run(&["run", "study.toml", "--scale", "papre"]).expect(code::REQUEST).says(&[
        "the study has no scale `papre`",
        "--scale:1:1",
        "quick",
    ]);
    assert_eq!(program.files(), ["study.toml"]);
}

#[test]
fn unknown_option_is_refused_with_the_nearest_one() {
    let program = Program::new();
    program.run(&["run", "--sede", "3"]).expect(code::REQUEST).says(&["--sede", "--seed"]);
    program.run(&["mesure"]).expect(code::REQUEST);
    assert!(program.files().is_empty());
}

#[test]
fn the_help_lists_the_exit_codes_that_are_tested_here() {
    let help = Program::new().run(&["--help"]).expect(code::DONE).stdout;
    for (code, meaning) in [
        (code::DONE, "done"),
        (code::ELSE, "something else failed"),
        (code::REQUEST, "the command line or the study file is wrong"),
        (code::TESTBED, "cannot build the testbed"),
        (code::RECORD, "cannot create, read or write a record"),
        (code::HOST, "a host failed during a campaign, or its agent"),
        (code::INVALID, "the single measurement (stacklab measure) is not valid"),
        (code::WORSE, "the candidate or the second record is worse (run, compare and eyeballs --fail-on)"),
        (code::INTERRUPTED, "interrupted"),
    ] {
        let listed = help.lines().any(|line| {
            line.trim_start().split_once(' ').is_some_and(|(number, text)| {
                number == code.to_string() && text.trim_start().starts_with(meaning)
            })
        });
        assert!(listed, "{code} ({meaning}) is not in:\n{help}");
    }
}

/// A program with a real record, `small.stacklab`, of the study `study.toml`.
pub(super) fn measured() -> Program {
    require_root();
    let program = Program::new();
    program.write("study.toml", SMALL);
    program.run(&["run", "study.toml", "--out", "small.stacklab", "--seed", "5"]).expect(code::DONE);
    program
}

#[test]
fn broken_record_is_refused_and_left_alone() {
    let program = measured();
    let whole = fs::read(program.work().join("small.stacklab")).unwrap();
    let foreign = program.work().join("foreign.stacklab");
    rusqlite::Connection::open(foreign).unwrap().execute_batch("CREATE TABLE run (x)").unwrap();
    for (name, content, text) in [
        ("text.stacklab", &b"a letter to a friend\n"[..], "text.stacklab is not a stacklab record"),
        ("empty.stacklab", b"", "empty.stacklab is not a stacklab record"),
        ("first-half.stacklab", &whole[..whole.len() / 2], "the record first-half.stacklab is damaged"),
        ("first-page.stacklab", &whole[..4096], "the record first-page.stacklab is damaged"),
        ("header.stacklab", &whole[..64], "the record header.stacklab is damaged"),
    ] {
        program.write(name, content);
        program.run(&["report", name]).expect(code::RECORD).says(&[text]);
        program.run(&["run", "--resume", "--out", name]).expect(code::RECORD).says(&[text]);
        assert_eq!(fs::read(program.work().join(name)).unwrap(), content, "{name} was changed");
    }
    program.run(&["report", "foreign.stacklab"]).expect(code::RECORD).says(&["is not a stacklab record"]);
    program
        .run(&["report", "study.toml"])
        .expect(code::RECORD)
        .says(&["study.toml is not a stacklab record"]);
    for args in [&["report", "none.stacklab"][..], &["run", "--resume", "--out", "none.stacklab"]] {
        program.run(args).expect(code::RECORD).says(&["there is no record none.stacklab"]);
    }
    assert!(!program.files().contains(&"none.stacklab".to_owned()));
}

#[test]
fn a_record_of_a_newer_program_is_refused() {
    let program = measured();
    let path = program.work().join("small.stacklab");
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 999).unwrap();
    for args in [&["report", "small.stacklab"][..], &["run", "--resume", "--out", "small.stacklab"]] {
        let texts = ["small.stacklab has record format 999", "a newer one"];
        program.run(args).expect(code::RECORD).says(&texts);
    }
}

#[test]
fn record_is_not_overwritten_or_resumed_as_another() {
    let program = measured();
    let path = program.work().join("small.stacklab");
    let before = fs::read(&path).unwrap();
    program.run(&["run", "study.toml", "--out", "small.stacklab"]).expect(code::RECORD).says(&[
        "small.stacklab exists already",
        "--out",
        "--resume",
    ]);
    program.write("other.toml", SMALL.replace("1024", "1000"));
    let resume = ["run", "--resume", "--out", "small.stacklab"];
    for (args, what) in [
        (&["--seed", "6"][..], "--seed"),
        (&["other.toml"], "study (other.toml)"),
        (&["--set", "blocks.max=3"], "--set"),
        (&["--scale", "quick"], "--scale"),
    ] {
        let refused = program.run(&[&resume, args].concat()).expect(code::REQUEST);
        refused.says(&[&format!("small.stacklab cannot be resumed with another {what}"), "leave it out"]);
    }
    assert_eq!(fs::read(&path).unwrap(), before, "a refused record is not touched");
    // A repeated original setting is not a change. The campaign is complete, and nothing is measured.
    program.run(&[&resume, &["study.toml", "--seed", "5"][..]].concat()).expect(code::DONE);
    assert_eq!(count(&path, "true"), 16);
}

#[test]
fn a_record_in_a_folder_that_is_not_there_is_refused() {
    require_root();
    let program = Program::new();
    program.write("study.toml", SMALL);
    let scene = Scene::now();
    program
        .run(&["run", "study.toml", "--out", "nowhere/small.stacklab"])
        .expect(code::RECORD)
        .says(&["nowhere/small.stacklab", "No such file"]);
    scene.assert_restored(&program, &["study.toml"], Duration::from_secs(20));
}

#[test]
fn resuming_where_there_is_nothing_is_refused() {
    let program = Program::new();
    program.run(&["run", "--resume"]).expect(code::REQUEST).says(&["there is nothing to resume", "--out"]);
    assert!(program.files().is_empty());
}

/// A shell in its own mount namespace; the file system mounted there is not visible elsewhere.
const OWN_MOUNTS: [&str; 5] = ["unshare", "--mount", "sh", "-e", "-c"];

#[test]
fn a_full_disk_leaves_a_record_that_opens() {
    require_root();
    require_tool("unshare", "util-linux");
    let program = Program::new();
    program.write("study.toml", SMALL);
    let scene = Scene::now();
    let disk = program.work().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = "mount -t tmpfs -o size=400k none disk
        code=0; \"$STACKLAB\" run study.toml --set blocks.max=90 --set blocks.min=90 --out disk/x.stacklab || code=$?
        ls disk >&2
        \"$STACKLAB\" report disk/x.stacklab --format json
        exit $code";
    let outcome = Outcome::of(program.script(&OWN_MOUNTS, script)).expect(code::RECORD).says(&[
        "the disk is full: could not store a run in disk/x.stacklab",
        "free some space",
        "--resume",
    ]);
    assert!(outcome.stderr.ends_with("\nx.stacklab\n"), "nothing but the record is on the disk: {outcome}");
    let findings: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert!(findings["valid_runs"].as_u64().unwrap() >= 4, "what was committed is kept: {outcome}");
    scene.assert_restored(&program, &["study.toml", "disk"], Duration::from_secs(20));
}

#[test]
fn leaves_a_full_disk_empty() {
    require_root();
    require_tool("unshare", "util-linux");
    let program = Program::new();
    program.write("study.toml", SMALL);
    let scene = Scene::now();
    fs::create_dir(program.work().join("disk")).unwrap();
    let script = "mount -t tmpfs -o size=32k none disk
        code=0; \"$STACKLAB\" run study.toml --out disk/x.stacklab || code=$?
        ls -A disk
        exit $code";
    let outcome =
        Outcome::of(program.script(&OWN_MOUNTS, script)).expect(code::RECORD).says(&["the disk is full"]);
    assert_eq!(outcome.stdout, "", "nothing half made is left");
    scene.assert_restored(&program, &["study.toml", "disk"], Duration::from_secs(20));
}

/// A shell in its own user namespace; its limits affect no other process.
const OWN_LIMITS: [&str; 6] = ["unshare", "--user", "--map-root-user", "sh", "-e", "-c"];

#[test]
fn says_how_to_get_the_right_to_namespaces() {
    require_tool("unshare", "util-linux");
    require_tool("setpriv", "util-linux");
    let program = Program::new();
    program.write("study.toml", SMALL);
    let scene = Scene::now();
    for (limit, drop, attempted) in [
        // An ordinary user, while user namespaces are disabled.
        (
            "max_user_namespaces",
            "setpriv --bounding-set=-all --inh-caps=-all",
            "cannot enter a user namespace",
        ),
        // Root, while network namespaces are disabled.
        ("max_net_namespaces", "", "cannot make a network namespace"),
    ] {
        for verb in ["run study.toml", "doctor"] {
            let script = format!("echo 0 > /proc/sys/user/{limit}; exec {drop} \"$STACKLAB\" {verb}");
            Outcome::of(program.script(&OWN_LIMITS, &script)).expect(code::TESTBED).says(&[
                attempted,
                "sudo",
                &format!("sysctl -w user.{limit}=15000"),
            ]);
        }
    }
    scene.assert_restored(&program, &["study.toml"], Duration::from_secs(20));
}

#[test]
fn closed_output_is_no_failure_and_a_full_one_is() {
    let program = Program::new();
    let piped = Outcome::of(program.script(&["bash", "-o", "pipefail", "-c"], "\"$STACKLAB\" schema | true"));
    piped.expect(code::DONE);
    let full = Outcome::of(program.script(&["sh", "-c"], "\"$STACKLAB\" schema > /dev/full"));
    full.expect(code::ELSE).says(&["could not write to standard output", "No space left"]);
}
