//! What the samples show: the cost of each stage in each arm.

use crate::explanation::profile::SampleEvent;
use serde::{Deserialize, Serialize};

/// The costs of two arms by stage, nanoseconds a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageCosts {
    /// What both arms have in common.
    pub cell: String,
    /// The levels that differ: baseline, candidate.
    pub arms: [String; 2],
    /// Stages of the stack and the study's processes, the largest difference first.
    pub stages: Vec<StageCost>,
    /// Functions without a stage.
    pub unmapped: StageCost,
    /// What the clock has beyond the samples.
    pub not_sampled: StageCost,
    /// The clock: CPU time of the arm's threads on both hosts.
    pub threads: StageCost,
    /// What the stack did outside them, by samples: in kernel threads, or in interrupts of other programs or of an
    /// idle processor.
    pub outside: StageCost,
    /// Both together: the sum of all stages, of `unmapped` and of `not_sampled`.
    pub busy: StageCost,
    /// Functions, the largest difference first.
    pub functions: Vec<StageCost>,
    /// Call chains, in the order of their functions' names.
    #[serde(default)]
    pub stacks: Vec<StackCost>,
    /// Whether the figures can be believed.
    pub health: Health,
}

impl StageCosts {
    /// By how much arms may differ in what was not sampled, as a share of busy time: stages add up to the difference
    /// within this.
    pub const MOST_NOT_SAMPLED: f64 = 0.02;

    /// Half of the 95 % interval of a row's difference.
    pub fn half_width_ns(&self, row: &StageCost) -> f64 {
        self.health.t95 * row.error_ns
    }

    /// What speaks against the figures; empty if nothing does.
    pub fn complaints(&self) -> Vec<String> {
        let mut all = self.health.complaints();
        let StageCost { difference_ns, .. } = self.not_sampled;
        let busy_ns = self.busy.ns.iter().sum::<f64>() / 2.0;
        let half_width_ns = self.half_width_ns(&self.not_sampled);
        let surely_ns = difference_ns.abs() - half_width_ns;
        if surely_ns > StageCosts::MOST_NOT_SAMPLED * busy_ns {
            all.push(format!(
                "unsampled time differs by {difference_ns:+.0} ± {half_width_ns:.0} ns, more than {:.0} % of the busy time: the stages do not add up to the difference",
                100.0 * StageCosts::MOST_NOT_SAMPLED
            ));
        }
        all
    }

    /// Rows that are not stages, and the sums.
    pub fn sums(&self) -> [&StageCost; 5] {
        [&self.unmapped, &self.not_sampled, &self.threads, &self.outside, &self.busy]
    }
}

/// A cost in two arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageCost {
    /// The stage's or function's name.
    pub name: String,
    /// Nanoseconds a message: baseline, candidate.
    pub ns: [f64; 2],
    /// Candidate minus baseline.
    pub difference_ns: f64,
    /// Standard error of the difference, from the differences by trial. Half of the 95 % interval is
    /// [`StageCosts::half_width_ns`].
    pub error_ns: f64,
    /// p of no difference, adjusted for the number of stages (Holm); `None` for rows that are not stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjusted_p: Option<f64>,
}

impl StageCost {
    /// Whether the arms differ here, with all stages taken into account.
    pub fn differs(&self) -> bool {
        self.adjusted_p.is_some_and(|p| p < 0.05)
    }
}

/// What samples of a call chain show in two arms. The chains of an arm add up to its sampled stages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StackCost {
    /// Functions, the outermost one first.
    pub functions: Vec<String>,
    /// Samples: baseline, candidate.
    pub samples: [u64; 2],
    /// Nanoseconds a message: baseline, candidate.
    pub ns: [f64; 2],
}

/// What says whether samples describe the stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// What was sampled.
    #[serde(default)]
    pub event: SampleEvent,
    /// Trials that the costs are means of; 0 in records of earlier versions.
    #[serde(default)]
    pub trials: u32,
    /// Standard errors in half of a 95 % interval: Student's t with `trials` - 1 degrees of freedom. Earlier versions
    /// scaled their errors such that it was 1.96 for any number of trials.
    #[serde(default = "normal95")]
    pub t95: f64,
    /// How often two samples in a row are of one stage, over how often they would be by chance: 1 when samples fall
    /// anywhere.
    pub lock_ratio: f64,
    /// Time that samples of the stack stand for, over `busy`; `None` where only one host counts its CPU time, and
    /// `threads` is by samples.
    pub coverage: Option<f64>,
    /// By how much sampling lengthens a message's CPU time.
    pub overhead: f64,
    /// Share of busy time without a stage.
    pub unmapped: f64,
    /// Time of programs outside the study, by samples, over theirs and `busy`.
    pub other_load: f64,
    /// Samples that were used.
    pub samples: u64,
    /// Messages of both arms while samples were taken.
    pub messages: u64,
    /// Samples that found no room.
    pub lost: u64,
    /// How often the kernel left samples out.
    pub throttled: u64,
    /// The functions without a stage that had most samples.
    pub unmapped_functions: Vec<String>,
}

fn normal95() -> f64 {
    1.96
}

impl Health {
    /// Above this, samples follow the packet loop.
    pub const MOST_LOCKED: f64 = 1.05;
    /// Below this, too: clocks of one period that is the loop's see different places of it, always in the same order.
    pub const LEAST_LOCKED: f64 = 0.75;
    /// Most of the busy time that may be without a stage.
    pub const MOST_UNMAPPED: f64 = 0.03;

    /// What speaks against the figures; empty if nothing does.
    pub fn complaints(&self) -> Vec<String> {
        let mut all = Vec::new();
        let free = Health::LEAST_LOCKED..=Health::MOST_LOCKED;
        if !free.contains(&self.lock_ratio) {
            all.push(format!(
                "samples are aliased with the packet loop (lock ratio {:.2}, {} to {} without aliasing): choose another --period",
                self.lock_ratio,
                free.start(),
                free.end()
            ));
        }
        if self.unmapped > Health::MOST_UNMAPPED {
            all.push(format!(
                "{:.1} % of the busy time is in functions outside the table of stages: {}",
                100.0 * self.unmapped,
                self.unmapped_functions.join(", ")
            ));
        }
        if self.lost > 0 || self.throttled > 0 {
            all.push(format!(
                "{} samples were lost and {} times the kernel throttled them: choose a longer --period",
                self.lost, self.throttled
            ));
        }
        all
    }
}
