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

/// The figures of an arm of the plan.
fn loads(runs: &[RunRecord], family: Family) -> Vec<f64> {
    let of_arm = runs.iter().filter(|run| run.trial.cell.family == family);
    of_arm
        .map(|run| run.values[&Metric::LoadAtLoss].measured().unwrap_or_else(|| panic!("{run:?}")))
        .collect()
}

#[test]
fn finds_the_rate_of_a_link() {
    let runs = search(LINK);
    for family in [Family::Ipv4, Family::Ipv6] {
        let cell = Cell::new(family, Transport::Udp, SizeOf::Payload, 64);
        let truth = LINK_CONFIG.messages_per_second(&cell).unwrap() / 0.995;
        let loads = loads(&runs, family);
        println!("note: {family}: the truth is {truth:.0} messages/s, found {loads:.0?}");
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        assert!((mean / truth - 1.0).abs() < 0.015, "{family}: {loads:?}, not {truth}");
    }
}
