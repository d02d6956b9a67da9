//! What was sampled.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Samples of the processors that a study ran on.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// What was counted until a sample.
    pub event: SampleEvent,
    /// The stages, in the order of a packet's way.
    pub stages: Vec<StageName>,
    /// Ordered by time.
    pub samples: Vec<Sample>,
    /// Ordered by time; one with samples and one without in turn.
    pub windows: Vec<Window>,
    /// Names of the functions that samples are of, by number.
    pub functions: BTreeMap<u32, String>,
    /// Call chains: functions, the outermost one first, as numbers of `frames`.
    pub stacks: Vec<Vec<u32>>,
    /// Names of the functions in call chains. A program's own code is one function.
    pub frames: Vec<String>,
    /// Samples that found no room.
    pub lost: u64,
    /// How often the kernel left samples out because they took too much time.
    pub throttled: u64,
    /// Functions that no stage has, with their samples, most first.
    pub unmapped: Vec<(String, u64)>,
}

/// What a processor counts until it is sampled.
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

/// A stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageName {
    /// Its name.
    pub name: String,
    /// What it is part of.
    pub kind: StageKind,
}

/// What a stage is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageKind {
    /// The network stack, or a process of the study.
    Stack,
    /// Functions without a stage.
    Unmapped,
    /// Programs outside the study.
    Other,
    /// Nothing to do.
    Idle,
}

/// What a processor did at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds of the monotonic clock.
    pub time_ns: u64,
    /// Nanoseconds of the processor that the sample stands for.
    pub stands_for_ns: u64,
    /// Processor.
    pub cpu: u32,
    /// Stage, an index of the profile's.
    pub stage: u32,
    /// Function, a number of the profile's; another number if there is none.
    pub function: u32,
    /// Call chain, an index of the profile's; another number if none is kept, as of idle processors.
    pub stack: u32,
    /// Whether an agent of the study ran, whose threads count their CPU time.
    pub is_own: bool,
}

/// A time in which samples were taken, or none were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Begin, nanoseconds of the monotonic clock.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
    /// Whether samples were taken.
    pub is_sampled: bool,
}
