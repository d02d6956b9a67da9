//! What a path loses at which load: the slices of a search, for each group of cells that differ by what is compared.

use crate::findings::groups::{grouped, level};
use crate::rendering::document::{Block, Table, plain};
use crate::rendering::numbers::{NONE, fixed};
use stacklab_model::{Findings, Interval, LossByLoad, LossPoint, Metric, count};

/// The metric that the slices are of.
pub(crate) const METRIC: Metric = Metric::LoadAtLoss;

pub(crate) const ABOUT: &str = "messages that were lost or late, in % of those of a slice: mean over the slices with its 95 % \
     interval, and the number of slices. Slices of one block are more alike than the interval assumes, and no verdict \
     depends on it.";

/// The arms of one table.
pub(crate) struct Group<'a> {
    /// What the arms have in common: `, UDP 64 B`.
    pub place: String,
    /// The same in the name of a figure: `loss-by-load-udp-64-b`.
    pub name: String,
    /// Each with its label.
    pub arms: Vec<(String, &'a LossByLoad)>,
}

/// The groups of cells, in the order of the study.
pub(crate) fn groups(findings: &Findings) -> Vec<Group<'_>> {
    let compared = findings.comparisons.iter().map(|comparison| &comparison.question);
    let factor = compared.filter(|question| question.metric == METRIC).map(|question| question.factor).next();
    let found = grouped(findings.loss_by_load.iter().map(|slices| {
        let label = factor.map(|factor| slices.cell.label_without(Some(factor)));
        (label.unwrap_or_default(), slices)
    }));
    let mut groups = Vec::new();
    for (label, slices) in found {
        let name = format!("loss by load {label}").to_lowercase();
        let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let mut arms = Vec::new();
        for slices in slices {
            arms.push((
                factor.map_or_else(|| slices.cell.label(), |factor| level(&slices.cell, factor)),
                slices,
            ));
        }
        let place = if label.is_empty() { label } else { format!(", {label}") };
        groups.push(Group { place: plain(&place), name: words.collect::<Vec<_>>().join("-"), arms });
    }
    groups
}

/// A heading and a table for each group.
pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let mut blocks = Vec::new();
    for group in groups(findings) {
        blocks.push(Block::Heading(format!("Loss by load{}", group.place)));
        blocks.push(Block::Text(ABOUT.to_owned()));
        blocks.push(Block::Table(group.table()));
        blocks.push(Block::List(group.arms.iter().map(|(arm, slices)| count_slices(arm, slices)).collect()));
    }
    blocks
}

impl Group<'_> {
    /// The middles of the classes of loads, ascending.
    fn loads(&self) -> Vec<f64> {
        let mut loads: Vec<f64> =
            self.arms.iter().flat_map(|(_, slices)| &slices.points).map(|point| point.load).collect();
        loads.sort_by(f64::total_cmp);
        // The classes are the same for all arms.
        loads.dedup();
        loads
    }

    /// A row for each class of loads, a column for each arm.
    fn table(&self) -> Table {
        let loads = self.loads();
        let mut table = Table::default();
        let title = format!("load, {}", METRIC.unit().symbol());
        table.push(title, true, loads.iter().map(f64::to_string).collect());
        for (arm, slices) in &self.arms {
            let mut column = Vec::new();
            for load in &loads {
                let point = slices.points.iter().find(|point| point.load == *load);
                column.push(point.map_or_else(|| NONE.to_owned(), describe));
            }
            table.push(plain(arm), true, column);
        }
        table.keys = 1;
        table
    }
}

/// `0.42 ± 0.11 (28)`, or `0.10 [0.00, 0.40] (8)` where the interval ends at none.
fn describe(point: &LossPoint) -> String {
    let LossPoint { loss, .. } = point;
    let mean = 100.0 * loss.mean.unwrap_or(0.0);
    let around = match loss.interval {
        None => String::new(),
        Some(Interval { low, high }) if low > 0.0 || high <= 0.0 => {
            format!(" ± {}", fixed(50.0 * (high - low), 2))
        }
        Some(Interval { high, .. }) => format!(" [0.00, {}]", fixed(100.0 * high, 2)),
    };
    format!("{}{around} ({})", fixed(mean, 2), loss.n)
}

/// `IPv4: 340 slices; 12 others (3.4 %) were left out, because the tester disturbed them`.
pub(crate) fn count_slices(arm: &str, slices: &LossByLoad) -> String {
    let LossByLoad { valid, disturbed, .. } = slices;
    let counted = count(*valid, "slice");
    let arm = plain(arm);
    match disturbed {
        0 => format!("{arm}: {counted}, none was left out"),
        _ => {
            let percent = 100.0 * f64::from(*disturbed) / (f64::from(*valid) + f64::from(*disturbed));
            format!(
                "{arm}: {counted}; {disturbed} others ({percent:.1} %) were left out, because the tester disturbed them"
            )
        }
    }
}
