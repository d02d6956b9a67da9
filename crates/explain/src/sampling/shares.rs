//! What samples stand for.

/// Times of a clock of one processor, one after the other, and what a sample of each stands for.
#[derive(Default)]
pub(crate) struct Shares(Vec<Share>);

struct Share {
    to_ns: u64,
    elapsed_ns: u64,
    samples: u64,
}

impl Shares {
    /// Adds a time that ends now, of samples of one period. The rest after its last sample has none, as a clock begins
    /// anew when a period is set: the others stand for it.
    pub(crate) fn add(&mut self, elapsed_ns: u64, period_ns: u64, to_ns: u64) {
        let samples = elapsed_ns / period_ns;
        match self.0.last_mut() {
            // Too short for a sample: those beside it stand for it.
            Some(last) if samples == 0 || last.samples == 0 => {
                (last.to_ns, last.elapsed_ns) = (to_ns, last.elapsed_ns + elapsed_ns);
                last.samples += samples;
            }
            _ => self.0.push(Share { to_ns, elapsed_ns, samples }),
        }
    }

    /// Nanoseconds that a sample at this time stands for, where this many clocks sample all of the processor's time; 0
    /// after the last time.
    pub(crate) fn of(&self, time_ns: u64, clocks: u64) -> u64 {
        let share = self.0.get(self.0.partition_point(|share| share.to_ns <= time_ns));
        share.and_then(|share| share.elapsed_ns.checked_div(share.samples * clocks)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_for_all_of_the_time_also_where_it_is_too_short_for_one() {
        let mut shares = Shares::default();
        shares.add(500, 1_000, 500);
        shares.add(4_500, 1_000, 5_000);
        shares.add(3_000, 700, 8_000);
        shares.add(600, 1_000, 8_600);
        let found = [100, 4_999, 5_000, 8_599, 8_600].map(|time_ns| shares.of(time_ns, 1));
        assert_eq!(found, [1_250, 1_250, 900, 900, 0]);
        // Two clocks sample the same time.
        assert_eq!(shares.of(100, 2), 625);
        // Four samples, then four.
        assert_eq!(4 * found[0] + 4 * found[2], 8_600);
    }
}
