//! Messages between coordinator and agent: one JSON object a line, over any byte stream.
//!
//! A request carries an id and its answer the same one; answers come in the order in which requests are done. A request
//! that arrives twice is done once; the second is answered with the answer given, where there is one already.

use serde::{Deserialize, Serialize};
use stacklab_model::{Counters, CpuTime, HostFacts, HostReport, TrialSpec};
use std::net::{IpAddr, SocketAddr};

/// Oldest and newest version of these messages that this program speaks.
pub const VERSIONS: (u32, u32) = (2, 2);

/// A request or an answer with its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Numbered<T> {
    /// Chosen by the coordinator, different for each request.
    pub id: u64,
    /// The message.
    pub body: T,
}

/// What a coordinator asks of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// First of all: which versions the coordinator speaks.
    Hello {
        /// Oldest.
        oldest: u32,
        /// Newest.
        newest: u32,
    },
    /// What the host is.
    Facts,
    /// How much it has counted until now: what routers are asked before and after a trial.
    Count {
        /// Of its interfaces, the one whose counters are told.
        interface: String,
    },
    /// Be the receiver of a trial, on this address.
    Listen {
        /// The trial.
        spec: Box<TrialSpec>,
        /// Own address.
        address: IpAddr,
    },
    /// Be the sender of a trial; answered when it has ended.
    Send {
        /// The trial.
        spec: Box<TrialSpec>,
        /// Own address.
        from: IpAddr,
        /// Where the receiver listens.
        to: SocketAddr,
    },
    /// The sender has ended: report what was received. Names the `Listen` that it ends.
    Collect {
        /// Id of the request to listen.
        listen: u64,
    },
}

/// What an agent answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To `Hello`.
    Hello {
        /// The version that both speak.
        version: u32,
        /// Version of the agent's program.
        program: String,
    },
    /// To `Facts`.
    Facts(Box<HostFacts>),
    /// To `Count`.
    Counted {
        /// Counters of interface, IP and transport since the host was started.
        counters: Counters,
        /// Processor time since then, where it counts one.
        cpu: Option<CpuTime>,
    },
    /// To `Listen`.
    Listening {
        /// Where.
        address: SocketAddr,
    },
    /// To `Send` and `Collect`.
    Done(Box<HostReport>),
    /// To anything that failed.
    Failed {
        /// What was attempted and why it failed, in a sentence.
        reason: String,
    },
}
