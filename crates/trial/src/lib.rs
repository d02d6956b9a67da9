//! A trial as a coordinator runs it on two agents, and what its reports say.
//!
//! | module | contents |
//! |---|---|
//! | `transfer`, `transfers` | the transfers of a trial, each with one sender and one receiver |
//! | `execute`, `slots` | the requests to the agents, at once or in time slots |
//! | [`validate`] | the rules that make a run valid |
//! | [`results`] | the figures of the reports of two hosts |

mod execute;
#[cfg(test)]
mod fixtures;
mod path;
pub mod results;
mod run;
mod slots;
mod transfer;
mod transfers;
pub mod validate;

pub use path::{NatPath, Path};
pub use run::{Collected, Figures, collect, collect_arms, figures, measure_offset, run_trial};
pub use slots::{PathLimits, SlotLengths};
