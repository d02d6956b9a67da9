//! Delays as they come: histogram, mean and jitter, with memory that does not grow.

use hdrhistogram::Histogram;
use stacklab_model::{Buckets, Delays};

/// The longest delay told apart, nanoseconds; longer ones count as this long.
const LONGEST_NS: u64 = 100_000_000_000;

/// Delays recorded one after another, in order of arrival.
pub struct DelayRecorder {
    histogram: Histogram<u64>,
    sum_ns: u128,
    previous_ns: Option<u64>,
    variation_sum_ns: u128,
    rfc3550_ns: f64,
}

impl DelayRecorder {
    /// Nothing recorded.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("constant bounds are valid");
        DelayRecorder { histogram, sum_ns: 0, previous_ns: None, variation_sum_ns: 0, rfc3550_ns: 0.0 }
    }

    /// Records the delay of the next arrival.
    pub fn record(&mut self, delay_ns: u64) {
        self.histogram.saturating_record(delay_ns);
        self.sum_ns += u128::from(delay_ns);
        if let Some(previous) = self.previous_ns {
            let variation = previous.abs_diff(delay_ns);
            self.variation_sum_ns += u128::from(variation);
            self.rfc3550_ns += (variation as f64 - self.rfc3550_ns) / 16.0;
        }
        self.previous_ns = Some(delay_ns);
    }

    /// What was recorded; `None` where nothing was.
    pub fn finish(self) -> Option<Delays> {
        let count = self.histogram.len();
        let variations = count.checked_sub(1)?;
        let buckets = self
            .histogram
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()));
        Some(Delays {
            buckets: Buckets(buckets.collect()),
            mean_ns: self.sum_ns as f64 / count as f64,
            jitter_ns: (variations > 0).then(|| self.variation_sum_ns as f64 / variations as f64),
            jitter_rfc3550_ns: (variations > 0).then_some(self.rfc3550_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(delays: &[u64]) -> Option<Delays> {
        let mut recorder = DelayRecorder::new();
        delays.iter().for_each(|delay| recorder.record(*delay));
        recorder.finish()
    }

    #[test]
    fn jitter_is_the_mean_absolute_variation_of_rfc_5481s_example() {
        // Delays 20 10 20 25 20 (lossless): variations 10 10 5 5.
        let delays = recorded(&[20, 10, 20, 25, 20]).unwrap();
        assert_eq!(delays.jitter_ns, Some(7.5));
        assert_eq!(delays.mean_ns, 19.0);
        assert_eq!(delays.buckets.0, [(10, 1), (20, 3), (25, 1)]);
        let minimum = delays.buckets.percentile(0.0).unwrap();
        assert_eq!(delays.buckets.percentile(1.0).unwrap() - minimum, 15);
    }

    #[test]
    fn rfc_3550_jitter_moves_by_a_sixteenth() {
        let delays = recorded(&[0, 160, 160]).unwrap();
        assert_eq!(delays.jitter_rfc3550_ns, Some(10.0 - 10.0 / 16.0));
    }

    #[test]
    fn one_delay_has_no_jitter_and_none_has_no_delays() {
        assert_eq!(recorded(&[5]).unwrap().jitter_ns, None);
        assert_eq!(recorded(&[]), None);
    }

    #[test]
    fn values_keep_three_significant_digits() {
        let delays = recorded(&[1_234_567]).unwrap();
        let value = delays.buckets.0[0].0;
        assert!(value.abs_diff(1_234_567) <= 1_235, "{value}");
    }
}
