//! Statistics of small samples of runs: pure functions of slices of finite figures.
//!
//! This module does not use cells or metrics. Each function names its source, returns `None` if the figures are
//! insufficient, and is compared with SciPy (`tests/scipy.rs`, `scripts/scipy-vectors`).

mod claims;
mod cusum;
mod growing;
mod random_effects;
mod samples;
mod signed_rank;
mod symmetric;
mod two_samples;

pub use claims::{
    benjamini_hochberg, confidence_sequence, e_benjamini_hochberg, e_value, e_value_inside, holm,
};
pub use cusum::{Cusum, Drift};
pub(crate) use growing::{GrowingMoments, GrowingSteps, GrowingTrimmed};
pub use random_effects::RandomEffects;
pub(crate) use samples::mean;
pub use samples::{MedianInterval, Moments, Student, half_width_of, median, median_interval, t_quantile};
pub(crate) use signed_rank::{sign_p, sign_p_above, signed_rank_p, signed_rank_p_above};
pub(crate) use symmetric::{SymmetricBets, symmetric_e_value, symmetric_e_value_above};
pub use two_samples::{rank_sum_p, yuen_welch};
