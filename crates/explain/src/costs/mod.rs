//! The cost of each stage of the network stack, from samples and the slices of two interleaved arms.
//!
//! The clock is the CPU time of the arm's threads on both hosts; where only one host counts it, the samples of both.
//! In a trial, a stage's cost is the time that its samples stand for, over the messages of the sampled slices, times
//! the ratio of the clock without sampling to the clock with it. Costs are means over trials. Standard errors, p and
//! intervals are Student's, of the differences by trial: a trial has its own sockets, and stages of like sockets differ
//! by more than the windows of one trial show.

pub(crate) mod functions;
#[cfg(test)]
mod tests;

use crate::costs::functions::{Sampled, folded, paired};
use crate::sampling::profile::{Profile, Sample, StageKind};
use stacklab_analysis::statistics::{Moments, Student, holm, t_quantile};
use stacklab_model::{Family, Health, StageCost, StageCosts};
use std::collections::BTreeMap;

/// How far a slice is from the ends of its window, nanoseconds: clocks start and stop one after the other.
const MARGIN_NS: u64 = 100_000;
const FUNCTIONS: usize = 20;
/// Samples that are no further apart are of one moment: a clock that is due while another one is sampling waits for
/// it, nanoseconds.
const TOGETHER_NS: u64 = 50_000;
/// Fewest blocks, and fewest trials, that give costs.
const MIN_BLOCKS: usize = 8;
const MIN_TRIALS: usize = 2;

/// What an arm did in a block of a trial: a window with samples and the one without after it.
#[derive(Debug, Clone, Default)]
struct Block {
    sampled: CpuTime,
    free: CpuTime,
    /// Nanoseconds of the processors, by place: stages, then functions.
    ns: Vec<f64>,
    /// Nanoseconds of the stack that were not in threads of the study.
    outside: f64,
    other: f64,
    stacks: Sampled,
}

#[derive(Debug, Clone, Copy, Default)]
struct CpuTime {
    ns: f64,
    messages: f64,
}

impl CpuTime {
    fn add(&mut self, other: CpuTime) {
        self.ns += other.ns;
        self.messages += other.messages;
    }

    fn per_message(self) -> f64 {
        self.ns / self.messages
    }

    /// Without messages or CPU time there is no ratio.
    fn is_measured(self) -> bool {
        self.ns > 0.0 && self.messages > 0.0
    }
}

/// A slice of an arm on both hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArmSlice {
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

/// The blocks of both arms, by trial and number: a window may reach into the next trial.
type Blocks = BTreeMap<(u32, usize), [Block; 2]>;

/// The costs of two arms with these slices. `None` if too little was sampled.
pub(crate) fn stage_costs(
    profile: &Profile,
    slices: [&[ArmSlice]; 2],
    cell: String,
    arms: [String; 2],
) -> Option<StageCosts> {
    let functions: BTreeMap<u32, usize> = profile
        .functions
        .keys()
        .zip(profile.stages.len()..)
        .map(|(function, place)| (*function, place))
        .collect();
    let mut lock = Lock::new(profile);
    let mut samples = 0;
    let mut blocks = Blocks::new();
    for (arm, slices) in slices.iter().enumerate() {
        for slice in *slices {
            samples += place(profile, (arm, slice), &functions, &mut blocks, &mut lock);
        }
    }
    // A block in which an arm lacks slices is not a comparison.
    blocks.retain(|_, arms| arms.iter().all(|arm| arm.sampled.is_measured() && arm.free.is_measured()));
    let mut by_trial: BTreeMap<u32, Vec<&[Block; 2]>> = BTreeMap::new();
    blocks.iter().for_each(|((trial, _), block)| by_trial.entry(*trial).or_default().push(block));
    if blocks.len() < MIN_BLOCKS || by_trial.len() < MIN_TRIALS {
        return None;
    }
    let numbers = |kind: StageKind| -> Vec<usize> {
        (0..profile.stages.len()).filter(|stage| profile.stages[*stage].kind == kind).collect()
    };
    let parts = [numbers(StageKind::Stack), numbers(StageKind::Unmapped)].concat();
    let is_whole = slices.iter().all(|arm| arm.iter().all(|slice| slice.is_whole));
    let of_trial = |blocks: &Vec<&[Block; 2]>| -> [ArmCosts; 2] {
        [0, 1].map(|arm| ArmCosts::of(blocks.iter().map(|block| &block[arm]), &parts, is_whole))
    };
    let trials: Vec<[ArmCosts; 2]> = by_trial.values().map(of_trial).collect();
    let degrees = (trials.len() - 1) as f64;
    let cost = |name: &str, figure: &dyn Fn(&ArmCosts) -> f64| by_trials(name, &trials, figure);
    let sum = |name: &str, stages: Vec<usize>| {
        cost(name, &|arm: &ArmCosts| stages.iter().map(|stage| arm.ns[*stage]).sum())
    };
    let listed = |all: Vec<(String, Vec<usize>)>| {
        let mut rows: Vec<StageCost> = all
            .into_iter()
            .map(|(name, places)| sum(&name, places))
            .filter(|row| row.ns != [0.0, 0.0])
            .collect();
        adjust(&mut rows, degrees);
        rows.sort_by(|a, b| b.difference_ns.abs().total_cmp(&a.difference_ns.abs()));
        rows
    };
    let stages = listed(
        numbers(StageKind::Stack)
            .into_iter()
            .map(|stage| (profile.stages[stage].name.clone(), vec![stage]))
            .collect(),
    );
    let named: Vec<(String, usize)> =
        functions.iter().map(|(function, place)| (profile.functions[function].clone(), *place)).collect();
    // Both families have functions for the same work: between families, the two of a pair are one row.
    let families = [Family::Ipv4, Family::Ipv6].map(|family| family.to_string());
    let mut functions = listed(match arms.iter().all(|level| families.contains(level)) {
        true => paired(named),
        false => named.into_iter().map(|(name, place)| (name, vec![place])).collect(),
    });
    functions.truncate(FUNCTIONS);
    let unmapped = sum("unmapped", numbers(StageKind::Unmapped));
    let busy = cost("busy", &|arm: &ArmCosts| arm.clock + arm.outside);
    let mut stacks = [Sampled::default(), Sampled::default()];
    for (blocks, costs) in by_trial.values().zip(&trials) {
        for (arm, all) in stacks.iter_mut().enumerate() {
            let mut own = Sampled::default();
            blocks.iter().for_each(|block| own.add_all(&block[arm].stacks));
            all.add_all(&own.scaled(costs[arm].factor / trials.len() as f64));
        }
    }
    let of_both = |figure: &dyn Fn(&ArmCosts) -> f64| cost("", figure).ns.iter().sum::<f64>();
    let all_ns = of_both(&|arm| arm.clock + arm.outside);
    let other_ns = of_both(&|arm| arm.other);
    let health = Health {
        event: profile.event,
        trials: trials.len() as u32,
        t95: t_quantile(0.975, degrees),
        lock_ratio: lock.ratio(),
        coverage: is_whole.then(|| of_both(&|arm| arm.sampled) / all_ns),
        overhead: of_both(&|arm| 1.0 / arm.scale - 1.0) / 2.0,
        unmapped: unmapped.ns.iter().sum::<f64>() / all_ns,
        other_load: other_ns / (all_ns + other_ns),
        samples,
        messages: blocks.values().flatten().map(|block| block.sampled.messages).sum::<f64>() as u64,
        lost: profile.lost,
        throttled: profile.throttled,
        unmapped_functions: profile.unmapped.iter().take(5).map(|(name, _)| name.clone()).collect(),
    };
    Some(StageCosts {
        cell,
        arms,
        stages,
        unmapped,
        not_sampled: cost("not sampled", &|arm: &ArmCosts| arm.clock + arm.outside - arm.sampled),
        threads: cost("threads", &|arm: &ArmCosts| arm.clock),
        outside: cost("outside them", &|arm: &ArmCosts| arm.outside),
        busy,
        functions,
        stacks: folded(profile, &stacks),
        health,
    })
}

/// The mean of a figure over trials in each arm, with the standard error of the difference.
fn by_trials(name: &str, trials: &[[ArmCosts; 2]], figure: &dyn Fn(&ArmCosts) -> f64) -> StageCost {
    let figures = |arm: usize| trials.iter().map(|trial| figure(&trial[arm])).collect::<Vec<f64>>();
    let [a, b] = [figures(0), figures(1)];
    let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
    let moments = |figures: &[f64]| Moments::of(figures).expect("there are two trials or more");
    let difference = moments(&differences);
    StageCost {
        name: name.to_owned(),
        ns: [&a, &b].map(|figures| moments(figures).mean),
        difference_ns: difference.mean,
        error_ns: difference.error(),
        adjusted_p: None,
    }
}

/// Adds an arm's slice, with its samples, to its block. Returns the number of samples.
fn place(
    profile: &Profile,
    (arm, slice): (usize, &ArmSlice),
    functions: &BTreeMap<u32, usize>,
    blocks: &mut Blocks,
    lock: &mut Lock,
) -> u64 {
    let from = slice.from_ns;
    let to = slice.to_ns;
    let number = profile.windows.partition_point(|window| window.from_ns + MARGIN_NS <= from);
    let Some(number) = number.checked_sub(1) else { return 0 };
    let window = &profile.windows[number];
    // A last window with samples has none without after it.
    if number / 2 >= profile.windows.len() / 2 || to + MARGIN_NS > window.to_ns || from >= to {
        return 0;
    }
    let places = profile.stages.len() + functions.len();
    let block = &mut blocks.entry((slice.trial, number / 2)).or_default()[arm];
    block.ns.resize(places, 0.0);
    let clock = CpuTime { ns: slice.cpu_ns as f64, messages: slice.messages as f64 };
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

/// An arm's costs in a trial, nanoseconds per message.
#[derive(Default)]
struct ArmCosts {
    clock: f64,
    /// The clock without sampling over the clock with it.
    scale: f64,
    /// Nanoseconds a message over nanoseconds of all samples.
    factor: f64,
    ns: Vec<f64>,
    /// What samples of the stack show that were not in threads of the study.
    outside: f64,
    other: f64,
    /// What samples of the stack show.
    sampled: f64,
}

impl ArmCosts {
    /// `parts` are the stages of the stack; `is_whole` tells whether both hosts count their CPU time.
    fn of<'a>(blocks: impl Iterator<Item = &'a Block>, parts: &[usize], is_whole: bool) -> Self {
        let mut sampled = CpuTime::default();
        let mut free = CpuTime::default();
        let mut arm = ArmCosts::default();
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

fn adjust(rows: &mut [StageCost], degrees: f64) {
    let p = |row: &StageCost| {
        Student { estimate: row.difference_ns, error: row.error_ns, degrees_of_freedom: degrees }.p()
    };
    let p: Vec<f64> = rows.iter().map(p).collect();
    for (row, p) in rows.iter_mut().zip(holm(&p)) {
        row.adjusted_p = Some(p);
    }
}

/// How often two samples in a row, of one processor and slice, are of one stage; and how often any two of them are.
struct Lock {
    /// Whether a stage is of the stack.
    counted: Vec<bool>,
    /// By processor: the sample before, and the slice's samples by stage.
    last: Vec<Option<Sample>>,
    counts: Vec<Vec<f64>>,
    pairs: Vec<f64>,
    same: f64,
    expected: f64,
}

impl Lock {
    fn new(profile: &Profile) -> Self {
        let cpus = profile.samples.iter().map(|sample| sample.cpu as usize + 1).max().unwrap_or(0);
        Lock {
            counted: profile.stages.iter().map(|stage| stage.kind == StageKind::Stack).collect(),
            last: vec![None; cpus],
            counts: vec![vec![0.0; profile.stages.len()]; cpus],
            pairs: vec![0.0; cpus],
            same: 0.0,
            expected: 0.0,
        }
    }

    /// Only stages of the stack follow a packet loop: what other programs do, and idle time, come in long runs.
    fn add(&mut self, sample: &Sample) {
        let cpu = sample.cpu as usize;
        let stage = sample.stage;
        if !self.counted[stage as usize] {
            self.last[cpu] = None;
            return;
        }
        let last = self.last[cpu].replace(*sample);
        if let Some(last) = last.filter(|last| sample.time_ns - last.time_ns > TOGETHER_NS) {
            self.pairs[cpu] += 1.0;
            self.same += f64::from(last.stage == stage);
        }
        self.counts[cpu][stage as usize] += 1.0;
    }

    /// A slice ends: what comes is not in a row with what was before, and may be on another processor.
    fn slice(&mut self) {
        for (counts, pairs) in self.counts.iter_mut().zip(&mut self.pairs) {
            let all: f64 = counts.iter().sum();
            // The chance that two samples drawn without putting back are of one stage.
            let alike: f64 = counts.iter().map(|count| count * (count - 1.0)).sum();
            if all > 1.0 {
                self.expected += *pairs * alike / (all * (all - 1.0));
            }
            *pairs = 0.0;
            counts.fill(0.0);
        }
        self.last.fill(None);
    }

    /// 1 where samples do not depend on the one before.
    fn ratio(&self) -> f64 {
        if self.expected > 0.0 { self.same / self.expected } else { 1.0 }
    }
}
