//! What a guest is told before it is an agent, and what it answers: one JSON object a line, on the stream that the agent
//! then uses.

use serde::{Deserialize, Serialize};
use stacklab_model::Role;

/// A guest's part on the link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Which end it is.
    pub role: Role,
    /// MTU of its interface, bytes.
    pub mtu: u32,
    /// Whether offloads stay on.
    pub offloads: bool,
}

/// What a guest says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Greeting {
    /// It has booted, and waits to be told its part.
    Waiting,
    /// It has taken its part and is an agent from now on.
    Ready,
    /// It cannot take its part.
    Failed {
        /// What was attempted, and why it failed.
        reason: String,
    },
}
