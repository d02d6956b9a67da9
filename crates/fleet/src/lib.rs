//! One campaign over many machines.
//!
//! The [`store::Store`] is the truth: it reserves the two agents of a pair and the links that they share in one
//! transaction, and keeps each result once. It is one SQLite file, or a PostgreSQL database. [`pairs`] says which
//! agents are measured with which.

mod error;
pub mod pairs;
pub mod store;

pub use error::FleetError;
