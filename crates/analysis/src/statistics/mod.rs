//! Statistics of small samples of runs: pure functions of slices of finite figures.
//!
//! This module does not use cells or metrics. Each function names its source, returns `None` if the figures are
//! insufficient, and is compared with SciPy (`tests/scipy.rs`, `scripts/scipy-vectors`).

mod cusum;
mod equivalence;
mod evidence;
pub(crate) mod half_width;
mod mean;
mod median;
pub(crate) mod moments;
mod multiple;
mod percentile;
mod welch;

pub use cusum::{Cusum, Drift};
pub(crate) use equivalence::equivalence_of;
pub use equivalence::{Equivalence, equivalence};
pub use evidence::{confidence_sequence, e_value, e_value_inside};
pub use mean::{mean_interval, mean_p, quantile as t_quantile, two_sided};
pub use median::{MedianInterval, median, median_interval};
pub use moments::Moments;
pub use multiple::{benjamini_hochberg, e_benjamini_hochberg, holm};
pub use percentile::{fewest_for, nearest_rank, percentile};
pub use welch::{Welch, welch};
