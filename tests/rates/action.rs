//! The shell part of the GitHub Action, run as a runner would: `action.yml` maps inputs to variables, and the script
//! writes the summary of the job, annotations and outputs.

use crate::support;

use stacklab_testbed::program_in_path;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::program::{Outcome, Program, code, require_root, require_tool};

/// A user that is not root.
const USER: u32 = 12345;
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A workspace with the example study, and base and candidate builds of iperf3.
fn workspace(candidate: &str) -> Program {
    require_root();
    require_tool("iperf3", "iperf3");
    let program = Program::new();
    fs::copy(at("contrib/action/iperf3.toml"), program.work().join("study.toml")).unwrap();
    let real = program_in_path("iperf3").expect("iperf3 is installed");
    for (build, before) in [("base", ""), ("candidate", candidate)] {
        let folder = program.work().join(build).join("src");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("iperf3");
        fs::write(&file, format!("#!/bin/sh\n{before}\nexec {} \"$@\"\n", real.display())).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    program
}

fn at(file: &str) -> PathBuf {
    Path::new(ROOT).join(file)
}

/// What a run of the action left for the runner.
struct Job {
    outcome: Outcome,
    summary: String,
    outputs: String,
}

impl Job {
    fn output(&self, name: &str) -> Option<&str> {
        self.outputs.lines().rev().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Runs the script with these inputs, in an environment that has nothing else of this test's.
fn act(program: &Program, inputs: &[(&str, &str)]) -> Job {
    let [summary, outputs] = ["summary", "outputs"].map(|name| program.tmp().join(name));
    for file in [&summary, &outputs] {
        fs::write(file, "").unwrap();
    }
    let mut command = Command::new(at("contrib/action/run"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("TMPDIR", program.tmp());
    command.env("GITHUB_WORKSPACE", program.work());
    command.env("GITHUB_STEP_SUMMARY", &summary).env("GITHUB_OUTPUT", &outputs);
    command.env("INPUT_STACKLAB", program.path());
    command.envs(inputs.iter().copied());
    let outcome = Outcome::of(command);
    let [summary, outputs] = [summary, outputs].map(|file| fs::read_to_string(file).unwrap());
    Job { outcome, summary, outputs }
}

/// Few short trials, and an allowance that no disturbance reaches.
const SHORT: [(&str, &str); 3] = [
    ("INPUT_STUDY", "study.toml"),
    ("INPUT_SET", "blocks.min=8\nblocks.max=8\nprobe.stream.length={packets=100000}"),
    ("INPUT_FAIL_ON", "worse=20%"),
];

#[test]
fn action_fails_a_slower_candidate() {
    let program = workspace("export DELAY_NS=5000 LD_PRELOAD=${0%/*}/delayed_write.so");
    let library = program.work().join("candidate/src/delayed_write.so");
    let mut compiled = Command::new("cc");
    compiled.args(["-O2", "-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&library);
    compiled.arg(at("tests/support/delayed_write.c")).arg("-ldl");
    assert!(compiled.status().expect("cc is installed").success(), "{compiled:?}");

    let job = act(&program, &SHORT);
    let Job { outcome, summary, .. } = &job;
    assert_eq!(job.output("verdict"), Some("worse"), "{outcome}");
    assert!(outcome.stdout.contains("\n::error title=stacklab::"), "{outcome}");
    let annotated = "candidate/src has sender CPU per message higher by a factor of";
    assert!(outcome.stdout.contains(annotated), "{outcome}");
    // A sentence, what is worse, the verdicts, and the rest folded.
    let parts = [
        "**The candidate is worse by more than 20 %",
        "- IPv4 UDP 1408 B",
        "## Verdicts",
        "| sender CPU per message, UDP, IPv4",
        "<details>",
        "## Notes",
    ];
    let places: Vec<usize> =
        parts.iter().map(|part| summary.find(part).unwrap_or_else(|| panic!("{part}: {summary}"))).collect();
    assert!(places.is_sorted() && places[0] == 0, "{places:?}: {summary}");
    for name in ["record", "report"] {
        let file = job.output(name).unwrap_or_else(|| panic!("{name}: {}", job.outputs));
        assert!(fs::metadata(file).unwrap().len() > 0, "{file}");
    }
    job.outcome.expect(code::WORSE);
}

fn inode(file: &Path) -> u64 {
    fs::metadata(file).unwrap().ino()
}

#[test]
fn action_passes_an_equal_candidate() {
    let program = workspace("");
    let job = act(&program, &SHORT);
    assert!(matches!(job.output("verdict"), Some("better-or-equal" | "inconclusive")), "{}", job.outcome);
    assert!(job.summary.starts_with("**Not worse"), "{}", job.summary);
    assert!(!job.outcome.stdout.contains("::error"), "{}", job.outcome);
    job.outcome.expect(code::DONE);
    // In a workspace that is kept, the record before is replaced. One that cannot be is not among the outputs.
    let record = program.work().join("pull-request.stacklab");
    let before = inode(&record);
    let refused = [SHORT[0], ("INPUT_SET", "no.such=key")];
    let job = act(&program, &refused);
    assert_eq!((job.output("verdict"), job.output("record")), (Some("failed"), None), "{}", job.outcome);
    assert!(!record.exists());
    fs::write(&record, "not a record").unwrap();
    let job = act(&program, &SHORT);
    assert_eq!((job.output("verdict"), job.output("record")), (Some("failed"), None), "{}", job.outcome);
    assert!(job.outcome.stdout.contains("is not a record: name another file"), "{}", job.outcome);
    fs::remove_file(&record).unwrap();
    for _ in 0..2 {
        let job = act(&program, &SHORT);
        assert!(matches!(job.output("verdict"), Some("better-or-equal" | "inconclusive")), "{}", job.outcome);
        assert_eq!(job.output("record"), record.to_str(), "{}", job.outputs);
    }
    assert_ne!(inode(&record), before);
    // The same record as base and candidate.
    let compare = [("INPUT_COMPARE", "pull-request.stacklab pull-request.stacklab")];
    let job = act(&program, &compare);
    assert!(matches!(job.output("verdict"), Some("better-or-equal" | "inconclusive")), "{}", job.outcome);
    assert!(job.summary.contains("pull-request.stacklab"), "{}", job.summary);
    job.outcome.expect(code::DONE);
}

#[test]
fn action_keeps_databases_of_other_programs() {
    let program = Program::new();
    let file = program.work().join("pull-request.stacklab");
    let database = [b"SQLite format 3\0".as_slice(), &[0; 84]].concat();
    fs::write(&file, &database).unwrap();
    let job = act(&program, &SHORT);
    assert_eq!(job.output("verdict"), Some("failed"), "{}", job.outcome);
    assert!(job.outcome.stdout.contains("is not a record: name another file"), "{}", job.outcome);
    assert_eq!(fs::read(&file).unwrap(), database);
}

#[test]
fn action_fails_a_candidate_that_does_not_run() {
    let program = workspace("case \" $* \" in *\" -c \"*) echo crashed >&2; exit 1;; esac");
    // Not root, as on a runner, by programs in place of id and sudo.
    let tools = program.work().join("tools");
    fs::create_dir(&tools).unwrap();
    let calls = program.tmp().join("calls");
    let sudo = format!("shift; echo \"$@\" >>{}; exec \"$@\"", calls.display());
    for (name, script) in [("id", format!("echo {USER}")), ("sudo", sudo)] {
        fs::write(tools.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(tools.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let job = act(&program, &[&SHORT[..], &[("PATH", path.as_str())]].concat());
    assert_eq!(job.output("verdict"), Some("worse"), "{}", job.outcome);
    let calls = fs::read_to_string(calls).unwrap();
    assert!(calls.contains("stacklab run study.toml"), "{calls}");
    let record = fs::metadata(job.output("record").unwrap()).unwrap();
    assert_eq!((record.uid(), record.gid()), (USER, USER), "the record is its user's");
    assert!(job.summary.contains("candidate/src lacks throughput, unlike base/src"), "{}", job.summary);
    job.outcome.expect(code::WORSE);
    // Neither build: there is nothing to compare.
    fs::remove_dir_all(program.work().join("base")).unwrap();
    let job = act(&program, &[&SHORT[..], &[("INPUT_OUT", "other.stacklab")]].concat());
    assert_eq!(job.output("verdict"), Some("failed"), "{}", job.outcome);
    assert!(job.outcome.stdout.contains("::error title=stacklab::there is no program"), "{}", job.outcome);
    job.outcome.expect(code::TESTBED).says(&["base/src/iperf3"]);
}

#[test]
fn action_refuses_wrong_inputs() {
    let program = Program::new();
    for (inputs, reason) in [
        (&[][..], "study or compare"),
        (&[("INPUT_STUDY", "a.toml"), ("INPUT_COMPARE", "a b")][..], "exclude each other"),
        (&[("INPUT_COMPARE", "a")][..], "two records"),
        (&[("INPUT_COMPARE", "a b"), ("INPUT_STACKLAB", "nowhere")][..], "nowhere is not a program"),
        (
            &[("INPUT_COMPARE", "a b"), ("INPUT_STACKLAB", "![i](http://e.example)<b>@me")][..],
            "\\!\\[i\\](http\\://e.example)&lt;b>@&#8203;me is not a program",
        ),
    ] {
        let job = act(&program, inputs);
        assert!(!job.outcome.status.success(), "{}", job.outcome);
        assert!(job.outcome.stdout.contains("::error title=stacklab::"), "{}", job.outcome);
        assert!(job.summary.contains(reason), "{reason}: {}", job.summary);
        assert_eq!(job.output("verdict"), Some("failed"));
    }
}

/// A folder as the assets of a release: the program, and the sums of its archive.
#[test]
fn action_checks_a_downloaded_release() {
    let program = Program::new();
    let name = format!("stacklab-1.2.3-{}-linux", std::env::consts::ARCH);
    let release = program.work().join("releases/v1.2.3");
    fs::create_dir_all(release.join(&name)).unwrap();
    let script = format!(
        "cd releases/v1.2.3 && cp {} {name}/ && tar -czf {name}.tar.gz {name} && sha256sum *.tar.gz >SHA256SUMS && rm -r {name}",
        program.path().display()
    );
    Outcome::of(program.script(&["sh", "-c"], &script)).expect(code::DONE);
    fs::copy(at("tests/records/kept.stacklab"), program.work().join("kept.stacklab")).unwrap();
    download(&program, "1.2.3").outcome.expect(code::DONE);
    download(&program, "v1.2.3").outcome.expect(code::DONE);
    refuse_to_download(&program, "9.9.9");
    let archive = release.join(format!("{name}.tar.gz"));
    let mut bytes = fs::read(&archive).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&archive, bytes).unwrap();
    refuse_to_download(&program, "1.2.3");
}

fn download(program: &Program, version: &str) -> Job {
    let releases = format!("file://{}/releases", program.work().display());
    let compare = ("INPUT_COMPARE", "kept.stacklab kept.stacklab");
    let from = ("STACKLAB_RELEASES", releases.as_str());
    act(program, &[("INPUT_STACKLAB", ""), ("INPUT_VERSION", version), compare, from])
}

fn refuse_to_download(program: &Program, version: &str) {
    let job = download(program, version);
    assert_eq!(job.output("verdict"), Some("failed"), "{}", job.outcome);
    assert!(job.summary.contains("cannot be downloaded, or its SHA-256 sum is wrong"), "{}", job.summary);
}

#[test]
fn action_maps_every_input_of_its_script() {
    let [action, script] =
        ["action.yml", "contrib/action/run"].map(|file| fs::read_to_string(at(file)).unwrap());
    let used: Vec<&str> = script.match_indices("${INPUT_").map(|(at, _)| &script[at + 2..]).collect();
    assert!(used.len() > 5);
    for name in used {
        let name = name.split(|c: char| c != '_' && !c.is_ascii_uppercase()).next().unwrap();
        let input = name.trim_start_matches("INPUT_").to_lowercase().replace('_', "-");
        assert!(action.contains(&format!("{name}: ${{{{ inputs.{input} }}}}")), "{name}");
        assert!(action.contains(&format!("\n  {input}:\n")), "{input}");
    }
    let [docs, example] =
        ["docs/action.md", "contrib/action/workflow.yml"].map(|file| fs::read_to_string(at(file)).unwrap());
    let quoted: String = example
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| format!("{}\n", indent(line)))
        .collect();
    assert!(docs.contains(&quoted), "docs/action.md has not the lines of contrib/action/workflow.yml");
}

fn indent(line: &str) -> String {
    if line.is_empty() { String::new() } else { format!("    {line}") }
}
