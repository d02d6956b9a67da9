//! The blocks of a trial, with the CPU time and the samples of both arms.

use crate::costs::functions::Sampled;
use crate::costs::lock::Lock;
use crate::sampling::profile::{Profile, Sample, StageKind};
use std::collections::BTreeMap;

/// How far a slice is from the ends of its window, nanoseconds: clocks start and stop one after the other.
const MARGIN_NS: u64 = 100_000;

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

/// What an arm did in a block of a trial: a window with samples and the one without after it.
#[derive(Debug, Clone, Default)]
pub(super) struct Block {
    pub sampled: CpuTime,
    pub free: CpuTime,
    /// Nanoseconds of the processors, by place: stages, then functions.
    pub ns: Vec<f64>,
    /// Nanoseconds of the stack that were not in threads of the study.
    pub outside: f64,
    pub other: f64,
    pub stacks: Sampled,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CpuTime {
    pub ns: f64,
    pub messages: f64,
}

impl CpuTime {
    pub(super) fn add(&mut self, other: CpuTime) {
        self.ns += other.ns;
        self.messages += other.messages;
    }

    pub(super) fn per_message(self) -> f64 {
        self.ns / self.messages
    }

    /// Without messages or CPU time there is no ratio.
    pub(super) fn has_ratio(self) -> bool {
        self.ns > 0.0 && self.messages > 0.0
    }
}

/// The blocks of both arms, by trial and number: a window may reach into the next trial.
pub(super) type TrialBlocks = BTreeMap<(u32, usize), [Block; 2]>;

/// The samples of a profile, by the block that they fell into.
pub(super) struct PlacedSamples {
    pub blocks: TrialBlocks,
    /// The number of samples.
    pub count: u64,
    pub lock: Lock,
}

/// Adds the slices of both arms, with their samples, to their blocks. `functions` are the places of the functions among
/// the figures of a block.
pub(super) fn place_samples(
    profile: &Profile,
    slices: [&[ArmSlice]; 2],
    functions: &BTreeMap<u32, usize>,
) -> PlacedSamples {
    let mut placed = PlacedSamples { blocks: TrialBlocks::new(), count: 0, lock: Lock::new(profile) };
    for (arm, slices) in slices.iter().enumerate() {
        for slice in *slices {
            placed.add_slice(profile, arm, slice, functions);
        }
    }
    // A block in which an arm lacks slices is not a comparison.
    placed.blocks.retain(|_, arms| arms.iter().all(|arm| arm.sampled.has_ratio() && arm.free.has_ratio()));
    placed
}

impl PlacedSamples {
    fn add_slice(
        &mut self,
        profile: &Profile,
        arm: usize,
        slice: &ArmSlice,
        functions: &BTreeMap<u32, usize>,
    ) {
        let from = slice.from_ns;
        let to = slice.to_ns;
        let number = profile.windows.partition_point(|window| window.from_ns + MARGIN_NS <= from);
        let Some(number) = number.checked_sub(1) else { return };
        let window = &profile.windows[number];
        // A last window with samples has none without after it.
        if number / 2 >= profile.windows.len() / 2 || to + MARGIN_NS > window.to_ns || from >= to {
            return;
        }
        let block = &mut self.blocks.entry((slice.trial, number / 2)).or_default()[arm];
        block.ns.resize(profile.stages.len() + functions.len(), 0.0);
        let clock = CpuTime { ns: slice.cpu_ns as f64, messages: slice.messages as f64 };
        if !window.is_sampled {
            block.free.add(clock);
            return;
        }
        block.sampled.add(clock);
        let begin = profile.samples.partition_point(|sample| sample.time_ns < from);
        for sample in profile.samples[begin..].iter().take_while(|sample| sample.time_ns < to) {
            block.add_sample(profile, sample, functions);
            self.lock.add(sample);
            self.count += 1;
        }
        self.lock.end_slice();
    }
}

impl Block {
    fn add_sample(&mut self, profile: &Profile, sample: &Sample, functions: &BTreeMap<u32, usize>) {
        let ns = sample.stands_for_ns as f64;
        match profile.stages[sample.stage as usize].kind {
            StageKind::Other => self.other += ns,
            StageKind::Stack | StageKind::Unmapped if !sample.is_own => self.outside += ns,
            _ => {}
        }
        self.ns[sample.stage as usize] += ns;
        if let Some(place) = functions.get(&sample.function) {
            self.ns[*place] += ns;
        }
        if (sample.stack as usize) < profile.stacks.len() {
            self.stacks.add(sample.stack, 1, ns);
        }
    }
}
