//! From runs to findings: the figures of each cell, the difference between two cells, the part that headers or
//! airtime explain, and the verdict.
//!
//! Pure functions of the record: no I/O, no clock, no randomness, so the same record gives the same findings on
//! every machine. The unit of replication is the run; comparisons pair runs within blocks.
//!
//! * [`Runs`]: the record's runs by cell and probe, indexed once
//! * [`Paired`], [`Evidence`]: two cells, one metric, and its tests
//! * [`TwoArms`], [`claims`]: the same of blocks that no study asks about
//! * [`settle`] and [`findings`]: the one rule for every verdict, while a campaign runs and when it has ended
//! * [`limit`]: the most that a testbed carries, by header bytes or airtime
//! * [`between`], [`record_loads`]: two campaigns, not paired; [`OverPairs`]: campaigns of many pairs of hosts
//! * [`statistics`]: the tests and intervals that these are made of

mod arms;
mod comparison;
mod findings;
mod fleet;
mod rate_limit;
mod records;
mod runs;
pub mod statistics;

#[cfg(test)]
mod fixtures;

pub use arms::TwoArms;
pub use comparison::blocks::{Blocks, block_summary, counts_events};
pub use comparison::evidence::Evidence;
pub use comparison::family::{Claim, Conclusion, Ending, claims, conclude, may_settle, settle};
pub use comparison::limits::{ENDED, MIN_EQUIVALENT_PAIRS, RUNNING};
pub use comparison::running::RunningEvidence;
pub use comparison::{BLOCKS_WHEN_NARROW, Paired};
pub use findings::overall::worse;
pub use findings::{RecordedCampaign, count_warnings, findings};
pub use fleet::{OverPairs, pair_answers};
pub use rate_limit::limit;
pub use records::load::{list_undecided_figures, not_comparable, record_loads};
pub use records::{NothingInCommon, between};
pub use runs::{Runs, estimate, estimate_of};
pub use statistics::half_width_of;
