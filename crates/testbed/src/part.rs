//! What a guest is told before it is an agent, and what it answers: one JSON object a line, on the stream that the agent
//! then uses.

use crate::routed::Carried;
use serde::{Deserialize, Serialize};
use stacklab_model::{Bed, Links, Mechanism, Role};

/// What a guest is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A host at an end of the link outside.
    Host {
        /// Which end it is.
        role: Role,
        /// MTU of its interface, bytes.
        mtu: u32,
        /// Whether offloads stay on.
        offloads: bool,
    },
    /// The place of testbeds of its own.
    Lab(LabPart),
}

/// Testbeds of routers inside a guest: one for each mechanism, all at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabPart {
    /// What its links have in common.
    pub bed: Bed,
    /// What each has for itself.
    pub links: Links,
    /// What the testbeds differ in.
    pub mechanisms: Vec<Mechanism>,
    /// How many commands can run at once on the hosts of the first one.
    pub doors: usize,
}

/// What a guest says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Greeting {
    /// It has booted, and waits to be told its part.
    Waiting,
    /// It has taken its part and is an agent from now on.
    Ready,
    /// Its testbeds stand, and it carries their agents' streams from now on: four for each testbed, then
    /// one for each door.
    Built {
        /// What was seen of packets in each testbed.
        carried: Vec<Vec<Carried>>,
    },
    /// It cannot take its part.
    Failed {
        /// What was attempted, and why it failed.
        reason: String,
    },
}
