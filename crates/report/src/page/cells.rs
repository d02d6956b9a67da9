//! Factors, cells and metrics, numbered, and their estimates.

use crate::findings::comparisons::{definition, fit_cells, mean_decimals, means};
use crate::findings::groups;
use crate::page::document::{
    CellView, EstimateView, FactorView, LimitView, MetricView, PublishedSeries, rounded,
};
use crate::page::source::Published;
use crate::rendering::document::{Footnotes, without_mark};
use crate::rendering::numbers::DisplayUnit;
use stacklab_model::{
    Better, Cell, CellEstimate, CpuScope, Estimate, Factor, Findings, Metric, Probe, RunRecord, SELF_ARMS,
    once_each,
};
use std::collections::{BTreeSet, HashMap};

/// Printed for a setting that a cell does not set.
pub(crate) const AS_IT_IS: &str = "as it is";

pub(super) struct Index<'a> {
    cells: Vec<&'a Cell>,
    cell_numbers: HashMap<&'a Cell, usize>,
    metrics: Vec<Metric>,
    units: Vec<DisplayUnit>,
    paced: BTreeSet<Metric>,
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
        let unit = |metric: &Metric| {
            let of_metric = findings.cells.iter().filter(|estimate| estimate.metric == *metric);
            DisplayUnit::fitting(*metric, of_metric.filter_map(|estimate| estimate.estimate.mean))
        };
        let units = metrics.iter().map(unit).collect();
        let own = |cell: &&&Cell| SELF_ARMS.contains(&cell.replica.as_str());
        let factors = factors(cells.iter().filter(|cell| !own(cell)).copied());
        let is_paced = |metric: &Metric| runs.iter().any(|run| run.paces(*metric));
        let paced = metrics.iter().copied().filter(is_paced).collect();
        Index { cells, cell_numbers, metrics, units, paced, factors }
    }

    pub(super) fn cell(&self, cell: &Cell) -> Option<usize> {
        self.cell_numbers.get(cell).copied()
    }

    pub(super) fn metric(&self, metric: Metric) -> Option<usize> {
        self.metrics.iter().position(|known| *known == metric)
    }

    pub(super) fn shown(&self, metric: Metric) -> DisplayUnit {
        self.metric(metric).map_or_else(|| DisplayUnit::of(metric), |number| self.units[number])
    }

    pub(super) fn factor(&self, factor: Factor) -> usize {
        self.factors.iter().position(|(known, _)| *known == factor).unwrap_or(0)
    }

    pub(super) fn probe(&self, metric: Metric) -> Probe {
        if self.paced.contains(&metric) { Probe::Paced } else { metric.probe() }
    }

    pub(super) fn numbered_metrics(&self) -> impl Iterator<Item = (usize, Metric)> {
        self.metrics.iter().copied().enumerate()
    }

    pub(super) fn metrics(&self, cpu_scope: CpuScope) -> Vec<MetricView> {
        let view = |metric: &Metric| {
            let shown = self.shown(*metric);
            MetricView {
                name: metric.name().to_owned(),
                label: metric.label(),
                unit: shown.unit.to_owned(),
                difference_unit: shown.difference_unit.to_owned(),
                higher_is_better: metric.better() == Better::Higher,
                can_be_negative: metric.can_be_negative(),
                definition: format!("in {}", definition(*metric, &shown, cpu_scope)),
                probe: self.probe(*metric).name().to_owned(),
            }
        };
        self.metrics.iter().map(view).collect()
    }

    pub(super) fn factors(&self) -> Vec<FactorView> {
        let view = |(factor, levels): &(Factor, Vec<String>)| {
            let label = |level: &String| match level.as_str() {
                "" => AS_IT_IS.to_owned(),
                level => factor.level_below(level),
            };
            let alone = |level: &String| match level.as_str() {
                "" => format!("{} {AS_IT_IS}", factor.label()),
                level => factor.level_label(level),
            };
            let number = |level: &String| level.parse().ok().filter(|number: &f64| number.is_finite());
            FactorView {
                name: factor.name().to_owned(),
                label: factor.label(),
                labels: levels.iter().map(label).collect(),
                alone: levels.iter().map(alone).collect(),
                numbers: levels.iter().map(number).collect(),
                levels: levels.clone(),
            }
        };
        self.factors.iter().map(view).collect()
    }

    pub(super) fn cells(&self) -> Vec<CellView> {
        let level = |cell: &Cell, (factor, levels): &(Factor, Vec<String>)| {
            let level = cell.level(*factor);
            levels.iter().position(|known| *known == level).unwrap_or(0)
        };
        let view = |cell: &&Cell| CellView {
            label: cell.label(),
            levels: self.factors.iter().map(|factor| level(cell, factor)).collect(),
        };
        self.cells.iter().map(view).collect()
    }

    /// Every estimate, with the same decimals within a metric, transport and meaning of size. Those of a comparison are
    /// the figures of its table in the text.
    pub(super) fn estimates(&self, findings: &Findings) -> Vec<EstimateView> {
        let fitting = fit_cells(findings);
        let tables = groups::by_table(&findings.cells, |estimate| (estimate.metric, &estimate.cell), false);
        let mut views = Vec::new();
        for (metric, _, rows) in tables {
            let shown = self.shown(metric);
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
        let of = |figure: Option<f64>| figure.map(|figure| shown.factor * figure);
        let Estimate { n, mean, sd, median, interval, ref missing, .. } = *estimate;
        Some(EstimateView {
            cell: self.cell(&row.cell)?,
            metric: self.metric(row.metric)?,
            n,
            mean: of(mean),
            low: of(interval.map(|interval| interval.low)),
            high: of(interval.map(|interval| interval.high)),
            sd: of(sd),
            median: of(median),
            missing: missing.clone(),
            shown: text,
        })
    }

    pub(super) fn limits(&self, limits: &[(Cell, Metric, f64)]) -> Vec<LimitView> {
        let view = |(cell, metric, value): &(Cell, Metric, f64)| {
            let value = rounded(self.shown(*metric).factor * value, 9)?;
            Some(LimitView { cell: self.cell(cell)?, metric: self.metric(*metric)?, value })
        };
        limits.iter().filter_map(view).collect()
    }

    pub(super) fn published(&self, published: &[Published]) -> Vec<PublishedSeries> {
        let view = |series: &Published| {
            let Published { label, transport, mut points, .. } = series.clone();
            // Published figures are in the metric's usual unit.
            let times = self.shown(series.metric).factor / DisplayUnit::of(series.metric).factor;
            points.iter_mut().for_each(|(_, figure)| *figure *= times);
            Some(PublishedSeries { label, metric: self.metric(series.metric)?, transport, points })
        };
        published.iter().filter_map(view).collect()
    }
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
        let names = |replica: &str| {
            let mut run = run(0, RunStatus::Valid);
            run.trial.cell.replica = replica.to_owned();
            let runs = [run];
            let index = Index::new(&findings, &runs);
            let names: Vec<String> = index.factors().into_iter().map(|factor| factor.name).collect();
            (names, index.cells().into_iter().any(|cell| cell.label.contains(replica)))
        };
        let (plain, is_listed) = names(SELF_ARMS[1]);
        assert_eq!(plain, ["transport", "family", "size_of", "size"]);
        assert!(is_listed, "the list of runs names the cell");
        assert!(names("second machine").0.contains(&"replica".to_owned()));
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
            let is_arm = |row: &&Comparison| {
                row.question.metric == estimate.metric && row.question.cells().contains(&&estimate.cell)
            };
            let of_cell: Vec<&Comparison> = found.comparisons.iter().filter(is_arm).collect();
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
