//! Campaigns of searches for the highest load: a simulated machine whose speed drifts and stops, two devices on it, and
//! the real code from a slice to the verdict. Of equal devices claims must be rare, and of others the interval must
//! hold the ratio.

use crate::campaign::{EndedComparison, Rule, Tally, campaign, question};
use crate::runs::{Simulation, Spread};
use stacklab_model::Metric;
use stacklab_search::goal::{Goal, PPM};
use stacklab_search::lockstep::Lockstep;
use stacklab_search::paired::{PairedSearch, Slice};
use stacklab_trial::results::locate_loads;
use std::time::Duration;

/// The margin of the study `search`.
const MARGIN: f64 = 0.02;
/// Blocks of a campaign.
pub const RULE: Rule = Rule { min: 8, max: 40 };
/// Frames per second that the devices forward on average.
const CAPACITY: f64 = 100_000.0;
const SLICE_SECONDS: f64 = 0.1;
/// Between two slices.
const PAUSE_SECONDS: f64 = 0.02;
/// Allowed loss, in millionths.
const LOSS_PPM: u32 = 5_000;
/// Frames that a device's queue holds.
const QUEUE: f64 = 1000.0;
/// What the first load of an arm differs by from a flood's rate, as a logarithm.
const FIRST_LOAD_SPREAD: f64 = 0.04;
/// Time in which the machine's slow and its fast speed forget what they were, seconds.
const SLOW_SECONDS: f64 = 60.0;
const FAST_SECONDS: f64 = 0.5;
/// Mean length of a stop, seconds.
const STOP_SECONDS: f64 = 0.008;

/// What disturbs a machine.
#[derive(Debug, Clone, Copy)]
pub struct SimulatedMachine {
    /// Standard deviation of the slow part of its log speed, which all devices share.
    pub slow: f64,
    /// The same of the fast part.
    pub fast: f64,
    /// Stops per second, in which nothing is forwarded.
    pub stops: f64,
    /// Standard deviation of what a device's log speed differs by from block to block.
    pub block: f64,
}

impl SimulatedMachine {
    /// The machines that are simulated, with their names.
    pub const ALL: [(&'static str, SimulatedMachine); 4] = [
        ("quiet", SimulatedMachine { slow: 0.01, fast: 0.005, stops: 0.0, block: 0.002 }),
        ("drift of 20 %", SimulatedMachine { slow: 0.1, fast: 0.02, stops: 0.0, block: 0.006 }),
        ("drift and 2 stops a second", SimulatedMachine { slow: 0.1, fast: 0.02, stops: 2.0, block: 0.006 }),
        ("testbeds 2 % apart", SimulatedMachine { slow: 0.1, fast: 0.02, stops: 0.0, block: 0.02 }),
    ];
}

/// A machine at work: the state of its drift, and the devices of a block.
struct World {
    machine: SimulatedMachine,
    slow: f64,
    fast: f64,
    /// Log speed of each device in this block.
    devices: [f64; 2],
}

impl World {
    fn new(machine: SimulatedMachine, simulation: &mut Simulation) -> Self {
        let slow = machine.slow * simulation.normal();
        let fast = machine.fast * simulation.normal();
        World { machine, slow, fast, devices: [0.0; 2] }
    }

    /// Builds both devices anew; the candidate's capacity is `ratio` times the baseline's.
    fn begin_block(&mut self, ratio: f64, simulation: &mut Simulation) {
        let block = self.machine.block;
        self.devices = [block * simulation.normal(), ratio.ln() + block * simulation.normal()];
    }

    fn wait(&mut self, seconds: f64, simulation: &mut Simulation) {
        self.slow = drift(self.slow, self.machine.slow, seconds / SLOW_SECONDS, simulation);
        self.fast = drift(self.fast, self.machine.fast, seconds / FAST_SECONDS, simulation);
    }

    fn capacity(&self, arm: usize) -> f64 {
        CAPACITY * (self.slow + self.fast + self.devices[arm]).exp()
    }

    /// Sends a slice at a constant load through a device with a queue.
    fn send(&mut self, arm: usize, load: f64, simulation: &mut Simulation) -> Slice {
        self.wait(PAUSE_SECONDS + SLICE_SECONDS, simulation);
        let mut waiting = 0.0;
        let mut lost = 0.0;
        let mut seconds = SLICE_SECONDS;
        if simulation.uniform() < self.machine.stops * SLICE_SECONDS {
            let stop = (-STOP_SECONDS * (1.0 - simulation.uniform()).ln()).min(SLICE_SECONDS);
            waiting = load * stop;
            lost += (waiting - QUEUE).max(0.0);
            waiting = waiting.min(QUEUE);
            seconds -= stop;
        }
        waiting += (load - self.capacity(arm)) * seconds;
        lost += (waiting - QUEUE).max(0.0);
        Slice {
            offered: (load * SLICE_SECONDS) as u64,
            lost: lost as u64,
            waiting: waiting.clamp(0.0, QUEUE) as u64,
        }
    }
}

/// The next value of a first-order autoregression, `steps` time constants later.
fn drift(value: f64, sd: f64, steps: f64, simulation: &mut Simulation) -> f64 {
    let kept = (-steps).exp();
    kept * value + sd * (1.0 - kept * kept).sqrt() * simulation.normal()
}

/// Searches both arms in one block, as a campaign does: rounds of random order, each second one backwards. Frames per
/// second.
fn search(world: &mut World, simulation: &mut Simulation) -> (f64, f64) {
    let mut first_loads = [0.0; 2];
    for (arm, load) in first_loads.iter_mut().enumerate() {
        let spread = FIRST_LOAD_SPREAD * (2.0 * simulation.uniform() - 1.0);
        *load = world.capacity(arm) * spread.exp();
    }
    let mut paired = PairedSearch::new(&first_loads, 10.0, 1e9, PPM / 2);
    let mut order = [0, 1];
    let mut round = 0;
    while !paired.is_complete() {
        if round % 2 == 1 || simulation.uniform() < 0.5 {
            order.reverse();
        }
        round += 1;
        let mut bad = [false; 2];
        for arm in order {
            let load = paired.load(arm);
            bad[arm] = world.send(arm, load, simulation).is_bad(LOSS_PPM);
        }
        paired.add_round(&bad);
    }
    let loads = locate_loads(paired.counted_rounds()).expect("all rounds have both arms");
    (loads[0], loads[1])
}

/// The lower bounds of both arms for a goal of trials of a slice, near loads that were searched. Frames per second;
/// `None` if a bound lies outside the range, as on a machine that drifts far.
fn search_bounds(world: &mut World, loads: (f64, f64), simulation: &mut Simulation) -> Option<(f64, f64)> {
    let slice = Duration::from_secs_f64(SLICE_SECONDS);
    let goal = Goal {
        initial_trial: slice,
        final_trial: slice,
        duration_sum: 21 * slice,
        ..Goal::seconds(LOSS_PPM)
    };
    let mut lockstep =
        Lockstep::new(&goal, &[loads.0, loads.1], 10.0, 1e9).expect("the goal and its range are possible");
    let mut order = [0, 1];
    while lockstep.begin_round() {
        order.reverse();
        for arm in order {
            let Some(trial) = lockstep.trial(arm) else { continue };
            let Slice { offered, lost, waiting } = world.send(arm, trial.load, simulation);
            lockstep.add_slice(arm, offered, offered, lost + waiting);
        }
        lockstep.end_round();
    }
    Some((lockstep.bounds(0)?.lower?, lockstep.bounds(1)?.lower?))
}

/// What is compared of the arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchedFigure {
    /// The highest load, found in turns of a slice.
    HighestLoad,
    /// The lower bound of a goal near it.
    LowerBound,
}

/// A campaign of one comparison.
pub fn simulate_campaign(
    machine: SimulatedMachine,
    ratio: f64,
    rule: Rule,
    figure: SearchedFigure,
    simulation: &mut Simulation,
) -> EndedComparison {
    let mut world = World::new(machine, simulation);
    let metric = match figure {
        SearchedFigure::HighestLoad => Metric::LoadAtLoss,
        SearchedFigure::LowerBound => Metric::LowerBound,
    };
    let questions = [question(metric, MARGIN)];
    let mut ended = campaign(&questions, rule, |_| {
        // A block without a figure does not count.
        loop {
            world.begin_block(ratio, simulation);
            let loads = search(&mut world, simulation);
            let pair = match figure {
                SearchedFigure::HighestLoad => Some(loads),
                SearchedFigure::LowerBound => search_bounds(&mut world, loads, simulation),
            };
            if let Some(pair) = pair {
                return pair;
            }
        }
    });
    ended.remove(0)
}

/// Campaigns on a machine whose devices' capacities differ by this ratio.
pub fn simulate(
    count: usize,
    seed: u128,
    machine: SimulatedMachine,
    ratio: f64,
    figure: SearchedFigure,
) -> Tally {
    let mut simulation = Simulation::new(seed, Spread::Normal, 1.0);
    let mut tally = Tally::default();
    for _ in 0..count {
        tally.add(&simulate_campaign(machine, ratio, RULE, figure, &mut simulation), ratio);
    }
    tally
}

/// Prints all machines.
pub fn print(count: usize) {
    println!(
        "\nSearches of two devices' highest loads, and of their lower bounds (RFC 9971) near these, {} to {} blocks, margin {} %:\n\
         per cent of the campaigns that claim a difference of equal devices (at most 5) or their equality, and whose 95 %\n\
         interval holds it; of devices 3 % apart, how many find it, and hold it.",
        RULE.min,
        RULE.max,
        100.0 * MARGIN
    );
    for (part, (name, figure)) in
        [("highest load", SearchedFigure::HighestLoad), ("lower bound", SearchedFigure::LowerBound)]
            .into_iter()
            .enumerate()
    {
        println!(
            "\n{name:<28} {:>6} {:>6} {:>8}  {:>6} {:>8}",
            "false", "equal", "covered", "found", "covered"
        );
        for (place, (machine_name, machine)) in SimulatedMachine::ALL.into_iter().enumerate() {
            let seed = (0x5ea0 + 16 * part as u128 + place as u128) << 32;
            let equal = simulate(count, seed, machine, 1.0, figure);
            let apart = simulate(count, seed + (1 << 40), machine, 0.97, figure);
            println!(
                "{machine_name:<28} {:>6.2} {:>6.1} {:>8.1}  {:>6.1} {:>8.1}",
                equal.percent(equal.better),
                equal.percent(equal.equivalent),
                equal.percent(equal.covered),
                apart.percent(apart.better),
                apart.percent(apart.covered)
            );
        }
    }
}
