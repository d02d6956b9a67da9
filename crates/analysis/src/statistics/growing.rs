//! Mean and spread of figures that are added one by one. What one more figure costs grows with the logarithm of their
//! number, so that a campaign can look at its evidence after each block. Rounding aside, they are those of
//! [`Moments::of`] and [`Moments::of_trimmed_mean`].

use crate::statistics::Moments;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A figure with the number of figures before it, so that equal ones have an order too.
#[derive(Debug, Clone, Copy)]
struct Ranked {
    figure: f64,
    number: usize,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.figure.total_cmp(&other.figure).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

/// The median of figures: the smaller half, whose largest is known, and the larger one, whose smallest is.
#[derive(Debug, Clone, Default)]
pub(crate) struct GrowingMedian {
    small: BTreeSet<Ranked>,
    large: BTreeSet<Ranked>,
}

impl GrowingMedian {
    /// Adds a figure, and gives the median with it.
    pub(crate) fn add(&mut self, figure: f64) -> f64 {
        let new = Ranked { figure, number: self.small.len() + self.large.len() };
        if self.small.last().is_some_and(|last| new < *last) {
            self.small.insert(new);
        } else {
            self.large.insert(new);
        }
        // The smaller half has as many figures, or one more.
        if self.small.len() < self.large.len() {
            self.small.extend(self.large.pop_first());
        } else if self.small.len() > self.large.len() + 1 {
            self.large.extend(self.small.pop_last());
        }
        let middle = self.small.last().map_or(figure, |last| last.figure);
        match self.large.first() {
            Some(first) if self.small.len() == self.large.len() => middle.midpoint(first.figure),
            _ => middle,
        }
    }
}

/// The smallest step between positive figures, as a logarithm.
#[derive(Debug, Clone)]
pub(crate) struct GrowingSteps {
    figures: BTreeSet<Ranked>,
    smallest: f64,
}

impl Default for GrowingSteps {
    fn default() -> Self {
        GrowingSteps { figures: BTreeSet::new(), smallest: f64::INFINITY }
    }
}

impl GrowingSteps {
    pub(crate) fn add(&mut self, figure: f64) {
        let new = Ranked { figure, number: 0 };
        if self.figures.contains(&new) {
            return;
        }
        if let Some(below) = self.figures.range(..new).next_back() {
            self.smallest = self.smallest.min((figure / below.figure).ln());
        }
        if let Some(above) = self.figures.range(new..).next() {
            self.smallest = self.smallest.min((above.figure / figure).ln());
        }
        self.figures.insert(new);
    }

    /// Infinite with fewer than two different figures.
    pub(crate) fn smallest(&self) -> f64 {
        self.smallest
    }

    /// The figure that all are, if they are alike.
    pub(crate) fn only(&self) -> Option<f64> {
        let first = self.figures.first()?.figure;
        (self.figures.len() == 1).then_some(first)
    }
}

/// Moments of all figures (Welford 1962).
#[derive(Debug, Clone, Default)]
pub(crate) struct GrowingMoments {
    count: usize,
    mean: f64,
    squares: f64,
}

impl GrowingMoments {
    pub(crate) fn add(&mut self, figure: f64) {
        self.count += 1;
        let distance = figure - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (figure - self.mean);
    }

    /// `None` with fewer than two figures.
    pub(crate) fn moments(&self) -> Option<Moments> {
        if self.count < 2 {
            return None;
        }
        let variance = self.squares / (self.count - 1) as f64;
        Some(Moments { n: self.count as f64, mean: self.mean, sd: variance.sqrt() })
    }
}

/// Moments of the 20 % trimmed mean: a fifth of the figures is set aside at each end.
#[derive(Debug, Clone, Default)]
pub(crate) struct GrowingTrimmed {
    low: BTreeSet<Ranked>,
    kept: BTreeSet<Ranked>,
    high: BTreeSet<Ranked>,
    /// From here the sums of the kept figures are taken.
    origin: f64,
    sum: f64,
    squares: f64,
}

impl GrowingTrimmed {
    fn len(&self) -> usize {
        self.low.len() + self.kept.len() + self.high.len()
    }

    pub(crate) fn add(&mut self, figure: f64) {
        let new = Ranked { figure, number: self.len() };
        if self.low.last().is_some_and(|last| new < *last) {
            self.low.insert(new);
        } else if self.high.first().is_some_and(|first| new > *first) {
            self.high.insert(new);
        } else {
            self.keep(new);
        }
        self.set_aside(self.len() / 5);
        // An origin near the mean leaves little to rounding.
        if self.len().is_power_of_two() {
            self.move_origin();
        }
    }

    /// Moves figures until this number is set aside at each end.
    fn set_aside(&mut self, cut: usize) {
        while self.low.len() > cut
            && let Some(last) = self.low.pop_last()
        {
            self.keep(last);
        }
        while self.high.len() > cut
            && let Some(first) = self.high.pop_first()
        {
            self.keep(first);
        }
        while self.low.len() < cut
            && let Some(first) = self.kept.pop_first()
        {
            self.subtract(first);
            self.low.insert(first);
        }
        while self.high.len() < cut
            && let Some(last) = self.kept.pop_last()
        {
            self.subtract(last);
            self.high.insert(last);
        }
    }

    fn keep(&mut self, one: Ranked) {
        let distance = one.figure - self.origin;
        self.sum += distance;
        self.squares += distance * distance;
        self.kept.insert(one);
    }

    fn subtract(&mut self, one: Ranked) {
        let distance = one.figure - self.origin;
        self.sum -= distance;
        self.squares -= distance * distance;
    }

    fn move_origin(&mut self) {
        self.origin += self.sum / self.kept.len() as f64;
        self.sum = 0.0;
        self.squares = 0.0;
        for one in &self.kept {
            let distance = one.figure - self.origin;
            self.sum += distance;
            self.squares += distance * distance;
        }
    }

    /// `None` with fewer than two figures.
    pub(crate) fn moments(&self) -> Option<Moments> {
        let all = self.len() as f64;
        let kept = self.kept.len() as f64;
        let lowest = self.kept.first()?.figure - self.origin;
        let highest = self.kept.last()?.figure - self.origin;
        if kept < 2.0 {
            return None;
        }
        let cut = self.low.len() as f64;
        let sum = self.sum + cut * (lowest + highest);
        let squares = self.squares + cut * (lowest * lowest + highest * highest);
        let winsorized = (squares - sum * sum / all).max(0.0);
        let sd = if lowest == highest { 0.0 } else { (winsorized / (kept - 1.0)).sqrt() };
        Some(Moments { n: kept, mean: self.origin + self.sum / kept, sd })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::SplitMix64;

    #[track_caller]
    fn agree(found: Option<Moments>, expected: Option<Moments>) {
        let Some(expected) = expected else { return assert_eq!(found, None) };
        let found = found.unwrap();
        let scale = expected.sd.max(expected.mean.abs() * 1e-9).max(1e-300);
        assert_eq!(found.n, expected.n);
        assert!((found.mean - expected.mean).abs() <= 1e-9 * scale, "{found:?} is not {expected:?}");
        assert!((found.sd - expected.sd).abs() <= 1e-9 * scale, "{found:?} is not {expected:?}");
    }

    fn grow(figures: &[f64]) {
        let mut all = GrowingMoments::default();
        let mut trimmed = GrowingTrimmed::default();
        for (place, figure) in figures.iter().enumerate() {
            all.add(*figure);
            trimmed.add(*figure);
            agree(all.moments(), Moments::of(&figures[..=place]));
            agree(trimmed.moments(), Moments::of_trimmed_mean(&figures[..=place]));
        }
    }

    #[test]
    fn figures_one_by_one_have_their_moments() {
        let mut random = 3_u64;
        let mut figures = Vec::new();
        for place in 0..600 {
            random = SplitMix64::mix(random);
            let noise = (random >> 11) as f64 / (1_u64 << 53) as f64;
            // Some are wild, and some are alike.
            let wild = if random.is_multiple_of(17) { 50.0 } else { 1.0 };
            figures.push(if place % 7 == 0 { 0.25 } else { 0.2 + 0.01 * wild * (noise - 0.5) });
        }
        grow(&figures);
        figures.sort_by(f64::total_cmp);
        grow(&figures);
        figures.reverse();
        grow(&figures);
    }

    #[test]
    fn equal_figures_have_no_spread() {
        let mut trimmed = GrowingTrimmed::default();
        for _ in 0..40 {
            trimmed.add(0.1 + 0.2);
        }
        assert_eq!(trimmed.moments(), Moments::of_trimmed_mean(&[0.1 + 0.2; 40]));
    }

    #[test]
    fn a_wild_first_figure_leaves_no_error() {
        let mut figures = vec![1e9];
        figures.extend((0..100).map(|place| 1.0 + 1e-3 * f64::from(place % 9)));
        let mut trimmed = GrowingTrimmed::default();
        figures.iter().for_each(|figure| trimmed.add(*figure));
        agree(trimmed.moments(), Moments::of_trimmed_mean(&figures));
    }
}
