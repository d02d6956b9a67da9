//! Cumulative sums: when a series of figures has left the level that it had (Page 1954).

use crate::statistics::median;

/// Figures from which level and spread are taken.
const BASELINE: usize = 20;
/// The slack, in standard deviations: shifts of twice as much are found soonest.
const SLACK: f64 = 0.5;
/// The sum, in standard deviations, at which the series has drifted: a false alarm about every 930 figures.
const THRESHOLD: f64 = 5.0;

/// A drift of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// The level before.
    pub level: f64,
    /// How far the figures since the sum began to grow are from it, on average.
    pub by: f64,
    /// Figures since then.
    pub since: usize,
}

/// Two sums, of what is above and what is below the level. After a drift it learns the new level.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cusum {
    baseline: Vec<f64>,
    /// Level and standard deviation, once known.
    known: Option<(f64, f64)>,
    high: Sum,
    low: Sum,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sum {
    sum: f64,
    total: f64,
    count: usize,
}

impl Sum {
    /// Adds a distance in standard deviations; whether the sum is beyond the threshold.
    fn add(&mut self, distance: f64) -> bool {
        self.sum += distance - SLACK;
        if self.sum <= 0.0 {
            *self = Sum::default();
            return false;
        }
        (self.total, self.count) = (self.total + distance, self.count + 1);
        self.sum > THRESHOLD
    }
}

impl Cusum {
    /// The next figure; the drift that it completes. Figures that are not finite are left out.
    pub fn next(&mut self, figure: f64) -> Option<Drift> {
        if !figure.is_finite() {
            return None;
        }
        let Some((level, sd)) = self.known else {
            self.baseline.push(figure);
            if self.baseline.len() == BASELINE {
                self.known = Some(level_of(&self.baseline));
            }
            return None;
        };
        let distance = (figure - level) / sd;
        let above = self.high.add(distance);
        let below = self.low.add(-distance);
        if !above && !below {
            return None;
        }
        let (sum, sign) = if above { (self.high, 1.0) } else { (self.low, -1.0) };
        *self = Cusum::default();
        Some(Drift { level, by: sign * sum.total / sum.count as f64 * sd, since: sum.count })
    }

    /// Whether level and spread are known.
    pub fn is_ready(&self) -> bool {
        self.known.is_some()
    }
}

/// Median, and the standard deviation by the median absolute deviation: one wild figure does not hide a drift.
fn level_of(figures: &[f64]) -> (f64, f64) {
    let level = median(figures).unwrap_or_default();
    let apart: Vec<f64> = figures.iter().map(|figure| (figure - level).abs()).collect();
    let sd = median(&apart).unwrap_or_default() * 1.4826;
    // Figures that are all alike: any other one has drifted.
    (level, sd.max(level.abs() * 1e-6).max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures with mean 0 and standard deviation 1, always the same: sums of twelve uniform ones.
    fn noise() -> impl Iterator<Item = f64> {
        let mut state = 7_u64;
        std::iter::from_fn(move || {
            let mut sum = 0.0;
            for _ in 0..12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                sum += (state >> 11) as f64 / (1_u64 << 53) as f64;
            }
            Some(sum - 6.0)
        })
    }

    #[test]
    fn a_shift_is_found_with_its_direction_and_size() {
        for shift in [-3.0, 3.0] {
            let mut cusum = Cusum::default();
            let found = noise()
                .take(40)
                .enumerate()
                .filter_map(|(place, noise)| {
                    let figure = 10.0 + noise * 0.1 + if place >= 25 { shift * 0.1 } else { 0.0 };
                    cusum.next(figure).map(|drift| (place, drift))
                })
                .next()
                .expect("the series has a shift");
            assert!((25..33).contains(&found.0), "{found:?}");
            assert!(
                (found.1.level - 10.0).abs() < 0.1 && (found.1.by - shift * 0.1).abs() < 0.15,
                "{found:?}"
            );
        }
    }

    #[test]
    fn noise_seldom_alarms_and_an_outlier_hides_no_drift() {
        let mut cusum = Cusum::default();
        let alarms = noise().take(2_000).filter_map(|figure| cusum.next(figure)).count();
        assert!(alarms <= 20, "{alarms}");
        let mut cusum = Cusum::default();
        let mut figures: Vec<f64> = noise().take(60).collect();
        figures[3] = 1_000.0;
        figures[30..].iter_mut().for_each(|figure| *figure += 5.0);
        assert!(figures.into_iter().filter_map(|figure| cusum.next(figure)).count() >= 1);
    }

    #[test]
    fn equal_figures_do_not_drift_until_one_differs() {
        let mut cusum = Cusum::default();
        assert!((0..100).all(|_| cusum.next(2.0).is_none()) && cusum.is_ready());
        assert_eq!(cusum.next(f64::NAN), None);
        assert!(cusum.next(2.1).is_some_and(|drift| drift.by > 0.0));
        assert!(!cusum.is_ready(), "it learns the new level");
    }
}
