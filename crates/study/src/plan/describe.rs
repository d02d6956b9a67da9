//! A plan as text.

use crate::{Plan, Study};
use stacklab_model::{
    Factor, Length, LinkConfig, Pacing, ProbeSpec, Topology, count, once_each, print_duration,
};
use std::fmt::Write;

impl Plan {
    /// The testbed, the levels, the estimated time and the first block.
    pub fn describe(&self, study: &Study) -> String {
        let mut text = format!("{}\n\n", study.title);
        let mut line = |line: String| {
            text += &line;
            text.push('\n');
        };
        let LinkConfig { rate, mtu, offloads } = &study.link_config;
        let rate = rate.map_or_else(|| "no rate limit".to_owned(), |rate| rate.to_string());
        let hosts = match &study.topology {
            Topology::Wifi(network) => format!("station, access point, station: {network}"),
            Topology::Link => "two hosts, one link".to_owned(),
            Topology::Routed(_) => "client, router, router, client, each of three links".to_owned(),
        };
        line(format!(
            "Testbed     {hosts}: {rate}, MTU {mtu}, offloads {}",
            if *offloads { "on" } else { "off" }
        ));
        if let Topology::Routed(links) = &study.topology {
            for (name, link) in links.all().iter().filter(|(_, link)| link.impairs()) {
                line(format!("{name:<11} {}, each way", link.impairments().join(", ")));
            }
        }
        if let Some(bottleneck) = study.topology.bottleneck(&study.link_config) {
            line(format!("Bottleneck  {bottleneck}"));
        }
        for factor in Factor::ALL {
            let levels = study.cells.iter().map(|cell| cell.level(*factor));
            let levels = once_each(levels.filter(|level| !level.is_empty()));
            if !levels.is_empty() {
                line(format!("{:<11} {}", factor.name(), levels.join(", ")));
            }
        }
        line(format!("Cells       {}", study.cells.len()));
        for probe in &study.probes {
            line(format!("{:<11} {}", probe.probe.name(), describe_probe(probe)));
        }
        let questions = study.questions();
        line(format!("Comparisons {}", questions.len()));
        for comparison in &study.comparisons {
            line(format!(
                "            {} {} beside {}",
                comparison.factor, comparison.candidate, comparison.baseline
            ));
        }
        let turns = if self.interleaves_any() { "interleaved" } else { "sequential" };
        line(format!("Arms        {turns}"));
        let estimate = self.estimate(study);
        let blocks = describe_range(study.rule.min.to_string(), study.rule.max.to_string());
        let what = if study.rule.max == 1 { "block" } else { "blocks" };
        line(format!("Trials      {} a block, {blocks} {what}", estimate.trials_per_block));
        line(format!(
            "Time        {} a block, {} in all{}{}",
            print_duration(estimate.block_ns),
            describe_range(print_duration(estimate.min_ns), print_duration(estimate.max_ns)),
            study.rule.budget_ns.map_or_else(String::new, |ns| format!(" (budget {})", print_duration(ns))),
            if estimate.assumed { ", where runs end by packets: at an assumed rate" } else { "" }
        ));
        if let Some(warning) = self.warn_of_budget(study) {
            line(format!("            {warning}"));
        }
        line(format!("\nThe first block, from seed {}:", self.seed()));
        for trial in self.block(0) {
            let _ = writeln!(text, "{:>4}  {:<9} {}", trial.position + 1, trial.probe.name(), trial.cell);
        }
        text
    }
}

fn describe_probe(probe: &ProbeSpec) -> String {
    let length = match probe.length {
        Length::Packets(packets) => count(packets, "packet"),
        Length::Time(ns) => print_duration(ns),
    };
    let pacing = match probe.pacing {
        Pacing::Flood => "flood".to_owned(),
        Pacing::Lockstep => "one outstanding".to_owned(),
        Pacing::Schedule(per_second) => format!("{per_second} message/s"),
        pacing @ (Pacing::Link | Pacing::Share(_) | Pacing::Shifted(_) | Pacing::Search(_)) => {
            pacing.to_string()
        }
    };
    let metrics: Vec<&str> = probe.metrics.iter().map(|metric| metric.name()).collect();
    format!("{length} after {} of warm-up, {pacing}: {}", print_duration(probe.warmup_ns), metrics.join(", "))
}

/// `1 min to 2 min`, or `1 min` where both ends are the same as printed.
fn describe_range(least: String, most: String) -> String {
    if least == most { most } else { format!("{least} to {most}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_with_equal_ends_is_one_figure() {
        let least = print_duration(53_800_000_000);
        assert_eq!(describe_range(least.clone(), print_duration(53_810_000_000)), "53.8 s");
        assert_eq!(describe_range(least, print_duration(60_000_000_000)), "53.8 s to 1 min");
    }
}
