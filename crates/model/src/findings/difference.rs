//! The formulas for the difference of two figures that published studies use without naming them.

use crate::names::named;

named! {
    /// A formula for the difference of two figures.
    pub enum Difference("difference") {
        /// Per cent of the mean of both: `200 * abs(a - b) / (a + b)`.
        Symmetric = "symmetric",
        /// Per cent of the lower figure.
        Lower = "lower",
        /// Per cent of the higher figure.
        Higher = "higher",
        /// The absolute difference, in the figures' own unit.
        Points = "points",
    }
}

impl Difference {
    /// The difference of two figures, never negative; `None` if the formula divides by zero.
    pub fn of(self, a: f64, b: f64) -> Option<f64> {
        let apart = (a - b).abs();
        let difference = match self {
            Difference::Symmetric => 200.0 * apart / (a + b),
            Difference::Lower => 100.0 * apart / a.min(b),
            Difference::Higher => 100.0 * apart / a.max(b),
            Difference::Points => apart,
        };
        difference.is_finite().then_some(difference)
    }

    /// The formula in a few words.
    pub fn definition(self) -> &'static str {
        match self {
            Difference::Symmetric => "200 * abs(a - b) / (a + b), per cent",
            Difference::Lower => "per cent of the lower figure",
            Difference::Higher => "per cent of the higher figure",
            Difference::Points => "absolute difference, in the unit of the figures",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_formula_is_what_its_name_says_whichever_figure_comes_first() {
        for (a, b) in [(75.0, 100.0), (100.0, 75.0)] {
            let found = Difference::ALL.iter().map(|formula| formula.of(a, b).unwrap()).collect::<Vec<_>>();
            for (found, expected) in found.into_iter().zip([200.0 / 7.0, 100.0 / 3.0, 25.0, 25.0]) {
                assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
            }
        }
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        assert_eq!(Difference::Lower.of(0.0, 5.0), None);
        assert_eq!(Difference::Symmetric.of(0.0, 0.0), None);
        assert_eq!(Difference::Points.of(0.0, 5.0), Some(5.0));
    }
}
