//! Ticks, and places on an axis.

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    from: f64,
    to: f64,
    low: f64,
    high: f64,
    pub log: bool,
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis over the figures, with about this many ticks at round figures.
    pub(super) fn round(figures: impl Iterator<Item = f64>, from: f64, to: f64, wanted: usize) -> Self {
        let (low, high) = spread(extent(figures));
        // An axis that would begin near zero begins at zero, to make lengths comparable.
        let low = if low > 0.0 && low < 0.35 * high { 0.0 } else { low };
        let step = step((high - low) / wanted as f64);
        let first = (low / step + 1e-9).floor();
        let last = (high / step - 1e-9).ceil();
        let ticks = (first as i64..=last as i64).map(|place| {
            let figure = place as f64 * step;
            (figure, label(figure, step))
        });
        Axis { from, to, low: first * step, high: last * step, log: false, ticks: ticks.collect() }
    }

    /// An axis with a tick at each figure; logarithmic if they are far apart.
    pub(super) fn with_tick_at_each(figures: &[f64], from: f64, to: f64) -> Self {
        let (low, high) = spread(extent(figures.iter().copied()));
        let log = low > 0.0 && high / low > 4.0;
        let ticks = figures.iter().map(|figure| (*figure, figure.to_string())).collect();
        Axis { from, to, low, high, log, ticks }
    }

    pub(super) fn at(&self, figure: f64) -> f64 {
        let low = self.scale(self.low);
        let share = (self.scale(figure) - low) / (self.scale(self.high) - low);
        self.from + share * (self.to - self.from)
    }

    /// On a logarithmic axis the logarithm.
    fn scale(&self, figure: f64) -> f64 {
        if self.log { figure.max(f64::MIN_POSITIVE).ln() } else { figure }
    }
}

fn extent(figures: impl Iterator<Item = f64>) -> (f64, f64) {
    let figures = figures.filter(|figure| figure.is_finite());
    figures.map(|figure| (figure, figure)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0.0, 1.0))
}

/// Something about a single figure.
fn spread((low, high): (f64, f64)) -> (f64, f64) {
    match low == high {
        true if low == 0.0 => (0.0, 1.0),
        true => (low - low.abs() / 2.0, high + high.abs() / 2.0),
        false => (low, high),
    }
}

fn step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

/// A tick's label, with the digits that the step between ticks needs to be exact.
fn label(figure: f64, step: f64) -> String {
    if figure == 0.0 {
        return "0".to_owned();
    }
    if (1e-6..1e6).contains(&step) {
        return format!("{figure:.*}", decimals(step));
    }
    let power = (figure.abs().log10() + 1e-9).floor();
    format!("{figure:.*e}", decimals(step / 10f64.powf(power)))
}

fn decimals(step: f64) -> usize {
    for many in 0..9 {
        let whole = step * 10f64.powi(many as i32);
        if (whole - whole.round()).abs() < 1e-6 * whole {
            return many;
        }
    }
    9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticks_text_says_its_place() {
        let powers = [1e-8, 1e-3, 0.01, 0.1, 1.0, 10.0, 1e3, 1e6, 1e9];
        let ends = [0.1, 0.9, 1.0, 1.1, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0, 9.0, 11.0, 12.3];
        let wide = powers.iter().flat_map(|power| ends.map(|end| [0.0, end * power]));
        for figures in wide.chain([[1.41e6, 1.52e6], [-8.5, 0.3], [57.3, 92.8]]) {
            for wanted in [3, 4, 5, 6] {
                let axis = Axis::round(figures.into_iter(), 0.0, 100.0, wanted);
                for (figure, label) in &axis.ticks {
                    let labelled: f64 = label.parse().unwrap();
                    assert!(
                        (axis.at(labelled) - axis.at(*figure)).abs() < 1e-3,
                        "{label} for {figure}: {axis:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn ticks_are_round_and_hold_every_figure() {
        for figures in [[57.3, 92.8], [0.0451, 0.12], [-8.5, 0.3], [0.0, 0.0], [81_274.0, 1_488_095.0]] {
            let axis = Axis::round(figures.into_iter(), 100.0, 0.0, 5);
            assert!((2..=9).contains(&axis.ticks.len()), "{axis:?}");
            for figure in figures {
                assert!((-0.001..=100.001).contains(&axis.at(figure)), "{figure} {axis:?}");
            }
            let labels: std::collections::BTreeSet<_> = axis.ticks.iter().map(|(_, label)| label).collect();
            assert_eq!(labels.len(), axis.ticks.len(), "{axis:?}");
        }
    }

    #[test]
    fn sizes_far_apart_stand_on_a_logarithmic_axis() {
        let axis = Axis::with_tick_at_each(&[64.0, 256.0, 1024.0], 0.0, 10.0);
        assert!((axis.at(256.0) - 5.0).abs() < 1e-9);
        let near = Axis::with_tick_at_each(&[64.0, 128.0, 192.0], 0.0, 10.0);
        assert!((near.at(128.0) - 5.0).abs() < 1e-9);
    }
}
