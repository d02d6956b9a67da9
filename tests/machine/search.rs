//! The highest load of a link of known rate. The test needs root.

use crate::support;

use stacklab_model::{Cell, Family, LinkConfig, Metric, Rate, RunRecord, SizeOf, Transport};
use support::program::{Program, code, require_root};
use support::records::runs;

/// A search over a link of 10 Mbit/s. Its truth is the link's rate over the bytes of a frame, and up to a hundredth
/// more, for as many messages may be lost.
const LINK: &str = r#"
title = "The highest load of a link"
[testbed]
rate = "10 Mbit/s"
[factors]
family = ["ipv4", "ipv6"]
transport = ["udp"]
size = [64]
[probe.search]
metrics = ["load_at_loss"]
loss = "1 %"
[blocks]
min = 2
max = 2
[[comparison]]
factor = "family"
baseline = "ipv4"
candidate = "ipv6"
"#;
const LINK_CONFIG: LinkConfig = LinkConfig { rate: Some(Rate(10_000_000)), mtu: 1500, offloads: false };

fn search(study: &str) -> Vec<RunRecord> {
    require_root();
    let program = Program::new();
    program.write("study.toml", study);
    program.run(&["run", "study.toml", "--out", "x.stacklab"]).expect(code::DONE);
    runs(&program.work().join("x.stacklab"))
}

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
    let runs = search(LINK);
    for family in [Family::Ipv4, Family::Ipv6] {
        let cell = Cell::new(family, Transport::Udp, SizeOf::Payload, 64);
        let truth = LINK_CONFIG.messages_per_second(&cell).unwrap() / 0.995;
        let loads = collect_loads(&runs, family);
        println!("note: {family}: the truth is {truth:.0} messages/s, found {loads:.0?}");
        for load in loads {
            assert!((load / truth - 1.0).abs() < 0.025, "{family}: {load}, not {truth}");
        }
    }
}
