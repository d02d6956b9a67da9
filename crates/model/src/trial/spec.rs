//! The specification of a run.

use crate::count;
use crate::names::named;
use crate::{
    Cell, CpuScope, Family, Io, IoChoice, LinkBucket, Metric, Probe, SearchSpec, SenderPriority, Shared,
    SizeOf, Transport, Tuning, Uplink, count_customers, count_destinations, print_duration,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The probe's own header: sequence number, send time, reflector's receive time, token, phase.
pub const HEADER_BYTES: u32 = 32;
/// The header of smaller datagrams, which are not answered: all of that but the reflector's time.
pub const SHORT_HEADER_BYTES: u32 = 18;

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
            Length::Packets(packets) => f.write_str(&count(*packets, "message")),
            Length::Time(ns) => f.write_str(&print_duration(*ns)),
        }
    }
}

/// A load that changes once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadStep {
    /// Messages that are sent at the first load.
    pub first_messages: u64,
    /// Messages per second.
    pub first: f64,
    pub second: f64,
}

impl LoadStep {
    /// Nanoseconds from the first message to one with this number, from 0.
    pub fn due_ns(&self, sequence: u64) -> f64 {
        let at_first = sequence.min(self.first_messages);
        let at_second = sequence - at_first;
        at_first as f64 * 1e9 / self.first + at_second as f64 * 1e9 / self.second
    }

    /// Nanoseconds from the last message at the first load to the first one at the second load from which on none is
    /// lost. `last_lost` is the number of the last message that is.
    pub fn recovery_ns(&self, last_lost: u64) -> u64 {
        let recovered = last_lost.saturating_add(1).max(self.first_messages);
        let last_of_first = self.first_messages.saturating_sub(1);
        (self.due_ns(recovered) - self.due_ns(last_of_first)) as u64
    }

    /// The same for one of several threads, which has this share of both loads.
    pub fn share(&self, share: f64) -> Self {
        LoadStep {
            first_messages: (self.first_messages as f64 * share) as u64,
            first: self.first * share,
            second: self.second * share,
        }
    }
}

impl fmt::Display for LoadStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadStep { first_messages, first, second } = self;
        write!(f, "{first_messages} messages at {first} messages/s, then {second} messages/s")
    }
}

/// The departure time of the next message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pacing {
    Flood,
    /// On arrival of the answer to the previous message.
    Lockstep,
    /// On a fixed schedule of this many messages per second.
    Schedule(f64),
    /// At the link's rate minus the headers: the highest load without loss (RFC 2544, section 26.1). Only in studies: a
    /// trial has the resulting schedule.
    Link,
    /// As [`Pacing::Schedule`], but what a message is late moves the rest of the schedule, which is never caught up
    /// with: the load is never exceeded.
    Shifted(f64),
    /// As [`Pacing::Shifted`], at two loads, one after the other.
    Stepped(LoadStep),
    /// At the loads that a search chooses. Only in studies: each slice of the search has the resulting schedule.
    Search(SearchSpec),
    /// At the load that a search of the same block found for the arm. Only in studies: a trial has the resulting
    /// schedule.
    Searched,
    /// At this share of the rate at which the slowest arm of an interleaved trial floods during the warm-up.
    Share(f64),
}

impl Pacing {
    /// Whether a trial's messages have a time each.
    pub fn is_schedule(&self) -> bool {
        matches!(self, Pacing::Schedule(_) | Pacing::Shifted(_) | Pacing::Stepped(_))
    }
}

/// `flood`, `lockstep`, `500 messages/s`, `the link's rate`, `the load that was searched`.
impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pacing::Flood => f.write_str("flood"),
            Pacing::Lockstep => f.write_str("lockstep"),
            Pacing::Schedule(per_second) => write!(f, "{per_second} messages/s"),
            Pacing::Link => f.write_str("the link's rate"),
            Pacing::Shifted(per_second) => write!(f, "{per_second} messages/s, never caught up with"),
            Pacing::Stepped(step) => step.fmt(f),
            Pacing::Search(search) => search.fmt(f),
            Pacing::Searched => f.write_str("the load that was searched"),
            Pacing::Share(share) => write!(f, "{} % of the slowest arm's flood rate", share * 100.0),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeSpec {
    pub probe: Probe,
    /// The departure times of messages. For an echo during a stream, those of the stream.
    pub pacing: Pacing,
    pub length: Length,
    /// Nanoseconds of the same traffic before the measured part.
    pub warmup_ns: u64,
    /// Nanoseconds of one row of the interval series.
    pub interval_ns: u64,
    pub metrics: Vec<Metric>,
}

/// How the arms of a trial share the time. The plan decides it for each group of arms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SlicingJson", into = "SlicingJson")]
pub enum ArmSchedule {
    #[default]
    Alone,
    /// The arms have the same two hosts: the sender of the arm that has the token sends a slice of this many
    /// nanoseconds. `None`: the sender's agent chooses after the warm-up, the same for all arms.
    TokenPassing(Option<u64>),
    /// The arms are on separate testbeds, and each sends a slice in its time slots. What a testbed counts is its arm's.
    TimeSlots(Option<u64>),
}

#[derive(Serialize, Deserialize)]
struct SlicingJson {
    slice_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "crate::is_default")]
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
    pub const MAX_ARMS: usize = 16;
    /// Rounds below which an arm has no location; the sums over its slices are then the better figure.
    pub const MIN_ROUNDS: u64 = 5;
    /// An arm has at least this many slices, unless the study names a longer slice.
    pub const MIN_SLICES: u64 = 16;
    /// The warm-up is measured in this many parts: what held one of them up does not set the length of all slices.
    pub const WARMUP_PARTS: u64 = 4;
    /// An interleaved trial may take this many times its arms' lengths, and this much longer, to empty the paths,
    /// nanoseconds.
    pub const MAX_EMPTYING: u64 = 3;
    pub const MAX_EMPTYING_NS: u64 = 8_000_000_000;

    pub fn is_alone(&self) -> bool {
        *self == ArmSchedule::Alone
    }

    pub fn slice_ns(self) -> Option<u64> {
        match self {
            ArmSchedule::Alone => None,
            ArmSchedule::TokenPassing(slice_ns) | ArmSchedule::TimeSlots(slice_ns) => slice_ns,
        }
    }

    /// Whether a figure is of the whole host, and so of all arms. Arms with separate testbeds share the processors:
    /// work outside their threads (translators, the kernel's workers) cannot be attributed to one of them.
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
    pub family: Family,
    pub transport: Transport,
    /// Whether each message must leave in its own packet (`segment`, `frame`).
    pub size_of: SizeOf,
    /// Bytes per message, the probe's header included.
    pub message_bytes: u32,
    pub cpu_scope: CpuScope,
    /// Nanoseconds for which a receive polls before it sleeps; 0 disables polling.
    pub poll_ns: u64,
    #[serde(default = "one_call_per_message")]
    pub io: Io,
    #[serde(default = "one")]
    pub flows: u32,
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub tuning: Shared<Tuning>,
    /// How far the clock of the receiver's host (both ways or in reverse: the second agent's) is ahead of the other, if
    /// they were compared. A receiver adds it to the send time of a message.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub clock_offset_ns: i64,
    /// The length of an interleaved trial is that of all its slices together.
    #[serde(rename = "slicing", default, skip_serializing_if = "crate::is_default")]
    pub schedule: ArmSchedule,
    /// The token bucket of the path's bottleneck, if each slice of the trial may begin with a full one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<LinkBucket>,
    /// The sender's links if there are several customers: a flow takes the one of its number, and so on in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uplinks: Vec<Uplink>,
    /// The addresses to which datagrams go, one drawn for each; 1 is the receiver's own.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub destinations: u32,
    /// Of the thread that sends an arm which is not interleaved.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub sender_priority: SenderPriority,
    pub probe: Shared<ProbeSpec>,
}

/// In records from before this setting existed.
fn one_call_per_message() -> Io {
    Io::Send
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

/// The flows of a stream: by default one of each customer.
fn count_flows(cell: &Cell) -> u32 {
    cell.settings.flows.unwrap_or_else(|| count_customers(cell))
}

impl TrialSpec {
    /// A trial of a cell. Unless these fields are set afterwards, CPU time covers both hosts together, nothing polls
    /// and clocks are not compared.
    pub fn new(token: u32, cell: &Cell, probe: ProbeSpec) -> Self {
        TrialSpec {
            token,
            family: cell.family,
            transport: cell.transport,
            size_of: cell.size_of,
            message_bytes: cell.payload_bytes(),
            cpu_scope: CpuScope::Shared,
            poll_ns: 0,
            io: if let Some(IoChoice::Path(io)) = cell.settings.io { io } else { Io::Send },
            // Only streams have several; other probes have one message or connection at a time.
            flows: if probe.probe.streams() { count_flows(cell) } else { 1 },
            tuning: cell.settings.tuning.clone().into(),
            clock_offset_ns: 0,
            schedule: ArmSchedule::Alone,
            bucket: None,
            uplinks: Vec::new(),
            destinations: if probe.probe.spreads() { count_destinations(cell) } else { 1 },
            sender_priority: SenderPriority::Normal,
            probe: ProbeSpec { probe: probe.probe.of_agents(), ..probe }.into(),
        }
    }

    /// Bytes of the least message of a probe.
    pub fn min_message_bytes(probe: Probe, transport: Transport) -> u32 {
        match probe {
            // Connections are opened and closed: there is no message.
            Probe::Connect => 0,
            Probe::Stream | Probe::Paced | Probe::Search if transport == Transport::Udp => SHORT_HEADER_BYTES,
            _ => HEADER_BYTES,
        }
    }

    /// Messages per second of a slice of a search.
    pub fn search_load(&self) -> Option<f64> {
        if let Pacing::Shifted(per_second) = self.probe.pacing { Some(per_second) } else { None }
    }

    pub fn is_flood(&self) -> bool {
        self.probe.probe == Probe::Stream && self.probe.pacing == Pacing::Flood
    }

    /// Messages per second at which the kernel is to pace all flows together, if it is.
    pub fn kernel_pacing_rate(&self) -> Option<f64> {
        let Pacing::Schedule(per_second) = self.probe.pacing else { return None };
        let is_tcp_stream = (self.probe.probe, self.transport) == (Probe::Stream, Transport::Tcp);
        (is_tcp_stream && self.tuning.kernel_pacing == Some(true)).then_some(per_second)
    }
}

named! {
    pub enum Until("until") {
        Verdict = "verdict",
        /// An interval as narrow as the target; the verdict is made then.
        Precise = "precise",
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoppingRule {
    /// Number of blocks before the first look.
    pub min: u32,
    pub max: u32,
    pub until: Until,
    /// Half-width of a comparison's 95 % interval that is precise, as a ratio (0.02 is 2 %).
    pub target: f64,
    /// Maximum measuring time in nanoseconds; checked after each block.
    pub budget_ns: Option<u64>,
}
