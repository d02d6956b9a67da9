//! Whether samples follow the loop that they are meant to sample.

use crate::sampling::profile::{Profile, Sample, StageKind};

/// Samples that are no further apart are of one moment: a clock that is due while another one is sampling waits for
/// it, nanoseconds.
const TOGETHER_NS: u64 = 50_000;

/// How often two samples in a row, of one processor and slice, are of one stage; and how often any two of them are.
pub(super) struct Lock {
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
    pub(super) fn new(profile: &Profile) -> Self {
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
    pub(super) fn add(&mut self, sample: &Sample) {
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
    pub(super) fn end_slice(&mut self) {
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
    pub(super) fn ratio(&self) -> f64 {
        if self.expected > 0.0 { self.same / self.expected } else { 1.0 }
    }
}
