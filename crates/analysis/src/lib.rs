//! From runs to findings: the figures of each cell, the difference between two cells, the part that headers or
//! airtime explain, and the verdict.
//!
//! Pure functions of the record: no I/O, no clock, no randomness, so the same record gives the same findings on
//! every machine. The unit of replication is the run; comparisons pair runs within blocks.
//!
//! * [`Runs`]: the record's runs by cell and probe, indexed once
//! * [`estimate`]: one cell, one metric
//! * [`Paired`]: two cells, one metric
//! * [`Evidence`]: the tests of one comparison
//! * [`settle`] and [`findings`]: the one rule for every verdict, while a campaign runs and when it has ended
//! * [`explain`] and [`limit`]: what header bytes alone explain
//! * [`explain_by_airtime`]: what airtime alone explains on Wi-Fi
//! * [`statistics`]: the tests and intervals that these are made of
//! * [`findings`]: all of these, for a campaign
//! * [`between`]: two campaigns, not paired

mod airtime;
mod comparison;
mod estimate;
mod findings;
mod headers;
mod records;
mod runs;
pub mod statistics;

#[cfg(test)]
mod fixtures;

pub use airtime::{FULL_CHANNEL, explain as explain_by_airtime};
pub use comparison::evidence::Evidence;
pub use comparison::family::{Claim, Conclusion, ENDED, RUNNING, claims, conclude, settle};
pub use comparison::paired::Paired;
pub use estimate::{estimate, estimate_of};
pub use findings::campaign::Campaign;
pub use findings::{findings, limit};
pub use headers::{FULL_LINK, explain};
pub use records::between::{NothingInCommon, between};
pub use runs::Runs;
pub use statistics::half_width::half_width_of;
