//! A host: its facts, its noise floor, and its report of a trial.

pub(crate) mod counters;
pub(crate) mod delay_points;
pub(crate) mod ends;
pub(crate) mod facts;
pub(crate) mod noise;
pub(crate) mod report;
pub(crate) mod slice;
pub(crate) mod station;
pub(crate) mod tool;
