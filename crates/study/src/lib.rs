//! From a study file to a plan: what is measured, in which order, and when to stop.
//!
//! ```text
//! text -> tree -> check -> layers -> read -> Study -> Plan -> blocks of trials
//!         (TOML)  (language) (scale, --set, defaults)
//! ```
//!
//! A program writes a study with a [`builder`].
//!
//! The language of study files is one table (`language`), from which the checks, the defaults and the JSON Schema are
//! made. No I/O and no clock: the input is text, and the stopping rule is given the state of each question.

pub mod builder;
mod counted;
mod diagnostics;
mod language;
mod parse;
mod plan;
mod read;
mod study;

pub use counted::{CountWay, CountedPair, LINK, ONE_NEIGHBOUR_TABLE, exact_pair};
pub use diagnostics::StudyErrors;
pub use language::reference::reference;
pub use language::schema::json_schema;
pub use parse::{Input, parse};
pub use plan::Plan;
pub use plan::estimate::{
    ASSUMED_FLOOD_RATE, ASSUMED_LOCKSTEP_RATE, MIN_BLOCKS, PlanEstimate, TRIAL_OVERHEAD_NS, is_over, may_look,
};
pub use study::{RealHost, Study};
