//! The table of RFC 8219: percentiles over the runs, at each arm's lower bound.

use crate::findings::groups::{label_cells, list_varied_factors, row_factors};
use crate::rendering::document::{Block, Table};
use crate::rendering::numbers::{DisplayUnit, decimals, format_decimals};
use stacklab_model::{Cell, Findings, Metric, Rfc8219, RunPercentiles};

const ABOUT: &str = "median over the runs, 1st and 99th percentile by nearest rank; figures other than bounds and bursts are of a \
     stream at the arm's lower bound of the same block";

pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let Some(Rfc8219 { rows, departures }) = &findings.rfc8219 else { return Vec::new() };
    let mut blocks = vec![Block::Heading("Throughput and delays by RFC 8219".to_owned())];
    if !rows.is_empty() {
        blocks.push(Block::Text(ABOUT.to_owned()));
        blocks.push(Block::Table(table(rows)));
    }
    blocks.push(Block::Text("Departures from the RFC:".to_owned()));
    blocks.push(Block::List(departures.clone()));
    blocks
}

fn table(rows: &[RunPercentiles]) -> Table {
    let cells: Vec<&Cell> = rows.iter().map(|row| &row.cell).collect();
    let varied = list_varied_factors(cells.iter().copied());
    let factors = row_factors(cells.iter().copied(), &varied, None);
    let mut table = label_cells(&cells, &factors);
    table.push("figure", false, rows.iter().map(|row| name(row.metric)).collect());
    let written: Vec<WrittenRow> = rows.iter().map(write).collect();
    table.push("unit", false, written.iter().map(|row| row.unit.to_owned()).collect());
    for (place, title) in ["median", "1st", "99th"].into_iter().enumerate() {
        table.push(title, true, written.iter().map(|row| row.figures[place].clone()).collect());
    }
    table.push("runs", true, rows.iter().map(|row| row.n.to_string()).collect());
    table.keys = factors.len() + 1;
    table
}

struct WrittenRow {
    unit: &'static str,
    /// Median, 1st and 99th percentile.
    figures: [String; 3],
}

fn write(row: &RunPercentiles) -> WrittenRow {
    let figures = [row.median, row.p1, row.p99];
    let shown = DisplayUnit::fitting(row.metric, figures.into_iter());
    let figures = figures.map(|figure| shown.factor * figure);
    let places = decimals(figures.into_iter(), std::iter::empty());
    WrittenRow { unit: shown.unit, figures: figures.map(|figure| format_decimals(figure, places)) }
}

/// The metric's name, with the RFC's where it is another.
fn name(metric: Metric) -> String {
    let label = metric.label();
    let in_rfc = match metric {
        Metric::LowerBound => "throughput",
        Metric::OneWayDelay => "typical latency",
        Metric::OneWayDelayP999 => "worst case latency",
        Metric::Pdv => "PDV",
        _ => return label,
    };
    format!("{label} ({in_rfc})")
}
