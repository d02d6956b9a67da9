//! A server and two equal hosts in one campaign: services run on the receiver in half of the cells.

use crate::support;

use stacklab_model::{Factor, Probe};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use support::leftovers::Scene;
use support::program::{Program, code, require_root};
use support::records::runs;
use support::studies::TestStudy;

const ALL: &str = "dns+dhcp+directory";

fn study() -> TestStudy {
    TestStudy::new("services")
        .rate("50 Mbit/s")
        .families()
        .transports(&["tcp", "udp"])
        .sizes(&[128, 1408])
        .levels(Factor::Services, ["none", ALL])
        .stream(&["throughput", "loss"])
        .time("150ms")
        .echo(&["rtt"])
        .time("100ms")
        .warmup("20ms")
        .schedule("sequential")
        .blocks(2)
        .compare(Factor::Services, "none", ALL)
}

const RUN: [&str; 6] = ["run", "study.toml", "--out", "x.stacklab", "--seed", "1"];

/// Processes with the name of a file under a folder in their command line.
fn daemons(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let texts = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    texts.filter(|line| line.contains(&folder) && line.contains("stacklab-guests-")).collect()
}

#[test]
fn server_answers_in_its_cells_and_runs_are_proved() {
    require_root();
    let program = Program::new();
    let scene = Scene::now();
    program.write("study.toml", study().text());
    let outcome =
        program.run(&RUN).expect(code::DONE).says(&["dns+dhcp+directory on the receiver (dnsmasq 2."]);
    scene.assert_restored(&program, &["study.toml", "x.stacklab"], Duration::from_secs(2));
    assert!(outcome.stdout.contains("services dns+dhcp+directory vs services none"), "{outcome}");
    let runs = runs(&program.work().join("x.stacklab"));
    assert_eq!(runs.len(), 2 * 2 * 16);
    let mut answered = 0;
    for run in &runs {
        let counters = &run.host_reports[0].counters;
        let served = run.trial.cell.level(Factor::Services) == ALL;
        let asked: Vec<&String> = counters.0.keys().filter(|name| name.starts_with("services.")).collect();
        assert_eq!(asked.is_empty(), !served, "{}: {asked:?}", run.trial);
        for name in asked.iter().filter(|name| name.ends_with(".answered")) {
            answered += counters.get(name);
            // A link that is not full loses nothing.
            if run.trial.probe == Probe::Echo {
                assert!(counters.get(name) > 0, "{}: {name}", run.trial);
                assert_eq!(
                    counters.get(name),
                    counters.get(&name.replace("answered", "asked")),
                    "{}",
                    run.trial
                );
            }
        }
    }
    assert!(answered > 100, "{answered}");
    let report = program.run(&["report", "x.stacklab", "--format", "json"]).expect(code::DONE).stdout;
    assert!(report.contains("server of dns+dhcp+directory") && report.contains("slapd 2."), "{report}");
}

#[test]
fn an_ordinary_user_has_services_too() {
    require_root();
    let program = Program::new();
    program.give_to(65534);
    program.write("study.toml", study().text());
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c"];
    let script = format!(
        "exec $STACKLAB {} --set 'factors.size=[128]' --set 'factors.transport=[\"tcp\"]'",
        RUN.join(" ")
    );
    let mut command = program.script(&user, &script);
    // The test's user may be unable to read this tree.
    command.env("PATH", program.path_with("slapd"));
    let outcome = support::program::Outcome::of(command);
    outcome.expect(code::DONE).says(&["user namespace", "slapd 2."]);
    // All of them valid.
    assert_eq!(runs(&program.work().join("x.stacklab")).len(), 2 * 2 * 4);
}

#[test]
fn missing_program_is_said_before_anything_starts() {
    require_root();
    let program = Program::new();
    let scene = Scene::now();
    program.write("study.toml", study().text());
    for (missing, remedy) in
        [("slapd", "scripts/setup test-all"), ("dnsmasq", "apt-get install dnsmasq-base")]
    {
        // The program is hidden in its own mount namespace, wherever it is installed.
        let hide = "for folder in $(echo $PATH:/usr/local/sbin:/usr/sbin:/sbin | tr : ' '); do \
                    [ ! -e $folder/$0 ] || mount --bind /dev/null $folder/$0; done; exec $STACKLAB run study.toml";
        let mut command = program.script(&["unshare", "--mount", "sh", "-c"], hide);
        command.arg(missing);
        let outcome = support::program::Outcome::of(command).expect(code::TESTBED);
        outcome.says(&[&format!("there is no program `{missing}` here"), remedy]);
    }
    scene.assert_restored(&program, &["study.toml"], Duration::from_secs(2));
}

#[test]
fn daemons_die_with_a_program_that_is_killed() {
    require_root();
    let program = Program::new();
    program.write("study.toml", study().text());
    let mut running = program.start(&RUN);
    running.wait_for("block 1", Duration::from_secs(30));
    assert_eq!(daemons(&program.tmp()).len(), 2, "{:?}", daemons(&program.tmp()));
    assert!(running.kill());
    let start = Instant::now();
    while !daemons(&program.tmp()).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", daemons(&program.tmp()));
    }
    // The next run removes the files that it left.
    program.run(&["run", "--resume", "--out", "x.stacklab"]).expect(code::DONE);
    assert!(fs::read_dir(program.tmp()).unwrap().next().is_none());
}
