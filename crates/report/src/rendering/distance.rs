//! How far two arms are apart, in words and figures.

use crate::rendering::numbers::{
    DisplayUnit, NONE, align_columns, factor, format_decimals, format_with_sign, is_factor,
};
use stacklab_model::{Effect, Scale, Unpaired};

/// An interval whose ends differ by this factor says nothing.
const MAX_FACTOR: f64 = 100.0;
/// No more does one of shares that is wider, of the 200 points that are possible.
const MAX_POINTS: f64 = 100.0;
/// What stands in the place of such an interval.
pub(crate) const TOO_WIDE: &str = "too wide";

/// Up to this half width, per cent, the interval of a ratio is nearly the same on both sides of the estimate.
const MAX_EVEN_PERCENT: f64 = 20.0;

/// How far two arms are apart: the estimate, and both ends of its 95 % interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Distance {
    scale: Scale,
    ends: [f64; 3],
}

impl From<&Effect> for Distance {
    fn from(Effect { scale, estimate, interval95, .. }: &Effect) -> Self {
        Distance { scale: *scale, ends: [*estimate, interval95.low, interval95.high] }
    }
}

impl From<&Unpaired> for Distance {
    fn from(Unpaired { scale, estimate, interval95, .. }: &Unpaired) -> Self {
        Distance { scale: *scale, ends: [*estimate, interval95.low, interval95.high] }
    }
}

impl Distance {
    /// An estimate on this scale with both ends of its interval.
    pub(crate) fn new(scale: Scale, ends: [f64; 3]) -> Self {
        Distance { scale, ends }
    }

    /// In the difference's unit.
    pub(crate) fn within(&self, unit: &DisplayUnit) -> [f64; 3] {
        self.ends.map(|end| unit.difference(self.scale, end))
    }

    /// Of an interval that ends where figures are no longer possible: that of the longer side.
    pub(crate) fn half_width(&self, unit: &DisplayUnit) -> f64 {
        let [estimate, low, high] = self.within(unit);
        match self.scale {
            Scale::Ratio => (high - low) / 2.0,
            Scale::Difference => (high - estimate).max(estimate - low),
        }
    }

    pub(crate) fn is_factor(&self) -> bool {
        is_factor(self.scale, self.ends[0])
    }

    /// Whether the ends differ by more than says anything.
    pub(crate) fn is_too_wide(&self, unit: &DisplayUnit) -> bool {
        let [_, low, high] = self.ends;
        match self.scale {
            Scale::Ratio => low > 0.0 && high / low > MAX_FACTOR,
            Scale::Difference => {
                unit.difference_unit == "points" && self.half_width(unit) >= MAX_POINTS && low < high
            }
        }
    }

    /// `+0.2 ± 1.2 %` with the unit behind it; both ends where the interval is so wide that it is not the same on both
    /// sides: `[-40.1, +128.3] %`.
    pub(crate) fn describe(&self, unit: &DisplayUnit, behind: &str) -> String {
        if self.is_too_wide(unit) {
            return TOO_WIDE.to_owned();
        }
        let [estimate, low, high] = self.within(unit);
        let half = self.half_width(unit);
        let decimals = difference_decimals(half);
        if self.scale == Scale::Ratio && half > MAX_EVEN_PERCENT {
            return format!(
                "[{}, {}]{behind}",
                format_with_sign(low, decimals),
                format_with_sign(high, decimals)
            );
        }
        format!("{} ± {}{behind}", format_with_sign(estimate, decimals), format_decimals(half, decimals))
    }

    /// In three parts: `-8.41`, ` [-8.43, `, `-8.39]`; `15.7x [15.3x, 16.1x]` above 100 %.
    pub(crate) fn parts(&self, unit: &DisplayUnit, places: usize) -> [String; 3] {
        let [estimate, low, high] = self.ends;
        let estimate = self.write_end(estimate, unit, places);
        if self.is_too_wide(unit) {
            return [estimate, String::new(), format!(" [{TOO_WIDE}]")];
        }
        let [low, high] = [low, high].map(|end| self.write_end(end, unit, places));
        [estimate, format!(" [{low}, "), format!("{high}]")]
    }

    fn write_end(&self, end: f64, unit: &DisplayUnit, places: usize) -> String {
        if self.is_factor() {
            factor(end)
        } else {
            format_with_sign(unit.difference(self.scale, end), places)
        }
    }
}

/// Decimals for a difference that is known so well.
pub(crate) fn difference_decimals(half_width: f64) -> usize {
    if half_width < 0.1 { 2 } else { 1 }
}

/// Decimals for differences, but for those that are said as factors: two if an interval is narrower than a tenth either
/// way, otherwise one.
pub(crate) fn difference_places(distances: impl IntoIterator<Item = Distance>, unit: &DisplayUnit) -> usize {
    let mut percents = distances.into_iter().filter(|distance| !distance.is_factor());
    if percents.any(|distance| distance.half_width(unit) < 0.1) { 2 } else { 1 }
}

/// A column of differences: `-8.41 [-8.43, -8.39]`.
pub(crate) fn differences(
    distances: impl Iterator<Item = Option<Distance>>,
    unit: &DisplayUnit,
    places: usize,
) -> Vec<String> {
    let parts: Vec<_> = distances.map(|distance| Some(distance?.parts(unit, places))).collect();
    // What stands in the place of an interval is not padded between its words, and widens no other interval.
    let ends = parts.iter().map(|row| {
        let [_, low, high] = row.as_ref().filter(|row| !row[1].is_empty())?;
        Some([low.clone(), high.clone()])
    });
    let mut joined = Vec::new();
    for (row, ends) in parts.iter().zip(align_columns(&ends.collect::<Vec<_>>())) {
        joined.push(
            row.as_ref()
                .map(|[estimate, _, words]| [estimate.clone(), ends.unwrap_or_else(|| words.clone())]),
        );
    }
    align_columns(&joined).into_iter().map(|cell| cell.unwrap_or_else(|| NONE.to_owned())).collect()
}

pub(crate) fn difference_heading(unit: &str, cells: &[String]) -> String {
    let figures: Vec<&String> = cells.iter().filter(|cell| cell.contains('[')).collect();
    let unit = if !cells.iter().any(|cell| begins_with_factor(cell)) {
        unit.to_owned()
    } else if !figures.is_empty() && figures.iter().all(|cell| begins_with_factor(cell)) {
        "factor".to_owned()
    } else {
        format!("{unit} or factor")
    };
    format!("difference, {unit} [95 %]")
}

fn begins_with_factor(cell: &str) -> bool {
    cell.split_whitespace().next().is_some_and(|first| first.ends_with('x'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Metric;

    #[test]
    fn uneven_intervals_are_told_by_their_ends() {
        let unit = DisplayUnit::of(Metric::Rtt);
        for (ends, text) in [
            ([1.002, 0.99, 1.014], "+0.2 ± 1.2 %"),
            ([1.168, 0.6, 2.28], "[-40.0, +128.0] %"),
            ([1.0, 0.001, 2.0], "too wide"),
        ] {
            assert_eq!(Distance::new(Scale::Ratio, ends).describe(&unit, " %"), text);
        }
    }

    #[test]
    fn heading_of_differences_names_factors() {
        for (cells, heading) in [
            (["-8.41 [-8.43, -8.39]", "-"], "difference, % [95 %]"),
            ([" 15.7x [15.3x, 16.1x]", "-"], "difference, factor [95 %]"),
            (["-8.41 [-8.43, -8.39]", "2.5x [too wide]"], "difference, % or factor [95 %]"),
        ] {
            assert_eq!(difference_heading("%", &cells.map(str::to_owned)), heading);
        }
        assert_eq!(difference_heading("%", &[]), "difference, % [95 %]");
    }

    #[test]
    fn differences_above_100_per_cent_are_factors() {
        for (ends, text) in [
            ([0.916, 0.914, 0.918], "-8.4 [-8.6, -8.2]"),
            ([1.9, 1.8, 2.1], "+90.0 [+80.0, +110.0]"),
            ([15.695, 15.28, 16.11], "15.7x [15.3x, 16.1x]"),
            ([3.6, 0.022, 598.5], "3.60x [too wide]"),
        ] {
            let parts = Distance::new(Scale::Ratio, ends).parts(&DisplayUnit::of(Metric::Rtt), 1);
            assert_eq!(parts.concat(), text);
        }
        fn of_loss(ends: [f64; 3]) -> String {
            Distance { scale: Scale::Difference, ends }.parts(&DisplayUnit::of(Metric::Loss), 1).concat()
        }
        assert_eq!(of_loss([-0.176, -1.0, 1.0]), "-17.6 [too wide]");
        assert_eq!(of_loss([-0.95, -1.0, -0.9]), "-95.0 [-100.0, -90.0]");
        assert_eq!(of_loss([1.0, 1.0, 1.0]), "+100.0 [+100.0, +100.0]", "all lost, and none");
        assert_eq!(of_loss([0.84, 0.8, 0.9]), "+84.0 [+80.0, +90.0]");
    }

    #[test]
    fn words_in_the_place_of_an_interval_are_not_padded() {
        fn of(all: &[[f64; 3]]) -> Vec<String> {
            let distances = all.iter().map(|ends| Some(Distance { scale: Scale::Ratio, ends: *ends }));
            differences(distances, &DisplayUnit::of(Metric::Rtt), 1)
        }
        assert_eq!(
            of(&[[1.283, 0.02, 40.0], [1.022, 0.511, 1.043], [0.999, 0.998, 1.0]]),
            ["+28.3    [too wide]", " +2.2 [-48.9, +4.3]", " -0.1  [-0.2,  0.0]"]
        );
        assert_eq!(of(&[[1.283, 0.02, 40.0]]), ["+28.3 [too wide]"]);
    }
}
