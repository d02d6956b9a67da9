//! How much data claims need. Reports state these numbers.

/// Fewest blocks of which anything is claimed: the signed-rank test of six has no p below 2^-5.
pub const MIN_PAIRS: usize = 6;

/// Fewest runs of each of two records of which anything is claimed. Of five runs each, too few are left when the
/// extreme ones are cut.
pub const MIN_UNPAIRED_RUNS: usize = 6;

/// Fewest pairs of hosts over which anything is claimed: of six that all show the same, chance is one in 32, and a
/// claim needs one in 40.
pub const MIN_FLEET_PAIRS: usize = 7;

/// Fewest pairs of hosts for a claim about their mean. With fewer, one path in ten that differs from all others makes
/// the mean's t test wrong more often than it says (`bench/coverage`); a claim is about the typical pair then.
pub const MIN_PAIRS_OF_MEAN: usize = 400;
