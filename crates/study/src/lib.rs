//! From a study file to a plan: what is to be measured, in which order, and when it is enough.
//!
//! ```text
//! text -> tree -> check -> layers -> read -> Study -> Plan -> blocks of trials
//!         (TOML)  (language) (scale, --set, defaults)
//! ```
//!
//! The language of study files is one table (`language`), from which the checks, the defaults and the JSON Schema are
//! made. No I/O and no clock: text comes in, and what has been measured is told to the stopping rule.

mod check;
mod estimate;
mod language;
mod layers;
mod leaf;
mod parse;
mod plan;
mod problems;
mod read;
mod render;
mod schema;
mod sentences;
mod setting;
mod shuffle;
mod stopping;
mod study;
mod tree;

pub use estimate::{ASSUMED_FLOOD_RATE, ASSUMED_LOCKSTEP_RATE, PlanEstimate, TRIAL_OVERHEAD_NS};
pub use parse::{Input, parse};
pub use plan::Plan;
pub use problems::StudyErrors;
pub use schema::json_schema;
pub use stopping::look;
pub use study::{RealHost, Study};
