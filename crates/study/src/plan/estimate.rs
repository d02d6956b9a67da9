//! How long a campaign takes: an estimate before it starts, and the stopping rule.

use crate::plan::Plan;
use crate::study::Study;
use stacklab_model::{
    ArmSchedule, Cell, Length, Metric, Pacing, Probe, ProbeSpec, SearchSpec, StopReason, StoppingRule,
};

/// Overhead of a trial, nanoseconds: opening sockets, draining, reading counters, storing the run.
pub const TRIAL_OVERHEAD_NS: u64 = 20_000_000;
/// Assumed messages per second of a flood, if the link sets no lower limit.
pub const ASSUMED_FLOOD_RATE: f64 = 100_000.0;
/// Assumed round trips (or connections) per second of a closed loop.
pub const ASSUMED_LOCKSTEP_RATE: f64 = 10_000.0;

/// What a flood leaves on its way to a link with a limited rate, bytes: in sockets and queues.
const HELD_BYTES: u64 = 48 << 10;

/// Assumed rounds of a search, and what each of its slices takes beside.
pub(crate) const ASSUMED_ROUNDS: u64 = 30;
const SLICE_OVERHEAD_NS: u64 = 50_000_000;
/// Assumed loads whose class a goal needs to be known.
const ASSUMED_BOUNDS: u64 = 6;
/// Assumed bursts until the longest is known, and their length.
const ASSUMED_BURSTS: u64 = 15;
const BURST_NS: u64 = 200_000_000;
const RECOVERIES_NS: u64 = SearchSpec::RECOVERIES as u64
    * (SearchSpec::RECOVERY_NS[0] + SearchSpec::RECOVERY_NS[1] + SLICE_OVERHEAD_NS);
/// Assumed trials of the frame loss rate until two lose nothing.
const ASSUMED_LOSS_TRIALS: u64 = 5;
/// Of a slice of connections: until nothing comes any more, and what tables and counters take.
const CONNECTIONS_OVERHEAD_NS: u64 = 80_000_000;
/// Of the connections of an arm that are made and deleted three times.
const TEARDOWN_NS: u64 = 2_000_000_000;

/// The estimated duration of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanEstimate {
    /// Trials of one block.
    pub trials_per_block: usize,
    /// Nanoseconds of one block with all its trials.
    pub block_ns: u64,
    /// Minimum number of blocks.
    pub min_blocks: u32,
    /// Maximum number of blocks, given the budget.
    pub max_blocks: u32,
    /// Minimum duration, nanoseconds.
    pub min_ns: u64,
    /// Maximum duration, nanoseconds.
    pub max_ns: u64,
    /// Whether a run that ends after a number of packets had to be taken at an assumed rate, or one of a program as
    /// long as its study says.
    pub assumed: bool,
}

impl Plan {
    /// The estimated duration of a campaign of this plan's study.
    pub fn estimate(&self, study: &Study) -> PlanEstimate {
        let mut block_ns = 0_u64;
        let mut assumed = false;
        for (cell, probe) in self.arms() {
            let Some(spec) = study.probe(*probe) else { continue };
            let (length_ns, length_assumed) = length_ns(study, cell, spec);
            assumed |= length_assumed;
            let waiting_ns = self.waiting_ns(study, cell, spec);
            for part in [length_ns, spec.warmup_ns, waiting_ns, TRIAL_OVERHEAD_NS] {
                block_ns = block_ns.saturating_add(part);
            }
        }
        block_ns = block_ns.saturating_add(estimate_settling(study));
        // The budget ends a campaign between two trials, from the third block on.
        let afforded =
            study.rule.budget_ns.map_or(u64::MAX, |budget| budget.div_ceil(block_ns.max(1)).max(2));
        let afforded = u32::try_from(afforded).unwrap_or(u32::MAX);
        let min_blocks = study.rule.min.min(afforded);
        let max_blocks = study.rule.max.min(afforded);
        let least_ns = block_ns.saturating_mul(u64::from(MIN_BLOCKS));
        let most_ns = study.rule.budget_ns.map_or(u64::MAX, |budget| budget.max(least_ns));
        PlanEstimate {
            trials_per_block: self.trials_per_block(),
            block_ns,
            min_blocks,
            max_blocks,
            min_ns: block_ns.saturating_mul(u64::from(min_blocks)).min(most_ns),
            max_ns: block_ns.saturating_mul(u64::from(max_blocks)).min(most_ns),
            assumed,
        }
    }

    /// Nanoseconds for which a run waits until its slow link is empty, or answers come back over it.
    fn waiting_ns(&self, study: &Study, cell: &Cell, spec: &ProbeSpec) -> u64 {
        let schedule = self.arm_schedule(cell, spec.probe);
        if spec.probe.echoes() {
            // Each slice has a message there and back at the least.
            let rate = study.link_config.messages_per_second(cell).filter(|_| !schedule.is_alone());
            return rate.map_or(0, |rate| (2.0 * ArmSchedule::MIN_SLICES as f64 / rate * 1e9) as u64);
        }
        if spec.probe != Probe::Stream || spec.pacing != Pacing::Flood {
            return 0;
        }
        let emptying_ns = emptying_ns(study);
        match (schedule, spec.length) {
            (ArmSchedule::TokenPassing(_), Length::Time(length_ns)) => {
                // Of the time beyond the lengths, two arms have a half each.
                let most_ns = ArmSchedule::MAX_EMPTYING
                    .saturating_mul(length_ns)
                    .saturating_add(ArmSchedule::MAX_EMPTYING_NS / 2);
                // The last slice's emptying is not cut.
                let slices_ns = emptying_ns
                    .saturating_mul(ArmSchedule::MIN_SLICES)
                    .min(most_ns.saturating_add(emptying_ns));
                emptying_ns.saturating_mul(ArmSchedule::WARMUP_PARTS).saturating_add(slices_ns)
            }
            _ => emptying_ns,
        }
    }
}

/// Nanoseconds in which the slowest link empties of what a flood left before it; 0 without a limited rate.
fn emptying_ns(study: &Study) -> u64 {
    let rate = study.topology.slowest(&study.link_config);
    rate.map_or(0, |rate| HELD_BYTES * 8_000_000_000 / rate.bits_per_second().max(1))
}

/// Nanoseconds until a kernel has freed the neighbours of a block's testbeds, after which tables are weighed.
const SETTLING_NS: u64 = 7_000_000_000;

fn estimate_settling(study: &Study) -> u64 {
    let has_neighbours = study.cells.iter().any(|cell| cell.settings.neighbours.unwrap_or_default() > 0);
    let is_weighed = study.measures(|metric| metric.table().is_some());
    if has_neighbours && is_weighed { SETTLING_NS } else { 0 }
}

/// Nanoseconds for which sockets are held, with the readings of the kernel's memory.
const HOLDING_NS: u64 = 1_500_000_000;

/// Nanoseconds of the searches of connections. The answers of new ones take as long as the slice.
fn estimate_connections(spec: &ProbeSpec, slice_ns: u64) -> u64 {
    let mut sum_ns = 0_u64;
    for metric in &spec.metrics {
        sum_ns = sum_ns.saturating_add(match metric {
            Metric::ConnectionRate => {
                (2 * slice_ns).saturating_add(CONNECTIONS_OVERHEAD_NS).saturating_mul(ASSUMED_ROUNDS)
            }
            Metric::EstablishedRate => {
                slice_ns.saturating_add(CONNECTIONS_OVERHEAD_NS).saturating_mul(ASSUMED_ROUNDS)
            }
            Metric::TeardownRate => TEARDOWN_NS,
            _ => 0,
        });
    }
    sum_ns
}

/// Nanoseconds of a run's measured part, and whether they rest on an assumed rate.
fn length_ns(study: &Study, cell: &Cell, spec: &ProbeSpec) -> (u64, bool) {
    if let Pacing::Search(search) = spec.pacing {
        let rate = study.link_config.messages_per_second(cell).unwrap_or(ASSUMED_FLOOD_RATE);
        let slice_ns = search.slice_ns(rate);
        let search_ns = slice_ns.saturating_add(SLICE_OVERHEAD_NS).saturating_mul(ASSUMED_ROUNDS);
        let bounds_ns = search.goal.map_or(0, |goal| goal.sum_ns.saturating_mul(ASSUMED_BOUNDS));
        let has_bursts = spec.metrics.contains(&Metric::BackToBack);
        let bursts_ns = if has_bursts { ASSUMED_BURSTS * (BURST_NS + SLICE_OVERHEAD_NS) } else { 0 };
        let has_losses = spec.metrics.contains(&Metric::FrameLossRate);
        let trial_ns = search.loss_trial_ns().saturating_add(SLICE_OVERHEAD_NS);
        let losses_ns = if has_losses { trial_ns.saturating_mul(ASSUMED_LOSS_TRIALS) } else { 0 };
        let has_recoveries = spec.metrics.contains(&Metric::RecoveryTime);
        let recoveries_ns = if has_recoveries { RECOVERIES_NS } else { 0 };
        let connections_ns = estimate_connections(spec, slice_ns);
        let others_ns = bounds_ns.saturating_add(bursts_ns + recoveries_ns).saturating_add(losses_ns);
        return (search_ns.saturating_add(others_ns).saturating_add(connections_ns), false);
    }
    if spec.probe == Probe::Sockets {
        return (HOLDING_NS, false);
    }
    let packets = match spec.length {
        // A program ends by itself.
        Length::Time(nanoseconds) => return (nanoseconds, spec.probe == Probe::Program),
        Length::Packets(packets) => packets as f64,
    };
    let limit = if spec.probe == Probe::Connect { None } else { study.link_config.messages_per_second(cell) };
    let (rate, assumed) = match spec.pacing {
        Pacing::Schedule(rate) | Pacing::Shifted(rate) => (rate, false),
        Pacing::Stepped(step) => (step.second, false),
        Pacing::Link => (f64::MAX, false),
        Pacing::Share(share) => (share * ASSUMED_FLOOD_RATE, true),
        Pacing::Lockstep => (ASSUMED_LOCKSTEP_RATE, true),
        Pacing::Flood | Pacing::Search(_) | Pacing::Searched => (ASSUMED_FLOOD_RATE, true),
    };
    let rate = limit.map_or(rate, |limit| rate.min(limit));
    // A cast from a float saturates.
    ((packets / rate * 1e9) as u64, assumed)
}

/// Blocks before the time budget can end a campaign: with fewer there is no interval at all.
pub const MIN_BLOCKS: u32 = 2;

/// Whether the verdicts may be evaluated after this many blocks: the stopping rule, a pure function of the runs so far.
pub fn may_look(rule: &StoppingRule, blocks_done: u32) -> bool {
    blocks_done >= rule.min
}

/// Why the rule's limits end the measuring of every question that is open after a block, if they do. `spent_ns` are the
/// nanoseconds of the campaign so far. The budget ends it before `rule.min` too, but not before two blocks.
pub fn is_over(rule: &StoppingRule, blocks_done: u32, spent_ns: u64) -> Option<StopReason> {
    if blocks_done >= rule.max {
        Some(StopReason::Cap)
    } else if blocks_done >= MIN_BLOCKS && rule.budget_ns.is_some_and(|budget| spent_ns >= budget) {
        Some(StopReason::Budget)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, parse};
    use stacklab_model::Until;

    fn estimate(scale: Option<&str>, settings: &[&str]) -> PlanEstimate {
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let text = include_str!("../../../../studies/quickstart.toml");
        let study = parse(&Input { name: "quickstart.toml", text, scale, settings: &settings }).unwrap();
        Plan::new(&study, 1).estimate(&study)
    }

    #[test]
    fn the_quickstart_ends_within_a_minute_and_a_half() {
        let estimate = estimate(None, &[]);
        // 24, and two arms against themselves of each of two transports and two probes.
        assert_eq!(estimate.trials_per_block, 32);
        // 16 x (50 + 5 + 20) ms and 16 x (40 + 5 + 20) ms.
        assert_eq!(estimate.block_ns, 2_240_000_000);
        assert_eq!((estimate.min_blocks, estimate.max_blocks), (8, 36));
        assert_eq!(estimate.max_ns, 80_000_000_000);
        assert!(!estimate.assumed);
    }

    #[test]
    fn blocks_of_slow_links_have_their_emptying() {
        // Measured at 256 kbit/s: 130 s.
        let slow = estimate(None, &["testbed.rate='256 kbit/s'"]).block_ns / 1_000_000_000;
        assert!((100..250).contains(&slow), "{slow} s");
        // At 1 Gbit/s a slice leaves as it is sent.
        let fast = estimate(None, &["testbed.rate='1 Gbit/s'"]).block_ns;
        assert!((2_240_000_000..2_500_000_000).contains(&fast), "{fast} ns");
        // By itself, a flood empties once.
        let alone = ["testbed.rate='256 kbit/s'", "blocks.schedule='sequential'"];
        let alone = estimate(None, &alone).block_ns / 1_000_000_000;
        assert!((12..40).contains(&alone), "{alone} s");
    }

    #[test]
    fn a_small_budget_leaves_two_blocks() {
        let estimate = estimate(None, &["blocks.budget='1s'"]);
        assert_eq!((estimate.min_blocks, estimate.max_blocks), (2, 2));
        assert_eq!(estimate.max_ns, 2 * estimate.block_ns);
    }

    #[test]
    fn packets_take_an_assumed_rate_or_that_of_the_link() {
        let only = [
            "factors.size=[1408]",
            "factors.transport=['udp']",
            "factors.family=['ipv4']",
            "comparison=[]",
            "probe.stream.length.packets=100_000",
            "probe.stream.warmup='0s'",
            "blocks.schedule='sequential'",
        ];
        let free = estimate(None, &only);
        assert!(free.assumed);
        // 1 s of flood, 40 + 5 ms of echo, 2 x 20 ms of overhead.
        assert_eq!(free.block_ns, 1_085_000_000);
        // 1474 bytes of wire each at 100 Mbit/s: 11.792 s, and 4 ms until the link is empty.
        let limited = estimate(None, &[&only[..], &["testbed.rate=100 Mbit/s"]].concat());
        assert_eq!(limited.block_ns.div_ceil(1_000_000), 11_881);
    }

    #[test]
    fn tables_are_weighed_after_neighbours_are_freed() {
        let neighbours = ["comparison=[]", "testbed.topology='routed'", "factors.neighbours=[100]"];
        let metrics = ["probe.stream.metrics=['throughput','memory_per_neighbour']"];
        let unweighed = estimate(None, &neighbours).block_ns;
        let weighed = estimate(None, &[&neighbours[..], &metrics].concat()).block_ns;
        assert_eq!(weighed - unweighed, SETTLING_NS);
    }

    fn rule(budget_ns: Option<u64>) -> StoppingRule {
        StoppingRule { min: 6, max: 12, until: Until::Verdict, target: 0.02, budget_ns }
    }

    #[test]
    fn limits_are_blocks_then_time() {
        for (blocks, spent, reason) in [
            (11, 99, None),
            (12, 0, Some(StopReason::Cap)),
            (12, 100, Some(StopReason::Cap)),
            (7, 100, Some(StopReason::Budget)),
            (2, 100, Some(StopReason::Budget)),
            (1, 100, None),
        ] {
            assert_eq!(is_over(&rule(Some(100)), blocks, spent), reason, "{blocks} blocks, {spent} ns");
        }
        assert_eq!(is_over(&rule(None), 11, u64::MAX), None);
    }

    #[test]
    fn first_look_is_after_min_blocks() {
        assert!(!may_look(&rule(None), 5) && may_look(&rule(None), 6));
    }
}
