//! Statistics of small samples of runs: pure functions of slices of finite figures.
//!
//! This module does not use cells or metrics. Each function names its source, returns `None` if the figures are
//! insufficient, and is compared with SciPy (`tests/scipy.rs`, `scripts/scipy-vectors`).

mod autocorrelation;
mod bootstrap;
mod cliff;
mod counting;
mod cusum;
mod equivalence;
mod estimator;
mod friedman;
pub(crate) mod half_width;
mod mann_whitney;
mod mean;
mod median;
pub(crate) mod moments;
mod mser;
mod multiple;
pub(crate) mod order;
mod percentile;
mod ranks;
mod trend;
mod welch;
mod wilcoxon;

pub use autocorrelation::{Autocorrelation, autocorrelation};
pub use bootstrap::{RESAMPLES, bca};
pub use cliff::cliffs_delta;
pub use cusum::{Cusum, Drift};
pub(crate) use equivalence::equivalence_of;
pub use equivalence::{Equivalence, equivalence};
pub use estimator::PointEstimate;
pub use friedman::{Friedman, friedman};
pub use mann_whitney::{MannWhitney, mann_whitney, shift};
pub use mean::{mean_interval, mean_p};
pub(crate) use mean::{quantile as t_quantile, two_sided};
pub use median::{MedianInterval, median, median_interval};
pub use mser::{Warmup, mser5};
pub use multiple::{benjamini_hochberg, holm};
pub use percentile::{fewest_for, nearest_rank, percentile};
pub use ranks::midranks;
pub use trend::{Trend, trend};
pub use welch::{Welch, welch, welch_widened};
pub use wilcoxon::{SignedRank, hodges_lehmann, signed_rank};
