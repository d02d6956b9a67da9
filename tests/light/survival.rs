//! However the program ends, only the record remains, and the campaign resumes from it.

use crate::support;

use stacklab_model::SplitMix64;
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use support::leftovers::{Scene, processes_of};
use support::planned::{Row, measured};
use support::program::{Program, Running, children, code, count, invalid, require_root, signal};
use support::random::Random;
use support::studies::TestStudy;

/// Four cells, as streams and echoes: 16 runs per block, about 0.8 s, and eight blocks whatever the figures.
fn study() -> TestStudy {
    TestStudy::new("survival")
        .families()
        .transports(&["udp", "tcp"])
        .sizes(&[64, 1024])
        .stream(&["throughput"])
        .time("40ms")
        .warmup("5ms")
        .interval("5ms")
        .echo(&["rtt"])
        .time("20ms")
        .warmup("5ms")
        .schedule("sequential")
        .blocks(8)
        .compare_families()
}

const SEED: u64 = 20_241;
/// The campaign, started or resumed.
const BEGIN: [&str; 6] = ["run", "study.toml", "--out", "x.stacklab", "--seed", "20241"];
const RESUME: [&str; 4] = ["run", "--resume", "--out", "x.stacklab"];
/// The files that may be in its folder, and the maximum time until everything else is removed: on a busy machine the
/// kernel takes its time.
const FILES: [&str; 2] = ["study.toml", "x.stacklab"];
const SOON: Duration = Duration::from_secs(20);
/// Maximum duration of a campaign here.
const LIMIT: Duration = Duration::from_secs(120);

fn program() -> (Program, Scene) {
    require_root();
    let program = Program::new();
    program.write("study.toml", study().text());
    (program, Scene::now())
}

/// The runs in the study's plan: all of its blocks, since its minimum and maximum number of blocks are equal.
fn planned() -> Vec<Row> {
    support::planned::planned(&study().text(), SEED)
}

/// Random moments. The seed is from the environment to repeat a failure, otherwise from the clock.
fn seeded() -> Random {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    let seed = std::env::var("SURVIVAL_SEED").map_or(now, |text| text.parse().expect("a number"));
    println!("kills are drawn from SURVIVAL_SEED={seed}");
    Random(SplitMix64(seed))
}

#[test]
fn each_block_has_a_testbed_of_its_own() {
    let (program, _) = program();
    let mut running =
        program.start(&[&BEGIN[..], &["--set", "blocks.min=3", "--set", "blocks.max=3"]].concat());
    let mut hosts = BTreeSet::new();
    while running.is_running() {
        hosts.extend(children(running.pid()));
        sleep(Duration::from_millis(10));
    }
    running.end(LIMIT).expect(code::DONE);
    assert_eq!(hosts.len(), 6, "two hosts for each of three blocks");
}

#[test]
fn killed_campaign_is_resumed_to_the_same_end() {
    let (program, scene) = program();
    let path = program.work().join("x.stacklab");
    let mut random = seeded();
    // While the testbed is built and the record created, during the first runs, and at any time.
    let moments = [40, 150, 300, 500, 500, 500, 1000, 1000, 1000, 1000].map(|limit| random.below(limit));
    for moment in moments {
        let mut running = program.start(if path.exists() { &RESUME } else { &BEGIN });
        sleep(Duration::from_millis(moment));
        assert!(running.kill(), "the campaign ended before it was killed: it is too short for this test");
        // A kill in the middle of a commit leaves the database's journal, and the next opening rolls the commit back.
        // If the commit had not changed the database yet, its journal stays until the next commit.
        let files = [&FILES[..], &["x.stacklab-journal"]].concat();
        scene.assert_restored(&program, &files, SOON);
        let kept = path.exists().then(|| {
            program.run(&["report", "x.stacklab"]).expect(code::DONE);
            measured(&path)
        });
        scene.assert_restored(&program, &files, SOON);
        let runs = kept.as_ref().map_or("no record".to_owned(), |runs| format!("{} runs kept", runs.len()));
        println!("killed after {moment} ms: {runs}");
        assert!(planned().starts_with(&kept.unwrap_or_default()), "what is kept is the plan's beginning");
    }
    program.start(if path.exists() { &RESUME } else { &BEGIN }).end(LIMIT).expect(code::DONE);
    let resumed = measured(&path);
    scene.assert_restored(&program, &FILES, SOON);

    // The same campaign without interruption.
    std::fs::remove_file(&path).unwrap();
    let whole = program.start(&BEGIN).end(LIMIT).expect(code::DONE);
    let uninterrupted = measured(&path);
    assert_eq!(planned().len(), 128);
    assert_eq!(uninterrupted, planned(), "{whole}");
    assert_eq!(resumed, uninterrupted);
    scene.assert_restored(&program, &FILES, SOON);
}

/// Ends a campaign by a signal in its second block, and checks that it ends cleanly.
fn ended_by(name: &str) {
    let (program, scene) = program();
    let path = program.work().join("x.stacklab");
    let mut running = program.start(&BEGIN);
    running.wait_for("block 2/8", LIMIT);
    let sent = Instant::now();
    signal(running.pid(), name);
    let outcome = running.end(Duration::from_secs(5)).expect(code::INTERRUPTED);
    println!("SIG{name}: ended after {:?}", sent.elapsed());
    let kept = measured(&path);
    assert!((16..32).contains(&kept.len()), "{} runs are kept: {outcome}", kept.len());
    for text in ["survival", "throughput", "RTT", "IPv4", "IPv6"] {
        assert!(outcome.stdout.contains(text), "`{text}` is not among the findings of {outcome}");
    }
    let outcome = outcome.says(&["interrupted", "results so far are kept", "--resume --out x.stacklab"]);
    assert!(
        outcome.stdout.contains(&format!("{} valid runs", count(&path, "status = 'valid'"))),
        "{outcome}"
    );
    scene.assert_restored(&program, &FILES, SOON);
    program.start(&RESUME).end(LIMIT).expect(code::DONE);
    assert_eq!(measured(&path), planned());
    scene.assert_restored(&program, &FILES, SOON);
}

#[test]
fn ctrl_c_ends_with_findings_and_can_be_resumed() {
    ended_by("INT");
}

#[test]
fn being_asked_to_end_is_as_good_as_ctrl_c() {
    ended_by("TERM");
}

#[test]
fn ctrl_c_while_the_testbed_is_built_leaves_nothing() {
    let (program, scene) = program();
    for _ in 0..5 {
        let mut running = program.start(&BEGIN);
        // The testbed is being built from here on: its first host exists.
        let start = Instant::now();
        while children(running.pid()).is_empty() {
            assert!(
                running.is_running() && start.elapsed() < SOON,
                "no host was started: {}",
                running.stderr()
            );
        }
        signal(running.pid(), "INT");
        running.end(Duration::from_secs(5)).expect(code::INTERRUPTED).says(&["interrupted"]);
        scene.assert_restored(&program, &FILES, SOON);
    }
}

/// Kills the process of a host during the campaign.
/// The two hosts, when they have stood long enough to be complete: each block has its own.
fn hosts(running: &Running) -> [u32; 2] {
    let begun = Instant::now();
    loop {
        let found = children(running.pid());
        sleep(Duration::from_millis(300));
        if let (Ok(mut hosts), true) = (<[u32; 2]>::try_from(found.clone()), children(running.pid()) == found)
        {
            hosts.sort_unstable();
            return hosts;
        }
        assert!(begun.elapsed() < LIMIT, "no two hosts stand: {found:?}");
    }
}

fn host_killed(number: usize, name: &str) {
    let (program, scene) = program();
    let path = program.work().join("x.stacklab");
    let mut running = program.start(&BEGIN);
    running.wait_for("block 2/8", LIMIT);
    sleep(Duration::from_millis(seeded().below(300)));
    // The sender's process is started first.
    let [sender, receiver] = hosts(&running);
    signal([sender, receiver][number], "KILL");
    let killed = Instant::now();
    let outcome = running.end(Duration::from_secs(5)).expect(code::HOST);
    println!("{name} killed: noticed after {:?}", killed.elapsed());
    let outcome = outcome.says(&[&format!("{name} disconnected during"), "run --resume --out x.stacklab"]);
    assert!(outcome.stdout.contains("throughput"), "what was measured is reported: {outcome}");
    let lost = invalid(&path).into_iter().filter(|reasons| reasons.contains("could not"));
    assert_eq!(
        lost.collect::<Vec<_>>(),
        [""; 0],
        "a run that a dead host spoilt is to be done again: {outcome}"
    );
    scene.assert_restored(&program, &FILES, SOON);
    program.start(&RESUME).end(LIMIT).expect(code::DONE);
    assert_eq!(measured(&path), planned());
}

#[test]
fn a_sender_that_dies_ends_the_campaign_by_name() {
    host_killed(0, "sender");
}

#[test]
fn a_receiver_that_dies_ends_the_campaign_by_name() {
    host_killed(1, "receiver");
}

#[test]
fn record_has_one_writer_at_a_time_and_any_readers() {
    let (program, scene) = program();
    let mut first: Running = program.start(&BEGIN);
    first.wait_for("block 2/8", LIMIT);
    program.run(&RESUME).expect(code::RECORD).says(&["x.stacklab is in use by another stacklab", "wait"]);
    program.run(&BEGIN).expect(code::RECORD).says(&["x.stacklab exists already"]);
    program.run(&["report", "x.stacklab", "--format", "csv"]).expect(code::DONE);
    assert!(first.is_running(), "the second one came while the first was measuring");
    hosts(&first);
    assert_eq!(processes_of(&program.path()).len(), 3, "coordinator and two hosts: the first one's");
    first.end(LIMIT).expect(code::DONE);
    assert_eq!(measured(&program.work().join("x.stacklab")), planned(), "the first one was not disturbed");
    scene.assert_restored(&program, &FILES, SOON);
}
