//! Statistics of small samples of runs: pure functions of slices of finite figures.
//!
//! This module does not use cells or metrics. Each function names its source, returns `None` if the figures are
//! insufficient, and is compared with SciPy (`tests/scipy.rs`, `scripts/scipy-vectors`).

mod cusum;
mod evidence;
mod median;
mod moments;
mod multiple;
mod random_effects;
mod student;

pub use cusum::{Cusum, Drift};
pub use evidence::{confidence_sequence, e_value, e_value_inside};
pub use median::{MedianInterval, median, median_interval};
pub use moments::Moments;
pub(crate) use moments::mean;
pub use multiple::{benjamini_hochberg, e_benjamini_hochberg, holm};
pub use random_effects::RandomEffects;
pub use student::{Student, half_width_of, t_quantile, welch};
