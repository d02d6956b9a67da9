//! Blocks of trials: their order, and which trials run together.

mod order;
mod together;

use crate::study::Study;
use crate::{Input, parse};
use stacklab_model::{ArmSchedule, Cell, Probe, Trial};
use std::collections::BTreeSet;

fn interleaved() -> Study {
    parse(&Input::file("quickstart.toml", include_str!("../../../../../studies/quickstart.toml"))).unwrap()
}

fn quickstart() -> Study {
    Study { schedule: ArmSchedule::Alone, ..interleaved() }
}

/// Every probe, both transports, two sizes_of' worth of cells and replicas, compared by the given factor.
fn make_varied_study(factor: &str, baseline: &str, candidate: &str) -> Study {
    let text = format!(
        r#"
title = "varied"
[factors]
family = ["ipv4", "ipv6"]
transport = ["tcp", "udp"]
size_of = ["payload", "write"]
size = [64, 512]
replica = ["a", "b", "c"]
[probe.stream]
metrics = ["throughput"]
length = {{ packets = 10 }}
[probe.connect]
metrics = ["connect_time"]
length = {{ packets = 10 }}
[[comparison]]
factor = "{factor}"
baseline = "{baseline}"
candidate = "{candidate}"
"#
    );
    parse(&Input::file("varied.toml", &text)).unwrap()
}

fn arms(trials: &[Trial]) -> BTreeSet<(Cell, Probe)> {
    trials.iter().map(|trial| (trial.cell.clone(), trial.probe)).collect()
}
