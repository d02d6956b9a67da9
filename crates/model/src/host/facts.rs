//! Facts of a host, stored with every campaign, so that a figure can be traced to its machine.

use crate::host::noise::NoiseFloor;
use crate::names::named;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

named! {
    /// Whose CPU a host's CPU figures are.
    pub enum CpuScope("CPU scope") {
        /// The host's own.
        Host = "host",
        /// Of the processors that run this host and no other, on a machine with several hosts.
        Processors = "processors",
        /// A guest's, which counts none itself or not all: of its processes, as the machine that it runs on counts them, over a
        /// whole trial.
        Outside = "outside",
        /// Differs between systems of a campaign: each host report has its own.
        Various = "various",
        /// Shared with the other hosts of the testbed, which run on the same kernel.
        Shared = "shared",
    }
}

/// A host's facts, as its agent found them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Version of the agent.
    pub agent_version: String,
    /// Operating system, for example `Linux`.
    pub os: String,
    /// Kernel release.
    pub kernel: String,
    /// Processor architecture.
    pub machine: String,
    /// Processor model.
    pub cpu_model: String,
    /// Processors online.
    pub cores: u32,
    /// Memory, KiB.
    pub memory_kib: u64,
    /// Frequency governor, where there is one.
    pub governor: Option<String>,
    /// Kernel clock source.
    pub clock_source: Option<String>,
    /// Number of this boot of the kernel, the same in all of its namespaces: two hosts with the same one share a clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Time namespace, as its kernel names it: two hosts of one boot in the same one have the same clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_namespace: Option<String>,
    /// Whether a hypervisor is below.
    pub virtualised: bool,
    /// What the host can do, found by doing it: name to `yes` or the reason why not.
    pub abilities: BTreeMap<String, String>,
    /// What its clock, timers and sockets add to every figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseFloor>,
}
