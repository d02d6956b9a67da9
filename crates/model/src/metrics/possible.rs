//! What figures of a metric can be, whatever a t interval of few runs says.

use crate::{Effect, Interval, Metric, Scale, Unit};

/// By which part of the whole a share may be wrong, as tools print it.
const ROUNDING: f64 = 0.01;

impl Metric {
    /// The range of its figures: shares lie between none and all, and most other figures are not negative.
    pub fn possible_figures(self) -> Interval {
        if self.can_be_negative() {
            return Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let high = match self.unit() {
            // A message may arrive many times.
            _ if self == Metric::Duplicate => f64::INFINITY,
            Unit::Ratio => 1.0,
            Unit::Percent => 100.0,
            _ => f64::INFINITY,
        };
        Interval { low: 0.0, high }
    }

    /// Whether it can have this figure: shares lie between none and all, but for rounding. Others may be below zero, by
    /// clocks that differ.
    pub fn can_be(self, figure: f64) -> bool {
        let Interval { low, high } = self.possible_figures();
        let rounding = ROUNDING * high;
        !high.is_finite() || (low - rounding..=high + rounding).contains(&figure)
    }

    /// The range of effects on its scale: two shares are no more than 1 apart, and a ratio is not negative.
    pub fn possible_effects(self) -> Interval {
        let Interval { low, high } = self.possible_figures();
        match self.scale() {
            Scale::Ratio => Interval { low: 0.0, high: f64::INFINITY },
            Scale::Difference => Interval { low: low - high, high: high - low },
        }
    }
}

impl Interval {
    /// The part of it that is possible. The truth is there too, so it is held as often as before.
    pub fn clip_to(self, possible: Interval) -> Self {
        let Interval { low, high } = possible;
        Interval { low: self.low.clamp(low, high), high: self.high.clamp(low, high) }
    }
}

impl Effect {
    /// The same with intervals that are possible for a metric.
    pub fn clip_to_possible(self, metric: Metric) -> Self {
        let possible = metric.possible_effects();
        Effect {
            interval90: self.interval90.clip_to(possible),
            interval95: self.interval95.clip_to(possible),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clip(possible: Interval, low: f64, high: f64) -> (f64, f64) {
        let Interval { low, high } = Interval { low, high }.clip_to(possible);
        (low, high)
    }

    #[test]
    fn shares_are_between_none_and_all() {
        assert_eq!(clip(Metric::Loss.possible_figures(), -1.149, 1.507), (0.0, 1.0));
        assert_eq!(clip(Metric::TcpEfficiency.possible_figures(), 80.0, 120.0), (80.0, 100.0));
        assert_eq!(clip(Metric::Throughput.possible_figures(), -20.0, 26.0), (0.0, 26.0));
        assert_eq!(clip(Metric::Duplicate.possible_figures(), -0.5, 2.0), (0.0, 2.0));
        assert_eq!(clip(Metric::PacingError.possible_figures(), -0.5, 2.0), (-0.5, 2.0));
    }

    #[test]
    fn share_above_all_cannot_be() {
        for (metric, figure, can_be) in [
            (Metric::EchoLoss, 7.0, false),
            (Metric::EchoLoss, 1.0, true),
            (Metric::Loss, -0.5, false),
            (Metric::TcpEfficiency, 100.4, true),
            (Metric::TcpEfficiency, 120.0, false),
            (Metric::Duplicate, 7.0, true),
            (Metric::OneWayDelay, -3.0, true),
        ] {
            assert_eq!(metric.can_be(figure), can_be, "{metric} {figure}");
        }
    }

    #[test]
    fn shares_are_no_more_than_all_apart() {
        assert_eq!(clip(Metric::Loss.possible_effects(), -1.547, 1.196), (-1.0, 1.0));
        assert_eq!(clip(Metric::TcpEfficiency.possible_effects(), -154.7, 9.0), (-100.0, 9.0));
        assert_eq!(clip(Metric::Stalls.possible_effects(), -20.0, 20.0), (-20.0, 20.0));
        assert_eq!(clip(Metric::Throughput.possible_effects(), 0.5, 2.0), (0.5, 2.0));
        assert_eq!(clip(Metric::BufferDelay.possible_effects(), -300.0, 300.0), (-300.0, 300.0));
    }
}
