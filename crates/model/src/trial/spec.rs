//! The specification of a run.

use crate::names::named;
use crate::trial::io::{Io, IoChoice};
use crate::{Cell, CpuScope, Family, LinkBucket, Metric, Probe, SizeOf, Transport, Tuning, print_duration};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of the probe's own header, which is the minimum message size: sequence number, send time, reflector's
/// receive time, token and phase.
pub const HEADER_BYTES: u32 = 32;

/// The end of the measured part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Length {
    /// After this many messages (or connections).
    Packets(u64),
    /// After this many nanoseconds.
    Time(u64),
}

/// `10 messages`, `2 ms`.
impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Length::Packets(packets) => write!(f, "{packets} messages"),
            Length::Time(ns) => f.write_str(&print_duration(*ns)),
        }
    }
}

/// The departure time of the next message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pacing {
    /// Immediately.
    Flood,
    /// On arrival of the answer to the previous message.
    Lockstep,
    /// On a fixed schedule of this many messages per second.
    Schedule(f64),
    /// On a fixed schedule at the link's rate minus the headers: the highest load without loss (RFC 2544, section
    /// 26.1). Only a study uses this value; a trial has the resulting schedule.
    Link,
    /// On a fixed schedule at this share of the rate at which the slowest arm of an interleaved trial floods during the
    /// warm-up: one schedule for all arms.
    Share(f64),
}

/// `flood`, `lockstep`, `500 messages/s`, `the link's rate`, `50 % of the slowest arm's flood rate`.
impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pacing::Flood => f.write_str("flood"),
            Pacing::Lockstep => f.write_str("lockstep"),
            Pacing::Schedule(per_second) => write!(f, "{per_second} messages/s"),
            Pacing::Link => f.write_str("the link's rate"),
            Pacing::Share(share) => write!(f, "{} % of the slowest arm's flood rate", share * 100.0),
        }
    }
}

/// How a probe runs; the same for all of its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeSpec {
    /// Which probe.
    pub probe: Probe,
    /// The departure times of messages. For an echo during a stream, those of the stream.
    pub pacing: Pacing,
    /// The end of the measured part.
    pub length: Length,
    /// Nanoseconds of the same traffic before the measured part.
    pub warmup_ns: u64,
    /// Nanoseconds of one row of the interval series.
    pub interval_ns: u64,
    /// The metrics computed from it.
    pub metrics: Vec<Metric>,
}

/// How the arms of a trial share the time. The plan of a study decides it for each
/// group of arms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SlicingJson", into = "SlicingJson")]
pub enum ArmSchedule {
    /// Each trial runs by itself.
    #[default]
    Alone,
    /// The arms have the same two hosts, and pass a token: the sender of the arm that has it sends a slice of this many
    /// nanoseconds. `None`: the sender's agent chooses after the warm-up, the same for all arms.
    TokenPassing(Option<u64>),
    /// The arms are on separate testbeds: each arm's sender has time slots, and sends a slice in each. What a testbed
    /// counts is its arm's.
    TimeSlots(Option<u64>),
}

/// The JSON of a schedule that is not `Alone`.
#[derive(Serialize, Deserialize)]
struct SlicingJson {
    slice_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    slots: bool,
}

impl From<SlicingJson> for ArmSchedule {
    fn from(SlicingJson { slice_ns, slots }: SlicingJson) -> Self {
        if slots { ArmSchedule::TimeSlots(slice_ns) } else { ArmSchedule::TokenPassing(slice_ns) }
    }
}

impl From<ArmSchedule> for SlicingJson {
    fn from(schedule: ArmSchedule) -> Self {
        let slots = matches!(schedule, ArmSchedule::TimeSlots(_));
        SlicingJson { slice_ns: schedule.slice_ns(), slots }
    }
}

impl ArmSchedule {
    /// Maximum number of arms of one trial.
    pub const MOST_ARMS: usize = 16;
    /// Rounds below which an arm has no location; the sums over its slices are then the better figure.
    pub const LEAST_ROUNDS: u64 = 5;

    /// Whether each trial runs by itself.
    pub fn is_alone(&self) -> bool {
        *self == ArmSchedule::Alone
    }

    /// Nanoseconds of a slice, if they are planned.
    pub fn slice_ns(self) -> Option<u64> {
        match self {
            ArmSchedule::Alone => None,
            ArmSchedule::TokenPassing(slice_ns) | ArmSchedule::TimeSlots(slice_ns) => slice_ns,
        }
    }

    /// Whether a figure is of the whole host, and so of all arms. Arms with separate testbeds share no packets, but
    /// the processors: what works for them outside their threads (translators, the kernel's workers) would be missing
    /// from the CPU time of one arm and not from that of another.
    pub fn shares(self, metric: Metric) -> bool {
        use Metric::*;
        match (self, metric) {
            (ArmSchedule::Alone, _) => false,
            (_, MemorySockets | CpuRouter1 | CpuRouter2) => true,
            (ArmSchedule::TimeSlots(_), metric) => metric.is_host_cpu(),
            (ArmSchedule::TokenPassing(_), metric) => matches!(
                metric,
                IpFragCreates
                    | IpReasmOks
                    | IpFragCreatesRouters
                    | IpReasmOksRouters
                    | LinkBytes
                    | LinkBytesBeyond
                    | GeneratorTxError
                    | GeneratorRxError
            ),
        }
    }
}

/// The specification of one trial, as the agents receive it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialSpec {
    /// Carried in every message, to recognise stray messages of another trial.
    pub token: u32,
    /// Address family; the sockets' actual family is compared with it.
    pub family: Family,
    /// Transport protocol.
    pub transport: Transport,
    /// Whether each message must leave in its own packet (`segment`, `frame`).
    pub size_of: SizeOf,
    /// Bytes per message, the probe's header included.
    pub message_bytes: u32,
    /// The scope of the host's CPU figures.
    pub cpu_scope: CpuScope,
    /// Nanoseconds for which a receive polls before it sleeps; 0 disables polling.
    pub poll_ns: u64,
    /// How messages enter and leave the kernel.
    #[serde(default = "one_call_per_message")]
    pub io: Io,
    /// Number of parallel flows, one socket each.
    #[serde(default = "one")]
    pub flows: u32,
    /// Additional socket options.
    #[serde(default, skip_serializing_if = "Tuning::is_default")]
    pub tuning: Tuning,
    /// How far the clock of the receiver's host is ahead of the sender's, nanoseconds, if they were compared. A
    /// receiver adds it to the send time of a message. In trials both ways or in reverse, it applies to the second
    /// agent's host.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_offset_ns: i64,
    /// How the trial shares the time with the other arms of an interleaved trial. Its length is then that of all its
    /// slices together.
    #[serde(rename = "slicing", default, skip_serializing_if = "ArmSchedule::is_alone")]
    pub schedule: ArmSchedule,
    /// The token bucket of the path's bottleneck, if each slice of the trial may begin with a full one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<LinkBucket>,
    /// How the probe runs.
    pub probe: ProbeSpec,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// The meaning of records of trials from before this setting existed.
fn one_call_per_message() -> Io {
    Io::Send
}

fn one() -> u32 {
    1
}

impl TrialSpec {
    /// A trial of a cell, with the cell's settings; one system call per message if the cell leaves that to the
    /// program. Unless these fields are set afterwards, CPU time covers both hosts together, nothing polls and clocks
    /// are not compared.
    pub fn new(token: u32, cell: &Cell, probe: ProbeSpec) -> Self {
        TrialSpec {
            token,
            family: cell.family,
            transport: cell.transport,
            size_of: cell.size_of,
            message_bytes: cell.payload_bytes(),
            cpu_scope: CpuScope::Shared,
            poll_ns: 0,
            io: match cell.settings.io {
                Some(IoChoice::Path(io)) => io,
                Some(IoChoice::Auto) | None => Io::Send,
            },
            // Only streams have several; other probes have one message or connection at a time.
            flows: if probe.probe.streams() { cell.settings.flows.unwrap_or(1) } else { 1 },
            tuning: cell.settings.tuning.clone(),
            clock_offset_ns: 0,
            schedule: ArmSchedule::Alone,
            bucket: None,
            probe: ProbeSpec { probe: probe.probe.of_agents(), ..probe },
        }
    }

    /// Whether it is a stream that sends each message immediately after the previous one.
    pub fn is_flood(&self) -> bool {
        self.probe.probe == Probe::Stream && self.probe.pacing == Pacing::Flood
    }

    /// Messages per second at which the kernel is to pace all flows together; `None` if kernel pacing is not
    /// requested.
    pub fn kernel_paced(&self) -> Option<f64> {
        match (self.probe.probe, self.transport, self.probe.pacing) {
            (Probe::Stream, Transport::Tcp, Pacing::Schedule(per_second)) => {
                (self.tuning.kernel_pacing == Some(true)).then_some(per_second)
            }
            _ => None,
        }
    }
}

named! {
    /// What a comparison is measured for.
    pub enum Until("until") {
        /// A claim that is settled.
        Verdict = "verdict",
        /// An interval as narrow as the target; the verdict is made then.
        Precise = "precise",
    }
}

/// The condition for ending a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoppingRule {
    /// Number of blocks before the first look.
    pub min: u32,
    /// Maximum number of blocks.
    pub max: u32,
    /// What each comparison is measured for.
    pub until: Until,
    /// Half-width of a comparison's 95 % interval at which it stops if it is measured until it is precise, as a ratio
    /// (0.02 is 2 %).
    pub target: f64,
    /// Maximum measuring time in nanoseconds; checked after each block.
    pub budget_ns: Option<u64>,
}
