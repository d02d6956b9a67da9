//! The warm-up of a series, by the marginal standard error rule (MSER-5).

use crate::statistics::moments::mean;

/// Number of figures in a batch.
const BATCH: usize = 5;

/// Number of batches at the end that are never cut: so few may be equal by chance, and would then have zero error.
const KEPT_BATCHES: usize = 5;

/// The warm-up of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warmup {
    /// Number of figures at the start that are warm-up (a multiple of 5, perhaps 0); the rest is steady.
    Cut(usize),
    /// The best cut is in the second half: the series never reached a steady state.
    Unsettled,
    /// Fewer than 30 figures: too few to test.
    TooShort,
}

/// MSER-5: chooses the cut, in batches of five, that minimises the standard error of the mean of the rest. An
/// incomplete last batch is ignored.
///
/// Source: White, Cobb and Spratt (2000); a cut in the second half is no cut (Hoad, Robinson and Davies 2008).
pub fn mser5(series: &[f64]) -> Warmup {
    let batches: Vec<f64> = series.chunks_exact(BATCH).filter_map(mean).collect();
    if batches.len() <= KEPT_BATCHES {
        return Warmup::TooShort;
    }
    let error = |cut: usize| {
        let rest = &batches[cut..];
        let middle = mean(rest).unwrap_or(0.0);
        rest.iter().map(|batch| (batch - middle).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    let cuts = 0..=batches.len() - KEPT_BATCHES;
    let best = cuts.min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap_or(0);
    if best > batches.len() / 2 { Warmup::Unsettled } else { Warmup::Cut(best * BATCH) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A steady series with a small ripple.
    fn ripple(n: usize) -> Vec<f64> {
        (0..n).map(|i| 100.0 + [0.0, 1.0, -1.0, 0.5, -0.5, 0.8, -0.9][i % 7]).collect()
    }

    #[test]
    fn a_ramp_before_a_steady_series_is_cut() {
        let mut series = ripple(100);
        for (place, figure) in series.iter_mut().take(12).enumerate() {
            *figure -= 60.0 - 5.0 * place as f64;
        }
        let Warmup::Cut(cut) = mser5(&series) else { panic!("it settles") };
        assert!((15..=20).contains(&cut), "the ramp, and at most a batch of the ripple: {cut}");
    }

    #[test]
    fn a_steady_series_loses_little() {
        let Warmup::Cut(cut) = mser5(&ripple(140)) else { panic!("steady") };
        assert!(cut <= 35, "{cut}");
        assert_eq!(mser5(&[7.0; 40]), Warmup::Cut(0));
    }

    #[test]
    fn a_series_that_only_rises_never_settles() {
        let series: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(mser5(&series), Warmup::Unsettled);
        assert_eq!(mser5(&series[..29]), Warmup::TooShort);
    }
}
