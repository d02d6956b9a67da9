//! The cost of each stage of the network stack, from samples and the slices of two interleaved arms.
//!
//! The clock is the CPU time of the arm's threads on both hosts; where only one host counts it, the samples of both.
//! A stage's cost is the time that its samples stand for, over the messages of the sampled slices, times the ratio of
//! the clock without sampling to the clock with it. Standard errors are by the bootstrap over windows, each one with
//! samples and the one without after it; p and intervals are Student's by the number of trials: the sockets of a trial
//! are its own, and stages of alike sockets differ a little.

mod lock;
mod stacks;
#[cfg(test)]
mod tests;

use crate::stage_costs::lock::Lock;
use crate::stage_costs::stacks::{Sampled, folded};
use crate::statistics::holm;
use crate::statistics::moments::Moments;
use stacklab_model::{Health, Profile, SplitMix64, StageCost, StageCosts, StageKind};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::{BTreeMap, BTreeSet};

/// Resamples of the bootstrap.
const RESAMPLES: usize = 1000;
/// How far a slice is from the ends of its window, nanoseconds: clocks start and stop one after the other.
const MARGIN_NS: u64 = 100_000;
/// The functions that are listed.
const FUNCTIONS: usize = 20;
/// Blocks, and trials that they are of, below which nothing is said.
const LEAST_BLOCKS: usize = 8;
const LEAST_TRIALS: usize = 2;

/// What an arm did in a block: a window with samples and the one without after it.
#[derive(Debug, Clone, Default)]
struct Block {
    /// The trial of its last slice.
    trial: u32,
    sampled: Clock,
    free: Clock,
    /// Nanoseconds of the processors, by place: stages, then functions.
    ns: Vec<f64>,
    /// Nanoseconds of the stack that were not in threads of the study.
    outside: f64,
    /// Nanoseconds of other programs.
    other: f64,
    /// Samples by call chain.
    stacks: Sampled,
}

#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    ns: f64,
    messages: f64,
}

impl Clock {
    fn add(&mut self, other: Clock) {
        self.ns += other.ns;
        self.messages += other.messages;
    }

    fn per_message(self) -> f64 {
        self.ns / self.messages
    }
}

/// A slice of an arm on both hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArmSlice {
    /// Which trial it is of: the same number for both arms.
    pub trial: u32,
    /// From the first message sent, nanoseconds of the monotonic clock.
    pub from_ns: u64,
    /// To the last arrival.
    pub to_ns: u64,
    /// Messages sent.
    pub messages: u64,
    /// CPU time of the arm's threads, nanoseconds.
    pub cpu_ns: u64,
    /// Whether that is of both hosts.
    pub is_whole: bool,
}

/// The costs of two arms with these slices. `None` if too little was sampled to say anything.
pub fn stage_costs(
    profile: &Profile,
    slices: [&[ArmSlice]; 2],
    cell: String,
    arms: [String; 2],
    seed: u64,
) -> Option<StageCosts> {
    let functions: BTreeMap<u32, usize> = profile
        .functions
        .keys()
        .zip(profile.stages.len()..)
        .map(|(function, place)| (*function, place))
        .collect();
    let places = profile.stages.len() + functions.len();
    let mut lock = Lock::new(profile);
    let mut samples = 0;
    let blocks: Vec<Vec<Block>> = slices
        .iter()
        .map(|slices| {
            let mut blocks =
                vec![Block { ns: vec![0.0; places], ..Block::default() }; profile.windows.len() / 2];
            for slice in *slices {
                samples += place(profile, slice, &functions, &mut blocks, &mut lock);
            }
            blocks
        })
        .collect();
    // A block in which an arm lacks slices tells nothing of it.
    let whole: Vec<usize> = (0..profile.windows.len() / 2)
        .filter(|block| {
            blocks.iter().all(|arm| arm[*block].sampled.messages > 0.0 && arm[*block].free.messages > 0.0)
        })
        .collect();
    let trials = whole.iter().map(|block| blocks[0][*block].trial).collect::<BTreeSet<u32>>().len();
    if whole.len() < LEAST_BLOCKS || trials < LEAST_TRIALS {
        return None;
    }
    let numbers = |kind: StageKind| -> Vec<usize> {
        (0..profile.stages.len()).filter(|stage| profile.stages[*stage].kind == kind).collect()
    };
    let parts = [numbers(StageKind::Stack), numbers(StageKind::Unmapped)].concat();
    let is_whole = slices.iter().all(|arm| arm.iter().all(|slice| slice.is_whole));
    let of = |chosen: &[usize]| -> [Arm; 2] {
        [0, 1].map(|arm| Arm::of(chosen.iter().map(|block| &blocks[arm][*block]), &parts, is_whole))
    };
    let estimate = of(&whole);
    let mut random = SplitMix64(seed);
    let resampled: Vec<[Arm; 2]> = (0..RESAMPLES)
        .map(|_| {
            let draw = || whole[(random.next_u64() % whole.len() as u64) as usize];
            of(&std::iter::repeat_with(draw).take(whole.len()).collect::<Vec<_>>())
        })
        .collect();
    // The bootstrap of a few blocks is narrower than what it stands for, and so is the normal distribution.
    let t = StudentsT::new(0.0, 1.0, (trials - 1) as f64).expect("there are some trials");
    let few = t.inverse_cdf(0.975) / StageCost::HALF_WIDTH;
    let widens = few * (whole.len() as f64 / (whole.len() - 1) as f64).sqrt();
    let cost = |name: &str, figure: &dyn Fn(&Arm) -> f64| {
        let difference = |arms: &[Arm; 2]| figure(&arms[1]) - figure(&arms[0]);
        let drawn: Vec<f64> = resampled.iter().map(difference).collect();
        StageCost {
            name: name.to_owned(),
            ns: [figure(&estimate[0]), figure(&estimate[1])],
            difference_ns: difference(&estimate),
            error_ns: widens * Moments::of(&drawn).expect("there are many resamples").sd,
            adjusted_p: None,
        }
    };
    let sum = |name: &str, stages: Vec<usize>| {
        cost(name, &|arm: &Arm| stages.iter().map(|stage| arm.ns[*stage]).sum())
    };
    let listed = |all: Vec<(String, usize)>| {
        let mut rows: Vec<StageCost> = all
            .into_iter()
            .map(|(name, place)| cost(&name, &|arm: &Arm| arm.ns[place]))
            .filter(|row| row.ns != [0.0, 0.0])
            .collect();
        adjust(&mut rows, &t, few);
        rows.sort_by(|a, b| b.difference_ns.abs().total_cmp(&a.difference_ns.abs()));
        rows
    };
    let stages = listed(
        numbers(StageKind::Stack)
            .into_iter()
            .map(|stage| (profile.stages[stage].name.clone(), stage))
            .collect(),
    );
    let named = functions.iter().map(|(function, place)| (profile.functions[function].clone(), *place));
    let mut functions = listed(named.collect());
    functions.truncate(FUNCTIONS);
    let unmapped = sum("unmapped", numbers(StageKind::Unmapped));
    let busy = cost("busy", &|arm: &Arm| arm.clock + arm.outside);
    let stacks = [0, 1].map(|arm| {
        let mut all = Sampled::default();
        whole.iter().for_each(|block| all.add_all(&blocks[arm][*block].stacks));
        all.scaled(estimate[arm].factor)
    });
    let messages = |arm: &Vec<Block>| whole.iter().map(|block| arm[*block].sampled.messages).sum::<f64>();
    let of_both = |figure: &dyn Fn(&Arm) -> f64| estimate.iter().map(figure).sum::<f64>();
    let all_ns = of_both(&|arm| arm.clock + arm.outside);
    let other_ns = of_both(&|arm| arm.other);
    let health = Health {
        event: profile.event,
        lock_ratio: lock.ratio(),
        coverage: is_whole.then(|| of_both(&|arm| arm.sampled) / all_ns),
        overhead: of_both(&|arm| 1.0 / arm.scale - 1.0) / 2.0,
        unmapped: unmapped.ns.iter().sum::<f64>() / all_ns,
        other_load: other_ns / (all_ns + other_ns),
        samples,
        messages: blocks.iter().map(messages).sum::<f64>() as u64,
        lost: profile.lost,
        throttled: profile.throttled,
        unmapped_functions: profile.unmapped.iter().take(5).map(|(name, _)| name.clone()).collect(),
    };
    Some(StageCosts {
        cell,
        arms,
        stages,
        unmapped,
        not_sampled: cost("not sampled", &|arm: &Arm| arm.clock + arm.outside - arm.sampled),
        threads: cost("threads", &|arm: &Arm| arm.clock),
        outside: cost("outside them", &|arm: &Arm| arm.outside),
        busy,
        functions,
        stacks: folded(profile, &stacks),
        health,
    })
}

/// Adds a slice, with its samples, to the block that its window is of. Returns the number of samples.
fn place(
    profile: &Profile,
    slice: &ArmSlice,
    functions: &BTreeMap<u32, usize>,
    blocks: &mut [Block],
    lock: &mut Lock,
) -> u64 {
    let (from, to) = (slice.from_ns, slice.to_ns);
    let number = profile.windows.partition_point(|window| window.from_ns + MARGIN_NS <= from);
    let Some(number) = number.checked_sub(1) else { return 0 };
    let window = &profile.windows[number];
    let Some(block) = blocks.get_mut(number / 2).filter(|_| to + MARGIN_NS <= window.to_ns && from < to)
    else {
        return 0;
    };
    block.trial = slice.trial;
    let clock = Clock { ns: slice.cpu_ns as f64, messages: slice.messages as f64 };
    if !window.is_sampled {
        block.free.add(clock);
        return 0;
    }
    block.sampled.add(clock);
    let begin = profile.samples.partition_point(|sample| sample.time_ns < from);
    let samples = profile.samples[begin..].iter().take_while(|sample| sample.time_ns < to);
    let mut count = 0;
    for sample in samples {
        let ns = sample.stands_for_ns as f64;
        match profile.stages[sample.stage as usize].kind {
            StageKind::Other => block.other += ns,
            StageKind::Stack | StageKind::Unmapped if !sample.is_own => block.outside += ns,
            _ => {}
        }
        block.ns[sample.stage as usize] += ns;
        if let Some(place) = functions.get(&sample.function) {
            block.ns[*place] += ns;
        }
        if (sample.stack as usize) < profile.stacks.len() {
            block.stacks.add(sample.stack, 1, ns);
        }
        lock.add(sample);
        count += 1;
    }
    lock.slice();
    count
}

/// An arm's costs over some blocks, nanoseconds a message.
struct Arm {
    /// The clock without sampling.
    clock: f64,
    /// The clock without sampling over the clock with it.
    scale: f64,
    /// Nanoseconds a message over nanoseconds of all samples.
    factor: f64,
    /// By place.
    ns: Vec<f64>,
    /// What samples of the stack show that were not in threads of the study.
    outside: f64,
    /// What samples of other programs show.
    other: f64,
    /// What samples of the stack show.
    sampled: f64,
}

impl Arm {
    /// `parts` are the stages of the stack; `is_whole` tells whether both hosts count their CPU time.
    fn of<'a>(blocks: impl Iterator<Item = &'a Block>, parts: &[usize], is_whole: bool) -> Self {
        let (mut sampled, mut free) = (Clock::default(), Clock::default());
        let mut arm = Arm {
            clock: 0.0,
            scale: 0.0,
            factor: 0.0,
            ns: Vec::new(),
            outside: 0.0,
            other: 0.0,
            sampled: 0.0,
        };
        for block in blocks {
            sampled.add(block.sampled);
            free.add(block.free);
            arm.ns.resize(block.ns.len(), 0.0);
            arm.ns.iter_mut().zip(&block.ns).for_each(|(sum, each)| *sum += each);
            arm.outside += block.outside;
            arm.other += block.other;
        }
        arm.clock = free.per_message();
        arm.scale = arm.clock / sampled.per_message();
        arm.factor = arm.scale / sampled.messages;
        let factor = arm.factor;
        arm.ns.iter_mut().chain([&mut arm.outside, &mut arm.other]).for_each(|each| *each *= factor);
        arm.sampled = parts.iter().map(|stage| arm.ns[*stage]).sum();
        if !is_whole {
            arm.clock = arm.sampled - arm.outside;
        }
        arm
    }
}

/// Holm's adjustment of each row's p for the number of rows. Errors are wider than standard errors by this factor.
fn adjust(rows: &mut [StageCost], t: &StudentsT, few: f64) {
    let p: Vec<f64> =
        rows.iter().map(|row| 2.0 * t.sf((few * row.difference_ns / row.error_ns.max(1e-9)).abs())).collect();
    for (row, p) in rows.iter_mut().zip(holm(&p)) {
        row.adjusted_p = Some(p);
    }
}
