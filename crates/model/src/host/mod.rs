//! A host: its facts, and its noise floor: a smaller difference cannot be detected.

pub(crate) mod counters;
pub(crate) mod delays;
pub(crate) mod kernel_memory;
pub(crate) mod report;
mod slabs;

use crate::names::named;
use crate::{Family, Transport, print_duration};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

named! {
    pub enum CpuScope("CPU scope") {
        Host = "host",
        /// The processors that run only this host, on a machine with several hosts.
        Processors = "processors",
        /// The threads that carried the traffic, with the kernel work done in them.
        Threads = "threads",
        /// A guest's, whose own count is incomplete: the CPU time of its processes on the machine, over a whole trial.
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
        /// What idle and stolen time, in ticks of /proc/stat, leave of the window.
        IdleTime = "idle_time",
        /// The same by the processors' time in idle states, in microseconds (cpuidle).
        IdleResidency = "idle_residency",
        ThreadClocks = "thread_clocks",
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    pub agent_version: String,
    pub os: String,
    pub kernel: String,
    pub machine: String,
    pub cpu_model: String,
    pub cores: u32,
    pub memory_kib: u64,
    pub governor: Option<String>,
    pub clock_source: Option<String>,
    /// The same in all namespaces of a kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// In the kernel's naming; `none` for a kernel with none. Two hosts with the same boot ID and time namespace have
    /// the same clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_namespace: Option<String>,
    pub virtualised: bool,
    /// The host's abilities, each tested by use: name to `yes` or the reason why not.
    pub abilities: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseFloor>,
    /// The smallest quota of its control groups, if it is less than the host has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<CpuQuota>,
    /// The settings of its network namespace that could not be made, and have the kernel's defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_settings: Vec<String>,
    /// The name of the machine that ran the campaign, as it says itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_name: Option<String>,
}

/// CPU time that a control group may use in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuQuota {
    pub quota_us: u64,
    pub period_us: u64,
}

impl CpuQuota {
    pub fn processors(self) -> f64 {
        self.quota_us as f64 / self.period_us.max(1) as f64
    }

    /// What a container with this quota may do on a host with this many processors, and for how long the kernel has
    /// kept it from running.
    pub fn describe(self, cores: u32, throttled_us: u64) -> String {
        let processors = self.processors();
        let held_back = throttled_us as f64 / 1e6;
        format!(
            "this container may use {processors:.1} of {cores} processors and was held back {held_back:.1} s"
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    pub median_ns: u64,
    /// 99th percentile by nearest rank, of at least 100 samples.
    pub p99_ns: u64,
}

impl Spread {
    /// Computed from samples in any order; `None` with fewer than the 100 samples that a 99th percentile needs.
    pub fn of(mut samples: Vec<u64>) -> Option<Self> {
        if samples.len() < 100 {
            return None;
        }
        samples.sort_unstable();
        let rank = |per_cent: usize| samples[(samples.len() * per_cent).div_ceil(100) - 1];
        Some(Spread { median_ns: rank(50), p99_ns: rank(99) })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoFloor {
    pub transport: Transport,
    pub family: Family,
    pub round_trip: Spread,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Time for one clock reading, median over batches, nanoseconds.
    pub clock_read_ns: u64,
    /// The same in the best batch.
    pub clock_read_least_ns: u64,
    /// The smallest step between two readings that differ.
    pub clock_step_ns: u64,
    /// By how much a sleep of 0.5 ms exceeded 0.5 ms.
    pub timer_late: Option<Spread>,
    /// Time from the kernel's arrival timestamp of a datagram to the return of the receive call that delivered it.
    pub arrival_stamp: Option<Spread>,
    /// Round trips of 64 bytes on loopback; one thread polls both ends. Tests that this host cannot run are absent.
    pub echoes: Vec<EchoFloor>,
}

impl fmt::Display for NoiseFloor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clock read {}", print_duration(self.clock_read_ns))?;
        if let Some(late) = self.timer_late {
            write!(f, ", timer late {}", print_duration(late.median_ns))?;
        }
        let mut echoes = Vec::new();
        for EchoFloor { transport, family, round_trip } in &self.echoes {
            echoes.push(format!("{} ({transport} {family})", print_duration(round_trip.median_ns)));
        }
        if echoes.is_empty() { Ok(()) } else { write!(f, ", loopback echo {}", echoes.join(", ")) }
    }
}

/// One value for the sender of a transfer and one for its receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ends<T> {
    pub sender: T,
    pub receiver: T,
}

impl<T> Ends<T> {
    pub fn as_ref(&self) -> Ends<&T> {
        Ends { sender: &self.sender, receiver: &self.receiver }
    }

    pub fn iter(&self) -> std::array::IntoIter<&T, 2> {
        [&self.sender, &self.receiver].into_iter()
    }
}

impl<T> IntoIterator for Ends<T> {
    type Item = T;
    type IntoIter = std::array::IntoIter<T, 2>;

    fn into_iter(self) -> Self::IntoIter {
        [self.sender, self.receiver].into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Ends<T> {
    type Item = &'a T;
    type IntoIter = std::array::IntoIter<&'a T, 2>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Ends<T> {
    type Item = &'a mut T;
    type IntoIter = std::array::IntoIter<&'a mut T, 2>;

    fn into_iter(self) -> Self::IntoIter {
        [&mut self.sender, &mut self.receiver].into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_nearest_rank_and_needs_a_sample_above_it() {
        assert_eq!(Spread::of((1..=200).rev().collect()), Some(Spread { median_ns: 100, p99_ns: 198 }));
        assert_eq!(Spread::of((1..=99).collect()), None);
    }

    #[test]
    fn a_floor_is_told_in_a_line() {
        let mut floor = NoiseFloor {
            clock_read_ns: 24,
            clock_read_least_ns: 22,
            clock_step_ns: 1,
            timer_late: Some(create_spread(58_300)),
            arrival_stamp: None,
            echoes: vec![create_echo(Family::Ipv4, 6_120), create_echo(Family::Ipv6, 6_480)],
        };
        let text = "clock read 24 ns, timer late 58.3 us, loopback echo 6.1 us (udp ipv4), 6.5 us (udp ipv6)";
        assert_eq!(floor.to_string(), text);
        floor.timer_late = None;
        floor.echoes.clear();
        assert_eq!(floor.to_string(), "clock read 24 ns");
    }

    fn create_spread(median_ns: u64) -> Spread {
        Spread { median_ns, p99_ns: 2 * median_ns }
    }

    fn create_echo(family: Family, median_ns: u64) -> EchoFloor {
        EchoFloor { transport: Transport::Udp, family, round_trip: create_spread(median_ns) }
    }
}
