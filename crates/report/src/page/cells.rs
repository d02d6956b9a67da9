//! Factors, cells and metrics, numbered, and their estimates.

use crate::findings::comparisons::{definition, fit_cells, mean_decimals, means};
use crate::findings::groups;
use crate::page::document::{
    CellView, EstimateView, FactorView, LimitView, MetricView, PublishedSeries, round_to_digits,
};
use crate::page::source::Published;
use crate::rendering::document::{Footnotes, without_mark};
use crate::rendering::numbers::DisplayUnit;
use stacklab_model::{
    Better, Cell, CellEstimate, CpuScope, Estimate, Factor, Findings, Metric, Probe, RunRecord, SELF_ARMS,
    once_each,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Printed for a setting that a cell does not set.
pub(crate) const AS_IT_IS: &str = "as it is";

pub(super) struct Index<'a> {
    cells: Vec<&'a Cell>,
    cell_numbers: HashMap<&'a Cell, usize>,
    metrics: Vec<Metric>,
    units: Vec<DisplayUnit>,
    /// The probe of metrics that another one measured than their own.
    taken_over: BTreeMap<Metric, Probe>,
    factors: Vec<(Factor, Vec<String>)>,
}

impl<'a> Index<'a> {
    /// Numbers all that findings and runs name, in the study's order.
    pub(super) fn new(findings: &'a Findings, runs: &'a [RunRecord]) -> Self {
        let named = groups::cells(findings).chain(runs.iter().map(|run| &run.trial.cell));
        let mut cells = Vec::new();
        let mut cell_numbers = HashMap::new();
        for cell in named {
            cell_numbers.entry(cell).or_insert_with(|| {
                cells.push(cell);
                cells.len() - 1
            });
        }
        let asked = findings.comparisons.iter().map(|comparison| comparison.question.metric);
        let metrics = once_each(asked.chain(findings.cells.iter().map(|estimate| estimate.metric)));
        let mut units = Vec::new();
        let mut taken_over = BTreeMap::new();
        for metric in &metrics {
            let of_metric = findings.cells.iter().filter(|estimate| estimate.metric == *metric);
            let means = of_metric.filter_map(|estimate| estimate.estimate.mean);
            units.push(DisplayUnit::fitting(*metric, means));
            if let Some(run) = runs.iter().find(|run| run.takes_over(*metric)) {
                taken_over.insert(*metric, run.trial.probe);
            }
        }
        let others = cells.iter().copied().filter(|cell| !SELF_ARMS.contains(&cell.replica.as_str()));
        let factors = factors(others);
        Index { cells, cell_numbers, metrics, units, taken_over, factors }
    }

    pub(super) fn cell(&self, cell: &Cell) -> Option<usize> {
        self.cell_numbers.get(cell).copied()
    }

    pub(super) fn metric(&self, metric: Metric) -> Option<usize> {
        self.metrics.iter().position(|known| *known == metric)
    }

    pub(super) fn find_unit(&self, metric: Metric) -> DisplayUnit {
        self.metric(metric).map_or_else(|| DisplayUnit::of(metric), |number| self.units[number])
    }

    pub(super) fn factor(&self, factor: Factor) -> usize {
        self.factors.iter().position(|(known, _)| *known == factor).unwrap_or(0)
    }

    pub(super) fn probe(&self, metric: Metric) -> Probe {
        self.taken_over.get(&metric).copied().unwrap_or(metric.probe())
    }

    pub(super) fn numbered_metrics(&self) -> impl Iterator<Item = (usize, Metric)> {
        self.metrics.iter().copied().enumerate()
    }

    pub(super) fn metrics(&self, cpu_scope: CpuScope) -> Vec<MetricView> {
        let mut views = Vec::new();
        for metric in &self.metrics {
            let shown = self.find_unit(*metric);
            views.push(MetricView {
                name: metric.name().to_owned(),
                label: metric.label(),
                unit: shown.unit.to_owned(),
                difference_unit: shown.difference_unit.to_owned(),
                higher_is_better: metric.better() == Better::Higher,
                can_be_negative: metric.can_be_negative(),
                definition: format!("in {}", definition(*metric, &shown, cpu_scope)),
                probe: self.probe(*metric).name().to_owned(),
            });
        }
        views
    }

    pub(super) fn factors(&self) -> Vec<FactorView> {
        let mut views = Vec::new();
        for (factor, levels) in &self.factors {
            let mut labels = Vec::new();
            let mut alone = Vec::new();
            for level in levels {
                if level.is_empty() {
                    labels.push(AS_IT_IS.to_owned());
                    alone.push(format!("{} {AS_IT_IS}", factor.label()));
                } else {
                    labels.push(factor.level_below(level));
                    alone.push(factor.level_label(level));
                }
            }
            views.push(FactorView {
                name: factor.name().to_owned(),
                label: factor.label(),
                labels,
                alone,
                numbers: levels.iter().map(|level| read_number(level)).collect(),
                levels: levels.clone(),
            });
        }
        views
    }

    pub(super) fn cells(&self) -> Vec<CellView> {
        let mut views = Vec::new();
        for cell in &self.cells {
            let mut numbers = Vec::new();
            for (factor, levels) in &self.factors {
                let level = cell.level(*factor);
                numbers.push(levels.iter().position(|known| *known == level).unwrap_or(0));
            }
            views.push(CellView { label: cell.label(), levels: numbers });
        }
        views
    }

    /// Every estimate, with the same decimals within a metric, transport and meaning of size. Those of a comparison are
    /// the figures of its table in the text.
    pub(super) fn estimates(&self, findings: &Findings) -> Vec<EstimateView> {
        let fitting = fit_cells(findings);
        let tables = groups::by_table(&findings.cells, |estimate| (estimate.metric, &estimate.cell), false);
        let mut views = Vec::new();
        for (metric, _, rows) in tables {
            let shown = self.find_unit(metric);
            let mut estimates = Vec::new();
            for row in &rows {
                estimates.push(fitting.get(&(row.metric, &row.cell)).unwrap_or(&row.estimate));
            }
            let places = mean_decimals(estimates.iter().copied(), &shown);
            for (row, estimate) in rows.iter().zip(estimates) {
                let text = means(&[estimate], &shown, places, &mut Footnotes::default()).remove(0);
                views.extend(self.estimate(row, estimate, &shown, without_mark(&text)));
            }
        }
        views.sort_by_key(|view| (view.metric, view.cell));
        views
    }

    fn estimate(
        &self,
        row: &CellEstimate,
        estimate: &Estimate,
        shown: &DisplayUnit,
        text: String,
    ) -> Option<EstimateView> {
        let in_unit = |figure: Option<f64>| figure.map(|figure| shown.factor * figure);
        let Estimate { n, mean, sd, median, interval, ref missing, .. } = *estimate;
        Some(EstimateView {
            cell: self.cell(&row.cell)?,
            metric: self.metric(row.metric)?,
            n,
            mean: in_unit(mean),
            low: in_unit(interval.map(|interval| interval.low)),
            high: in_unit(interval.map(|interval| interval.high)),
            sd: in_unit(sd),
            median: in_unit(median),
            missing: missing.clone(),
            shown: text,
        })
    }

    pub(super) fn limits(&self, limits: &[(Cell, Metric, f64)]) -> Vec<LimitView> {
        limits.iter().filter_map(|(cell, metric, value)| self.view_limit(cell, *metric, *value)).collect()
    }

    fn view_limit(&self, cell: &Cell, metric: Metric, value: f64) -> Option<LimitView> {
        let value = round_to_digits(self.find_unit(metric).factor * value, 9)?;
        Some(LimitView { cell: self.cell(cell)?, metric: self.metric(metric)?, value })
    }

    pub(super) fn list_published_series(&self, published: &[Published]) -> Vec<PublishedSeries> {
        published.iter().filter_map(|series| self.view_series(series)).collect()
    }

    fn view_series(&self, series: &Published) -> Option<PublishedSeries> {
        let Published { label, transport, mut points, .. } = series.clone();
        // Published figures are in the metric's usual unit.
        let times = self.find_unit(series.metric).factor / DisplayUnit::of(series.metric).factor;
        points.iter_mut().for_each(|(_, figure)| *figure *= times);
        Some(PublishedSeries { label, metric: self.metric(series.metric)?, transport, points })
    }
}

/// The number that a level is; `None` also for one that JSON cannot have.
fn read_number(level: &str) -> Option<f64> {
    level.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Transport, family, meaning of size and size, and every other factor that any cell has, with the levels that occur.
/// Arms against themselves are not among the cells: their labels would be a factor that readers cannot use.
fn factors<'a>(cells: impl Iterator<Item = &'a Cell> + Clone) -> Vec<(Factor, Vec<String>)> {
    let first = [Factor::Transport, Factor::Family, Factor::SizeOf, Factor::Size];
    let others = Factor::ALL.iter().copied().filter(|factor| !first.contains(factor));
    let mut found = Vec::new();
    for factor in first.into_iter().chain(others) {
        let levels: BTreeSet<String> = cells.clone().map(|cell| cell.level(factor)).collect();
        let mut levels: Vec<String> = levels.into_iter().collect();
        if !first.contains(&factor) && levels.iter().all(String::is_empty) {
            continue;
        }
        levels.sort_by_key(|level| (level.parse::<u64>().unwrap_or(u64::MAX), level.clone()));
        found.push((factor, levels));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::of;
    use crate::page::tests::run;
    use crate::tests::fixtures::findings;
    use stacklab_model::Comparison;
    use stacklab_model::RunStatus;

    #[test]
    fn arms_against_themselves_make_no_factor() {
        let findings = findings();
        let mut runs = [run(0, RunStatus::Valid)];
        runs[0].trial.cell.replica = SELF_ARMS[1].to_owned();
        let index = Index::new(&findings, &runs);
        let names: Vec<String> = index.factors().into_iter().map(|factor| factor.name).collect();
        assert_eq!(names, ["transport", "family", "size_of", "size"]);
        let is_listed = index.cells().iter().any(|cell| cell.label.contains(SELF_ARMS[1]));
        assert!(is_listed, "the list of runs names the cell");
        runs[0].trial.cell.replica = "second machine".to_owned();
        let factors = Index::new(&findings, &runs).factors();
        assert!(factors.iter().any(|factor| factor.name == "replica"));
    }

    #[test]
    fn every_estimate_and_comparison_is_in_shown_units() {
        let mut found = findings();
        // Not the means over runs, as where trials were disturbed.
        for fitted in found.comparisons.iter_mut().filter_map(|row| row.fitted.as_mut()) {
            *fitted = [1.1 * fitted[0], 0.9 * fitted[1]];
        }
        let page = of(&found);
        assert_eq!(
            [page.estimates.len(), page.comparisons.len()],
            [found.cells.len(), found.comparisons.len()]
        );
        for estimate in &found.cells {
            let metric = page.metrics.iter().position(|view| view.name == estimate.metric.name()).unwrap();
            let cell = page.cells.iter().position(|view| view.label == estimate.cell.label()).unwrap();
            let view = page.estimates.iter().find(|view| (view.metric, view.cell) == (metric, cell)).unwrap();
            let (unit, factor) = match estimate.metric {
                Metric::Loss => ("%", 100.0),
                Metric::Rtt => ("us", 1000.0),
                Metric::Throughput => ("Mbit/s", 1.0),
                _ => (&page.metrics[metric].unit[..], 1.0),
            };
            assert_eq!(page.metrics[metric].unit, unit);
            let mut of_cell: Vec<&Comparison> = found.comparisons.iter().collect();
            of_cell.retain(|row| row.question.metric == estimate.metric);
            of_cell.retain(|row| row.question.cells().contains(&&estimate.cell));
            let mean = match of_cell[..] {
                // The figure that fits the difference, as in the table of the text.
                [Comparison { fitted: Some(fitted), question, .. }] => {
                    Some(fitted[usize::from(question.candidate == estimate.cell)])
                }
                _ => estimate.estimate.mean,
            };
            assert_eq!(view.mean, mean.map(|mean| factor * mean));
            assert_eq!((view.n, &view.missing), (estimate.estimate.n, &estimate.estimate.missing));
            // No mark of a footnote that is not there.
            assert!(!view.shown.contains('['), "{}", view.shown);
        }
    }
}
