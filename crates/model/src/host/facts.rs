//! Facts of a host, stored with every campaign to trace a figure to its machine.

use crate::host::noise::NoiseFloor;
use crate::names::named;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

named! {
    /// The scope of a host's CPU figures.
    pub enum CpuScope("CPU scope") {
        /// The host's own.
        Host = "host",
        /// The processors that run only this host, on a machine with several hosts.
        Processors = "processors",
        /// The threads that carried the traffic, with the kernel work done in them.
        Threads = "threads",
        /// A guest that counts its CPU time not at all or incompletely. The machine under it counts the CPU time of
        /// the guest's processes over a whole trial.
        Outside = "outside",
        /// Differs between the systems of a campaign: each host report has its own scope.
        Various = "various",
        /// Shared with the other hosts of the testbed, which run on the same kernel.
        Shared = "shared",
    }
}

named! {
    /// What a host's busy time was computed from.
    pub enum CpuSource("CPU time source") {
        /// What the kernel's ticks found running.
        Ticks = "ticks",
        /// What idle and stolen time leave of the window. The kernel measures idle time, and tells it in ticks
        /// (/proc/stat).
        IdleTime = "idle_time",
        /// What idle and stolen time leave of the window, idle time by the processors' time in idle states, which
        /// the kernel tells in microseconds (cpuidle).
        IdleResidency = "idle_residency",
        /// Clocks of the threads.
        ThreadClocks = "thread_clocks",
    }
}

/// A host's facts, as reported by its agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Frequency governor, if there is one.
    pub governor: Option<String>,
    /// Kernel clock source.
    pub clock_source: Option<String>,
    /// Boot ID of the kernel, the same in all of its namespaces. Two hosts with the same boot ID share a clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Time namespace, in the kernel's naming; `none` for a kernel with none. Two hosts with the same boot ID and time
    /// namespace have the same clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_namespace: Option<String>,
    /// Whether the host runs under a hypervisor.
    pub virtualised: bool,
    /// The host's abilities, each tested by use: name to `yes` or the reason why not.
    pub abilities: BTreeMap<String, String>,
    /// The noise that its clock, timers and sockets add to every figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseFloor>,
}
