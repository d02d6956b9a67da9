//! Two one-sided tests of whether the mean is inside a margin.

use super::mean::upper_tail;
use crate::statistics::moments::Moments;
use stacklab_model::Interval;

/// The test's result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equivalence {
    /// The larger of the two one-sided p-values, which is the p of the test.
    pub p: f64,
    /// The 90 % interval of the mean, in the unit of the figures: inside the margin if p is at most 0.05.
    pub interval90: Interval,
    /// Whether it is inside the margin.
    pub equivalent: bool,
}

/// Tests at 5 % whether the mean of the figures is inside the margin (in their unit). `None` with fewer than two
/// figures.
///
/// Source: Schuirmann (1987).
pub fn equivalence(figures: &[f64], margin: &Interval) -> Option<Equivalence> {
    Some(equivalence_of(&Moments::of(figures)?, margin))
}

/// The same from the mean and spread of figures.
pub(crate) fn equivalence_of(moments: &Moments, margin: &Interval) -> Equivalence {
    let error = moments.error();
    let beyond = |distance: f64| match (error > 0.0, distance >= 0.0) {
        (true, _) => upper_tail(distance / error, (moments.n - 1) as f64),
        (false, true) => 0.0,
        (false, false) => 1.0,
    };
    let interval90 = moments.interval(0.90);
    Equivalence {
        p: beyond(moments.mean - margin.low).max(beyond(margin.high - moments.mean)),
        interval90,
        equivalent: interval90.is_within(margin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_without_spread_are_inside_or_not() {
        let margin = Interval { low: -1.0, high: 1.0 };
        let found = equivalence(&[0.5; 3], &margin).unwrap();
        assert_eq!((found.p, found.equivalent), (0.0, true));
        let found = equivalence(&[1.5; 3], &margin).unwrap();
        assert_eq!((found.p, found.equivalent), (1.0, false));
        assert_eq!(equivalence(&[1.5], &margin), None);
    }
}
