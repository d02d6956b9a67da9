//! How figures are written: how many decimals, in which unit, and aligned.

use stacklab_model::{Metric, Scale, Unit};

/// Printed where there is no figure.
pub(crate) const NONE: &str = "-";

/// The units in which a metric's figures are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DisplayUnit {
    /// Unit of a figure.
    pub unit: &'static str,
    /// Unit of a difference between two arms.
    pub difference_unit: &'static str,
    /// The factor for a figure in the metric's unit: shares are shown in per cent.
    pub factor: f64,
}

impl DisplayUnit {
    /// Of a metric.
    pub(crate) fn of(metric: Metric) -> Self {
        let (unit, factor) = match metric.unit() {
            Unit::Ratio => ("%", 100.0),
            Unit::Count => ("events", 1.0),
            Unit::PerMessage => ("events per message", 1.0),
            unit => (unit.symbol(), 1.0),
        };
        let difference_unit = match (metric.scale(), metric.unit()) {
            (Scale::Ratio, _) => "%",
            (Scale::Difference, Unit::Ratio | Unit::Percent) => "points",
            (Scale::Difference, _) => unit,
        };
        DisplayUnit { unit, difference_unit, factor }
    }

    /// A margin in the difference's unit.
    pub(crate) fn margin(&self, scale: Scale, margin: f64) -> f64 {
        match scale {
            Scale::Ratio => 100.0 * margin,
            Scale::Difference => self.factor * margin,
        }
    }

    /// An effect in the difference's unit: a ratio as per cent more or less, a difference unchanged.
    pub(crate) fn difference(&self, scale: Scale, effect: f64) -> f64 {
        match scale {
            Scale::Ratio => percent(effect),
            Scale::Difference => self.factor * effect,
        }
    }
}

/// A ratio as per cent more or less than 1.
pub(crate) fn percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

/// Decimals for a column of figures: the smallest gets four significant digits, unless the largest would get more
/// than six, or the smallest uncertainty more than two.
pub(crate) fn decimals(
    figures: impl Iterator<Item = f64>,
    uncertainties: impl Iterator<Item = f64>,
) -> usize {
    let Some((small, large)) = extent(figures) else { return 0 };
    let uncertain = extent(uncertainties).map_or(i32::MAX, |(small, _)| 2 - digits(small));
    (4 - digits(small)).min(6 - digits(large)).min(uncertain).clamp(0, 6) as usize
}

/// The smallest and the largest figure by magnitude, zeros left out.
fn extent(figures: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let magnitudes = figures.map(f64::abs).filter(|figure| *figure > 0.0 && figure.is_finite());
    magnitudes
        .map(|figure| (figure, figure))
        .reduce(|(low, high), (figure, _)| (low.min(figure), high.max(figure)))
}

/// Decimals for a column of differences: two if an interval is narrower than a tenth either way, otherwise one.
pub(crate) fn difference_decimals(half_widths: impl IntoIterator<Item = f64>) -> usize {
    if half_widths.into_iter().any(|half_width| half_width < 0.1) { 2 } else { 1 }
}

/// Digits before the decimal point; 0 for 0.1 to 1, less for less.
fn digits(figure: f64) -> i32 {
    figure.log10().floor() as i32 + 1
}

/// With this many decimals; no minus before a zero, an exponent for large figures.
pub(crate) fn fixed(figure: f64, decimals: usize) -> String {
    if !figure.is_finite() {
        return NONE.to_owned();
    }
    if figure.abs() >= 1e9 {
        return format!("{figure:.3e}");
    }
    let text = format!("{figure:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.chars().all(|c| matches!(c, '0' | '.')) => zero.to_owned(),
        _ => text,
    }
}

/// The same with a plus before positive figures.
pub(crate) fn signed(figure: f64, decimals: usize) -> String {
    let text = fixed(figure, decimals);
    let positive = figure > 0.0 && text.chars().any(|c| matches!(c, '1'..='9'));
    if positive { format!("+{text}") } else { text }
}

/// A p-value with no more digits than readers need.
pub(crate) fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// From the smallest to the largest, `3.1` or `1.2 to 4.0`; empty without figures.
pub(crate) fn range(figures: &[f64], write: impl Fn(f64, usize) -> String) -> String {
    let Some(low) = figures.iter().copied().reduce(f64::min) else { return String::new() };
    let high = figures.iter().copied().fold(low, f64::max);
    let largest = low.abs().max(high.abs());
    let decimals = if largest >= 100.0 {
        0
    } else if largest >= 1.0 {
        1
    } else {
        2
    };
    let (low, high) = (write(low, decimals), write(high, decimals));
    if low == high { low } else { format!("{low} to {high}") }
}

/// Concatenates the parts of each row, each padded to the width of its column, to align decimal points.
pub(crate) fn aligned<const N: usize>(rows: &[Option<[String; N]>]) -> Vec<Option<String>> {
    let width = |part: usize| rows.iter().flatten().map(|row| row[part].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    rows.iter()
        .map(|row| {
            let parts = row.as_ref()?.iter().zip(widths).map(|(part, width)| format!("{part:>width$}"));
            Some(parts.collect::<String>())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_figure_gets_four_digits_and_the_largest_no_more_than_six() {
        let exact = |figures: &[f64]| decimals(figures.iter().copied(), [0.0].into_iter());
        assert_eq!(exact(&[58.72, 95.1]), 2);
        assert_eq!(exact(&[81_274.0, 1_488_095.0]), 0);
        assert_eq!(exact(&[0.0451, 0.12]), 5);
        assert_eq!(exact(&[0.00031, 40.0]), 4);
        assert_eq!(exact(&[0.0, 0.0]), 0);
        assert_eq!(exact(&[]), 0);
    }

    #[test]
    fn no_digits_are_shown_that_the_uncertainty_does_not_bear() {
        let decimals =
            |figure: f64, uncertainty: f64| decimals([figure].into_iter(), [uncertainty].into_iter());
        assert_eq!(decimals(2.15, 0.31), 2);
        assert_eq!(decimals(61.2, 4.4), 1);
        assert_eq!(decimals(612.0, 44.0), 0);
        assert_eq!(decimals(57.31, 0.0004), 2);
    }

    #[test]
    fn zero_has_no_sign_and_what_is_not_a_number_is_not_printed() {
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(
            (signed(-0.001, 2), signed(0.001, 2), signed(0.006, 2)),
            ("0.00".into(), "0.00".into(), "+0.01".into())
        );
        assert_eq!(signed(-3.12, 1), "-3.1");
        assert_eq!(fixed(f64::NAN, 2), "-");
        assert_eq!(signed(f64::INFINITY, 2), "-");
        assert_eq!(fixed(1e300, 2), "1.000e300");
    }

    #[test]
    fn a_range_of_one_is_a_figure() {
        assert_eq!(range(&[3.13, 3.12], fixed), "3.1");
        assert_eq!(range(&[4.04, 1.23], fixed), "1.2 to 4.0");
        assert_eq!(range(&[-9.3, 0.2], signed), "-9.3 to +0.2");
        assert_eq!(range(&[0.012, 0.034], fixed), "0.01 to 0.03");
        assert_eq!(range(&[], fixed), "");
    }

    #[test]
    fn parts_stand_below_parts() {
        let rows =
            [Some(["9.1".to_owned(), " ± 10.2".to_owned()]), None, Some(["12.0".into(), " ± 0.1".into()])];
        assert_eq!(aligned(&rows), [Some(" 9.1 ± 10.2".to_owned()), None, Some("12.0  ± 0.1".to_owned())]);
    }

    #[test]
    fn shares_are_shown_in_per_cent_and_their_differences_in_points() {
        let loss = DisplayUnit::of(Metric::Loss);
        assert_eq!((loss.unit, loss.difference_unit), ("%", "points"));
        assert_eq!(loss.difference(Scale::Difference, 0.015), 1.5);
        assert_eq!((loss.margin(Scale::Difference, 0.001), loss.margin(Scale::Ratio, 0.02)), (0.1, 2.0));
        let rtt = DisplayUnit::of(Metric::Rtt);
        assert_eq!((rtt.unit, rtt.difference_unit, rtt.factor), ("ms", "%", 1.0));
        assert_eq!(DisplayUnit::of(Metric::Stalls).difference_unit, "events");
        assert_eq!(DisplayUnit::of(Metric::Retransmits).difference_unit, "events per message");
        let efficiency = DisplayUnit::of(Metric::TcpEfficiency);
        assert_eq!((efficiency.unit, efficiency.difference_unit, efficiency.factor), ("%", "points", 1.0));
        let engine = DisplayUnit::of(Metric::CpuEngineSender);
        assert_eq!((engine.unit, engine.difference_unit), ("% of a core", "% of a core"));
        assert_eq!(DisplayUnit::of(Metric::Ttr).difference_unit, "%");
    }
}
