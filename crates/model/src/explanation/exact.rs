//! Exact counts: the instructions that a message costs, by stage and function.

use crate::factors::family::Transport;
use serde::Serialize;

/// Instructions that an emulated machine executed for messages of both families.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExactCounts {
    /// Version of QEMU.
    pub qemu: String,
    /// Release of the guest's kernel.
    pub kernel: String,
    /// One for each transport and size, in the order of the request.
    pub cells: Vec<ExactCell>,
}

/// The counts of one transport and size, IPv4 and IPv6.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExactCell {
    /// The transport protocol.
    pub transport: Transport,
    /// Payload bytes of a message.
    pub size: u32,
    /// Messages of each family.
    pub messages: u64,
    /// All instructions of each family.
    pub total: [u64; 2],
    /// The same of each round; rounds differ by timer interrupts.
    pub rounds: Vec<[u64; 2]>,
    /// Stages, the largest difference first. They add up to the total.
    pub stages: Vec<ExactRow>,
    /// Functions, in the same order. They add up to the total.
    pub functions: Vec<ExactRow>,
}

/// The instructions of a stage, or of a function and its twin of the other family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExactRow {
    /// The stage or function.
    pub name: String,
    /// The stage of a function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Instructions of each family.
    pub instructions: [u64; 2],
}

impl ExactCell {
    /// A number of instructions per message.
    pub fn per_message(&self, instructions: u64) -> f64 {
        instructions as f64 / self.messages as f64
    }

    /// IPv6 minus IPv4, per message.
    pub fn difference(&self, [ipv4, ipv6]: [u64; 2]) -> f64 {
        (ipv6 as f64 - ipv4 as f64) / self.messages as f64
    }
}
