//! What was sampled.

use stacklab_model::SampleEvent;
use std::collections::BTreeMap;

/// Samples of the processors that a study ran on.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    pub(crate) event: SampleEvent,
    /// The stages, in the order of a packet's way.
    pub(crate) stages: Vec<StageName>,
    pub(crate) samples: Vec<Sample>,
    /// Ordered by time; one with samples and one without in turn.
    pub(crate) windows: Vec<Window>,
    /// Names of the functions that samples are of, by number.
    pub(crate) functions: BTreeMap<u32, String>,
    /// Call chains: functions, the outermost one first, as numbers of `frames`.
    pub(crate) stacks: Vec<Vec<u32>>,
    /// Names of the functions in call chains. A program's own code is one function.
    pub(crate) frames: Vec<String>,
    /// Samples that found no room.
    pub(crate) lost: u64,
    /// How often the kernel left samples out because they took too much time.
    pub(crate) throttled: u64,
    pub(crate) unmapped: Vec<(String, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StageName {
    pub(crate) name: String,
    pub(crate) kind: StageKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StageKind {
    /// The network stack, or a process of the study.
    Stack,
    Unmapped,
    Other,
    Idle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) time_ns: u64,
    /// Nanoseconds of the processor that the sample stands for.
    pub(crate) stands_for_ns: u64,
    pub(crate) cpu: u32,
    /// Stage, an index of the profile's.
    pub(crate) stage: u32,
    /// Function, a number of the profile's; another number if there is none.
    pub(crate) function: u32,
    /// Call chain, an index of the profile's; another number if none is kept, as of idle processors.
    pub(crate) stack: u32,
    /// Whether an agent of the study ran, whose threads count their CPU time.
    pub(crate) is_own: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) is_sampled: bool,
}
