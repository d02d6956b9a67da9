//! How fast an interface carried the bytes of a run.

use std::time::Duration;

/// Most samples that are kept.
const MAX_SAMPLES: usize = 50_000;
/// The share of the bytes at each end that is left out: programs greet each other before, and say farewell after.
const LEFT_OUT: f64 = 0.01;
/// The middle bytes must take this many times the time between two samples: their ends are known to about one.
const MIN_INTERVALS: u64 = 20;

/// Bytes so far at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ByteSample {
    at_ns: u64,
    /// Received and sent.
    bytes: [u64; 2],
}

/// What an interface has counted, every so often.
#[derive(Debug)]
pub(super) struct Samples {
    all: Vec<ByteSample>,
    interval_ns: u64,
    is_thinned: bool,
}

impl Samples {
    /// None yet; they will be this far apart.
    pub(super) fn new(interval: Duration) -> Self {
        Samples { all: Vec::new(), interval_ns: interval.as_nanos() as u64, is_thinned: false }
    }

    /// Adds one. Of a long run they are thinned out.
    pub(super) fn add(&mut self, at_ns: u64, bytes: [u64; 2]) {
        if self.all.len() >= MAX_SAMPLES {
            let mut place = 0;
            self.all.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.interval_ns *= 2;
            self.is_thinned = true;
        }
        if let [.., before, last] = self.all.as_slice()
            && self.is_thinned
            && last.at_ns - before.at_ns < self.interval_ns
        {
            self.all.pop();
        }
        self.all.push(ByteSample { at_ns, bytes });
    }

    /// Bytes received and sent from the first sample to the last one.
    pub(super) fn count_bytes(&self) -> [u64; 2] {
        let Some(last) = self.all.last() else { return [0, 0] };
        let first = self.all[0];
        [0, 1].map(|direction| last.bytes[direction].saturating_sub(first.bytes[direction]))
    }

    /// Bits per second of the middle bytes in the direction that had more of them, or why it is not known. Between two
    /// samples bytes are taken as evenly spread.
    pub(super) fn rate(&self) -> Result<f64, String> {
        let carried = self.count_bytes();
        let direction = usize::from(carried[1] > carried[0]);
        let bytes = carried[direction] as f64;
        let first = self.all.first().filter(|_| carried[direction] > 0);
        let first = first.ok_or_else(|| "the interface carried no bytes".to_owned())?;
        let start = first.bytes[direction] as f64;
        let [from, to] =
            [LEFT_OUT, 1.0 - LEFT_OUT].map(|share| self.time_of(direction, start + share * bytes));
        let took_ns = to - from;
        let least_ns = MIN_INTERVALS * self.interval_ns;
        if took_ns < least_ns as f64 {
            return Err(format!(
                "its bytes took {:.1} ms, too short a time for a rate (expected at least {} ms)",
                took_ns / 1e6,
                least_ns / 1_000_000
            ));
        }
        Ok((1.0 - 2.0 * LEFT_OUT) * bytes * 8e9 / took_ns)
    }

    /// The time at which this number of bytes had been counted, nanoseconds.
    fn time_of(&self, direction: usize, count: f64) -> f64 {
        let place = self.all.partition_point(|sample| (sample.bytes[direction] as f64) < count);
        let after = self.all[place.min(self.all.len() - 1)];
        let before = self.all[place.saturating_sub(1)];
        let between = after.bytes[direction].saturating_sub(before.bytes[direction]) as f64;
        if between <= 0.0 {
            return after.at_ns as f64;
        }
        let share = (count - before.bytes[direction] as f64) / between;
        before.at_ns as f64 + share * after.at_ns.saturating_sub(before.at_ns) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(2);
    const INTERVAL_NS: u64 = 2_000_000;

    /// A client that waits, receives a megabyte in each of `busy` intervals, and waits again; `of` are its received and
    /// sent bytes.
    fn sample(busy: u64, of: impl Fn([u64; 2]) -> [u64; 2]) -> Samples {
        let mut samples = Samples::new(INTERVAL);
        for place in 0..busy + 100 {
            let bytes = 5_000 + 1_000_000 * place.saturating_sub(50).min(busy);
            samples.add(7 + place * INTERVAL_NS, of([bytes, 70 + place]));
        }
        samples
    }

    #[test]
    fn the_rate_is_that_of_the_middle_bytes() {
        let received = sample(500, |bytes| bytes);
        let found = received.rate().unwrap();
        assert!((found / 4e9 - 1.0).abs() < 1e-9, "{found}");
        assert_eq!(received.count_bytes(), [500_000_000, 599]);
        assert_eq!(sample(500, |[received, sent]| [sent, received]).rate(), Ok(found));
    }

    #[test]
    fn a_long_run_keeps_few_samples_and_its_rate() {
        let samples = sample(400_000, |bytes| bytes);
        assert!(samples.all.len() <= MAX_SAMPLES, "{}", samples.all.len());
        assert!(samples.all.is_sorted_by_key(|sample| sample.at_ns));
        assert_eq!(samples.count_bytes()[0], 400_000_000_000);
        let found = samples.rate().unwrap();
        assert!((found / 4e9 - 1.0).abs() < 1e-6, "{found}");
    }

    #[test]
    fn the_time_after_the_last_byte_does_not_count() {
        let mut samples = sample(30, |bytes| bytes);
        samples.all.truncate(50 + 30);
        let last = *samples.all.last().unwrap();
        // The end of the client, and what is under way then.
        samples.add(last.at_ns + 1_000_000, [last.bytes[0] + 500_000, 200]);
        samples.add(last.at_ns + 24_000_000, [last.bytes[0] + 500_100, 201]);
        let found = samples.rate().unwrap();
        assert!((found / 4e9 - 1.0).abs() < 0.05, "{found}");
    }

    #[test]
    fn what_took_no_time_has_no_rate() {
        assert!(sample(10, |bytes| bytes).rate().unwrap_err().contains("took 19.6 ms, too short"));
        assert!(sample(0, |bytes| bytes).rate().is_ok_and(|rate| rate < 1e4), "its other direction");
        assert!(Samples::new(INTERVAL).rate().unwrap_err().contains("no bytes"));
    }
}
