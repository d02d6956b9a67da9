//! The plots of a campaign and their data.

use crate::page::{AS_IT_IS, ComparisonView, EstimateView, FactorView, LossView, MetricView, Page};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Plot {
    /// Its name on the command line.
    pub name: String,
    pub title: String,
    pub x_title: String,
    pub y_title: String,
    pub names: Vec<String>,
    /// The levels of the horizontal axis, if they are numbers.
    pub numbers: Option<Vec<f64>>,
    pub lines: Vec<Line>,
    /// A horizontal line at "no difference", where the plot shows differences.
    pub level_line: Option<f64>,
    /// Differences that count as none, where the plot shows differences with the same margin.
    pub margin: Option<[f64; 2]>,
    pub higher_is_better: bool,
    /// The model of its points' limits: `headers`, or `airtime`.
    pub limited_by: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Line {
    pub label: String,
    pub points: Vec<Point>,
}

/// A point, at the place of its level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub level: usize,
    pub figure: f64,
    pub interval: Option<(f64, f64)>,
    /// The most that headers leave of the link.
    pub limit: Option<f64>,
}

struct PlotPlace {
    /// `tcp-payload`.
    key: String,
    /// `TCP`; what sizes mean only where that varies.
    label: String,
}

/// Every figure: those of metrics, and of searches what is lost at which load.
pub(super) fn all(page: &Page) -> Vec<Plot> {
    let mut plots = of_metrics(page);
    plots.extend(page.losses.iter().map(losses));
    plots
}

/// For each metric, transport and meaning of size, the arms, and how far they are apart.
fn of_metrics(page: &Page) -> Vec<Plot> {
    let Some(transport) = find_factor(page, "transport") else { return vec![] };
    let Some(size_of) = find_factor(page, "size_of") else { return vec![] };
    let Some(across) = across(page) else { return vec![] };
    let mut groups: BTreeMap<(usize, usize, usize), Vec<&EstimateView>> = BTreeMap::new();
    for estimate in page.estimates.iter().filter(|estimate| estimate.mean.is_some()) {
        let levels = &page.cells[estimate.cell].levels;
        groups.entry((estimate.metric, levels[transport], levels[size_of])).or_default().push(estimate);
    }
    let mut plots = Vec::new();
    for ((metric, of_transport, of_meaning), estimates) in groups {
        let transports = &page.factors[transport];
        let sizes_of = &page.factors[size_of];
        let framed = (sizes_of.levels.len() > 1).then(|| format!(", {}", sizes_of.alone[of_meaning]));
        let place = PlotPlace {
            key: format!("{}-{}", transports.levels[of_transport], sizes_of.levels[of_meaning]),
            label: format!("{}{}", transports.alone[of_transport], framed.unwrap_or_default()),
        };
        let mut comparisons = Vec::new();
        for one in page.comparisons.iter().filter(|one| one.metric == metric && one.factor != across) {
            let levels = &page.cells[one.baseline].levels;
            if levels[transport] == of_transport && levels[size_of] == of_meaning {
                comparisons.push(one);
            }
        }
        plots.push(arms(page, metric, &place, across, &estimates));
        plots.extend(apart(page, metric, &place, across, &comparisons));
    }
    plots
}

fn find_factor(page: &Page, name: &str) -> Option<usize> {
    page.factors.iter().position(|factor| factor.name == name)
}

/// What the arms of a search lose at which load.
fn losses(view: &LossView) -> Plot {
    let mut loads: Vec<f64> =
        view.lines.iter().flat_map(|line| &line.points).map(|point| point.load).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let mut lines = Vec::new();
    for line in &view.lines {
        let mut points = Vec::new();
        for point in &line.points {
            let level = loads.partition_point(|load| *load < point.load);
            let interval = point.low.zip(point.high);
            points.push(Point { level, figure: point.loss, interval, limit: None });
        }
        lines.push(Line { label: line.label.clone(), points });
    }
    Plot {
        name: view.name.clone(),
        title: format!("{}: means with 95 % intervals", view.title),
        x_title: format!("load, {}", view.unit),
        y_title: "lost or late, %".to_owned(),
        names: loads.iter().map(f64::to_string).collect(),
        numbers: Some(loads),
        lines,
        // Losses are seen beside none.
        level_line: Some(0.0),
        ..Plot::default()
    }
}

/// The factor of the horizontal axis: size if there are several sizes, otherwise another factor with several levels
/// that is not compared.
fn across(page: &Page) -> Option<usize> {
    let several: Vec<usize> =
        (0..page.factors.len()).filter(|factor| page.factors[*factor].levels.len() > 1).collect();
    let size = find_factor(page, "size")?;
    let compared = page.comparisons.first().map(|comparison| comparison.factor);
    let other = several.iter().copied().find(|factor| {
        Some(*factor) != compared && !["transport", "size_of"].contains(&page.factors[*factor].name.as_str())
    });
    Some(if several.contains(&size) { size } else { other.unwrap_or(size) })
}

fn arms(page: &Page, metric: usize, place: &PlotPlace, across: usize, estimates: &[&EstimateView]) -> Plot {
    let view = &page.metrics[metric];
    let mut lines: BTreeMap<Vec<usize>, Line> = BTreeMap::new();
    for estimate in estimates {
        let Some(figure) = estimate.mean else { continue };
        let levels = &page.cells[estimate.cell].levels;
        let line = lines.entry(key(page, levels, &[across])).or_default();
        line.label = label(page, levels, &[across]);
        line.points.push(Point {
            level: levels[across],
            figure,
            interval: estimate.low.zip(estimate.high).map(|(low, high)| (view.physical(low), high)),
            limit: page
                .limits
                .iter()
                .find(|limit| (limit.cell, limit.metric) == (estimate.cell, metric))
                .map(|limit| limit.value),
        });
    }
    Plot {
        name: format!("{}-{}", view.name, place.key),
        title: format!("{}, {}: means with 95 % intervals", view.label, place.label),
        y_title: format!("{}, {}", view.label, view.unit),
        limited_by: page.limited_by.clone(),
        ..plot(view, &page.factors[across], lines)
    }
}

fn apart(
    page: &Page,
    metric: usize,
    place: &PlotPlace,
    across: usize,
    comparisons: &[&ComparisonView],
) -> Option<Plot> {
    let mut lines: BTreeMap<Vec<usize>, Line> = BTreeMap::new();
    let mut margins = Vec::new();
    for comparison in comparisons {
        let Some(figure) = comparison.difference else { continue };
        let levels = &page.cells[comparison.baseline].levels;
        let mut group = key(page, levels, &[across, comparison.factor]);
        // One candidate may be compared with several others.
        let pair = [comparison.baseline, comparison.candidate];
        group.push(comparison.factor);
        group.extend(pair.map(|cell| page.cells[cell].levels[comparison.factor]));
        let line = lines.entry(group).or_default();
        let others = label(page, levels, &[across, comparison.factor]);
        let gap = if others.is_empty() { "" } else { ", " };
        line.label = format!("{}{gap}{others}", comparison.arms);
        margins.push(comparison.margin);
        let interval = comparison.low.zip(comparison.high);
        line.points.push(Point { level: levels[across], figure, interval, limit: None });
    }
    if lines.is_empty() {
        return None;
    }
    let view = &page.metrics[metric];
    margins.dedup();
    Some(Plot {
        name: format!("{}-{}-difference", view.name, place.key),
        title: format!("{}, {}: differences with 95 % intervals", view.label, place.label),
        y_title: format!("difference of {}, {}", view.label, view.difference_unit),
        level_line: Some(0.0),
        margin: margins.first().copied().filter(|_| margins.len() == 1),
        ..plot(view, &page.factors[across], lines)
    })
}

/// A plot of lines without titles.
fn plot(view: &MetricView, across: &FactorView, lines: BTreeMap<Vec<usize>, Line>) -> Plot {
    let mut lines: Vec<Line> = lines.into_values().collect();
    if lines.len() > 1 {
        for line in lines.iter_mut().filter(|line| line.label.is_empty()) {
            line.label = AS_IT_IS.to_owned();
        }
    }
    let used: BTreeSet<usize> = lines.iter().flat_map(|line| &line.points).map(|point| point.level).collect();
    let used: Vec<usize> = used.into_iter().collect();
    for line in &mut lines {
        line.points.sort_by_key(|point| point.level);
        for point in &mut line.points {
            point.level = used.binary_search(&point.level).unwrap_or_default();
        }
    }
    let x_title = if across.name == "size" { "size, bytes" } else { across.label.as_str() };
    Plot {
        x_title: x_title.to_owned(),
        names: used.iter().map(|level| across.labels[*level].clone()).collect(),
        numbers: across.numbers.as_ref().map(|numbers| used.iter().map(|level| numbers[*level]).collect()),
        lines,
        higher_is_better: view.higher_is_better,
        ..Plot::default()
    }
}

/// The key of a line: the levels of all factors except some.
fn key(page: &Page, levels: &[usize], without: &[usize]) -> Vec<usize> {
    (0..page.factors.len()).filter(|factor| !without.contains(factor)).map(|factor| levels[factor]).collect()
}

/// The same in words: of factors that have several levels and are not in the figure's name, those that the cell sets.
fn label(page: &Page, levels: &[usize], without: &[usize]) -> String {
    let named = page.factors.iter().enumerate().filter(|(place, factor)| {
        !without.contains(place)
            && factor.levels.len() > 1
            && !factor.levels[levels[*place]].is_empty()
            && !["transport", "size_of"].contains(&factor.name.as_str())
    });
    named.map(|(place, factor)| &factor.alone[levels[place]][..]).collect::<Vec<_>>().join(", ")
}
