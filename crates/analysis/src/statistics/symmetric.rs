//! E-values that assume nothing of figures but that they lie symmetrically about their null value: noise in two states,
//! which Student's t takes for no noise at all when nearly all figures are of one state, does not deceive them.

use crate::statistics::growing::GrowingMedian;

/// How much is bet on the sign of a figure.
const BETS: [f64; 4] = [0.3, 0.6, 1.2, 3.0];
/// Beyond this many robust standard deviations a figure counts no more.
const MAX_SCORE: f64 = 1.5;
/// Median absolute deviation of normal figures, in standard deviations.
const MAD_OF_NORMAL: f64 = 0.6745;

/// E-values against "figures are symmetric about 0", of figures that are added one by one.
///
/// Given their absolute values, the signs are then fair coins. For odd scores s of figures, the mean over bets b of
/// `product exp(b s) / cosh(b s)` has an expectation of at most 1 whenever it is looked at. A score is the figure in
/// robust standard deviations of the figures until then, limited: so one more figure changes no earlier score.
#[derive(Debug, Clone, Default)]
pub(crate) struct SymmetricBets {
    sizes: GrowingMedian,
    /// The logarithm of what each bet has won, on figures above 0 and on figures below.
    above: [f64; BETS.len()],
    below: [f64; BETS.len()],
}

impl SymmetricBets {
    pub(crate) fn add(&mut self, figure: f64) {
        let size = figure.abs();
        if size == 0.0 {
            return;
        }
        let median = self.sizes.add(size);
        let score = (MAD_OF_NORMAL * figure / median).clamp(-MAX_SCORE, MAX_SCORE);
        for (number, bet) in BETS.into_iter().enumerate() {
            let stake = bet * score;
            let price = stake.cosh().ln();
            self.above[number] += stake - price;
            self.below[number] += -stake - price;
        }
    }

    /// Against "figures are symmetric about 0", in either direction.
    pub(crate) fn e_value(&self) -> f64 {
        (mean_bet(&self.above) + mean_bet(&self.below)) / 2.0
    }

    /// Against "figures are symmetric about 0 or less".
    pub(crate) fn e_value_above(&self) -> f64 {
        mean_bet(&self.above)
    }
}

fn mean_bet(logarithms: &[f64]) -> f64 {
    let sum: f64 = logarithms.iter().map(|log| log.exp()).sum();
    sum / BETS.len() as f64
}

/// [`SymmetricBets::e_value`] of all figures together.
pub(crate) fn symmetric_e_value(figures: &[f64]) -> f64 {
    bet_on(figures).e_value()
}

/// [`SymmetricBets::e_value_above`] of all figures together.
pub(crate) fn symmetric_e_value_above(figures: &[f64]) -> f64 {
    bet_on(figures).e_value_above()
}

fn bet_on(figures: &[f64]) -> SymmetricBets {
    let mut bets = SymmetricBets::default();
    figures.iter().for_each(|figure| bets.add(*figure));
    bets
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::SplitMix64;

    #[test]
    fn same_signs_add_up() {
        // exp(b s) / cosh(b s) with s = 0.6745, eight times, for 0.3, 0.6, 1.2 and 3.
        let found = symmetric_e_value_above(&[0.02; 8]);
        let all = BETS.map(|bet| (2.0 / (1.0 + (-2.0 * bet * MAD_OF_NORMAL).exp())).powi(8));
        let expected = all.iter().sum::<f64>() / 4.0;
        assert!((found - expected).abs() < 1e-9 && found > 70.0, "{found}");
        assert!(symmetric_e_value(&[0.02; 8]) > 35.0);
        assert!(symmetric_e_value_above(&[-0.02; 8]) < 0.5);
        assert_eq!(symmetric_e_value(&[0.0; 8]), 1.0);
    }

    #[test]
    fn two_states_rarely_reach_ten() {
        let mut random = 7_u64;
        let mut reached = 0;
        for _ in 0..2000 {
            let mut figures = Vec::new();
            let mut is_reached = false;
            for _ in 0..40 {
                random = SplitMix64::mix(random);
                let state = if random & 1 == 0 { 1.0 } else { -1.0 };
                figures.push(state + 0.1 * ((random >> 11) as f64 / (1_u64 << 53) as f64 - 0.5));
                is_reached |= symmetric_e_value(&figures) >= 10.0;
            }
            reached += usize::from(is_reached);
        }
        // One in ten is the promise; three standard errors are 2 %.
        assert!(reached < 240, "{reached} of 2000");
    }
}
