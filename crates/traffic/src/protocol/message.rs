//! Messages between coordinator and agent: one JSON object a line, over any byte stream.
//!
//! An answer has the id of its request. Answers come in the order in which requests are done. A duplicate request is
//! not executed again; it gets the same answer, if there is one already.

use crate::protocol::ports::{
    AnswersToSend, MessagesToPorts, MessagesToTake, PortsToOpen, SentToPorts, TakenFromPorts,
};
use crate::protocol::printable;
use serde::{Deserialize, Serialize};
use stacklab_model::{
    Counters, CpuTime, HeldSockets, HostFacts, HostReport, NoiseFloor, ScopedAddr, TrialSpec, printable_text,
    too_large,
};
use std::net::SocketAddr;

/// Oldest and newest version of these messages that this program speaks.
pub const VERSIONS: (u32, u32) = (6, 6);

/// A request or an answer with its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Numbered<T> {
    /// Chosen by the coordinator, different for each request.
    pub id: u64,
    /// The message.
    pub body: T,
}

/// How much of an unparsable answer an error quotes, characters; of a number that is too large, half as much, with what
/// it is not.
const QUOTED_CHARS: usize = 80;
const QUOTED_DIGITS: usize = QUOTED_CHARS / 2;

impl Numbered<Request> {
    /// Reads a request's line.
    ///
    /// # Errors
    /// The answer that says why it is not understood, with the id of the request if that can be read, else 0.
    pub fn read(line: &str) -> Result<Self, Numbered<Answer>> {
        serde_json::from_str(line).map_err(|error| {
            // It shows the coordinator which request was not understood.
            let id = serde_json::from_str::<serde_json::Value>(line).ok().and_then(|v| v["id"].as_u64());
            let reason = format!("this agent does not understand the request: {error}");
            Numbered { id: id.unwrap_or(0), body: Answer::Failed { reason } }
        })
    }
}

impl Numbered<Answer> {
    /// Reads an answer's line, without control characters.
    ///
    /// # Errors
    /// The start of a line that is not an answer, without control characters.
    pub fn read(line: &str) -> Result<Self, String> {
        let line = printable(line);
        if let Some(number) = too_large(&line) {
            return Err(format!("{number:.QUOTED_DIGITS$} is not a count or a time"));
        }
        // White space between the parts of an answer may be a carriage return; in an error it would go over what stands
        // before it.
        let answer: Self = serde_json::from_str(&line)
            .map_err(|_| printable_text(&line.chars().take(QUOTED_CHARS).collect::<String>()))?;
        let reports: &[HostReport] = match &answer.body {
            Answer::Done(report) => std::slice::from_ref(report),
            Answer::ArmsDone(reports) => reports,
            _ => &[],
        };
        match reports.iter().find_map(HostReport::impossible_figure) {
            Some(figure) => Err(format!("{figure:e} is not a count or a time")),
            None => Ok(answer),
        }
    }
}

/// A coordinator's request to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// The first request: which versions the coordinator speaks.
    Hello {
        /// Oldest version.
        oldest: u32,
        /// Newest version.
        newest: u32,
    },
    /// Asks for the facts of the host, without its noise floor.
    Facts,
    /// Asks for the noise floor, which the first such request measures.
    NoiseFloor,
    /// Begin to read the processor times, for `CpuBetween`: sent to routers before a trial.
    WatchCpu,
    /// Asks for the CPU time of a window of the readings that `WatchCpu` began, and ends them.
    CpuBetween {
        /// Beginning of the window, nanoseconds of the host's monotonic clock.
        from_ns: u64,
        /// Its end.
        to_ns: u64,
    },
    /// Connect sockets of this host to each other, hold them, and report what they take of its kernel's memory.
    HoldSockets {
        /// The trial: its family, transport and bytes of a message count; its length is the number of pairs.
        spec: Box<TrialSpec>,
    },
    /// Open sockets for many connections.
    OpenPorts(PortsToOpen),
    /// Send messages, each of another connection.
    SendToPorts(MessagesToPorts),
    /// Read what has arrived of them, or of the answers.
    TakeFromPorts(MessagesToTake),
    /// Answer what was read.
    AnswerFromPorts(AnswersToSend),
    /// Close the sockets.
    ClosePorts {
        /// Id of the request that opened them.
        opened: u64,
    },
    /// Asks for the current counters: sent to routers before and after a trial.
    Count {
        /// The interface whose counters are reported.
        interface: String,
    },
    /// Receive a trial on this address.
    Listen {
        /// The trial.
        spec: Box<TrialSpec>,
        /// Own address. If it is link-local, its zone is one of the agent's host. An agent that listens on TCP knows it
        /// from its connection with the coordinator, which gives none. To the unspecified one it answers with that of
        /// the connection, which a coordinator does not know where it is translated.
        address: ScopedAddr,
    },
    /// Wait for the receiver of a trial to open its flows to this address, over which a later request has the trial
    /// sent. `Collect` ends a wait that none makes use of.
    Wait {
        /// The trial.
        spec: Box<TrialSpec>,
        /// Own address, as in `Listen`.
        address: ScopedAddr,
    },
    /// Receive a trial over flows that this host opens to a sender that waits.
    Open {
        /// The trial.
        spec: Box<TrialSpec>,
        /// Own address, with a zone as that of `Listen`.
        address: ScopedAddr,
        /// Where the sender waits; if it is link-local, as in `Send`.
        to: SocketAddr,
    },
    /// Send a trial. Answered when the trial has ended.
    Send(SendArm),
    /// Send the arms of an interleaved trial in turns. Answered when all have ended.
    SendInTurns {
        /// The arms.
        arms: Vec<SendArm>,
        /// The order of each round is drawn from this number.
        seed: u64,
    },
    /// Send one arm of an interleaved trial in its time slots. Answered when it has ended.
    SendInSlots {
        /// The arm.
        arm: SendArm,
        /// When its slots are.
        timetable: Timetable,
    },
    /// Asks for the time of the host's monotonic clock.
    Clock,
    /// The sender has ended: report what was received. Names the `Listen` request that it ends.
    Collect {
        /// Id of the request to listen.
        listen: u64,
    },
    /// End the trial of a `Send` request that is under way: what was sent until then is the whole trial.
    Stop {
        /// Id of the request to send.
        send: u64,
    },
}

/// What is sent: a trial, or one arm of an interleaved trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SendArm {
    /// The trial.
    pub spec: Box<TrialSpec>,
    /// Own address, with a zone as that of `Listen`.
    pub from: ScopedAddr,
    /// The receiver's listening address. If it is link-local, it is in the zone of `from`, and has no scope id itself.
    pub to: SocketAddr,
    /// Id of the `Wait` request with which the receiver opened the flows, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
}

impl Request {
    /// What it asks to send.
    pub(crate) fn arms(&self) -> &[SendArm] {
        match self {
            Request::Send(arm) | Request::SendInSlots { arm, .. } => std::slice::from_ref(arm),
            Request::SendInTurns { arms, .. } => arms,
            _ => &[],
        }
    }

    /// The same, to be changed.
    pub(crate) fn arms_mut(&mut self) -> &mut [SendArm] {
        match self {
            Request::Send(arm) | Request::SendInSlots { arm, .. } => std::slice::from_mut(arm),
            Request::SendInTurns { arms, .. } => arms,
            _ => &mut [],
        }
    }
}

/// The time slots of an interleaved trial's arms, which have separate senders. In each round every arm has one
/// slot; the order of each round is drawn from the seed. The first round is the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timetable {
    /// Number of arms.
    pub arms: u16,
    /// This arm, from 0.
    pub arm: u16,
    /// The order of each round is drawn from this number.
    pub seed: u64,
    /// When the first slot begins by the sender's monotonic clock, nanoseconds.
    pub starts_ns: u64,
    /// Length of a slot of the first round, nanoseconds.
    pub warmup_slot_ns: u64,
    /// Length of a slot of each further round, nanoseconds.
    pub slot_ns: u64,
    /// For how much of its slot an arm sends, nanoseconds. In the rest, its path empties.
    pub slice_ns: u64,
}

/// An agent's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Answer to `Hello`.
    Hello {
        /// The version that both speak.
        version: u32,
        /// Version of the agent's program.
        program: String,
    },
    /// Answer to `Facts`.
    Facts(Box<HostFacts>),
    /// Answer to `NoiseFloor`.
    NoiseFloor(Box<NoiseFloor>),
    /// Answer to `Count`.
    Counted {
        /// Counters of interface, IP and transport since the host was started.
        counters: Counters,
    },
    /// Answer to `WatchCpu`.
    Watching,
    /// Answer to `Stop`.
    Stopping,
    /// Answer to `HoldSockets`.
    Held(HeldSockets),
    /// Answer to `OpenPorts`.
    PortsOpen {
        /// The port of each socket.
        ports: Vec<u16>,
    },
    /// Answer to `SendToPorts` and `AnswerFromPorts`.
    SentToPorts(SentToPorts),
    /// Answer to `TakeFromPorts`.
    TakenFromPorts(TakenFromPorts),
    /// Answer to `ClosePorts`.
    PortsClosed,
    /// Answer to `CpuBetween`.
    Cpu {
        /// CPU time of the host, if the host counts it and was watched then.
        time: Option<CpuTime>,
    },
    /// Answer to `Listen`, `Wait` and `Open`.
    Listening {
        /// The listening address.
        address: SocketAddr,
    },
    /// Answer to `Clock`.
    Clock {
        /// Time of the monotonic clock, nanoseconds.
        now_ns: u64,
    },
    /// Answer to `Send`, `SendInSlots` and `Collect`.
    Done(Box<HostReport>),
    /// Answer to `SendInTurns`: a report for each arm, in their order.
    ArmsDone(Vec<HostReport>),
    /// Answer to any request that failed.
    Failed {
        /// What was attempted and why it failed, in a sentence.
        reason: String,
    },
}
