//! The highest load of a link of known rate, and of routers with a kernel thread. The tests need root.

use crate::support;

use stacklab_model::{
    Cell, Family, LinkConfig, Metric, Rate, RouterQueue, RunRecord, SearchOutcome, SearchSlice, SizeOf,
    Transport,
};
use support::program::{Program, code, require_root};
use support::records::runs;

/// A search over a link of 10 Mbit/s. Its truth is the link's rate over the bytes of a frame, and a hundredth of the
/// messages may be lost.
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

/// Two arms over routers whose ingress has a thread, at loads that they carry.
const ROUTERS: &str = r#"
title = "The thread of a router"
[testbed]
topology = "routed"
[factors]
family = ["ipv4", "ipv6"]
transport = ["udp"]
size = [64]
[probe.search]
metrics = ["load_at_loss"]
loss = "1 %"
highest = 2000
[blocks]
min = 2
max = 2
[[comparison]]
factor = "family"
baseline = "ipv4"
candidate = "ipv6"
"#;

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

fn slices(runs: &[RunRecord]) -> impl Iterator<Item = &SearchSlice> {
    runs.iter().flat_map(|run| &run.host_reports[0].search)
}

#[test]
fn finds_the_rate_of_a_link() {
    let runs = search(LINK);
    for family in [Family::Ipv4, Family::Ipv6] {
        let cell = Cell::new(family, Transport::Udp, SizeOf::Payload, 64);
        let truth = LINK_CONFIG.messages_per_second(&cell).unwrap() / 0.99;
        let loads = loads(&runs, family);
        println!("note: {family}: the truth is {truth:.0} messages/s, found {loads:.0?}");
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        assert!((mean / truth - 1.0).abs() < 0.01, "{family}: {loads:?}, not {truth}");
    }
}

#[test]
fn routers_of_a_search_have_threads() {
    let runs = search(ROUTERS);
    for run in &runs {
        assert_eq!(run.trial.cell.settings.router_queue, Some(RouterQueue::Thread));
    }
    // Every load is carried, so there is no figure, and a reason.
    for run in &runs {
        let value = &run.values[&Metric::LoadAtLoss];
        assert!(format!("{value:?}").contains("at least 2000 messages/s"), "{value:?}");
    }
    let good = slices(&runs).filter(|slice| slice.outcome == SearchOutcome::Good).count();
    assert!(2 * good > slices(&runs).count(), "most loads are carried");
    // The threads forward: two hops of each message take them some time.
    for slice in slices(&runs).filter(|slice| slice.received > 0) {
        assert!(slice.routers_ran_ns.is_none_or(|ran_ns| ran_ns > 0), "{slice:?}");
    }
}
