//! The table of a group of comparisons.

use crate::findings::control::{self, CONTROL};
use crate::findings::groups::{Group, control_arms, level};
use crate::findings::verdicts::{format_answer, verdict};
use crate::rendering::document::{Block, Footnotes, Table, split_mark};
use crate::rendering::numbers::{
    DisplayUnit, Distance, NONE, align_columns, decimals, difference_heading, difference_places, differences,
    format_decimals, format_with_sign, percent,
};
use stacklab_model::{
    Better, Cell, Comparison, Control, CpuScope, Estimate, Explained, Findings, Interval, Metric, Scale,
};
use std::collections::{BTreeSet, HashMap};

/// Heading, definition and table of a group; the definition only where it is `defined` for the first time.
fn blocks(group: &Group, cpu_scope: CpuScope, defined: bool) -> Vec<Block> {
    let shown = group.choose_unit();
    let margin = group.margin(&shown);
    let control = control::legend(&group.controls, group.factor, &group.row_factors);
    let meaning = match defined {
        true => format!("in {}, {} is better", shown.unit, better(group.metric)),
        false => format!("in {}", definition(group.metric, &shown, cpu_scope)),
    };
    let mut blocks = vec![
        Block::Heading(format!("{}: {}", group.subject(), group.arms())),
        Block::Text(format!("{meaning}{margin}")),
    ];
    blocks.extend(control.map(Block::Text));
    blocks.push(Block::Table(table(group, &shown)));
    blocks
}

/// A group's tables of all metrics: each metric is defined once.
pub(crate) fn all(groups: &[Group], cpu_scope: CpuScope) -> Vec<Block> {
    let mut defined = BTreeSet::new();
    groups.iter().flat_map(|group| blocks(group, cpu_scope, !defined.insert(group.metric))).collect()
}

/// One table of all groups, each of few rows: metric, both figures with their units, difference, verdict.
pub(crate) fn one_table(groups: &[Group]) -> Vec<Block> {
    let Some(first) = groups.first() else { return Vec::new() };
    let mut notes = Footnotes::default();
    let mut rows = Vec::new();
    for group in groups {
        let shown = group.choose_unit();
        let places = difference_places(distances(&group.rows).flatten(), &shown);
        for row in &group.rows {
            let [baseline, candidate] = write_arms(&fit_estimates(row), &shown, &mut notes);
            let difference = differences(distances(&[row]), &shown, places).remove(0);
            let is_percent = !difference.contains('x') && difference != NONE;
            let difference =
                if is_percent { format!("{difference} {}", shown.difference_unit) } else { difference };
            let verdict = format_answer(row, &mut notes);
            rows.push(vec![group.metric.label(), baseline, candidate, difference, verdict]);
        }
        for control in &group.controls {
            let arms = format!("{}, {}", group.metric.label(), control_arms(control, group.factor));
            let [baseline, candidate] = write_arms(&control_estimates(group, control), &shown, &mut notes);
            let mut difference =
                differences([control_distance(control)].into_iter(), &shown, places).remove(0);
            if difference != NONE {
                difference = format!("{difference} {}", shown.difference_unit);
            }
            rows.push(vec![arms, baseline, candidate, difference, CONTROL.to_owned()]);
        }
    }
    let titles = ["", &first.baseline, &first.candidate, "difference [95 %]", "verdict"];
    let columns = titles.into_iter().zip([false, true, true, true, false]);
    let columns = columns.map(|(title, right)| (title.to_owned(), right)).collect();
    vec![Block::Table(Table { columns, rows, footnotes: notes, ..Table::default() })]
}

/// The figures of both arms with as many decimals, each with its unit before its mark.
fn write_arms(estimates: &[Estimate; 2], shown: &DisplayUnit, notes: &mut Footnotes) -> [String; 2] {
    let decimals = mean_decimals(estimates.iter(), shown);
    estimates.each_ref().map(|arm| {
        let cell = means(&[arm], shown, decimals, notes).remove(0);
        match split_mark(&cell) {
            _ if cell.starts_with(NONE) => cell,
            (figure, "") => format!("{figure} {}", shown.unit),
            (figure, mark) => format!("{figure} {} {mark}", shown.unit),
        }
    })
}

pub(crate) fn better(metric: Metric) -> &'static str {
    match metric.better() {
        Better::Higher => "higher",
        Better::Lower => "lower",
    }
}

/// Unit, direction and definition of a metric in a line.
pub(crate) fn definition(metric: Metric, shown: &DisplayUnit, cpu_scope: CpuScope) -> String {
    let about = match cpu_scope {
        CpuScope::Shared => "the hosts run on one kernel, so the figure counts all of them",
        CpuScope::Processors => "of those that do this host's work, and only this host's",
        CpuScope::Host => "the host's own",
        CpuScope::Threads => {
            "of the threads that carry the traffic, with the kernel's work in them, whichever host it is for"
        }
        CpuScope::Outside => "of the guest's processes, measured on the host machine",
        CpuScope::Various => {
            "it differs by system, or by whether arms take turns: compare it only within one of them"
        }
    };
    let scope = match metric {
        _ if !metric.is_host_cpu() => String::new(),
        // What the ends run says nothing of them.
        Metric::CpuRouter1 | Metric::CpuRouter2 => " (CPU time of the whole kernel that the router runs on: \
             compare within one kind of router only)"
            .to_owned(),
        _ => format!(" (CPU scope {cpu_scope}: {about})"),
    };
    let better = if metric.is_property() { String::new() } else { format!(", {} is better", better(metric)) };
    format!("{}{better}: {}{scope}", shown.unit, metric.definition())
}

fn table(group: &Group, shown: &DisplayUnit) -> Table {
    let rows = &group.rows;
    let mut notes = Footnotes::default();
    let mut table = group.label_rows();
    let mut estimates: Vec<[Estimate; 2]> = rows.iter().map(|row| fit_estimates(row)).collect();
    let arms = table.columns.len();
    let mut distances: Vec<_> = distances(rows).collect();
    for control in &group.controls {
        estimates.push(control_estimates(group, control));
        distances.push(control_distance(control));
    }
    let titles = [group.baseline.as_str(), group.candidate.as_str()];
    let places = push_pair(&mut table, titles, &estimates, &distances, shown, &mut notes);
    let by = rows.iter().filter_map(|row| row.explained.as_ref()).find(|explained| explained.ratio.is_some());
    if let Some(Explained { by, .. }) = by {
        let ratios = write_parts(group, |explained| explained.ratio, places, &mut notes);
        table.push_optional(format!("{by}, %"), ratios);
        let rests = write_parts(group, |explained| explained.residual, places, &mut notes);
        table.push_optional("rest, %", rests);
    }
    let control_pairs = group.controls.iter().map(|control| control.effect.pairs.to_string());
    table.push_optional("n", rows.iter().map(|row| count_pairs(row)).chain(control_pairs).collect());
    let mut verdicts: Vec<String> = rows.iter().map(|row| verdict(row, &mut notes)).collect();
    verdicts.extend(group.controls.iter().map(|_| CONTROL.to_owned()));
    table.push("verdict", false, verdicts);
    table.footnotes = notes;
    // The figures of both arms are the last to be left out.
    table.optional.extend([arms, arms + 1]);
    table
}

/// A column of one of the parts of each difference. Controls have none.
fn write_parts(
    group: &Group,
    figure: fn(&Explained) -> Option<f64>,
    places: usize,
    notes: &mut Footnotes,
) -> Vec<String> {
    let mut cells: Vec<String> =
        group.rows.iter().map(|row| write_part(row, figure, places, notes)).collect();
    cells.resize(cells.len() + group.controls.len(), String::new());
    cells
}

/// The pairs of a row, or the runs of each arm if these are not paired.
fn count_pairs(row: &Comparison) -> String {
    match (&row.effect, &row.unpaired) {
        (Some(effect), _) => effect.pairs.to_string(),
        (None, Some(_)) => format!("{}, {}", row.baseline_estimate.n, row.candidate_estimate.n),
        (None, None) => NONE.to_owned(),
    }
}

/// Adds columns with the figures of both arms, and with their difference, whose decimals it returns.
pub(crate) fn push_pair(
    table: &mut Table,
    titles: [&str; 2],
    estimates: &[[Estimate; 2]],
    distances: &[Option<Distance>],
    shown: &DisplayUnit,
    notes: &mut Footnotes,
) -> usize {
    let places = mean_decimals(estimates.iter().flatten(), shown);
    for (arm, title) in titles.into_iter().enumerate() {
        let column: Vec<&Estimate> = estimates.iter().map(|pair| &pair[arm]).collect();
        table.push(title, true, means(&column, shown, places, notes));
    }
    let places = difference_places(distances.iter().copied().flatten(), shown);
    let cells = differences(distances.iter().copied(), shown, places);
    table.push(difference_heading(shown.difference_unit, &cells), true, cells);
    places
}

/// The estimates of both arms at the figures that fit the printed difference: a mean over runs may contradict it where
/// trials were disturbed.
pub(crate) fn fit_estimates(row: &Comparison) -> [Estimate; 2] {
    let estimates = [row.baseline_estimate.clone(), row.candidate_estimate.clone()];
    at(estimates, row.fitted, row.question.metric)
}

/// The estimates of cells at the figures that fit the difference, of those that one comparison of the metric has: what
/// stands beside a difference must not contradict it. A cell of several comparisons has its mean over runs.
pub(crate) fn fit_cells(findings: &Findings) -> HashMap<(Metric, &Cell), Estimate> {
    let mut fitting: HashMap<(Metric, &Cell), Option<Estimate>> = HashMap::new();
    for row in &findings.comparisons {
        for (cell, estimate) in row.question.cells().into_iter().zip(fit_estimates(row)) {
            let is_other = fitting.contains_key(&(row.question.metric, cell));
            fitting.insert((row.question.metric, cell), if is_other { None } else { Some(estimate) });
        }
    }
    fitting.into_iter().filter_map(|(key, estimate)| Some((key, estimate?))).collect()
}

/// Where no arm had an event there is no difference, and an interval without width would not be true.
fn control_distance(control: &Control) -> Option<Distance> {
    if control.is_none_seen() { None } else { Some(Distance::from(&control.effect)) }
}

/// The figure of a control in the column of its arm. Its second arm is the same, and has no column.
fn control_estimates(group: &Group, control: &Control) -> [Estimate; 2] {
    let [figure, _] = at(control.estimates.clone(), Some(control.fitted), control.metric);
    let level = level(&control.cell, group.factor);
    [&group.baseline, &group.candidate]
        .map(|arm| if *arm == level { figure.clone() } else { Estimate::default() })
}

/// Estimates at other figures, if there are any.
pub(crate) fn at(estimates: [Estimate; 2], figures: Option<[f64; 2]>, metric: Metric) -> [Estimate; 2] {
    let Some(figures) = figures else { return estimates };
    let [baseline, candidate] = estimates;
    [(baseline, figures[0]), (candidate, figures[1])].map(|(estimate, figure)| {
        // An interval of a rate or a time is as wide in relation to its figure.
        let times = match (metric.scale(), estimate.mean) {
            (Scale::Ratio, Some(mean)) if mean > 0.0 => figure / mean,
            _ => 1.0,
        };
        let half = half_width(&estimate).map(|half| half * times);
        let interval = half.map(|half| Interval { low: figure - half, high: figure + half });
        let interval = interval.map(|interval| interval.clip_to(metric.possible_figures()));
        Estimate { mean: Some(figure), interval, ..estimate }
    })
}

/// Half of the interval of a mean: of one that ends where figures are no longer possible, its longer side.
fn half_width(estimate: &Estimate) -> Option<f64> {
    let mean = estimate.mean?;
    let Interval { low, high } = estimate.interval?;
    Some((high - mean).max(mean - low))
}

/// The interval of a mean that is not its middle: it ends where figures are no longer possible.
fn cut_interval(estimate: &Estimate) -> Option<Interval> {
    let mean = estimate.mean?;
    let Interval { low, high } = estimate.interval?;
    let is_middle = ((high - mean) - (mean - low)).abs() <= 1e-6 * (high - low) + 1e-9 * mean.abs();
    (!is_middle).then_some(Interval { low, high })
}

pub(crate) fn mean_decimals<'a>(
    estimates: impl Iterator<Item = &'a Estimate> + Clone,
    shown: &DisplayUnit,
) -> usize {
    let means = estimates.clone().filter_map(|estimate| estimate.mean);
    let half_widths = estimates.filter_map(half_width);
    decimals(means.map(|mean| shown.factor * mean), half_widths.map(|half_width| shown.factor * half_width))
}

/// `58.72 ± 0.05`, with a mark if some runs have no figure; `3 [0, 26]` where figures below zero are not possible.
pub(crate) fn means(
    estimates: &[&Estimate],
    shown: &DisplayUnit,
    places: usize,
    notes: &mut Footnotes,
) -> Vec<String> {
    let write = |figure: f64| format_decimals(shown.factor * figure, places);
    let mut halves = Vec::new();
    let mut widest = 0;
    for estimate in estimates {
        let half = half_width(estimate).map_or(NONE.to_owned(), write);
        if estimate.mean.is_some() && cut_interval(estimate).is_none() {
            widest = widest.max(half.len());
        }
        halves.push(half);
    }
    let mut parts: Vec<Option<[String; 2]>> = Vec::new();
    for (estimate, half) in estimates.iter().zip(halves) {
        parts.push(estimate.mean.map(|mean| match cut_interval(estimate) {
            Some(Interval { low, high }) => [write(mean), format!(" [{}, {}]", write(low), write(high))],
            // The sign is outside the padding.
            None => [write(mean), format!(" ± {half:>widest$}")],
        }));
    }
    let mut cells = Vec::new();
    for (estimate, cell) in estimates.iter().zip(align_columns(&parts)) {
        let cell = cell.unwrap_or_else(|| NONE.to_owned());
        cells.push(match &estimate.missing {
            Some(reason) if estimate.mean.is_some() => {
                format!("{cell} {}", notes.mark(&format!("some runs have no figure: {reason}")))
            }
            Some(reason) => format!("{cell} {}", notes.mark(reason)),
            None => cell,
        });
    }
    cells
}

/// How far the arms of a row are apart, whether their runs are paired or not.
pub(crate) fn distance(row: &Comparison) -> Option<Distance> {
    row.effect.as_ref().map(Distance::from).or(row.unpaired.as_ref().map(Distance::from))
}

/// How far the arms of each row are apart.
pub(crate) fn distances(rows: &[&Comparison]) -> impl Iterator<Item = Option<Distance>> {
    rows.iter().map(|row| distance(row))
}

fn write_part(
    row: &Comparison,
    figure: fn(&Explained) -> Option<f64>,
    places: usize,
    notes: &mut Footnotes,
) -> String {
    let Some(explained) = &row.explained else { return NONE.to_owned() };
    match figure(explained) {
        Some(ratio) => format_with_sign(percent(ratio), places),
        // Where only what is left is missing, the verdict says why.
        None if explained.ratio.is_some() => NONE.to_owned(),
        None => format!("{NONE} {}", notes.mark(&explained.because)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_has_both_ends_where_its_interval_was_cut() {
        fn of(mean: f64, low: f64, high: f64) -> Estimate {
            Estimate { n: 2, mean: Some(mean), interval: Some(Interval { low, high }), ..Estimate::default() }
        }
        let shown = DisplayUnit::of(Metric::Throughput);
        let all = [of(3.0, 0.0, 26.0), of(58.7, 58.6, 58.8)];
        let cells = means(&all.each_ref(), &shown, 1, &mut Footnotes::default());
        assert_eq!(cells, [" 3.0 [0.0, 26.0]", "58.7       ± 0.1"]);
        // At the figure that fits the difference it is as wide, and ends at zero again.
        let [cut, _] = at(all, Some([2.0, 58.7]), Metric::Loss);
        assert_eq!(cut.interval, Some(Interval { low: 0.0, high: 1.0 }));
        let [cut, _] = at([of(3.0, 0.0, 26.0), of(1.0, 0.9, 1.1)], Some([1.5, 1.0]), Metric::Throughput);
        assert_eq!(cut.interval, Some(Interval { low: 0.0, high: 13.0 }));
    }

    #[test]
    fn what_the_ends_run_says_nothing_of_routers() {
        let [receiver, router] = [Metric::CpuReceiver, Metric::CpuRouter2]
            .map(|metric| definition(metric, &DisplayUnit::of(metric), CpuScope::Host));
        assert!(receiver.contains("scope host"), "{receiver}");
        assert!(router.contains("one kind of router") && !router.contains("scope host"), "{router}");
    }
}
