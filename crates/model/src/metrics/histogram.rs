//! The form of a histogram in messages and in records.

use serde::{Deserialize, Serialize};

/// The non-empty buckets of an HDR histogram with 3 significant digits: `[value, count]` pairs, values ascending.
/// Values are nanoseconds. Histograms are merged by adding counts, never averaged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Buckets(pub Vec<(u64, u64)>);

impl Buckets {
    /// The number of recorded values.
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count))
    }

    /// The smallest recorded value with at least a share `p` (0 to 1) of all values at or below it: nearest rank, RFC
    /// 2330 section 11.3. `None` if the histogram is empty.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        let rank = ((p * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0_u64;
        self.0
            .iter()
            .find(|(_, count)| {
                seen = seen.saturating_add(*count);
                seen >= rank
            })
            .map(|(value, _)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let buckets = Buckets(vec![(10, 5), (20, 4), (100, 1)]);
        assert_eq!(buckets.count(), 10);
        assert_eq!(buckets.percentile(0.5), Some(10));
        assert_eq!(buckets.percentile(0.51), Some(20));
        assert_eq!(buckets.percentile(0.9), Some(20));
        assert_eq!(buckets.percentile(0.99), Some(100));
        assert_eq!(Buckets::default().percentile(0.5), None);
    }
}
