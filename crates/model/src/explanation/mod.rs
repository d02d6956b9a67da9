//! Why two cells differ: where in the network stack the processors' time goes.

pub(crate) mod exact;
pub(crate) mod exact_pair;
pub(crate) mod program_counts;

use crate::count;
use crate::{Cell, ExactCounts, Factor, Probe, ProgramCounts};
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    pub probe: Probe,
    pub factor: Factor,
    pub baseline: Cell,
    pub candidate: Cell,
    pub why: Why,
    /// Instructions of the same pair, if they were counted: one cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<Box<ExactCounts>>,
    /// Instructions of the same pair of programs, if they were counted: two cells, the baseline first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<Box<ProgramCounts>>,
}

impl Explanation {
    /// One of two cells that nothing explains yet.
    pub fn of_cells(probe: Probe, factor: Factor, baseline: Cell, candidate: Cell) -> Self {
        Explanation { probe, factor, baseline, candidate, why: Why::NotSampled, exact: None, programs: None }
    }

    /// Whether the instructions of its cells were counted.
    pub fn has_counts(&self) -> bool {
        self.exact.is_some() || self.programs.is_some()
    }

    /// What both cells have in common, as keys: `stream udp 128 B payload`.
    pub fn context(&self) -> String {
        format!("{} {}", self.probe, self.baseline.context(self.factor))
    }

    /// The levels that differ, as keys: baseline, candidate.
    pub fn arms(&self) -> [String; 2] {
        [&self.baseline, &self.candidate].map(|cell| cell.level(self.factor))
    }

    /// The same in words: `stream UDP 128 B`.
    pub fn context_label(&self) -> String {
        format!("{} {}", self.probe, self.baseline.label_without(Some(self.factor)))
    }

    pub fn arm_labels(&self) -> [String; 2] {
        self.arms().map(|level| self.factor.level_label(&level))
    }

    /// Whether another one is of the same cells, by the same probe.
    pub fn is_of_same_cells(&self, other: &Explanation) -> bool {
        (self.probe, self.factor) == (other.probe, other.factor)
            && (&self.baseline, &self.candidate) == (&other.baseline, &other.candidate)
    }

    pub fn costs(&self) -> Option<&StageCosts> {
        if let Why::Costs(costs) = &self.why { Some(costs) } else { None }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    Costs(Box<StageCosts>),
    /// Of a campaign that was not sampled: why the instructions were not counted.
    Unknown(String),
    /// The instructions alone were counted.
    #[serde(rename = "not_sampled")]
    NotSampled,
}

/// The costs of two arms by stage, nanoseconds a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageCosts {
    pub cell: String,
    pub arms: [String; 2],
    /// Stages of the stack and the study's processes, the largest difference first.
    pub stages: Vec<StageCost>,
    pub unmapped: StageCost,
    /// What the clock has beyond the samples.
    pub not_sampled: StageCost,
    /// The clock: CPU time of the arm's threads on both hosts.
    pub threads: StageCost,
    /// What the stack did outside of them, by samples: in kernel threads, or in interrupts of others or of idle CPUs.
    pub outside: StageCost,
    /// `threads` and `outside`: the sum of all stages, of `unmapped` and of `not_sampled`.
    pub busy: StageCost,
    /// Functions, the largest difference first.
    pub functions: Vec<StageCost>,
    /// Call chains, in the order of their functions' names.
    #[serde(default)]
    pub stacks: Vec<StackCost>,
    pub health: Health,
}

impl StageCosts {
    /// How much arms may differ in what was not sampled, as a share of busy time: stages add up within this.
    const MAX_NOT_SAMPLED: f64 = 0.02;

    pub fn half_width_ns(&self, row: &StageCost) -> f64 {
        self.health.t95 * row.error_ns
    }

    /// What speaks against the figures; empty if nothing does.
    pub fn complaints(&self) -> Vec<String> {
        let mut all = self.health.complaints();
        let difference_ns = self.not_sampled.difference_ns;
        let busy_ns = self.busy.ns.iter().sum::<f64>() / 2.0;
        let half_width_ns = self.half_width_ns(&self.not_sampled);
        if difference_ns.abs() - half_width_ns > StageCosts::MAX_NOT_SAMPLED * busy_ns {
            all.push(format!(
                "unsampled time differs by {difference_ns:+.0} ± {half_width_ns:.0} ns, more than {:.0} % of the busy time: the stages do not add up to the difference",
                100.0 * StageCosts::MAX_NOT_SAMPLED
            ));
        }
        all
    }

    pub fn sums(&self) -> [&StageCost; 5] {
        [&self.unmapped, &self.not_sampled, &self.threads, &self.outside, &self.busy]
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageCost {
    pub name: String,
    /// Nanoseconds a message: baseline, candidate.
    pub ns: [f64; 2],
    pub difference_ns: f64,
    /// Standard error of the difference, from the differences by trial.
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StackCost {
    pub functions: Vec<String>,
    pub samples: [u64; 2],
    /// Nanoseconds a message: baseline, candidate.
    pub ns: [f64; 2],
}

/// Whether samples describe the stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Health {
    #[serde(default)]
    pub event: SampleEvent,
    /// Trials that the costs are means of; 0 in records of earlier versions.
    #[serde(default)]
    pub trials: u32,
    /// Standard errors in half of a 95 % interval: Student's t with `trials` - 1 degrees of freedom; 1.96 in records of
    /// earlier versions, which scaled their errors.
    #[serde(default = "normal95")]
    pub t95: f64,
    /// How often two samples in a row are of one stage, over how often they would be by chance: 1 without aliasing.
    pub lock_ratio: f64,
    /// Time that samples of the stack stand for, over `busy`; `None` where only one host counts its CPU time, and
    /// `threads` is by samples.
    pub coverage: Option<f64>,
    /// By how much sampling lengthens a message's CPU time.
    pub overhead: f64,
    pub unmapped: f64,
    /// Time of programs outside the study, by samples, over theirs and `busy`.
    pub other_load: f64,
    pub samples: u64,
    /// Messages of both arms while samples were taken.
    pub messages: u64,
    /// Samples that found no room.
    pub lost: u64,
    pub throttled: u64,
    pub unmapped_functions: Vec<String>,
}

fn normal95() -> f64 {
    1.96
}

impl Health {
    /// Above this, samples follow the packet loop.
    pub const MAX_LOCKED: f64 = 1.05;
    /// Below this, too: clocks of one period that is the loop's see different places of it, always in the same order.
    const MIN_LOCKED: f64 = 0.75;
    const MAX_UNMAPPED: f64 = 0.03;

    pub fn complaints(&self) -> Vec<String> {
        let mut all = Vec::new();
        let free = Health::MIN_LOCKED..=Health::MAX_LOCKED;
        if !free.contains(&self.lock_ratio) {
            all.push(format!(
                "samples are aliased with the packet loop (lock ratio {:.2}, {} to {} without aliasing): choose another --period",
                self.lock_ratio,
                free.start(),
                free.end()
            ));
        }
        if self.unmapped > Health::MAX_UNMAPPED {
            all.push(format!(
                "{:.1} % of the busy time is in functions outside the table of stages: {}",
                100.0 * self.unmapped,
                self.unmapped_functions.join(", ")
            ));
        }
        if self.lost > 0 || self.throttled > 0 {
            all.push(format!(
                "{} lost, and the kernel throttled them {}: choose a longer --period",
                count(self.lost, "sample"),
                count(self.throttled, "time")
            ));
        }
        all
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampleEvent {
    /// Time, by the kernel's software clock (PERF_COUNT_SW_CPU_CLOCK).
    #[default]
    CpuClock,
    /// The processor's cycles (PERF_COUNT_HW_CPU_CYCLES), which stand still while it is idle.
    Cycles,
}

impl fmt::Display for SampleEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SampleEvent::CpuClock => "cpu-clock",
            SampleEvent::Cycles => "cycles",
        })
    }
}
