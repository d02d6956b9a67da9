//! Other programs as generators: Debian's own iperf3, iperf and D-ITG in the namespaces of a testbed, and programs that
//! lie, die and hang.

use crate::support;

use stacklab_model::{Factor, Family, Generator, LinkConfig, Metric, Role, RunRecord, Transport};
use stacklab_testbed::{Testbed, Workdir, enter};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::leftovers::Scene;
use support::program::{Program, code, invalid, require_root, require_tool, signal};
use support::records::{figure, measure, side};
use support::studies::TestStudy;

const BYTES: u32 = 1200;

/// A study of these generators with this number of messages per trial.
fn study(generators: &[&str], messages: u32) -> TestStudy {
    TestStudy::new("Generators")
        .rate("20 Mbit/s")
        .levels(Factor::Generator, generators.iter().copied())
        .families()
        .transports(&["udp"])
        .size_of("write")
        .sizes(&[BYTES])
        .stream(&["throughput", "loss", "generator_tx_error", "generator_rx_error"])
        .packets(messages)
        .warmup("0s")
        .blocks(2)
}

/// What the kernel counted for one host in the planned family and in the other one.
fn packets(run: &RunRecord, role: Role, counter: &str) -> [u64; 2] {
    let groups = match run.trial.cell.family {
        Family::Ipv4 => ["ip", "ip6"],
        Family::Ipv6 => ["ip6", "ip"],
    };
    groups.map(|group| side(run, role).counters.get(&format!("{group}.{counter}")))
}

#[test]
fn each_generator_drives_the_same_testbed_and_blocks() {
    for (tool, package) in [("iperf3", "iperf3"), ("iperf", "iperf"), ("ITGSend", "d-itg")] {
        require_tool(tool, package);
    }
    let also = BTreeMap::from([("transport", vec!["tcp"]), ("family", vec!["ipv6"])]);
    let study = study(&["stacklab", "iperf3", "iperf", "ditg"], 500).set("include", vec![also]);
    let (outcome, runs) = measure(&study.text());
    let outcome = outcome.expect(code::DONE);
    assert!(outcome.stdout.contains("Bias of generators"), "{outcome}");
    assert!(outcome.stdout.contains("generators: iperf 3."), "{outcome}");
    assert_eq!(runs.len(), 4 * 3 * 2, "{outcome}");
    for block in [0, 1] {
        let order: Vec<Generator> = runs
            .iter()
            .filter(|run| run.trial.block == block)
            .map(|run| Generator::of(&run.trial.cell))
            .collect();
        assert_eq!(order.len(), 12);
        assert!(!order.is_sorted(), "generators stand in one random order: {order:?}");
    }
    for run in &runs {
        let cell = &run.trial.cell;
        assert!(run.is_valid(), "{cell}: {:?}", run.status);
        let [own, other] = packets(run, Role::Receiver, "InReceives");
        // Of TCP, the kernel joins what is written, and what arrives, into packets of up to 64 KiB.
        let least = if cell.transport == Transport::Udp { 400 } else { 20 };
        assert!(own >= least && other <= 16, "{cell}: {own} packets of its family, {other} of the other");
        let bias = figure(run, Metric::GeneratorRxError);
        // Of TCP, iperf3 does not count what is still under way when its sender has written all: a third of so short a
        // test.
        let least = if cell.transport == Transport::Udp { -5.0 } else { -70.0 };
        assert!((least..5.0).contains(&bias), "{cell}: it says {bias} % beside the interface");
        let tools = [Role::Sender, Role::Receiver].map(|role| side(run, role).tool.clone());
        if Generator::of(cell) == Generator::Stacklab {
            assert_eq!(tools, [None, None]);
            continue;
        }
        let [sender, receiver] = tools.map(|tool| tool.expect("what it said is kept"));
        assert!(sender.command.contains(&BYTES.to_string()), "{}", sender.command);
        assert!(sender.version.chars().any(|c| c.is_ascii_digit()), "{}", sender.version);
        assert!(!receiver.output.is_empty(), "{cell}");
        if cell.transport == Transport::Udp {
            // The size of its messages, as the interface has it.
            let counters = &side(run, Role::Receiver).counters;
            let [bytes, packets] =
                ["bytes", "packets"].map(|name| counters.get(&format!("interface.rx_{name}")) as f64);
            let planned = f64::from(BYTES) + 14.0 + 8.0 + f64::from(cell.family.header_bytes());
            assert!((bytes / packets / planned - 1.0).abs() < 0.1, "{cell}: {} B", bytes / packets);
            assert!((0.0..0.5).contains(&figure(run, Metric::Loss)), "{cell}");
        }
    }
}

/// A program in place of iperf whose sender's end runs a script; its receiver's end is the real one.
fn in_place_of_iperf(program: &Program, script: &str) -> String {
    let folder = program.work().join("tools");
    fs::create_dir_all(&folder).unwrap();
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|folder| folder.join("iperf")).find(|file| file.exists());
    let real = real.expect("iperf is installed");
    let file: PathBuf = folder.join("iperf");
    let text = format!(
        "#!/bin/sh\ncase \" $* \" in *\" -c \"*) ;; *) exec {} \"$@\";; esac\n{script}\n",
        real.display()
    );
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{path}", folder.display())
}

#[test]
fn failing_program_makes_the_run_invalid_with_reason() {
    require_root();
    require_tool("iperf", "iperf");
    for (script, reason) in [
        ("echo all is well", "iperf: the sender's end prints no figures"),
        (
            "echo no route >&2; exit 3",
            "iperf on sender ended with an error (exit status: 3); it printed: no route",
        ),
    ] {
        let before = Scene::now();
        let program = Program::new();
        let path = in_place_of_iperf(&program, script);
        let file = program.write("study.toml", study(&["iperf"], 10).text());
        let mut command = program.command(&["run", file.to_str().unwrap(), "--out", "a.stacklab"]);
        support::program::Outcome::of({
            command.env("PATH", path);
            command
        })
        .says(&["no run was valid"]);
        let found = invalid(&program.work().join("a.stacklab"));
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|found| found.contains(reason)), "{reason}: {found:?}");
        before.assert_restored(&program, &["a.stacklab", "study.toml", "tools"], Duration::from_secs(5));
    }
}

#[test]
fn hanging_program_goes_with_an_interrupted_campaign() {
    require_root();
    require_tool("iperf", "iperf");
    let before = Scene::now();
    let program = Program::new();
    let path = in_place_of_iperf(&program, "touch hanging; sleep 600 & sleep 600");
    let file = program.write("study.toml", study(&["iperf"], 10).text());
    let mut command = program.command(&["run", file.to_str().unwrap(), "--out", "a.stacklab"]);
    command.env("PATH", path);
    let mut running = program.started(command);
    running.wait_for("block 1/2", Duration::from_secs(30));
    sleep(Duration::from_secs(1));
    assert!(running.is_running());
    signal(running.pid(), "INT");
    running.end(Duration::from_secs(10)).expect(code::INTERRUPTED);
    before.assert_restored(&program, &["a.stacklab", "study.toml", "tools"], Duration::from_secs(5));
}

#[test]
fn stopped_program_is_killed_with_all_its_children() {
    require_root();
    enter().unwrap_or_else(|error| panic!("{error}"));
    let link_config = LinkConfig { rate: None, mtu: 1500, offloads: true };
    let testbed = Testbed::build(&link_config, Path::new("sleep"), &["600"]).unwrap();
    let folder = Workdir::create().unwrap();
    let script = ["-c", "sleep 600 & echo $!; kill -STOP $$"].map(str::to_owned);
    let mut tool = folder.start(&testbed.hosts()[0], "sh", Path::new("/bin/sh"), &script).unwrap();
    assert_eq!(tool.wait(Instant::now() + Duration::from_millis(500), || false).unwrap(), None);
    let child: u32 = tool.printed_text(100).trim().parse().unwrap();
    assert_eq!(read_state(child), Some('S'));
    tool.kill();
    let begun = Instant::now();
    // One that is killed may not have been waited for yet.
    while !matches!(read_state(child), None | Some('Z' | 'X')) {
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", read_state(child));
        sleep(Duration::from_millis(10));
    }
}

/// The kernel's letter for what a process does; `None` if there is no such process.
fn read_state(process: u32) -> Option<char> {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit_once(") ").map(|(_, rest)| rest.chars().next().unwrap())
}

#[test]
fn missing_program_is_named_with_how_to_get_it() {
    require_root();
    let program = Program::new();
    let file = program.write("study.toml", study(&["ditg"], 10).text());
    let mut command = program.command(&["run", file.to_str().unwrap()]);
    command.env("PATH", program.tmp());
    support::program::Outcome::of(command)
        .expect(code::TESTBED)
        .says(&["there is no program `ITGSend` here", "sudo apt-get install d-itg"]);
    assert_eq!(program.files(), ["study.toml"]);
}
