//! What a run is told to do.

use crate::trial::io::{Io, IoChoice};
use crate::{Cell, CpuScope, Family, Framing, Metric, Probe, Transport, Tuning, print_duration};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of the probe's own header, the least a message can hold: sequence number, send time, reflector's receive
/// time, token and phase.
pub const HEADER_BYTES: u32 = 32;

/// When the measured part of a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Length {
    /// After so many messages (or connections).
    Packets(u64),
    /// After so many nanoseconds.
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

/// When the next message leaves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pacing {
    /// At once.
    Flood,
    /// When the answer to the one before has arrived.
    Lockstep,
    /// On a fixed schedule of so many messages a second.
    Schedule(f64),
    /// On a fixed schedule of as many as their headers leave of the link's rate: the greatest load that can be carried without
    /// loss (RFC 2544, section 26.1). A study's word; a trial has the schedule that it comes to.
    Link,
}

/// `flood`, `lockstep`, `500 messages/s`, `the link's rate`.
impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pacing::Flood => f.write_str("flood"),
            Pacing::Lockstep => f.write_str("lockstep"),
            Pacing::Schedule(per_second) => write!(f, "{per_second} messages/s"),
            Pacing::Link => f.write_str("the link's rate"),
        }
    }
}

/// How a probe is run, alike for all of its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeSpec {
    /// Which probe.
    pub probe: Probe,
    /// When messages leave; of an echo beside a stream, the stream's.
    pub pacing: Pacing,
    /// When the measured part ends.
    pub length: Length,
    /// Nanoseconds of the same traffic before the measured part.
    pub warmup_ns: u64,
    /// Nanoseconds of one row of the interval series.
    pub interval_ns: u64,
    /// The metrics taken from it.
    pub metrics: Vec<Metric>,
}

/// One trial as the agents are told it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialSpec {
    /// Carried in every message, so that a stray from another trial is known as one.
    pub token: u32,
    /// Address family; what the sockets then really have is compared with it.
    pub family: Family,
    /// Transport protocol.
    pub transport: Transport,
    /// Whether every message must leave in a packet of its own (`segment`, `frame`).
    pub framing: Framing,
    /// Bytes per message, the probe's header included.
    pub message_bytes: u32,
    /// Whose CPU the host's CPU figures are.
    pub cpu_scope: CpuScope,
    /// Nanoseconds that a receive polls before it sleeps; 0 is not at all.
    pub poll_ns: u64,
    /// How messages get into and out of the kernel.
    #[serde(default = "plain")]
    pub io: Io,
    /// Flows at once, each a socket of its own.
    #[serde(default = "one")]
    pub flows: u32,
    /// What the sockets are told beside.
    #[serde(default, skip_serializing_if = "Tuning::is_default")]
    pub tuning: Tuning,
    /// How far the clock of the receiver's host is ahead of the sender's, nanoseconds, where they were compared: what a
    /// receiver adds to the time at which a message was sent. A trial both ways, or in reverse, has it of the second
    /// agent's host.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_offset_ns: i64,
    /// How the probe is run.
    pub probe: ProbeSpec,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// What records of trials before there was a choice mean.
fn plain() -> Io {
    Io::Plain
}

fn one() -> u32 {
    1
}

impl TrialSpec {
    /// A trial of a cell, as its settings say; one call a message where they leave that to the program. CPU time is of both
    /// hosts together, nothing polls and clocks are not compared, unless these fields are set afterwards.
    pub fn new(token: u32, cell: &Cell, probe: ProbeSpec) -> Self {
        TrialSpec {
            token,
            family: cell.family,
            transport: cell.transport,
            framing: cell.framing,
            message_bytes: cell.payload_bytes(),
            cpu_scope: CpuScope::Shared,
            poll_ns: 0,
            io: match cell.settings.io {
                Some(IoChoice::Path(io)) => io,
                Some(IoChoice::Auto) | None => Io::Plain,
            },
            // Only streams have several; other probes have one message or connection under way.
            flows: if probe.probe.streams() { cell.settings.flows.unwrap_or(1) } else { 1 },
            tuning: cell.settings.tuning(),
            clock_offset_ns: 0,
            probe,
        }
    }

    /// Whether it is a stream of messages of which each follows the one before at once.
    pub fn is_flood(&self) -> bool {
        self.probe.probe == Probe::Stream && self.probe.pacing == Pacing::Flood
    }

    /// Messages a second that the kernel is to space, of all flows together; `None` where it is not asked to.
    pub fn kernel_paced(&self) -> Option<f64> {
        match (self.probe.probe, self.transport, self.probe.pacing) {
            (Probe::Stream, Transport::Tcp, Pacing::Schedule(per_second)) => {
                (self.tuning.kernel_pacing == Some(true)).then_some(per_second)
            }
            _ => None,
        }
    }
}

/// When a campaign has measured enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoppingRule {
    /// Blocks before the first look.
    pub min: u32,
    /// Blocks at most.
    pub max: u32,
    /// Half-width of a comparison's 99 % interval at which it stops, at four looks in a row, as a ratio (0.02 is 2 %).
    pub target: f64,
    /// Nanoseconds of measuring at most; looked at after each block.
    pub budget_ns: Option<u64>,
}
