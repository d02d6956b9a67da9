//! One campaign over many machines.
//!
//! The [`store::Store`] is the truth: it reserves the two agents of a pair and the links that they share in one
//! transaction, and keeps each result once. It is one SQLite file, or a PostgreSQL database. [`pairs`] says which
//! agents are measured with which.
//!
//! The [`coordinator`] asks the sender of each reserved pair for a block. The sender's [`agent`] measures it with the
//! receiver's agent and keeps the result until the coordinator has committed it. They speak over a [`wire`].

pub mod agent;
mod checked;
pub mod coordinator;
mod error;
#[cfg(test)]
mod fixtures;
pub mod fuzzing;
pub mod lake;
mod message;
pub mod pairs;
pub mod results;
pub mod store;
mod study;
pub mod wire;

pub use error::FleetError;
pub use message::{BlockResult, Presence};
pub use study::{FleetStudy, study_of};
