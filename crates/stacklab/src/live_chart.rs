//! A small chart of what a campaign has measured so far: a line of bars for each arm, a bar for each size.

use stacklab_model::{Factor, Metric, RunRecord};
use std::collections::BTreeMap;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Most lines: a chart that does not fit its terminal shows nothing.
const LINES: usize = 6;

/// Means of one metric by arm and size.
pub struct LiveChart {
    factor: Factor,
    metric: Metric,
    lines: BTreeMap<String, BTreeMap<u32, (f64, u32)>>,
}

impl LiveChart {
    /// Of the metric that a study asks first, and the factor whose levels it compares.
    pub fn new(factor: Factor, metric: Metric) -> Self {
        LiveChart { factor, metric, lines: BTreeMap::new() }
    }

    /// Takes a run's figure, where it has one that counts.
    pub fn add(&mut self, run: &RunRecord) {
        let figure = run.values.get(&self.metric).and_then(|value| value.measured());
        let Some(figure) = figure.filter(|_| run.is_valid()) else { return };
        let cell = &run.trial.cell;
        let line = match self.factor {
            Factor::Transport => cell.transport.to_string(),
            factor => format!("{} {}", cell.transport, cell.level(factor)),
        };
        let (sum, n) = self.lines.entry(line).or_default().entry(cell.size).or_default();
        (*sum, *n) = (*sum + figure, *n + 1);
    }

    /// The lines: `throughput  tcp ipv4  ▁▃▅█  12.3 to 92.8 Mbit/s`, all bars on one scale from zero.
    pub fn draw(&self) -> String {
        let mean = |(sum, n): &(f64, u32)| sum / f64::from((*n).max(1));
        let most = self.lines.values().flat_map(BTreeMap::values).map(mean).fold(0.0, f64::max);
        let widest = self.lines.keys().map(|line| line.chars().count()).max().unwrap_or(0);
        let draw = |(name, sizes): (&String, &BTreeMap<u32, (f64, u32)>)| {
            let means: Vec<f64> = sizes.values().map(mean).collect();
            let bars: String = means.iter().map(|mean| bar(*mean, most)).collect();
            let (low, high) = means.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), m| (l.min(*m), h.max(*m)));
            let unit = self.metric.unit().symbol();
            let (low, high) = (short(low), short(high));
            let range = if low == high { low } else { format!("{low} to {high}") };
            format!("{}  {name:<widest$}  {bars}  {range} {unit}", self.metric)
        };
        self.lines.iter().take(LINES).map(draw).collect::<Vec<_>>().join("\n")
    }
}

fn bar(figure: f64, most: f64) -> char {
    let share = if most > 0.0 { (figure / most).clamp(0.0, 1.0) } else { 0.0 };
    BARS[(share * (BARS.len() - 1) as f64).round() as usize]
}

/// Three significant digits.
fn short(figure: f64) -> String {
    if figure >= 100.0 {
        format!("{figure:.0}")
    } else if figure >= 10.0 {
        format!("{figure:.1}")
    } else if figure >= 1.0 || figure == 0.0 {
        format!("{figure:.2}")
    } else {
        format!("{figure:.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_on_one_scale_from_zero() {
        assert_eq!([0.0, 50.0, 100.0].map(|figure| bar(figure, 100.0)), ['▁', '▅', '█']);
        assert_eq!(bar(0.0, 0.0), '▁');
        assert_eq!(bar(f64::NAN, 100.0), '▁');
    }

    #[test]
    fn each_arm_has_a_line_with_its_range() {
        let mut chart = LiveChart::new(Factor::Family, Metric::Throughput);
        assert_eq!(chart.draw(), "");
        for (name, sizes) in
            [("tcp ipv4", [(128, 20.0), (1408, 80.0)]), ("tcp ipv6", [(128, 10.0), (1408, 70.0)])]
        {
            let means = sizes.into_iter().map(|(size, mean)| (size, (2.0 * mean, 2))).collect();
            chart.lines.insert(name.to_owned(), means);
        }
        assert_eq!(
            chart.draw(),
            "throughput  tcp ipv4  ▃█  20.0 to 80.0 Mbit/s\nthroughput  tcp ipv6  ▂▇  10.0 to 70.0 Mbit/s"
        );
    }
}
