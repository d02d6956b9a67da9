//! Delays: histogram, mean and jitter in bounded memory.

use hdrhistogram::Histogram;
use stacklab_model::{Buckets, Delays};

/// Maximum recorded delay, nanoseconds; longer delays count as this long.
const LONGEST_NS: u64 = 100_000_000_000;

pub(crate) struct DelayRecorder {
    histogram: Histogram<u64>,
    sum_ns: u128,
    variations: u64,
    variation_sum_ns: u128,
}

/// Jitter state of one flow: its last delay, and its smoothed jitter so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Variation {
    previous_ns: Option<u64>,
    rfc3550_ns: f64,
}

impl DelayRecorder {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("constant bounds are valid");
        DelayRecorder { histogram, sum_ns: 0, variations: 0, variation_sum_ns: 0 }
    }

    /// Records the delay of the next arrival of a flow.
    pub(crate) fn record(&mut self, delay_ns: u64, flow: &mut Variation) {
        self.histogram.saturating_record(delay_ns);
        self.sum_ns += u128::from(delay_ns);
        if let Some(previous) = flow.previous_ns {
            let variation = previous.abs_diff(delay_ns);
            self.variations += 1;
            self.variation_sum_ns += u128::from(variation);
            flow.rfc3550_ns += (variation as f64 - flow.rfc3550_ns) / 16.0;
        }
        flow.previous_ns = Some(delay_ns);
    }

    pub(crate) fn join(&mut self, other: &DelayRecorder) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
        self.sum_ns += other.sum_ns;
        self.variations += other.variations;
        self.variation_sum_ns += other.variation_sum_ns;
    }

    /// The recorded delays of these flows; `None` without any.
    pub(crate) fn finish<'a>(self, flows: impl Iterator<Item = &'a Variation>) -> Option<Delays> {
        let count = self.histogram.len();
        if count == 0 {
            return None;
        }
        let buckets = self
            .histogram
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()));
        let (mut sum, mut counted) = (0.0, 0);
        for flow in flows.filter(|flow| flow.previous_ns.is_some()) {
            sum += flow.rfc3550_ns;
            counted += 1;
        }
        let varied = self.variations > 0;
        Some(Delays {
            buckets: Buckets(buckets.collect()),
            mean_ns: self.sum_ns as f64 / count as f64,
            jitter_ns: varied.then(|| self.variation_sum_ns as f64 / self.variations as f64),
            jitter_rfc3550_ns: varied.then(|| sum / f64::from(counted)),
        })
    }
}

/// Delays of one flow.
pub(crate) struct FlowDelays {
    pub all: DelayRecorder,
    flow: Variation,
}

impl FlowDelays {
    pub(crate) fn new() -> Self {
        FlowDelays { all: DelayRecorder::new(), flow: Variation::default() }
    }

    pub(crate) fn record(&mut self, delay_ns: u64) {
        self.all.record(delay_ns, &mut self.flow);
    }

    /// `None` without any.
    pub(crate) fn finish(self) -> Option<Delays> {
        self.all.finish(std::iter::once(&self.flow))
    }
}

/// Delays of one flow, in the order of arrival; `None` without any.
pub fn delays(of: impl Iterator<Item = u64>) -> Option<Delays> {
    let mut delays = FlowDelays::new();
    of.for_each(|delay| delays.record(delay));
    delays.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(delays: &[u64]) -> Option<Delays> {
        let (mut recorder, mut flow) = (DelayRecorder::new(), Variation::default());
        delays.iter().for_each(|delay| recorder.record(*delay, &mut flow));
        recorder.finish([&flow].into_iter())
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
    fn jitter_is_of_consecutive_delays_within_a_flow() {
        let mut flows = [Variation::default(); 2];
        let mut threads = [DelayRecorder::new(), DelayRecorder::new()];
        for (flow, delay) in [(0, 10), (1, 500), (0, 20), (1, 500)] {
            threads[flow].record(delay, &mut flows[flow]);
        }
        let [mut all, other] = threads;
        all.join(&other);
        let delays = all.finish(flows.iter()).unwrap();
        assert_eq!(delays.jitter_ns, Some(5.0));
        assert_eq!((delays.buckets.count(), delays.mean_ns), (4, 257.5));
    }

    #[test]
    fn values_keep_three_significant_digits() {
        let delays = recorded(&[1_234_567]).unwrap();
        let value = delays.buckets.0[0].0;
        assert!(value.abs_diff(1_234_567) <= 1_235, "{value}");
    }
}
