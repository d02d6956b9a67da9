//! Other systems' stacks, really running: gVisor's sandbox, a Debian kernel in a virtual machine, user-mode Linux.
//!
//! The tests need images that `make test-all` has fetched before. If one is missing they fail; nothing is skipped.

use crate::support;

use stacklab_guests::image::sha256;
use stacklab_model::{CpuScope, Factor, Metric, Role, RunRecord, Systems, wire_size};
use stacklab_store::{HostRow, Record};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::leftovers::{Scene, processes_of};
use support::others::allowed;
use support::program::{Program, children, code, require_root, signal};
use support::records::{figure, runs, side, warns};
use support::studies::TestStudy;

/// Allowed deviation of a full link from the rate that the headers leave.
const TOLERANCE: f64 = 0.01;
/// Allowed deviation of the median of its runs.
const FAR: f64 = 0.05;
/// Links by packet size, bytes and Mbit/s. 50 Mbit/s of small packets is near the limit of an emulated machine, and
/// of a sandbox on a busy machine; there the system limits the rate, not the link.
const LINKS: [(u32, u32); 2] = [(1408, 50), (128, 10)];
/// Runs of each cell.
const BLOCKS: u32 = 3;
/// Maximum time after an end until everything is removed.
const SOON: Duration = Duration::from_secs(3);

/// A study of floods and echoes between the given systems.
fn study(systems: &[&str], transports: &[&str], milliseconds: u32, blocks: u32) -> TestStudy {
    TestStudy::new("Systems on a link of 50 Mbit/s")
        .rate("50 Mbit/s")
        .systems(systems)
        .families()
        .transports(transports)
        .sizes(&[128, 1408])
        .stream(&["throughput", "cpu_receiver"])
        .time(&format!("{milliseconds}ms"))
        .warmup("200ms")
        .interval("100ms")
        .echo(&["rtt"])
        .time("50ms")
        .warmup("20ms")
        .schedule("sequential")
        .blocks(blocks)
        .compare_families()
}

/// The payload rate that the headers leave on the link, Mbit/s.
fn limit(run: &RunRecord) -> f64 {
    let cell = &run.trial.cell;
    let wire = wire_size(cell.family, cell.transport, cell.size, 1500).wire_bytes;
    let link = LINKS.into_iter().find(|(size, _)| *size == cell.size).expect("each size has its link");
    f64::from(link.1) * f64::from(cell.size) / f64::from(wire)
}

/// Runs as shares of that rate, by cell and system.
type Cells = BTreeMap<(String, String), Vec<f64>>;

/// Adds the shares of runs that filled the link. A run that did not fill it says so, and does not describe the link.
fn add_shares(all: &[RunRecord], cells: &mut Cells) {
    for run in all.iter().filter(|run| run.values.contains_key(&Metric::Throughput)) {
        let cell = &run.trial.cell;
        let shares = cells.entry((cell.to_string(), cell.level(Factor::Os))).or_default();
        if !warns(run, "below_link") {
            shares.push(figure(run, Metric::Throughput) / limit(run));
        }
    }
}

/// The cells that differ from the header model. An emulated machine pauses occasionally, and a sandbox is near its
/// own limit with small packets: the closest run must be correct, and the median near it.
fn far(cells: &Cells) -> Cells {
    let mut far = cells.clone();
    far.retain(|_, shares| is_wrong(shares));
    far
}

fn is_wrong(shares: &[f64]) -> bool {
    let closest = shares.iter().map(|share| (share - 1.0).abs()).fold(f64::INFINITY, f64::min);
    let mut sorted = shares.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    closest > allowed(TOLERANCE) || (median - 1.0).abs() > allowed(FAR)
}

const SYSTEMS: [&str; 5] = ["gvisor", "linux-6.1", "uml", "namespace -> gvisor", "linux-6.1 -> namespace"];

#[test]
fn every_system_fills_a_link_and_is_recorded_as_it_is() {
    require_root();
    let program = Program::new();
    let scene = Scene::now();
    let all = measure_systems(&program, &SYSTEMS, LINKS[0], "x.stacklab");
    let mut cells: Cells = BTreeMap::new();
    add_shares(&all, &mut cells);
    add_shares(&measure_systems(&program, &SYSTEMS, LINKS[1], "small.stacklab"), &mut cells);
    measure_far_cells_again(&program, &mut cells);
    assert_eq!(cells.len(), SYSTEMS.len() * 4);
    let far = far(&cells);
    assert!(far.is_empty(), "of {} cells: {far:#?}", SYSTEMS.len() * 4);
    check_kernels(&program);
    check_cpu_scopes(&all);
    scene.assert_restored(&program, &["study.toml", "x.stacklab"], SOON);
}

/// Measures systems on a link. One record, x.stacklab, is kept.
fn measure_systems(program: &Program, systems: &[&str], link: (u32, u32), name: &str) -> Vec<RunRecord> {
    let (size, mbit) = link;
    let study = study(systems, &["udp"], 400, BLOCKS).sizes(&[size]).rate(&format!("{mbit} Mbit/s"));
    program.write("study.toml", study.text());
    let outcome = program.run(&["run", "study.toml", "--out", name, "--seed", "1"]).expect(code::DONE);
    assert!(outcome.stdout.contains("udp"), "{}", outcome.stdout);
    let all = runs(&program.work().join(name));
    assert_eq!(all.len(), systems.len() * 2 * 2 * BLOCKS as usize);
    if name != "x.stacklab" {
        fs::remove_file(program.work().join(name)).unwrap();
    }
    all
}

/// Cells disturbed by other load are measured again, twice at most; real faults remain.
fn measure_far_cells_again(program: &Program, cells: &mut Cells) {
    for round in 1..3 {
        for link in LINKS {
            let far = far(cells);
            let size = format!(" {} B", link.0);
            let mut again = SYSTEMS.to_vec();
            again.retain(|name| far.keys().any(|(cell, os)| os == name && cell.contains(&size)));
            if !again.is_empty() {
                println!("measured again: {far:#?}");
                let out = format!("again{round}-{}.stacklab", link.0);
                add_shares(&measure_systems(program, &again, link, &out), cells);
            }
        }
    }
}

/// Each system is the one that its name states, by its own report.
fn check_kernels(program: &Program) {
    let hosts = Record::read(&program.work().join("x.stacklab")).unwrap().hosts().unwrap();
    let own = &find_host(&hosts, "receiver").facts.kernel;
    let linux = find_host(&hosts, "sender (linux-6.1)");
    assert!(linux.facts.kernel.starts_with("6.1."), "{}", linux.facts.kernel);
    assert!(linux.kind.contains("in QEMU"), "{}", linux.kind);
    for name in ["sender (gvisor)", "receiver (uml)"] {
        assert_ne!(find_host(&hosts, name).facts.kernel, *own, "{name}");
    }
    let uml = &find_host(&hosts, "receiver (uml)").kind;
    assert!(uml.contains("user-mode Linux 7."), "{uml}");
}

fn find_host<'a>(hosts: &'a [HostRow], name: &str) -> &'a HostRow {
    hosts.iter().find(|host| host.name == name).unwrap_or_else(|| panic!("no host {name}"))
}

/// Processor time is measured inside the system if it counts it, and otherwise outside.
fn check_cpu_scopes(all: &[RunRecord]) {
    for (systems, role, scope) in [
        ("linux-6.1", Role::Receiver, CpuScope::Host),
        ("uml", Role::Sender, CpuScope::Outside),
        ("gvisor", Role::Receiver, CpuScope::Outside),
        ("linux-6.1 -> namespace", Role::Receiver, CpuScope::Shared),
    ] {
        let between: Systems = systems.parse().unwrap();
        let mut streams = all.iter().filter(|run| run.values.contains_key(&Metric::Throughput));
        let run = streams.find(|run| Systems::of(&run.trial.cell) == between).unwrap();
        assert_eq!(side(run, role).cpu.as_ref().map(|cpu| cpu.scope), Some(scope), "{systems}");
    }
}

#[test]
fn dying_guest_ends_the_campaign_which_is_resumed() {
    require_root();
    for (system, guest) in [("gvisor", "runsc"), ("linux-6.1", "qemu-system-x86"), ("uml", "kernel")] {
        let program = Program::new();
        let scene = Scene::now();
        program.write("study.toml", study(&[system], &["udp"], 200, 2).sizes(&[1408]).text());
        let running = program.start(&["run", "study.toml", "--out", "x.stacklab", "--seed", "1"]);
        let record = program.work().join("x.stacklab");
        let start = Instant::now();
        while count_runs(&record) < 3 {
            assert!(start.elapsed() < Duration::from_secs(60), "{system}: nothing was measured");
            sleep(Duration::from_millis(20));
        }
        let pid = children(running.pid()).into_iter().find(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.starts_with(&guest[..guest.len().min(15)]))
        });
        let killed = Instant::now();
        signal(pid.unwrap_or_else(|| panic!("{system}: no {guest} among the program's children")), "KILL");
        let outcome = running.end(Duration::from_secs(20)).expect(code::HOST);
        assert!(killed.elapsed() < Duration::from_secs(10), "{system}: {:?}", killed.elapsed());
        assert!(outcome.stderr.contains(system) && outcome.stderr.contains("--resume"), "{}", outcome.stderr);
        scene.assert_restored(&program, &["study.toml", "x.stacklab"], SOON);
        let before = count_runs(&record);
        program.run(&["run", "--resume", "--out", "x.stacklab"]).expect(code::DONE);
        // Two families, probes and blocks.
        assert!(before >= 3 && runs(&record).len() == 2 * 2 * 2, "{system}");
    }
}

/// The runs of a record so far, which may not exist yet.
fn count_runs(record: &Path) -> usize {
    Record::read(record).and_then(|record| record.runs()).map_or(0, |runs| runs.len())
}

#[test]
fn what_is_missing_or_broken_is_said_before_start() {
    require_root();
    let program = Program::new();
    let scene = Scene::now();
    program.write("study.toml", study(&["linux-6.1"], &["udp"], 200, 2).text());
    let cache = tempfile::tempdir().unwrap();
    let missing = refuse_to_run(&program, cache.path());
    assert!(missing.contains("stacklab image get linux-6.1"), "{missing}");

    // A truncated image.
    let own = std::env::var("STACKLAB_CACHE").expect("make test-all names the folder of images");
    let folder = cache.path().join("images");
    fs::create_dir_all(&folder).unwrap();
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .arg(Path::new(&own).join("images/linux-6.1"))
        .arg(&folder)
        .status();
    assert!(copied.unwrap().success());
    let kernel = folder.join("linux-6.1/kernel");
    let bytes = fs::read(&kernel).unwrap();
    let fetched = sha256(&kernel).unwrap();
    fs::write(&kernel, &bytes[..bytes.len() - 1]).unwrap();
    let broken = refuse_to_run(&program, cache.path());
    assert!(broken.contains("incomplete") && broken.contains("stacklab image get linux-6.1"), "{broken}");

    // An image that differs from the fetched one is not booted.
    let mut other = bytes.clone();
    other[bytes.len() / 2] ^= 1;
    fs::write(&kernel, &other).unwrap();
    let changed = refuse_to_run(&program, cache.path());
    assert!(
        changed.contains("linux-6.1/kernel differs") && changed.contains("image get linux-6.1"),
        "{changed}"
    );
    let mut check = program.command(&["image", "check"]);
    check.env("STACKLAB_CACHE", cache.path());
    let checked = support::program::Outcome::of(check).expect(code::TESTBED);
    assert!(checked.stderr.contains("differs from the downloaded file"), "{}", checked.stderr);

    // A kernel that does not boot, although it was fetched so.
    fs::write(&kernel, vec![0; bytes.len()]).unwrap();
    let label = folder.join("linux-6.1/image.json");
    let text = fs::read_to_string(&label).unwrap().replace(&fetched, &sha256(&kernel).unwrap());
    fs::write(&label, text).unwrap();
    let start = Instant::now();
    let dead = refuse_to_run(&program, cache.path());
    assert!(dead.contains("boot"), "{dead}");
    assert!(start.elapsed() < Duration::from_secs(90), "{:?}", start.elapsed());
    scene.assert_restored(&program, &["study.toml"], SOON);
    assert!(processes_of(&program.path()).is_empty());
}

/// Why the study cannot be run with these images.
fn refuse_to_run(program: &Program, cache: &Path) -> String {
    let mut command = program.command(&["run", "study.toml", "--out", "x.stacklab"]);
    command.env("STACKLAB_CACHE", cache);
    support::program::Outcome::of(command).expect(code::TESTBED).stderr
}

#[test]
fn images_are_listed_and_are_as_they_were_made() {
    let program = Program::new();
    let listed = program.run(&["image", "list"]).expect(code::DONE).stdout;
    for system in ["gvisor", "linux-6.1", "uml", "uml-full"] {
        let line = listed.lines().find(|line| line.trim_start().starts_with(&format!("{system} ")));
        assert!(line.is_some_and(|line| !line.contains("not here")), "{listed}");
    }
    let checked = program.run(&["image", "check"]).expect(code::DONE).stdout;
    assert!(
        checked.lines().count() >= 4 && checked.lines().all(|line| line.ends_with("is unchanged")),
        "{checked}"
    );
    let unknown = program.run(&["image", "get", "linux-2.4"]).expect(code::TESTBED).stderr;
    assert!(unknown.contains("linux-5.10, linux-6.1, linux-6.12"), "{unknown}");
    assert!(!unknown.contains("removing"), "nothing was made: {unknown}");
}

#[test]
fn wrong_systems_of_a_study_are_said_with_their_place() {
    let program = Program::new();
    for (os, expected) in [
        ("gvisr", "did you mean `gvisor`"),
        ("ssh:lab", "the ipv4 address of `localhost` is unknown"),
        ("gvisor -> ssh:lab", "share no network"),
    ] {
        let study = study(&[os], &["udp"], 200, 2);
        program.write("study.toml", study.text());
        let place = format!("study.toml:{}:", study.line_of("os"));
        program.run(&["plan", "study.toml"]).expect(code::REQUEST).says(&[expected, &place]);
    }
}
