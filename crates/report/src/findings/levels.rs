//! Many levels of a factor against one baseline, such as mechanisms against plain forwarding: a table for each
//! transport, with a row for each level below that of its baseline. A column has a metric's means, each with its
//! verdict, at one size. The tables of each metric have all sizes.

use crate::findings::claims::{Claimed, of_row};
use crate::findings::comparisons::{at, mean_decimals};
use crate::findings::control::{self, CONTROL};
use crate::findings::estimates::write_property;
use crate::findings::groups::{
    Group, control_arms, group_by_key, level, level_alone, merge_groups, sort_key,
};
use crate::findings::matrix::{control_legend, describe_figures, describe_nothing};
use crate::findings::so_far;
use crate::findings::verdicts::is_within_margin;
use crate::rendering::document::{Block, Table};
use crate::rendering::numbers::{DisplayUnit, NONE, format_decimals};
use stacklab_model::{
    Cell, Comparison, Control, Estimate, Factor, Findings, Interval, Metric, Scale, Unit, Verdict,
    capitalize, once_each,
};

/// Metrics that always have a column. Others have one where levels differ by them.
const SUMMARY: [Metric; 6] = [
    Metric::Throughput,
    Metric::LoadAtLoss,
    Metric::ConnectionRate,
    Metric::SenderCpuPerMessage,
    Metric::ReceiverCpuPerMessage,
    Metric::Rtt,
];

/// The tables of all factors with many levels.
pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let mut groups = Vec::new();
    for (group, is_many) in merge_groups(findings) {
        // A column is of one size.
        if is_many && group.factor != Factor::Size {
            groups.push((group.with_place(&capitalize(&group.arms())), group));
        }
    }
    let mut blocks = Vec::new();
    for (title, groups) in group_by_key(groups.into_iter()) {
        blocks.push(Block::Heading(title));
        blocks.extend(LevelTable::new(findings, &groups).write());
    }
    blocks
}

/// A row of a baseline, or of a level beside it.
struct LevelRow<'a> {
    label: String,
    cells: Vec<&'a Cell>,
    /// With the baseline; of a baseline those of all levels.
    comparisons: Vec<&'a Comparison>,
    /// The place of the row of its baseline; none of a baseline itself.
    baseline: Option<usize>,
}

struct LevelTable<'a> {
    findings: &'a Findings,
    groups: &'a [Group<'a>],
    factors: Vec<Factor>,
    rows: Vec<LevelRow<'a>>,
}

impl<'a> LevelTable<'a> {
    fn new(findings: &'a Findings, groups: &'a [Group<'a>]) -> Self {
        let mut factors: Vec<Factor> = once_each(groups.iter().flat_map(|group| &group.row_factors).copied());
        factors.retain(|factor| *factor != Factor::Size);
        let rows = list_rows(groups, &factors);
        LevelTable { findings, groups, factors, rows }
    }

    fn write(&self) -> Vec<Block> {
        let controls: Vec<&Control> = self.groups.iter().flat_map(|group| &group.controls).copied().collect();
        let controlled: Vec<&Cell> = once_each(controls.iter().map(|control| &control.cell));
        // One column, which stays beside the figures where the table is in parts.
        let heads: Vec<String> = self.factors.iter().map(|factor| factor.label()).collect();
        let mut labels: Vec<String> = self.rows.iter().map(|row| row.label.clone()).collect();
        for cell in &controlled {
            let control = controls.iter().find(|control| control.cell == **cell);
            labels.extend(control.map(|control| self.label_control(control)));
        }
        let mut table = Table::default();
        table.push(heads.join(", "), false, labels);
        let mut alike: Vec<(&str, String)> = Vec::new();
        let mut sizes: Vec<(u32, String)> = Vec::new();
        for metric in once_each(self.groups.iter().map(|group| group.metric)) {
            if let Some(outcome) = self.find_common_outcome(metric) {
                alike.push((outcome, metric.label()));
                continue;
            }
            let size = self.choose_size(metric);
            let (unit, mut cells) = self.write_column(metric, size);
            for cell in &controlled {
                let of_cell = controls.iter().find(|one| one.metric == metric && one.cell == **cell);
                cells.push(of_cell.map_or_else(String::new, |control| control::sign(control)));
            }
            table.push(format!("{}, {unit}", metric.label()), false, cells);
            sizes.push((size, metric.label()));
        }
        let mut mtus: Vec<String> = self.rows.iter().map(|row| self.write_path_mtu(row)).collect();
        if mtus.iter().any(|mtu| !mtu.is_empty()) {
            mtus.resize(table.rows.len(), String::new());
            let unit = DisplayUnit::of(Metric::PathMtu).unit;
            table.push(format!("{}, {unit}", Metric::PathMtu.label()), true, mtus);
        }
        let mut blocks = vec![Block::Text(self.write_legend(sizes, alike))];
        if table.columns.len() > 1 {
            blocks.push(Block::Table(table));
        }
        blocks
    }

    fn write_legend(&self, sizes: Vec<(u32, String)>, alike: Vec<(&str, String)>) -> String {
        let groups: Vec<&Group> = self.groups.iter().collect();
        let baseline = &groups[0].baseline;
        let mut parts = vec![format!(
            "means, and how much better or worse than {baseline}, in parentheses where that is within the margin; = \
             equivalent, 0 none seen, ? undecided{}{}",
            describe_figures(&groups),
            describe_nothing(&groups)
        )];
        if self.averages_baselines() {
            parts.push(format!(
                "{baseline} is the mean over its pairs, and the other means fit the differences"
            ));
        }
        if self.has_sizes() {
            for (size, metrics) in group_by_key(sizes.into_iter()) {
                parts.push(format!(
                    "{} at {}",
                    metrics.join(", "),
                    Factor::Size.level_label(&size.to_string())
                ));
            }
            parts.push("the tables of each metric have all sizes".to_owned());
        }
        for (outcome, metrics) in group_by_key(alike.into_iter()) {
            parts.push(format!("{outcome}: {}", metrics.join(", ")));
        }
        format!("{}{}", parts.join("; "), control_legend(&groups))
    }

    /// Whether a row of a baseline averages figures of several pairs that are not alike.
    fn averages_baselines(&self) -> bool {
        for row in self.rows.iter().filter(|row| row.baseline.is_none()) {
            for group in self.groups {
                for size in self.list_sizes(Some(group.metric)) {
                    let figures = list_baselines(&select_comparisons(row, group.metric, Some(size)));
                    if figures.iter().any(|figure| *figure != figures[0]) {
                        return true;
                    }
                }
            }
        }
        false
    }

    fn has_sizes(&self) -> bool {
        self.list_sizes(None).len() > 1
    }

    /// `control native vs native IPv4 128 B`.
    fn label_control(&self, control: &Control) -> String {
        let mut label = format!("{CONTROL} {}", control_arms(control, self.groups[0].factor));
        for (factor, is_told_apart) in
            [(Factor::Family, self.factors.contains(&Factor::Family)), (Factor::Size, self.has_sizes())]
        {
            if is_told_apart {
                label = format!("{label} {}", level(&control.cell, factor));
            }
        }
        label
    }

    /// The outcome by a metric that all levels share at all sizes, if a sentence says as much as a column.
    fn find_common_outcome(&self, metric: Metric) -> Option<&'static str> {
        if SUMMARY.contains(&metric) {
            return None;
        }
        let mut common: Option<String> = None;
        for row in &self.rows {
            let outcome = write_verdict(&select_comparisons(row, metric, None));
            if row.baseline.is_some() && *common.get_or_insert_with(|| outcome.clone()) != outcome {
                return None;
            }
        }
        match common?.as_str() {
            "?" => Some("undecided with all"),
            "0" => Some("none seen with any"),
            "=" => Some("equivalent with all"),
            _ => None,
        }
    }

    /// The sizes of a metric's comparisons, or of all, the smallest first.
    fn list_sizes(&self, metric: Option<Metric>) -> Vec<u32> {
        let rows = self.rows.iter().flat_map(|row| &row.comparisons).map(|row| &row.question);
        let asked = rows.filter(|question| metric.is_none_or(|metric| question.metric == metric));
        let mut sizes = once_each(asked.map(|question| question.baseline.size));
        sizes.sort_unstable();
        sizes
    }

    /// Bit rates are those of the largest messages. Everything else is of the smallest, where the cost of each packet
    /// is the largest part of the figure.
    fn choose_size(&self, metric: Metric) -> u32 {
        let sizes = self.list_sizes(Some(metric));
        let chosen = if metric.unit() == Unit::MegabitPerSecond { sizes.last() } else { sizes.first() };
        chosen.copied().unwrap_or_default()
    }

    /// The cells of a metric, such as `2048 worse 12.1 to 15.3 %`, and the unit of the figures.
    fn write_column(&self, metric: Metric, size: u32) -> (&'static str, Vec<String>) {
        let means: Vec<Option<Estimate>> =
            self.rows.iter().map(|row| self.fit_mean(row, metric, size)).collect();
        let found = means.iter().flatten();
        let shown = DisplayUnit::fitting(metric, found.clone().filter_map(|estimate| estimate.mean));
        let places = mean_decimals(found, &shown);
        let mut figures: Vec<String> = Vec::new();
        for estimate in &means {
            let mean = estimate.as_ref().and_then(|estimate| estimate.mean);
            figures.push(mean.map_or_else(String::new, |mean| format_decimals(shown.factor * mean, places)));
        }
        let widest = figures.iter().map(String::len).max().unwrap_or_default();
        let mut cells = Vec::new();
        for (row, figure) in self.rows.iter().zip(figures) {
            let verdict = match row.baseline {
                Some(_) => self.write_claim(&select_comparisons(row, metric, Some(size))),
                None => String::new(),
            };
            cells.push(format!("{figure:>widest$} {verdict}").trim_end().to_owned());
        }
        (shown.unit, cells)
    }

    /// The verdict, in parentheses if it is better or worse by no more than the margin.
    fn write_claim(&self, compared: &[&Comparison]) -> String {
        let verdict = write_verdict(compared);
        let is_small = compared.iter().all(|one| {
            let group = self.groups.iter().find(|group| group.metric == one.question.metric);
            let is_claim = matches!(one.verdict, Verdict::Better(_));
            is_claim && group.is_some_and(|group| is_within_margin(group, one))
        });
        if is_small && !compared.is_empty() { format!("({verdict})") } else { verdict }
    }

    /// The mean that fits the difference from the baseline's; none where a row has several, such as replicas.
    fn fit_mean(&self, row: &LevelRow, metric: Metric, size: u32) -> Option<Estimate> {
        if row.cells.iter().filter(|cell| cell.size == size).count() != 1 {
            return None;
        }
        let compared = select_comparisons(row, metric, Some(size));
        let one = compared.first()?;
        let estimates = [one.baseline_estimate.clone(), one.candidate_estimate.clone()];
        let Some(place) = row.baseline else {
            let [baseline, _] = estimates;
            return Some(match average_baselines(&compared) {
                Some(mean) => at([baseline.clone(), baseline], Some([mean; 2]), metric)[0].clone(),
                None => baseline,
            });
        };
        let baseline = average_baselines(&select_comparisons(&self.rows[place], metric, Some(size)));
        let figures = match (baseline, one.fitted) {
            (Some(baseline), Some(fitted)) => Some([baseline, move_pair(metric, fitted, baseline)]),
            _ => None,
        };
        let [_, level] = at(estimates, figures, metric);
        Some(level)
    }

    fn write_path_mtu(&self, row: &LevelRow) -> String {
        let estimates = self.findings.cells.iter().filter(|one| one.metric == Metric::PathMtu);
        let of_row = estimates.filter(|one| one.estimate.mean.is_some() && row.cells.contains(&&one.cell));
        once_each(of_row.map(write_property)).join(", ")
    }
}

/// Below each baseline the levels that are compared with it.
fn list_rows<'a>(groups: &'a [Group<'a>], factors: &[Factor]) -> Vec<LevelRow<'a>> {
    let mut compared: Vec<(String, (String, &Comparison))> = Vec::new();
    for group in groups {
        for row in &group.rows {
            let own: Vec<String> = factors.iter().map(|factor| group.level_below(row, *factor)).collect();
            compared.push((label_baseline(&row.question.baseline, factors), (write_label(&own), *row)));
        }
    }
    let mut baselines = group_by_key(compared.into_iter());
    baselines.sort_by_key(|(_, rows)| sort_key(&rows[0].1.question.baseline));
    let mut rows = Vec::new();
    for (label, compared) in baselines {
        let place = rows.len();
        let comparisons: Vec<&Comparison> = compared.iter().map(|(_, row)| *row).collect();
        let cells = once_each(comparisons.iter().map(|row| &row.question.baseline));
        rows.push(LevelRow { label, cells, comparisons, baseline: None });
        for (label, comparisons) in group_by_key(compared.into_iter()) {
            let cells = once_each(comparisons.iter().map(|row| &row.question.candidate));
            rows.push(LevelRow { label, cells, comparisons, baseline: Some(place) });
        }
    }
    rows
}

fn label_baseline(cell: &Cell, factors: &[Factor]) -> String {
    let levels: Vec<String> = factors.iter().map(|factor| level_alone(cell, *factor)).collect();
    write_label(&levels)
}

fn write_label(levels: &[String]) -> String {
    levels.join(" ").trim_end().to_owned()
}

/// The mean of the figures that fit the differences of several levels from one baseline, which are from the blocks that
/// each of them has.
fn average_baselines(compared: &[&Comparison]) -> Option<f64> {
    let figures = list_baselines(compared);
    if figures.is_empty() { None } else { Some(figures.iter().sum::<f64>() / figures.len() as f64) }
}

fn list_baselines(compared: &[&Comparison]) -> Vec<f64> {
    compared.iter().filter_map(|one| one.fitted).map(|[baseline, _]| baseline).collect()
}

/// The candidate's figure of a pair that fits a difference, beside another figure of the baseline.
fn move_pair(metric: Metric, [from, candidate]: [f64; 2], baseline: f64) -> f64 {
    let moved = match metric.scale() {
        Scale::Ratio if from > 0.0 => candidate * baseline / from,
        Scale::Ratio => candidate,
        Scale::Difference => candidate + baseline - from,
    };
    Interval { low: moved, high: moved }.clip_to(metric.possible_figures()).low
}

/// The comparisons of a row by a metric, of one size or of all.
fn select_comparisons<'a>(row: &LevelRow<'a>, metric: Metric, size: Option<u32>) -> Vec<&'a Comparison> {
    let of_metric = row.comparisons.iter().copied().filter(|one| one.question.metric == metric);
    of_metric.filter(|one| size.is_none_or(|size| one.question.baseline.size == size)).collect()
}

/// `worse 3.1 to 8.4 %`, `worse 0.9 to 8.7 % (2 of 3)`, `better at 1, worse at 1 of 3`, `=`, `?`.
fn write_verdict(rows: &[&Comparison]) -> String {
    let all = rows.len();
    if all == 0 {
        return String::new();
    }
    let mut worse = 0;
    let mut better = 0;
    let mut equivalent = 0;
    let mut none_seen = 0;
    let mut nothing = 0;
    for row in rows {
        let question = &row.question;
        match &row.verdict {
            Verdict::Better(level) => {
                worse += usize::from(*level == question.baseline.level(question.factor));
                better += usize::from(*level == question.candidate.level(question.factor));
            }
            Verdict::Equivalent => equivalent += 1,
            Verdict::NoneSeen(_) => none_seen += 1,
            Verdict::Nothing(_) => nothing += 1,
            Verdict::Inconclusive => {}
        }
    }
    if (worse == 0) != (better == 0) && equivalent == 0 {
        let by = rows.iter().filter_map(|row| of_row(row)).reduce(Claimed::with);
        let by = by.map(|by| format!(" {}", by.to_string().replace("a factor of ", "x"))).unwrap_or_default();
        let claims = worse + better;
        let part = if claims == all { String::new() } else { format!(" ({claims} of {all})") };
        return format!("{}{by}{part}", if worse > 0 { "worse" } else { "better" });
    }
    let parts = [("worse", worse), ("better", better), ("=", equivalent)];
    let parts: Vec<String> =
        parts.into_iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{what} at {n}")).collect();
    match parts[..] {
        _ if equivalent == all => "=".to_owned(),
        [_, ..] => format!("{} of {all}", parts.join(", ")),
        [] if none_seen == all => "0".to_owned(),
        [] if nothing == all => NONE.to_owned(),
        [] => so_far::describe_estimates(rows).map_or_else(|| "?".to_owned(), |so_far| format!("? {so_far}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_follows_its_baseline() {
        assert_eq!(move_pair(Metric::Throughput, [100.0, 80.0], 200.0), 160.0);
        assert_eq!(move_pair(Metric::Loss, [0.25, 0.5], 0.5), 0.75);
        // A share is not below zero.
        assert_eq!(move_pair(Metric::Loss, [0.2, 0.1], 0.05), 0.0);
    }
}
