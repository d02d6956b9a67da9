//! Error rates by simulation: which share of a report's claims is false, how often intervals cover, and how large the
//! method's own bias is. `bench/coverage` and `bench/bias` print them; tests check that they keep their promises.

pub mod bias;
pub mod campaign;
pub mod families;
pub mod fleets;
pub mod interleaved;
pub mod nulls;
pub mod recorded;
pub mod records;
pub mod resumed;
pub mod runs;
pub mod searches;
pub mod stress;
