//! What a path loses at which load: the slices of a search, for each group of cells that differ by what is compared.

use crate::findings::groups::{group_by_key, level};
use crate::rendering::document::{Block, Table, plain};
use crate::rendering::numbers::{NONE, format_decimals};
use stacklab_model::{Findings, Interval, LossByLoad, LossPoint, Metric, count};

/// The metric that the slices are of.
pub(crate) const METRIC: Metric = Metric::LoadAtLoss;

pub(crate) const ABOUT: &str = "messages that count as lost (where some loss is allowed, late ones too), in % of those of a \
     slice: mean over the slices with its 95 % interval, and the number of slices. Slices of one block are more alike \
     than the interval assumes, and no verdict depends on it.";

/// The arms of one table.
pub(crate) struct ArmGroup<'a> {
    /// What the arms have in common: `, UDP 64 B`.
    pub place: String,
    /// The same in the name of a figure: `loss-by-load-udp-64-b`.
    pub name: String,
    /// Each with its label.
    pub arms: Vec<(String, &'a LossByLoad)>,
}

/// The groups of cells, in the order of the study.
pub(crate) fn groups(findings: &Findings) -> Vec<ArmGroup<'_>> {
    let compared = findings.comparisons.iter().map(|comparison| &comparison.question);
    let factor = compared.filter(|question| question.metric == METRIC).map(|question| question.factor).next();
    let found = group_by_key(findings.loss_by_load.iter().map(|slices| {
        let label = factor.map(|factor| slices.cell.label_without(Some(factor)));
        (label.unwrap_or_default(), slices)
    }));
    let mut groups = Vec::new();
    for (label, slices) in found {
        let name = format!("loss by load {label}").to_lowercase();
        let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let name = words.collect::<Vec<_>>().join("-");
        let mut arms = Vec::new();
        for slices in slices {
            arms.push((
                factor.map_or_else(|| slices.cell.label(), |factor| level(&slices.cell, factor)),
                slices,
            ));
        }
        let place = if label.is_empty() { label } else { format!(", {label}") };
        let name = find_free_name(&groups, name);
        groups.push(ArmGroup { place: plain(&place), name, arms });
    }
    groups
}

/// The name, or with a number: what is left out of a name may be all that differs.
fn find_free_name(groups: &[ArmGroup<'_>], name: String) -> String {
    let mut number = 1;
    let mut free = name.clone();
    while groups.iter().any(|group| group.name == free) {
        number += 1;
        free = format!("{name}-{number}");
    }
    free
}

/// A heading and a table for each group.
pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let mut blocks = Vec::new();
    for group in groups(findings) {
        blocks.push(Block::Heading(format!("Loss by load{}", group.place)));
        if group.has_points() {
            blocks.push(Block::Text(ABOUT.to_owned()));
            blocks.push(Block::Table(group.table()));
        }
        blocks.push(Block::List(group.arms.iter().map(|(arm, slices)| count_slices(arm, slices)).collect()));
    }
    blocks
}

impl ArmGroup<'_> {
    /// Whether any slice counts.
    pub(crate) fn has_points(&self) -> bool {
        self.arms.iter().any(|(_, slices)| !slices.points.is_empty())
    }

    /// Decimals of per cent that show a tenth of the largest loss, and two at least.
    pub(crate) fn decimals(&self) -> usize {
        let points = self.arms.iter().flat_map(|(_, slices)| &slices.points);
        let most = points.filter_map(|point| point.loss.mean).fold(0.0, f64::max);
        let needed = (1.0 - (100.0 * most).log10().floor()).clamp(2.0, 6.0);
        if most > 0.0 { needed as usize } else { 2 }
    }

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
        let decimals = self.decimals();
        let mut table = Table::default();
        let title = format!("load, {}", METRIC.unit().symbol());
        table.push(title, true, loads.iter().map(f64::to_string).collect());
        for (arm, slices) in &self.arms {
            let mut column = Vec::new();
            for load in &loads {
                let point = slices.points.iter().find(|point| point.load == *load);
                column.push(point.map_or_else(
                    || NONE.to_owned(),
                    |point| format!("{} ({})", describe(point, decimals), point.loss.n),
                ));
            }
            table.push(plain(arm), true, column);
        }
        table.keys = 1;
        table
    }
}

/// `0.42 ± 0.11`, or `0.10 [0.00, 0.40]` where the interval ends at none or all.
pub(crate) fn describe(point: &LossPoint, decimals: usize) -> String {
    let LossPoint { loss, .. } = point;
    let mean = format_decimals(100.0 * loss.mean.unwrap_or(0.0), decimals);
    let Some(interval) = loss.interval else { return mean };
    let Interval { low, high } = interval;
    if low > 0.0 && high < 1.0 || low == high {
        return format!("{mean} ± {}", format_decimals(100.0 * interval.half_width(), decimals));
    }
    format!(
        "{mean} [{}, {}]",
        format_decimals(100.0 * low, decimals),
        format_decimals(100.0 * high, decimals)
    )
}

/// `IPv4: 340 slices; 12 others (3.4 %) were left out, because the tester disturbed them`.
pub(crate) fn count_slices(arm: &str, slices: &LossByLoad) -> String {
    let LossByLoad { valid, disturbed, .. } = *slices;
    let arm = plain(arm);
    if disturbed == 0 {
        return format!("{arm}: {}, none was left out", count(valid, "slice"));
    }
    if valid == 0 {
        return format!("{arm}: the tester disturbed all of its {}", count(disturbed, "slice"));
    }
    let percent = 100.0 * f64::from(disturbed) / (f64::from(valid) + f64::from(disturbed));
    let others = if disturbed == 1 { "1 other" } else { &format!("{disturbed} others") };
    let were = if disturbed == 1 {
        "was left out, because the tester disturbed it"
    } else {
        "were left out, because the tester disturbed them"
    };
    format!("{arm}: {}; {others} ({percent:.1} %) {were}", count(valid, "slice"))
}
