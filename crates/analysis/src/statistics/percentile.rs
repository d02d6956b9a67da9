//! Percentiles by nearest rank; `None` if there are too few figures.

use super::median::sorted;

/// Confidence that the percentile is between the smallest and the largest figure.
const CONFIDENCE: f64 = 0.95;

/// The smallest figure with at least a share `p` (0 to 1) of all figures at or below it (RFC 2330 section 11.3).
/// `None` without figures.
pub fn nearest_rank(figures: &[f64], p: f64) -> Option<f64> {
    let sorted = sorted(figures);
    // A product such as 0.07 * 100 exceeds the integer by a rounding error.
    let rank = (p * sorted.len() as f64 - 1e-9).ceil().max(1.0) as usize;
    sorted.get(rank - 1).or(sorted.last()).copied()
}

/// Minimum number of figures for estimating the percentile: with 95 % confidence, one figure is beyond it. 299 for
/// p99 and p1, 2995 for p99.9, 5 for the median. `p` is between 0 and 1, both excluded.
pub fn fewest_for(p: f64) -> usize {
    ((1.0 - CONFIDENCE).ln() / p.max(1.0 - p).ln()).ceil() as usize
}

/// The percentile by nearest rank, in the unit of the figures.
///
/// # Errors
/// States the number of figures and the number required.
pub fn percentile(figures: &[f64], p: f64) -> Result<f64, String> {
    let fewest = fewest_for(p);
    match nearest_rank(figures, p) {
        Some(found) if figures.len() >= fewest => Ok(found),
        _ => Err(format!("{} figures do not estimate p{}; it takes {fewest}", figures.len(), percent(p))),
    }
}

fn percent(p: f64) -> f64 {
    (p * 1e8).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_2330_section_11_3() {
        let figures = [-2.0, 7.0, 7.0, 4.0, 18.0, -5.0];
        for (p, expected) in [(0.0, -5.0), (0.25, -2.0), (0.5, 4.0), (0.51, 7.0), (1.0, 18.0)] {
            assert_eq!(nearest_rank(&figures, p), Some(expected), "{p}");
        }
        assert_eq!(nearest_rank(&[], 0.5), None);
    }

    #[test]
    fn a_rank_that_is_a_whole_number_is_not_rounded_up() {
        let figures: Vec<f64> = (1..=100).map(f64::from).collect();
        for p in 1..=100 {
            assert_eq!(nearest_rank(&figures, f64::from(p) / 100.0), Some(f64::from(p)));
        }
    }

    #[test]
    fn too_few_figures_are_refused() {
        for (p, fewest) in [(0.5, 5), (0.9, 29), (0.99, 299), (0.01, 299), (0.999, 2995), (0.9999, 29956)] {
            assert_eq!(fewest_for(p), fewest, "{p}");
        }
        let figures: Vec<f64> = (1..=299).map(f64::from).collect();
        assert_eq!(percentile(&figures, 0.99), Ok(297.0));
        let error = percentile(&figures[1..], 0.99).unwrap_err();
        assert_eq!(error, "298 figures do not estimate p99; it takes 299");
        assert!(percentile(&figures, 0.999).unwrap_err().contains("p99.9; it takes 2995"));
    }
}
