//! The highest load of a link of known rate. The test needs root.

use crate::support;

use stacklab_model::{Cell, Family, LinkConfig, Metric, Rate, RunRecord, SizeOf, Transport};
use std::fs;
use std::time::Duration;
use support::iperf3::Hosts;
use support::program::{Program, code, require_root};
use support::records::runs;
use support::studies::TestStudy;

/// A search over a link of 10 Mbit/s. Its truth is the link's rate over the bytes of a frame, and up to a hundredth
/// more, for as many messages may be lost.
fn study() -> TestStudy {
    TestStudy::new("The highest load of a link")
        .rate("10 Mbit/s")
        .families()
        .transports(&["udp"])
        .sizes(&[64])
        .probe("search", &["load_at_loss"])
        .set_of_probe("loss", "1 %")
        .blocks(2)
        .compare_families()
}

const LINK_CONFIG: LinkConfig = LinkConfig { rate: Some(Rate(10_000_000)), mtu: 1500, offloads: false };

/// The figures of an arm. A run without one says that the tester was disturbed, as on a machine whose hypervisor takes
/// much time.
fn collect_loads(runs: &[RunRecord], family: Family) -> Vec<f64> {
    let mut loads = Vec::new();
    for run in runs.iter().filter(|run| run.trial.cell.family == family) {
        let value = &run.values[&Metric::LoadAtLoss];
        match value.measured() {
            Some(load) => loads.push(load),
            None => assert!(format!("{value:?}").contains("the tester disturbed"), "{value:?}"),
        }
    }
    loads
}

#[test]
fn no_figure_is_far_from_the_rate_of_a_link() {
    require_root();
    let program = Program::new();
    program.write("study.toml", study().text());
    program.run(&["run", "study.toml", "--out", "x.stacklab"]).expect(code::DONE);
    let runs = runs(&program.work().join("x.stacklab"));
    for family in [Family::Ipv4, Family::Ipv6] {
        let cell = Cell::new(family, Transport::Udp, SizeOf::Payload, 64);
        let truth = LINK_CONFIG.messages_per_second(&cell).unwrap() / 0.995;
        let loads = collect_loads(&runs, family);
        println!("note: {family}: the truth is {truth:.0} messages/s, found {loads:.0?}");
        for load in loads {
            assert!((load / truth - 1.0).abs() < 0.025, "{family}: {load}, not {truth}");
        }
    }
    // The slices of all blocks, whether or not they made a figure.
    let report = program.run(&["report", "x.stacklab"]).expect(code::DONE).stdout;
    let table = report.split("Loss by load, UDP 64 B").nth(1).expect("a table");
    let rows = table.lines().filter(|line| line.contains(" ± ")).count();
    assert!(rows >= 2 && table.contains("- IPv4: ") && table.contains("- IPv6: "), "{report}");
    let words = ["report", "x.stacklab", "--figure", "loss-by-load-udp-64-b", "--out", "loss.svg"];
    program.run(&words).expect(code::DONE);
    let figure = fs::read_to_string(program.work().join("loss.svg")).unwrap();
    assert!(figure.contains("lost or late, %") && figure.contains("IPv6"), "{figure}");
}

/// A path to an agent with a token bucket that counts 42 bytes of headers of a message over IPv4, and 62 over IPv6.
/// Five per cent of the messages may be lost. A slice has 200 messages; those that a full bucket lets pass when a slice
/// begins are part of the figure, for nobody knows the bucket of a path.
#[test]
fn measure_searches_a_path_to_an_agent() {
    let hosts = Hosts::new();
    hosts.run(0, "tc qdisc replace dev st0 root tbf rate 10mbit burst 3000 limit 60k").expect(0);
    let mut agent = hosts.program.started(hosts.command(1, "\"$STACKLAB\" agent --listen"));
    agent.wait_for("measures to it", Duration::from_secs(10));
    let to = [Family::Ipv4, Family::Ipv6].map(|family| hosts.address(1, family)).join(",");
    let words = "-l 1000 --against ipv4 --search 5% -t 10 --out x.stacklab";
    let outcome = hosts.run(0, &format!("\"$STACKLAB\" measure udp {to} {words}"));
    println!("note: {outcome}");
    let runs = runs(&hosts.program.work().join("x.stacklab"));
    for (family, frame) in [(Family::Ipv4, 1042.0), (Family::Ipv6, 1062.0)] {
        let rate = 10e6 / 8.0 / frame;
        let most = rate * (1.0 + 3000.0 / frame / 200.0) / 0.95;
        // What disturbs slices makes some of them bad at a load that the path carries.
        for load in collect_loads(&runs, family) {
            assert!((0.975 * rate..1.025 * most).contains(&load), "{family}: {load}, not {rate} to {most}");
        }
    }
}
