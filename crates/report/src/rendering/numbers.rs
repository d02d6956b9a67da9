//! How figures are written: how many decimals, in which unit, and aligned.

pub(crate) use crate::rendering::distance::{
    Distance, TOO_WIDE, difference_decimals, difference_heading, difference_places, differences,
};
use stacklab_model::{Metric, Scale, Unit};

pub(crate) const NONE: &str = "-";

/// The units in which a metric's figures are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DisplayUnit {
    pub unit: &'static str,
    pub difference_unit: &'static str,
    /// The factor for a figure in the metric's unit: shares are shown in per cent.
    pub factor: f64,
}

impl DisplayUnit {
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

    /// Of figures of a metric, given in its unit: microseconds where all are below a millisecond, Gbit/s where most of
    /// the figures are above 1000 Mbit/s, so that a table has figures of a few digits.
    pub(crate) fn fitting(metric: Metric, figures: impl Iterator<Item = f64>) -> Self {
        let usual = DisplayUnit::of(metric);
        let Some((small, large)) = extent(figures) else { return usual };
        let (unit, factor) = match metric.unit() {
            Unit::Millisecond if large < 1.0 => ("us", 1000.0),
            Unit::Millisecond if small >= 1000.0 => ("s", 0.001),
            Unit::MegabitPerSecond if large >= 1000.0 && small >= 100.0 => ("Gbit/s", 0.001),
            Unit::Nanosecond if small >= 10_000.0 => ("us", 0.001),
            Unit::Kibibyte if small >= 1024.0 => ("MiB", 1.0 / 1024.0),
            _ => return usual,
        };
        let difference_unit = if metric.scale() == Scale::Ratio { "%" } else { unit };
        DisplayUnit { unit, difference_unit, factor }
    }

    /// Of differences on this scale: one that fits them unless they are ratios.
    pub(crate) fn of_differences(metric: Metric, scale: Scale, ends: impl Iterator<Item = f64>) -> Self {
        match scale {
            Scale::Ratio => DisplayUnit::of(metric),
            Scale::Difference => DisplayUnit::fitting(metric, ends),
        }
    }

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

/// A figure alone, in a unit that fits it: `9.1 us`, `2.38 Gbit/s`.
pub fn figure_text(metric: Metric, figure: f64) -> String {
    let shown = DisplayUnit::fitting(metric, std::iter::once(figure));
    format!("{} {}", significant(shown.factor * figure, 3), shown.unit)
}

/// A ratio as per cent more or less than 1.
pub(crate) fn percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

/// With this many significant digits, and all digits before the decimal point.
pub(crate) fn significant(figure: f64, count: i32) -> String {
    let decimals =
        if figure == 0.0 || !figure.is_finite() { 0 } else { (count - digits(figure.abs())).clamp(0, 9) };
    format_decimals(figure, decimals as usize)
}

/// Decimals for a column of figures: the smallest gets three significant digits, unless the largest would get more
/// than five, or the smallest uncertainty more than two. One more where that uncertainty would be printed as zero.
pub(crate) fn decimals(
    figures: impl Iterator<Item = f64>,
    uncertainties: impl Iterator<Item = f64>,
) -> usize {
    let Some((small, large)) = extent(figures) else { return 0 };
    let uncertain = extent(uncertainties).map(|(small, _)| digits(small));
    let places = (3 - digits(small)).min(5 - digits(large)).max(0);
    let is_zero = uncertain.is_some_and(|digits| -digits == places);
    let bearing = uncertain.map_or(i32::MAX, |digits| 2 - digits);
    (places + i32::from(is_zero)).min(bearing).clamp(0, 6) as usize
}

/// The smallest and the largest figure by magnitude, zeros left out.
fn extent(figures: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let magnitudes = figures.map(f64::abs).filter(|figure| *figure > 0.0 && figure.is_finite());
    magnitudes
        .map(|figure| (figure, figure))
        .reduce(|(low, high), (figure, _)| (low.min(figure), high.max(figure)))
}

/// Digits before the decimal point; 0 for 0.1 to 1, less for less.
fn digits(figure: f64) -> i32 {
    figure.log10().floor() as i32 + 1
}

/// With this many decimals; no minus before a zero, an exponent for large figures.
pub(crate) fn format_decimals(figure: f64, decimals: usize) -> String {
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
pub(crate) fn format_with_sign(figure: f64, decimals: usize) -> String {
    let text = format_decimals(figure, decimals);
    let positive = figure > 0.0 && text.chars().any(|c| matches!(c, '1'..='9'));
    if positive { format!("+{text}") } else { text }
}

/// A ratio of more than this is said as a factor.
const FACTOR_FROM: f64 = 2.0;
/// Less of a difference in per cent is not printed: no measurement is so precise.
const MIN_PERCENT: f64 = 0.0005;

pub(crate) fn is_factor(scale: Scale, ratio: f64) -> bool {
    scale == Scale::Ratio && ratio > FACTOR_FROM
}

/// `15.7x`.
pub(crate) fn factor(ratio: f64) -> String {
    format!("{}x", significant(ratio, 3))
}

pub(crate) fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// From the smallest to the largest, `3.1` or `1.2 to 4.0`; empty without figures.
pub(crate) fn range(figures: &[f64], write: impl Fn(f64, usize) -> String) -> String {
    let Some(low) = figures.iter().copied().reduce(f64::min) else { return String::new() };
    let high = figures.iter().copied().fold(low, f64::max);
    let largest = low.abs().max(high.abs());
    let decimals = match largest {
        100.0.. => 0,
        1.0.. => 1,
        _ if largest < 0.01 && largest > 0.0 => (1 - digits(largest)).min(9) as usize,
        _ => 2,
    };
    let [low, high] = [low, high].map(|figure| write(figure, decimals));
    if low == high { low } else { format!("{low} to {high}") }
}

/// Per cent, from the smallest to the largest, or `nothing`: no digit is left of a ratio that is computed.
pub(crate) fn percent_range(percents: &[f64]) -> String {
    if percents.iter().all(|percent| percent.abs() < MIN_PERCENT) {
        return "nothing".to_owned();
    }
    format!("{} %", range(percents, format_with_sign))
}

/// Concatenates the parts of each row, each padded to the width of its column, to align decimal points.
pub(crate) fn align_columns<const N: usize>(rows: &[Option<[String; N]>]) -> Vec<Option<String>> {
    let mut widths = [0; N];
    for row in rows.iter().flatten() {
        for (width, part) in widths.iter_mut().zip(row) {
            *width = part.chars().count().max(*width);
        }
    }
    let mut lines = Vec::new();
    for row in rows {
        lines.push(
            row.as_ref()
                .map(|row| row.iter().zip(widths).map(|(part, width)| format!("{part:>width$}")).collect()),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_figure_has_three_digits_and_largest_five() {
        for (figures, expected) in [
            (&[58.72, 95.1][..], 1),
            (&[81_274.0, 1_488_095.0], 0),
            (&[0.0451, 0.12], 4),
            (&[0.00031, 40.0], 3),
            (&[0.0, 0.0], 0),
            (&[], 0),
        ] {
            assert_eq!(decimals(figures.iter().copied(), [0.0].into_iter()), expected, "{figures:?}");
        }
    }

    #[test]
    fn no_digits_are_shown_beyond_the_uncertainty() {
        for (figure, uncertainty, expected) in [
            (2.15, 0.31, 2),
            (61.2, 4.4, 1),
            (612.0, 44.0, 0),
            (57.31, 0.0004, 1),
            (57.31, 0.05, 2),
            (57.31, 0.15, 1),
        ] {
            let places = decimals([figure].into_iter(), [uncertainty].into_iter());
            assert_eq!(places, expected, "{figure} {uncertainty}");
        }
    }

    #[test]
    fn units_fit_the_figures() {
        for (metric, figures, unit) in [
            (Metric::Rtt, &[0.0091, 0.8][..], "us"),
            (Metric::Rtt, &[0.0091, 1.8], "ms"),
            (Metric::Throughput, &[784.0, 7179.0], "Gbit/s"),
            (Metric::Throughput, &[12.0, 7179.0], "Mbit/s"),
            (Metric::Throughput, &[], "Mbit/s"),
            (Metric::Loss, &[0.01], "%"),
        ] {
            assert_eq!(DisplayUnit::fitting(metric, figures.iter().copied()).unit, unit, "{figures:?}");
        }
        let late = DisplayUnit::fitting(Metric::PacingError, [0.021].into_iter());
        assert_eq!((late.difference_unit, late.difference(Scale::Difference, 0.01)), ("us", 10.0));
        assert_eq!(figure_text(Metric::Rtt, 0.00912), "9.12 us");
        assert_eq!(figure_text(Metric::Throughput, 2379.7308), "2.38 Gbit/s");
        assert_eq!(figure_text(Metric::Loss, 0.0), "0 %");
    }

    #[test]
    fn what_is_left_of_a_ratio_has_its_digits() {
        assert_eq!(percent_range(&[5.6]), "+5.6 %");
        assert_eq!(percent_range(&[-0.03, 0.002]), "-0.03 to 0.00 %");
        assert_eq!(percent_range(&[0.0, -2.2e-14]), "nothing");
    }

    #[test]
    fn zero_has_no_sign_and_non_numbers_are_not_printed() {
        assert_eq!(format_decimals(-0.001, 2), "0.00");
        assert_eq!(
            (format_with_sign(-0.001, 2), format_with_sign(0.001, 2), format_with_sign(0.006, 2)),
            ("0.00".into(), "0.00".into(), "+0.01".into())
        );
        assert_eq!(format_with_sign(-3.12, 1), "-3.1");
        assert_eq!(format_decimals(f64::NAN, 2), "-");
        assert_eq!(format_with_sign(f64::INFINITY, 2), "-");
        assert_eq!(format_decimals(1e300, 2), "1.000e300");
    }

    #[test]
    fn a_range_of_one_is_a_figure() {
        assert_eq!(range(&[3.13, 3.12], format_decimals), "3.1");
        assert_eq!(range(&[4.04, 1.23], format_decimals), "1.2 to 4.0");
        assert_eq!(range(&[-9.3, 0.2], format_with_sign), "-9.3 to +0.2");
        assert_eq!(range(&[0.012, 0.034], format_decimals), "0.01 to 0.03");
        assert_eq!(range(&[0.0002, 0.0041], format_decimals), "0.000 to 0.004");
        assert_eq!(range(&[], format_decimals), "");
    }

    #[test]
    fn parts_stand_below_parts() {
        let rows =
            [Some(["9.1".to_owned(), " ± 10.2".to_owned()]), None, Some(["12.0".into(), " ± 0.1".into()])];
        assert_eq!(
            align_columns(&rows),
            [Some(" 9.1 ± 10.2".to_owned()), None, Some("12.0  ± 0.1".to_owned())]
        );
    }

    #[test]
    fn shares_are_in_per_cent_and_differences_in_points() {
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
        let generator = DisplayUnit::of(Metric::CpuGeneratorSender);
        assert_eq!((generator.unit, generator.difference_unit), ("% of a core", "% of a core"));
        assert_eq!(DisplayUnit::of(Metric::TransferTimeRatio).difference_unit, "%");
    }
}
