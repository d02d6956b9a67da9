//! The table of the frame loss rate: a row for each load, a column for each arm.

use crate::findings::groups::{group_by_key, level};
use crate::rendering::document::{Block, Table, plain};
use crate::rendering::numbers::{NONE, format_decimals};
use stacklab_model::{Factor, Findings, FrameLoss, FrameLossArm, FrameLossPoint, Metric};

const ABOUT: &str = "messages that were lost, in % of those of a trial: median over the trials at that load, 1st and 99th percentile \
     by nearest rank, and the number of trials. After two trials that lost nothing an arm has no lower load.";

pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let Some(FrameLoss { arms, departures }) = &findings.frame_loss else { return Vec::new() };
    let compared = findings.comparisons.iter().map(|comparison| &comparison.question);
    let mut factors = compared.filter(|question| question.metric == Metric::FrameLossRate);
    let factor = factors.next().map(|question| question.factor);
    // Arms that were not measured together have different loads, and each has its own table.
    let tables = group_by_key(arms.iter().map(|arm| ((describe_others(arm, factor), arm.group), arm)));
    let mut blocks = Vec::new();
    for ((label, _), arms) in tables {
        let label = match &arms[..] {
            [alone] if label.is_empty() => alone.cell.label(),
            _ => label,
        };
        let place = if label.is_empty() { String::new() } else { format!(", {}", plain(&label)) };
        blocks.push(Block::Heading(format!("Frame loss rate{place}")));
        blocks.push(Block::Text(ABOUT.to_owned()));
        blocks.push(Block::Table(table(&arms, factor)));
    }
    if blocks.is_empty() {
        blocks.push(Block::Heading("Frame loss rate".to_owned()));
    }
    blocks.push(Block::Text("Departures from RFC 2544 and RFC 8219:".to_owned()));
    blocks.push(Block::List(departures.clone()));
    blocks
}

/// What the arms of a table have in common, if they are compared by a factor.
fn describe_others(arm: &FrameLossArm, factor: Option<Factor>) -> String {
    factor.map(|factor| arm.cell.label_without(Some(factor))).unwrap_or_default()
}

fn table(arms: &[&FrameLossArm], factor: Option<Factor>) -> Table {
    let mut loads: Vec<&FrameLossPoint> = arms.iter().flat_map(|arm| &arm.points).collect();
    loads.sort_by_key(|point| std::cmp::Reverse(point.percent));
    loads.dedup_by_key(|point| point.percent);
    let mut table = Table::default();
    table.push("load, %", true, loads.iter().map(|point| point.percent.to_string()).collect());
    table.push("message/s", true, loads.iter().map(|point| format!("{:.0}", point.load)).collect());
    for arm in arms {
        let mut column = Vec::new();
        for load in &loads {
            let point = arm.points.iter().find(|point| point.percent == load.percent);
            column.push(point.map_or_else(|| NONE.to_owned(), describe));
        }
        let title = factor.map_or_else(|| arm.cell.label(), |factor| level(&arm.cell, factor));
        table.push(plain(&title), true, column);
    }
    table.keys = 1;
    table
}

/// `17.10 [16.93, 17.42] (20)`.
fn describe(point: &FrameLossPoint) -> String {
    let FrameLossPoint { n, median, p1, p99, .. } = *point;
    let [median, p1, p99] = [median, p1, p99].map(|share| format_decimals(100.0 * share, 2));
    format!("{median} [{p1}, {p99}] ({n})")
}
