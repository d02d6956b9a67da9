//! A host: its facts, its noise floor, and its report of a trial.

pub(crate) mod facts;
pub(crate) mod noise;
pub(crate) mod report;
