//! The commands that measure nothing: schema, completions, manual pages, plan and report.

use super::bad_input::{SMALL, measured};
use crate::support;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use support::program::{Outcome, Program, code, count, names, signal};

/// The repository's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn the_committed_schema_is_the_programs_own() {
    let path = root().join("docs/study.schema.json");
    let own = Program::new().run(&["schema"]).expect(code::DONE).stdout;
    serde_json::from_str::<Value>(&own).expect("the schema is JSON");
    let committed = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        committed == own,
        "{} is not what the program prints; make it anew: stacklab schema > docs/study.schema.json",
        path.display()
    );
}

#[test]
fn completions_and_manual_pages_come_from_the_program() {
    let program = Program::new();
    for (shell, word) in
        [("bash", "complete"), ("zsh", "#compdef stacklab"), ("fish", "complete -c stacklab -n")]
    {
        let script = program.run(&["completions", shell]).expect(code::DONE).stdout;
        assert!(script.contains(word) && script.contains("resume"), "{shell}: {script}");
    }
    program.run(&["man", "pages/man"]).expect(code::DONE);
    let pages = names(&program.work().join("pages/man"));
    for page in ["stacklab.1", "stacklab-run.1", "stacklab-report.1"] {
        assert!(pages.contains(&page.to_owned()), "no {page} among {pages:?}");
        let text = fs::read_to_string(program.work().join("pages/man").join(page)).unwrap();
        assert!(text.contains(".TH"), "{page} is no manual page: {text}");
    }
    program.write("file", "");
    program.run(&["man", "file"]).expect(code::ELSE).says(&["the manual pages into file"]);
}

#[test]
fn a_plan_shows_the_matrix_and_the_order() {
    let program = Program::new();
    program.write("study.toml", SMALL);
    let text = plan(&program, "5");
    for line in [
        "family      ipv4, ipv6",
        "transport   udp, tcp",
        "size        64, 1024",
        "Cells       8",
        "Comparisons 8",
        "            family ipv6 beside ipv4",
        "Trials      8 a block, 2 blocks",
        "The first block, from seed 5:",
    ] {
        assert!(text.contains(line), "`{line}` is not in:\n{text}");
    }
    for cell in ["ipv4 udp", "ipv6 udp", "ipv4 tcp", "ipv6 tcp"] {
        let trials = text.lines().filter(|line| line.contains(&format!("stream    {cell}"))).count();
        assert_eq!(trials, 2, "{cell}:\n{text}");
    }
    assert_eq!(text, plan(&program, "5"), "the seed alone decides");
    assert_ne!(text.replace("seed 5", "seed 6"), plan(&program, "6"));
    assert_eq!(program.files(), ["study.toml"], "a plan makes nothing");
}

fn plan(program: &Program, seed: &str) -> String {
    program.run(&["plan", "study.toml", "--seed", seed]).expect(code::DONE).stdout
}

#[test]
fn every_study_can_be_planned_in_each_of_its_scales() {
    let program = Program::new();
    let folder = root().join("studies");
    let studies: Vec<String> = names(&folder).into_iter().filter(|name| name.ends_with(".toml")).collect();
    assert!(studies.contains(&"quickstart.toml".to_owned()), "{studies:?}");
    for name in studies {
        let path = folder.join(&name).display().to_string();
        let text = fs::read_to_string(&path).unwrap();
        program.run(&["plan", &path]).expect(code::DONE);
        let scales =
            text.lines().filter_map(|line| line.trim().strip_prefix("[scale.")?.split([']', '.']).next());
        for scale in scales {
            program.run(&["plan", &path, "--scale", scale]).expect(code::DONE);
        }
    }
}

#[test]
fn record_is_reported_the_same_in_every_format() {
    let program = measured();
    let path = program.work().join("small.stacklab");
    let before = fs::read(&path).unwrap();
    let [text, markdown, csv, json] =
        ["text", "markdown", "csv", "json"].map(|format| report(&program, format));
    assert_eq!(fs::read(&path).unwrap(), before, "reporting changes nothing");

    for word in ["small", "throughput", "jitter", "ipv4", "ipv6", "seed 5"] {
        assert!(text.contains(word) && markdown.contains(word), "no `{word}` in:\n{text}\n{markdown}");
    }
    assert!(markdown.lines().any(|line| line.starts_with("| ")), "no table in:\n{markdown}");

    // Two transports, two sizes, two metrics: eight comparisons of the families.
    let mut rows = csv.lines().map(|line| line.split(',').count());
    let columns = rows.next().unwrap();
    assert!(columns > 30, "{csv}");
    assert_eq!(csv.lines().count(), 1 + 8, "{csv}");

    let findings: Value = serde_json::from_str(&json).expect("the report is JSON");
    assert_eq!(findings["seed"], 5);
    let comparisons = findings["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 8);
    let mut planned = 0;
    for comparison in comparisons {
        for arm in ["baseline_estimate", "candidate_estimate"] {
            planned += 1;
            assert!(comparison[arm]["n"].as_u64().is_some_and(|n| n <= 2), "{comparison}");
        }
    }
    assert_eq!(planned, 16);
    // The report and the record agree, as read by another program.
    assert_eq!(findings["valid_runs"], count(&path, "status = 'valid'"));
    program
        .run(&["report", "small.stacklab", "--format", "jsno"])
        .expect(code::REQUEST)
        .says(&["jsno", "text", "markdown", "csv", "json"]);
}

/// The report, which is the same when it is asked for again.
fn report(program: &Program, format: &str) -> String {
    let words = ["report", "small.stacklab", "--format", format];
    let first = program.run(&words).expect(code::DONE);
    let again = program.run(&words).expect(code::DONE);
    assert!(first.stdout == again.stdout, "{format} differs between two reports of one record");
    assert_eq!(first.stderr, "", "{format}");
    first.stdout
}

#[test]
fn built_in_studies_are_printed_and_new_ones_planned() {
    let program = Program::new();
    let list = program.run(&["study", "list"]).expect(code::DONE).stdout;
    assert!(list.contains("quickstart  ") && list.contains("IPv4 beside IPv6 on this machine"), "{list}");
    let shown = program.run(&["study", "show", "quickstart"]).expect(code::DONE).stdout;
    assert_eq!(shown, fs::read_to_string(root().join("studies/quickstart.toml")).unwrap());
    program.run(&["study", "show", "quikstart"]).expect(code::REQUEST).says(&["did you mean `quickstart`?"]);
    program.run(&["study", "new", "mine.toml"]).expect(code::DONE).says(&["stacklab plan mine.toml"]);
    program.run(&["study", "new", "mine.toml"]).expect(code::REQUEST).says(&["exists already"]);
    let plan = program.run(&["plan", "mine.toml"]).expect(code::DONE).stdout;
    assert!(plan.contains("family      ipv4, ipv6"), "{plan}");
}

#[test]
fn plan_shows_delays_and_missing_image_is_said_first() {
    let program = Program::new();
    let testbed =
        "[testbed]\ntopology = \"routed\"\ndelay = \"20ms\"\nsender_link = { loss = 0.01, mtu = 9000 }\n";
    let routed = SMALL.replacen("[testbed]\n", testbed, 1);
    program.write("routed.toml", routed);
    let plan = program.run(&["plan", "routed.toml"]).expect(code::DONE).stdout;
    assert!(
        plan.contains("middle      delay 20 ms, each way") && plan.contains("near        MTU 9000, loss 1 %"),
        "{plan}"
    );
    // A cache without images: namespaces alone can run.
    let mut command = program.command(&["run", "stacks", "--out", "a.stacklab"]);
    command.env("STACKLAB_CACHE", program.work().join("empty"));
    let outcome = Outcome::of(command).expect(code::TESTBED).says(&[
        "no image of it",
        "stacklab image get gvisor (some minutes), or run the study without it: --without gvisor",
    ]);
    assert!(!outcome.stderr.contains("booting"), "{outcome}");
    assert!(!program.work().join("a.stacklab").exists());
}

#[test]
fn a_level_is_left_out_with_its_comparisons() {
    let program = Program::new();
    let plan = program.run(&["plan", "stacks", "--without", "linux-6.12"]).expect(code::DONE).stdout;
    assert!(plan.contains("Cells       32") && plan.contains("Comparisons"), "{plan}");
    assert!(plan.contains("os linux-6.1 beside namespace") && !plan.contains("linux-6.12"), "{plan}");
    program
        .run(&["plan", "stacks", "--without", "linux-6.2"])
        .expect(code::REQUEST)
        .says(&["the study has no level `linux-6.2`", "did you mean `linux-6.1`"]);
}

#[test]
fn old_flags_fail_with_the_new_name() {
    let program = Program::new();
    for (old, new) in stacklab_model::RENAMED_FLAGS {
        let text = format!("`{old}` was renamed to `{new}`");
        program.run(&["agent", "--stdio", old, "1"]).expect(code::REQUEST).says(&[&text]);
        program.run(&["path", "localhost", &format!("{old}=1")]).expect(code::REQUEST).says(&[&text]);
    }
}

#[test]
fn signal_ends_the_wait_for_a_pipe() {
    let program = Program::new();
    assert!(Command::new("mkfifo").arg(program.work().join("pipe")).status().unwrap().success());
    for (args, name) in [
        (&["run", "pipe"][..], "TERM"),
        (&["path", "--pairs", "pipe", "-n", "1"], "INT"),
        (&["measure", "udp", "127.0.0.1", "--key-file", "pipe"], "INT"),
        (&["agent", "--listen", "127.0.0.1:0", "--key-file", "pipe"], "TERM"),
        (&["agent", "--stamp", "127.0.0.1:0", "--stamp-key-file", "pipe"], "INT"),
        (&["plan", "pipe"], "TERM"),
    ] {
        let mut running = program.start(args);
        sleep(Duration::from_secs(1));
        assert!(running.is_running(), "{args:?} does not read the pipe: {}", running.stderr());
        signal(running.pid(), name);
        let outcome = running.end(Duration::from_secs(5));
        // A command without handlers is ended by the signal itself.
        assert!(matches!(outcome.status.code(), Some(130) | None), "{outcome}");
    }
    // A pipe with a writer is read.
    program.write("study.toml", SMALL);
    let piped = program.script(&["bash", "-c"], "cat study.toml > pipe & exec \"$STACKLAB\" plan pipe");
    assert!(Outcome::of(piped).expect(code::DONE).stdout.contains("small"));
}
