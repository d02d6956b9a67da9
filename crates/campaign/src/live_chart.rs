//! A small chart of a campaign's results so far, for a terminal.

use stacklab_model::{Cell, Factor, Metric, RunRecord};
use stacklab_report::figure_text;
use std::collections::BTreeMap;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Maximum number of lines: a chart that does not fit its terminal shows nothing.
const LINES: usize = 6;

/// A small chart of the results so far: means of one metric by size, a line for each combination of the other factors.
pub(crate) struct LiveChart {
    /// The factors that name a line, as printed: transport and family first, since most studies vary them.
    factors: Vec<Factor>,
    metric: Metric,
    lines: BTreeMap<String, BTreeMap<u32, (f64, u32)>>,
}

impl LiveChart {
    pub(crate) fn new(cells: &[Cell], metric: Metric) -> Self {
        let mut factors = vec![Factor::Transport, Factor::Family];
        factors.extend(Factor::ALL.iter().filter(|factor| {
            !matches!(factor, Factor::Transport | Factor::Family | Factor::Size)
                && cells.iter().any(|cell| cell.level(**factor) != cells[0].level(**factor))
        }));
        LiveChart { factors, metric, lines: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, run: &RunRecord) {
        let figure = run.values.get(&self.metric).and_then(|value| value.measured());
        let Some(figure) = figure.filter(|_| run.is_valid()) else { return };
        let cell = &run.trial.cell;
        let line = self.line(cell);
        let (sum, n) = self.lines.entry(line).or_default().entry(cell.size).or_default();
        (*sum, *n) = (*sum + figure, *n + 1);
    }

    /// `TCP IPv4 gvisor`.
    fn line(&self, cell: &Cell) -> String {
        let levels = self.factors.iter().map(|factor| factor.level_label(&cell.level(*factor)));
        levels.filter(|level| !level.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The lines: `throughput  TCP IPv4  ▁▃▅█  12.3 to 92.8 Mbit/s at 128 to 1408 B`, all bars on one scale from zero.
    pub(crate) fn draw(&self) -> String {
        let mut most = 0.0;
        for figures in self.lines.values().flat_map(BTreeMap::values) {
            most = f64::max(most, average(figures));
        }
        let widest = self.lines.keys().map(|line| line.chars().count()).max().unwrap_or(0);
        let mut drawn = Vec::new();
        for (name, sizes) in self.lines.iter().take(LINES) {
            let about = self.draw_sizes(sizes, most);
            drawn.push(format!("{}  {name:<widest$}  {about}", self.metric.label()));
        }
        if self.lines.len() > LINES {
            drawn.push(format!("and {} more", self.lines.len() - LINES));
        }
        drawn.join("\n")
    }

    /// `▁▃▅█  12.3 to 92.8 Mbit/s at 128 to 1408 B`
    fn draw_sizes(&self, sizes: &BTreeMap<u32, (f64, u32)>, most: f64) -> String {
        let mut bars = String::new();
        let mut low = f64::INFINITY;
        let mut high = 0.0_f64;
        for mean in sizes.values().map(average) {
            bars.push(bar(mean, most));
            low = low.min(mean);
            high = high.max(mean);
        }
        let [low, high] = [low, high].map(|figure| figure_text(self.metric, figure));
        let range = if low == high { low } else { format!("{low} to {high}") };
        let sizes = match (sizes.keys().min(), sizes.keys().max()) {
            (Some(small), Some(large)) if small < large => format!(" at {small} to {large} B"),
            _ => String::new(),
        };
        format!("{bars}  {range}{sizes}")
    }
}

/// The mean of figures, from their sum and their number.
fn average(figures: &(f64, u32)) -> f64 {
    let (sum, n) = figures;
    sum / f64::from((*n).max(1))
}

fn bar(figure: f64, most: f64) -> char {
    let share = if most > 0.0 { (figure / most).clamp(0.0, 1.0) } else { 0.0 };
    BARS[(share * (BARS.len() - 1) as f64).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{Family, SizeOf, Transport};

    fn cell(transport: Transport, family: Family, os: &str) -> Cell {
        let mut cell = Cell::new(family, transport, SizeOf::Payload, 128);
        cell.set(Factor::Os, os).unwrap();
        cell
    }

    #[test]
    fn bars_stand_on_one_scale_from_zero() {
        assert_eq!([0.0, 50.0, 100.0].map(|figure| bar(figure, 100.0)), ['▁', '▅', '█']);
        assert_eq!(bar(0.0, 0.0), '▁');
        assert_eq!(bar(f64::NAN, 100.0), '▁');
    }

    #[test]
    fn differing_cells_have_lines_and_omissions_are_told() {
        let cells: Vec<Cell> = ["namespace", "gvisor"]
            .into_iter()
            .flat_map(|os| [Family::Ipv4, Family::Ipv6].map(|family| (os, family)))
            .flat_map(|(os, family)| [Transport::Tcp, Transport::Udp].map(|of| cell(of, family, os)))
            .collect();
        let mut chart = LiveChart::new(&cells, Metric::Throughput);
        let lines: Vec<String> = cells.iter().map(|cell| chart.line(cell)).collect();
        assert_eq!(lines[..2], ["TCP IPv4 namespace", "UDP IPv4 namespace"]);
        chart.lines = lines.into_iter().map(|line| (line, [(128, (10.0, 1))].into())).collect();
        // Eight lines, but the terminal has room for six.
        let drawn = chart.draw();
        assert_eq!((chart.lines.len(), drawn.lines().count()), (8, 7), "{drawn}");
        assert!(drawn.ends_with("\nand 2 more"), "{drawn}");
        // A factor with one level is not part of a line's name.
        let alike = LiveChart::new(&cells[..4], Metric::Throughput);
        assert_eq!(alike.line(&cells[0]), "TCP IPv4");
    }

    #[test]
    fn each_arm_has_a_line_with_its_range() {
        let mut chart = LiveChart::new(&[], Metric::Throughput);
        assert_eq!(chart.draw(), "");
        for (name, sizes) in
            [("TCP IPv4", [(128, 20.0), (1408, 80.0)]), ("TCP IPv6", [(128, 10.0), (1408, 70.0)])]
        {
            let means = sizes.into_iter().map(|(size, mean)| (size, (2.0 * mean, 2))).collect();
            chart.lines.insert(name.to_owned(), means);
        }
        assert_eq!(
            chart.draw(),
            "throughput  TCP IPv4  ▃█  20.0 Mbit/s to 80.0 Mbit/s at 128 to 1408 B\n\
             throughput  TCP IPv6  ▂▇  10.0 Mbit/s to 70.0 Mbit/s at 128 to 1408 B"
        );
    }
}
