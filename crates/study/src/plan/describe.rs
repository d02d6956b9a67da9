//! A plan as text.

use crate::plan::estimate::{ASSUMED_ROUNDS, PlanEstimate};
use crate::{CountedPair, Plan, Study};
use stacklab_model::{
    ComparisonSpec, Factor, Length, LinkConfig, Pacing, Probe, ProbeSpec, ProgramSpec, Topology, count,
    once_each, print_duration, printable_text,
};

impl Plan {
    /// The testbed, the levels, the estimated time and the first block.
    pub fn describe(&self, study: &Study) -> String {
        let mut lines = describe_hosts(study);
        for factor in Factor::ALL {
            let levels = study.cells.iter().map(|cell| cell.level(*factor));
            let levels = once_each(levels.filter(|level| !level.is_empty()));
            if !levels.is_empty() {
                lines.push(format!("{:<11} {}", factor.name(), levels.join(", ")));
            }
        }
        lines.push(format!("Cells       {}", study.cells.len()));
        for probe in &study.probes {
            lines.push(format!("{:<11} {}", probe.probe.name(), describe_probe(probe)));
        }
        for ProgramSpec { name, server, client, .. } in &study.programs {
            lines.push(format!("{name:<11} server: {}", printable_text(server.trim())));
            lines.push(format!("{:<11} client: {}", "", printable_text(client.trim())));
        }
        lines.push(format!("Comparisons {}", study.questions().len()));
        for ComparisonSpec { factor, candidate, baseline, .. } in &study.comparisons {
            lines.push(format!("            {factor} {candidate} beside {baseline}"));
        }
        let empty = study.empty_comparisons();
        lines.extend(empty.iter().map(|warning| format!("            {warning}")));
        lines.extend(self.describe_time(study));
        lines.push(format!("\nThe first block, from seed {}:", self.seed()));
        for trial in self.block(0) {
            lines.push(format!("{:>4}  {:<9} {}", trial.position + 1, trial.probe.name(), trial.cell));
        }
        format!("{}\n\n{}\n", study.title, lines.join("\n"))
    }

    /// How the arms take turns, how many trials there are, and how long they take.
    fn describe_time(&self, study: &Study) -> Vec<String> {
        let turns = if self.interleaves_any() { "interleaved" } else { "sequential" };
        let estimate = self.estimate(study);
        let blocks = describe_range(study.rule.min.to_string(), study.rule.max.to_string());
        let what = if study.rule.max == 1 { "block" } else { "blocks" };
        let mut lines = vec![
            format!("Arms        {turns}"),
            format!("Trials      {} a block, {blocks} {what}", estimate.trials_per_block),
            format!(
                "Time        {} a block, {} in all{}{}",
                print_duration(estimate.block_ns),
                describe_range(print_duration(estimate.min_ns), print_duration(estimate.max_ns)),
                study
                    .rule
                    .budget_ns
                    .map_or_else(String::new, |ns| format!(" (budget {})", print_duration(ns))),
                describe_assumptions(study, &estimate)
            ),
        ];
        lines.extend(self.warn_of_budget(study).map(|warning| format!("            {warning}")));
        lines.extend(describe_counts(study));
        lines
    }
}

/// About what a pair of cells takes whose instructions are counted, with its part of the machine's boot, nanoseconds.
const COUNTED_PAIR_NS: u64 = 6_000_000_000;

/// About what a run of a program takes longer under the emulator.
const EMULATED_NS: u64 = 3_000_000_000;
/// The runs that count a cell of programs: shorter and longer ones of three rounds.
const COUNTING_RUNS: u64 = 6;

/// How long the pairs that can be counted take. Programs are counted once for each cell, which pairs may share.
fn estimate_counting(study: &Study, pairs: &[CountedPair]) -> u64 {
    let counted = pairs.iter().filter(|pair| pair.way.is_ok());
    if study.programs.is_empty() {
        return counted.count() as u64 * COUNTED_PAIR_NS;
    }
    let cells = counted.flat_map(|pair| [&pair.explanation.baseline, &pair.explanation.candidate]);
    once_each(cells).len() as u64 * COUNTING_RUNS * EMULATED_NS
}

/// How many pairs of cells are counted under an emulator, and which cannot be.
fn describe_counts(study: &Study) -> Vec<String> {
    let pairs = study.list_counted_pairs();
    let reasons: Vec<&String> = pairs.iter().filter_map(|pair| pair.way.as_ref().err()).collect();
    let counted = pairs.len() - reasons.len();
    let mut lines = Vec::new();
    if counted > 0 {
        lines.push(format!(
            "Counted     instructions of {} of cells, after the last block: about {}",
            count(counted, "pair"),
            print_duration(estimate_counting(study, &pairs))
        ));
    }
    for reason in once_each(reasons.iter()) {
        let left_out = reasons.iter().filter(|other| *other == reason).count();
        lines.push(format!("            not of {} ({reason})", count(left_out, "pair")));
    }
    lines
}

/// What an estimated time rests on.
fn describe_assumptions(study: &Study, estimate: &PlanEstimate) -> String {
    if study.probe(Probe::Search).is_some() {
        return format!(", if a search takes {ASSUMED_ROUNDS} rounds");
    }
    if !study.programs.is_empty() {
        return ", if each client takes that time".to_owned();
    }
    if estimate.assumed {
        ", where runs end by packets: at an assumed rate".to_owned()
    } else {
        String::new()
    }
}

/// The hosts and their links.
fn describe_hosts(study: &Study) -> Vec<String> {
    let LinkConfig { rate, mtu, offloads } = &study.link_config;
    let rate = rate.map_or_else(|| "no rate limit".to_owned(), |rate| rate.to_string());
    let hosts = match &study.topology {
        Topology::Wifi(network) => format!("station, access point, station: {network}"),
        Topology::Link => "two hosts, one link".to_owned(),
        Topology::Routed(_) => "client, router, router, client, each of three links".to_owned(),
    };
    let offloads = if *offloads { "on" } else { "off" };
    let mut lines = vec![format!("Testbed     {hosts}: {rate}, MTU {mtu}, offloads {offloads}")];
    if let Topology::Routed(links) = &study.topology {
        for (name, link) in links.all().iter() {
            let own = link.describe();
            if !own.is_empty() {
                lines.push(format!("{name:<11} {}, each way", own.join(", ")));
            }
        }
    }
    let mut customers: Vec<u32> = study.rows().iter().map(|row| row.customers).collect();
    customers.sort_unstable();
    let found = customers.iter().filter_map(|count| study.topology.bottleneck(&study.link_config, *count));
    lines.extend(once_each(found).iter().map(|bottleneck| format!("Bottleneck  {bottleneck}")));
    lines
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
        pacing => pacing.to_string(),
    };
    let metrics: Vec<&str> = probe.metrics.iter().map(|metric| metric.name()).collect();
    match probe.probe {
        Probe::Search => return format!("{pacing}: {}", metrics.join(", ")),
        Probe::Sockets => {
            let Length::Packets(pairs) = probe.length else { unreachable!("sockets are counted") };
            return format!("{}: {}", count(pairs, "pair"), metrics.join(", "));
        }
        Probe::Program => return format!("{{seconds}} is {length}: {}", metrics.join(", ")),
        _ => {}
    }
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
