//! The comparisons as tidy CSV.

use crate::findings::control::CONTROL;
use crate::findings::estimates::list_uncompared_estimates;
use crate::findings::instructions::find_counts;
use crate::findings::verdicts::verdict_name;
use crate::rendering::column::{
    Column, Compares, Subject, cell_columns, estimate_columns, interval_columns, metric_columns,
    setting_columns,
};
use crate::rendering::csv;
use crate::rendering::format::OutputFormat;
use stacklab_model::{
    CellEstimate, Comparison, Control, Estimate, Factor, Findings, Interval, Metric, SELF_ARMS, Scale,
    StopReason, Tests, Verdict,
};
use std::collections::BTreeSet;

/// A row of the CSV of findings.
#[derive(Clone, Copy)]
pub(crate) enum CsvRow<'a> {
    /// With the instructions of its cells, if they were counted by its probe.
    Comparison(&'a Comparison, Option<[f64; 2]>),
    /// An A/A control: two replicas of one cell, by the labels that the record has.
    Control(&'a Control),
    /// A cell and metric that no comparison shows: it fills the columns of the baseline's estimate, and nothing of a
    /// comparison.
    Cell(&'a CellEstimate),
}

pub(crate) fn render(findings: &Findings, format: OutputFormat) -> String {
    let all = findings.comparisons.iter();
    let comparisons = all.map(|comparison| CsvRow::Comparison(comparison, find_counts(findings, comparison)));
    let controls = compared_controls(findings).map(CsvRow::Control);
    let cells = list_uncompared_estimates(findings).map(CsvRow::Cell);
    csv::render(&columns(), comparisons.chain(controls).chain(cells), format)
}

/// The controls of metrics that are compared: each trial has figures of others, too.
fn compared_controls(findings: &Findings) -> impl Iterator<Item = &Control> {
    let compared: BTreeSet<Metric> = findings.comparisons.iter().map(|one| one.question.metric).collect();
    findings.same_arm.iter().filter(move |control| compared.contains(&control.metric))
}

pub(crate) fn columns<'a>() -> Vec<Column<'a, CsvRow<'a>>> {
    let mut columns =
        vec![Column::text("factor", "the compared factor; empty in the row of a cell", |row: &CsvRow| {
            row.factor().map(Factor::name)
        })];
    columns.extend(metric_columns("unit of means, and of effects on the difference scale", CsvRow::metric));
    columns.extend(cell_columns(Compares::Factors, CsvRow::subject));
    columns.extend([
        Column::new_text("baseline", "level compared with", |row: &CsvRow| row.level(0)),
        Column::new_text("candidate", "level compared", |row: &CsvRow| row.level(1)),
        Column::figure(
            "margin",
            "the largest difference that does not matter: a ratio (0.02 is 2 %), or in the unit",
            |row: &CsvRow| Some(row.comparison()?.question.margin),
        ),
    ]);
    columns.extend(estimate_columns("baseline", None, CsvRow::baseline_estimate));
    columns.extend(estimate_columns("candidate", Some("the baseline"), CsvRow::candidate_estimate));
    columns.extend(difference_columns());
    columns.extend(verdict_columns());
    columns.extend(setting_columns(Compares::Factors, CsvRow::subject));
    columns.extend(test_columns());
    columns.extend(interval_columns(
        "claimed",
        [
            "lower end of the effect's range where the verdict is `better` or `equivalent`, after selection",
            "upper end of that range",
        ],
        |row: &CsvRow| row.comparison()?.claimed_interval,
    ));
    columns.extend(interval_columns(
        "baseline_median",
        ["lower end of the median's 95 % interval", "upper end of the median's 95 % interval"],
        |row: &CsvRow| row.baseline_estimate()?.median_interval,
    ));
    columns.extend(interval_columns("candidate_median", ["as for the baseline"; 2], |row: &CsvRow| {
        row.candidate_estimate()?.median_interval
    }));
    columns.extend([
        Column::figure(
            "baseline_instructions",
            "instructions per message of the baseline, if they were counted; of programs per request, of the end whose metric it is or of both",
            |row: &CsvRow| row.instructions(0),
        ),
        Column::figure("candidate_instructions", "the same of the candidate", |row: &CsvRow| {
            row.instructions(1)
        }),
    ]);
    columns
}

fn difference_columns<'a>() -> [Column<'a, CsvRow<'a>>; 10] {
    [
        Column::text(
            "effect_scale",
            "`ratio`: candidate over baseline; `difference`: candidate minus baseline",
            |row: &CsvRow| Some(scale(row.difference()?.scale)),
        ),
        Column::number(
            "pairs",
            "blocks in which both arms have a figure; 0 where runs are not paired",
            |row: &CsvRow| Some(row.difference()?.pairs),
        ),
        Column::figure("effect", "how far the candidate is from the baseline", |row: &CsvRow| {
            Some(row.difference()?.estimate)
        }),
        Column::figure("low95", "lower end of the effect's 95 % interval", |row: &CsvRow| {
            Some(row.difference()?.interval95.low)
        }),
        Column::figure("high95", "upper end of the effect's 95 % interval", |row: &CsvRow| {
            Some(row.difference()?.interval95.high)
        }),
        Column::figure(
            "baseline_fitted",
            "figure of the baseline that fits the effect, as tables print it",
            |row: &CsvRow| Some(row.fit()?[0]),
        ),
        Column::figure(
            "candidate_fitted",
            "figure of the candidate that fits the effect, as tables print it",
            |row: &CsvRow| Some(row.fit()?[1]),
        ),
        Column::figure(
            "explained",
            "the ratio that headers, or airtime on Wi-Fi, alone explain",
            |row: &CsvRow| row.comparison()?.explained.as_ref()?.ratio,
        ),
        Column::figure("residual", "measured ratio over explained ratio", |row: &CsvRow| {
            row.comparison()?.explained.as_ref()?.residual
        }),
        Column::text("because", "the reasoning behind `explained`, or why it is empty", |row: &CsvRow| {
            Some(row.comparison()?.explained.as_ref()?.because.as_str())
        }),
    ]
}

fn verdict_columns<'a>() -> [Column<'a, CsvRow<'a>>; 4] {
    [
        Column::text(
            "verdict",
            "`better`, `equivalent`, `inconclusive`, `none_seen` or `nothing`; `control` in the row of an A/A control",
            |row: &CsvRow| match row {
                CsvRow::Comparison(comparison, _) => Some(verdict_name(&comparison.verdict)),
                CsvRow::Control(_) => Some(CONTROL),
                CsvRow::Cell(_) => None,
            },
        ),
        Column::text("better", "the better level, where the verdict is `better`", |row: &CsvRow| match &row
            .comparison()?
            .verdict
        {
            Verdict::Better(level) => Some(level.as_str()),
            _ => None,
        }),
        Column::new_text(
            "reason",
            "why there is nothing to compare, or the bounds on events that were not seen and why they are no answer",
            |row: &CsvRow| list_reasons(row.comparison()?),
        ),
        Column::text(
            "settled",
            "why no more was measured: `precise`, `decided`, `cap`, `budget` or `unfinished`",
            |row: &CsvRow| {
                Some(match row.comparison()?.stop_reason {
                    StopReason::Precise => "precise",
                    StopReason::Decided => "decided",
                    StopReason::Cap => "cap",
                    StopReason::Budget => "budget",
                    StopReason::Unfinished => "unfinished",
                })
            },
        ),
    ]
}

fn test_columns<'a>() -> [Column<'a, CsvRow<'a>>; 6] {
    [
        Column::figure("p", "two-sided p of no difference (paired t)", |row: &CsvRow| match row {
            CsvRow::Control(control) => Some(control.p),
            row => Some(row.tests()?.p),
        }),
        Column::figure(
            "adjusted_p",
            "the same, adjusted for all comparisons (Benjamini and Hochberg); empty before the campaign has ended",
            |row: &CsvRow| row.tests()?.adjusted_p,
        ),
        Column::figure(
            "equivalence_p",
            "p of a difference as large as the margin or larger (two one-sided tests)",
            |row: &CsvRow| Some(row.tests()?.equivalence_p),
        ),
        Column::figure("adjusted_equivalence_p", "the same, adjusted likewise", |row: &CsvRow| {
            row.tests()?.adjusted_equivalence_p
        }),
        Column::figure("e", "e-value against no difference, valid at any time", |row: &CsvRow| {
            Some(row.tests()?.e)
        }),
        Column::figure(
            "equivalence_e",
            "e-value against a difference as large as the margin or larger",
            |row: &CsvRow| Some(row.tests()?.equivalence_e),
        ),
    ]
}

/// By how much the arms of a row differ.
struct Difference {
    scale: Scale,
    /// 0 if the runs are not paired.
    pairs: u64,
    estimate: f64,
    interval95: Interval,
}

impl<'a> CsvRow<'a> {
    fn comparison(&self) -> Option<&'a Comparison> {
        match self {
            CsvRow::Comparison(comparison, _) => Some(comparison),
            _ => None,
        }
    }

    /// The instructions per message or request of an arm: 0 is the baseline.
    fn instructions(&self, arm: usize) -> Option<f64> {
        match self {
            CsvRow::Comparison(_, Some(instructions)) => Some(instructions[arm]),
            _ => None,
        }
    }

    fn tests(&self) -> Option<&'a Tests> {
        self.comparison()?.tests.as_ref()
    }

    fn factor(&self) -> Option<Factor> {
        match self {
            CsvRow::Comparison(comparison, _) => Some(comparison.question.factor),
            CsvRow::Control(_) => Some(Factor::Replica),
            CsvRow::Cell(_) => None,
        }
    }

    fn metric(&self) -> Metric {
        match self {
            CsvRow::Comparison(comparison, _) => comparison.question.metric,
            CsvRow::Control(control) => control.metric,
            CsvRow::Cell(cell) => cell.metric,
        }
    }

    /// The levels of a control are not in its cell.
    fn subject(&self) -> Subject<'_> {
        match self {
            CsvRow::Comparison(comparison, _) => {
                Subject { cell: &comparison.question.baseline, compared: Some(comparison.question.factor) }
            }
            CsvRow::Control(control) => Subject { cell: &control.cell, compared: None },
            CsvRow::Cell(cell) => Subject { cell: &cell.cell, compared: None },
        }
    }

    /// The level of an arm: 0 is the baseline.
    fn level(&self, arm: usize) -> Option<String> {
        match self {
            CsvRow::Comparison(comparison, _) => {
                let question = &comparison.question;
                Some([&question.baseline, &question.candidate][arm].level(question.factor))
            }
            CsvRow::Control(_) => Some(SELF_ARMS[arm].to_owned()),
            CsvRow::Cell(_) => None,
        }
    }

    fn baseline_estimate(&self) -> Option<&Estimate> {
        Some(match self {
            CsvRow::Comparison(comparison, _) => &comparison.baseline_estimate,
            CsvRow::Control(control) => &control.estimates[0],
            CsvRow::Cell(cell) => &cell.estimate,
        })
    }

    fn candidate_estimate(&self) -> Option<&Estimate> {
        match self {
            CsvRow::Comparison(comparison, _) => Some(&comparison.candidate_estimate),
            CsvRow::Control(control) => Some(&control.estimates[1]),
            CsvRow::Cell(_) => None,
        }
    }

    fn fit(&self) -> Option<[f64; 2]> {
        match self {
            CsvRow::Comparison(comparison, _) => comparison.fitted,
            CsvRow::Control(control) => Some(control.fitted),
            CsvRow::Cell(_) => None,
        }
    }

    fn difference(&self) -> Option<Difference> {
        let effect = match self {
            CsvRow::Comparison(comparison, _) => comparison.effect.as_ref(),
            CsvRow::Control(control) => Some(&control.effect),
            CsvRow::Cell(_) => return None,
        };
        if let Some(effect) = effect {
            return Some(Difference {
                scale: effect.scale,
                pairs: effect.pairs as u64,
                estimate: effect.estimate,
                interval95: effect.interval95,
            });
        }
        let unpaired = self.comparison()?.unpaired.as_ref()?;
        Some(Difference {
            scale: unpaired.scale,
            pairs: 0,
            estimate: unpaired.estimate,
            interval95: unpaired.interval95,
        })
    }
}

/// Why there is no verdict, and the remarks on a comparison.
fn list_reasons(comparison: &Comparison) -> Option<String> {
    let mut reasons = Vec::new();
    if let Verdict::Nothing(reason) | Verdict::NoneSeen(reason) = &comparison.verdict {
        reasons.push(reason.clone());
    }
    let remarks = comparison.remarks.join("; ");
    if !remarks.is_empty() {
        reasons.push(remarks);
    }
    if reasons.is_empty() { None } else { Some(reasons.join("; ")) }
}

/// The name of a scale in CSV and metrics.
pub fn scale(scale: Scale) -> &'static str {
    match scale {
        Scale::Ratio => "ratio",
        Scale::Difference => "difference",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::{findings, without_comparisons};
    use crate::tests::rows::CsvRows;

    #[test]
    fn a_row_for_each_comparison_reads_back_unrounded() {
        let findings = findings();
        let rows = CsvRows::read(&render(&findings, OutputFormat::Csv));
        // Comparisons come first.
        for (row, comparison) in findings.comparisons.iter().enumerate() {
            let effect = comparison.effect.as_ref();
            assert_eq!(rows.at(row, "effect").parse().ok(), effect.map(|effect| effect.estimate));
            assert_eq!(rows.at(row, "metric"), comparison.question.metric.name());
            assert_eq!(rows.at(row, "baseline_mean").parse().ok(), comparison.baseline_estimate.mean);
        }
        assert_eq!([rows.at(0, "verdict"), rows.at(0, "better")], ["better", "ipv4"]);
    }

    #[test]
    fn what_is_missing_is_empty_and_says_why() {
        let findings = findings();
        let rows = CsvRows::read(&render(&findings, OutputFormat::Csv));
        let nothing = rows.find("verdict", "nothing")[0];
        assert_eq!([rows.at(nothing, "effect"), rows.at(nothing, "candidate_mean")], ["", ""]);
        assert_eq!(rows.at(nothing, "candidate_n"), "0");
        assert!(!rows.at(nothing, "reason").is_empty() && !rows.at(nothing, "candidate_missing").is_empty());
    }

    #[test]
    fn study_without_comparisons_has_a_row_for_each_cell() {
        let findings = without_comparisons();
        let rows = CsvRows::read(&render(&findings, OutputFormat::Csv));
        assert_eq!(rows.lines.len(), findings.cells.len());
        assert_eq!([rows.at(0, "factor"), rows.at(0, "verdict")], ["", ""]);
        assert_eq!(rows.at(0, "family"), findings.cells[0].cell.family.name());
        assert_eq!(rows.at(0, "baseline_mean").parse().ok(), findings.cells[0].estimate.mean);
        let median = findings.cells[0].estimate.median_interval.map(|interval| interval.low);
        assert_eq!(rows.at(0, "baseline_median_low").parse().ok(), median);
        assert!(median.is_some() && rows.at(0, "p").is_empty());
    }

    #[test]
    fn other_tests_stand_in_columns_of_their_own() {
        let findings = findings();
        let rows = CsvRows::read(&render(&findings, OutputFormat::Csv));
        let tests = findings.comparisons[0].tests.as_ref().unwrap();
        for (column, expected) in [
            ("p", tests.p),
            ("adjusted_p", tests.adjusted_p.unwrap()),
            ("equivalence_e", tests.equivalence_e),
            ("e", tests.e),
        ] {
            assert_eq!(rows.at(0, column).parse(), Ok(expected), "{column}");
        }
        assert_eq!(
            rows.at(0, "candidate_fitted").parse().ok(),
            findings.comparisons[0].fitted.map(|two| two[1])
        );
        let median = findings.comparisons[0].candidate_estimate.median_interval.unwrap();
        assert_eq!(rows.at(0, "candidate_median_high").parse(), Ok(median.high));
    }
}
