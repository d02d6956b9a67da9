//! Other programs as generators of trials: found, driven in the hosts of a testbed, and their figures made a run's.

mod bias;
mod drive;
mod figures;
mod programs;
mod trial;

pub(crate) use bias::with_bias;
pub(crate) use figures::{GeneratorEvidence, from_generator};
pub use programs::Programs;
pub(crate) use trial::run;
