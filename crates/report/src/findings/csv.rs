//! The comparisons as tidy CSV.
//!
//! A row is a comparison, or a cell and metric that no comparison shows: then `factor` is empty, `baseline_*` hold its
//! estimate, and everything about a comparison is empty. Figures are unrounded and in the metric's unit (shares from 0
//! to 1); an empty field is an absent figure, never zero.

use crate::findings::columns::{Subject, estimate, median_interval, settings, subject};
use crate::findings::estimates::uncompared;
use crate::rendering::columns::{self, Column, figure};
use crate::rendering::csv_cells::Cells;
use stacklab_model::{
    CellEstimate, Comparison, Effect, Estimate, Explained, Findings, Interval, Scale, StopReason, Tests,
    Verdict,
};

/// A row of the CSV.
#[derive(Clone)]
pub(crate) enum FindingRow {
    /// A comparison.
    Comparison(Box<Comparison>),
    /// A cell and metric that no comparison shows.
    Cell(Box<CellEstimate>),
}

impl FindingRow {
    fn comparison(&self) -> Option<&Comparison> {
        match self {
            FindingRow::Comparison(comparison) => Some(comparison),
            FindingRow::Cell(_) => None,
        }
    }

    fn subject(&self) -> Subject<'_> {
        match self {
            FindingRow::Comparison(comparison) => {
                let question = &comparison.question;
                let compared = Some(question.factor);
                Subject { metric: question.metric, cell: &question.baseline, compared }
            }
            FindingRow::Cell(cell) => Subject { metric: cell.metric, cell: &cell.cell, compared: None },
        }
    }

    fn baseline(&self) -> Option<&Estimate> {
        Some(match self {
            FindingRow::Comparison(comparison) => &comparison.baseline_estimate,
            FindingRow::Cell(cell) => &cell.estimate,
        })
    }

    fn candidate(&self) -> Option<&Estimate> {
        Some(&self.comparison()?.candidate_estimate)
    }
}

/// Header and rows.
pub(crate) fn render(findings: &Findings, texts: Cells) -> String {
    let comparisons = findings.comparisons.iter().map(|one| FindingRow::Comparison(Box::new(one.clone())));
    let cells = uncompared(findings).map(|cell| FindingRow::Cell(Box::new(cell.clone())));
    columns::render(&columns(), comparisons.chain(cells), texts)
}

/// The columns.
pub(crate) fn columns() -> Vec<Column<FindingRow>> {
    let mut columns =
        vec![compared("factor", "the compared factor; empty in the row of a cell", |comparison| {
            comparison.question.factor.to_string()
        })];
    columns.extend(subject(FindingRow::subject, true));
    columns.extend([
        compared("baseline", "level compared with", |comparison| {
            comparison.question.baseline.level(comparison.question.factor)
        }),
        compared("candidate", "level compared", |comparison| {
            comparison.question.candidate.level(comparison.question.factor)
        }),
        compared(
            "margin",
            "the largest difference that does not matter: a ratio (0.02 is 2 %), or in the unit",
            |comparison| comparison.question.margin.to_string(),
        ),
    ]);
    columns.extend(estimate("baseline_", None, FindingRow::baseline));
    columns.extend(estimate("candidate_", Some("the baseline"), FindingRow::candidate));
    columns.extend(effect());
    columns.extend(["baseline", "candidate"].into_iter().enumerate().map(|(arm, name)| {
        let doc = format!("figure of the {name} that fits the effect, as tables print it");
        Column::new(format!("{name}_fitted"), doc, move |row: &FindingRow| {
            figure(row.comparison().and_then(|comparison| Some(comparison.fitted?[arm])))
        })
    }));
    columns.extend(explained());
    columns.extend(verdict());
    columns.extend(settings(FindingRow::subject, true));
    columns.extend(tests());
    columns.extend(claimed());
    columns.extend(median_interval("baseline_", None, FindingRow::baseline));
    columns.extend(median_interval("candidate_", Some("the baseline"), FindingRow::candidate));
    columns
}

/// A column that is empty in the row of a cell.
fn compared(name: &str, doc: &str, value: fn(&Comparison) -> String) -> Column<FindingRow> {
    Column::new(name, doc, move |row: &FindingRow| row.comparison().map(value).unwrap_or_default())
}

/// The effect and its interval.
fn effect() -> [Column<FindingRow>; 5] {
    let column = |name: &str, doc: &str, value: fn(&Effect) -> String| {
        Column::new(name, doc, move |row: &FindingRow| {
            let effect = row.comparison().and_then(|comparison| comparison.effect.as_ref());
            effect.map(value).unwrap_or_default()
        })
    };
    [
        column(
            "effect_scale",
            "`ratio`: candidate over baseline; `difference`: candidate minus baseline",
            |effect| scale(effect.scale),
        ),
        column("pairs", "blocks in which both arms have a figure", |effect| effect.pairs.to_string()),
        column("effect", "how far the candidate is from the baseline", |effect| effect.estimate.to_string()),
        column("low95", "lower end of the effect's 95 % interval", |effect| {
            effect.interval95.low.to_string()
        }),
        column("high95", "upper end of the effect's 95 % interval", |effect| {
            effect.interval95.high.to_string()
        }),
    ]
}

/// The name of a scale.
pub(crate) fn scale(scale: Scale) -> String {
    match scale {
        Scale::Ratio => "ratio".to_owned(),
        Scale::Difference => "difference".to_owned(),
    }
}

/// The part that headers explain.
fn explained() -> [Column<FindingRow>; 3] {
    let column = |name: &str, doc: &str, value: fn(&Explained) -> String| {
        Column::new(name, doc, move |row: &FindingRow| {
            let explained = row.comparison().and_then(|comparison| comparison.explained.as_ref());
            explained.map(value).unwrap_or_default()
        })
    };
    [
        column("explained", "the ratio that headers, or airtime on Wi-Fi, alone explain", |explained| {
            figure(explained.ratio)
        }),
        column("residual", "measured ratio over explained ratio", |explained| figure(explained.residual)),
        column("because", "the reasoning behind `explained`, or why it is empty", |explained| {
            explained.because.clone()
        }),
    ]
}

/// The verdict and why no more was measured.
fn verdict() -> [Column<FindingRow>; 4] {
    [
        compared(
            "verdict",
            "`better`, `equivalent`, `inconclusive`, `none_seen` or `nothing`",
            |comparison| {
                let name = match comparison.verdict {
                    Verdict::Better(_) => "better",
                    Verdict::Equivalent => "equivalent",
                    Verdict::Inconclusive => "inconclusive",
                    Verdict::NoneSeen(_) => "none_seen",
                    Verdict::Nothing(_) => "nothing",
                };
                name.to_owned()
            },
        ),
        compared("better", "the better level, where the verdict is `better`", |comparison| match &comparison
            .verdict
        {
            Verdict::Better(level) => level.clone(),
            _ => String::new(),
        }),
        compared(
            "reason",
            "why there is nothing to compare, or the bounds on events that were not seen",
            |comparison| match &comparison.verdict {
                Verdict::Nothing(reason) | Verdict::NoneSeen(reason) => reason.clone(),
                _ => String::new(),
            },
        ),
        compared(
            "settled",
            "why no more was measured: `precise`, `decided`, `cap`, `budget` or `unfinished`",
            |comparison| {
                let name = match comparison.stop_reason {
                    StopReason::Precise => "precise",
                    StopReason::Decided => "decided",
                    StopReason::Cap => "cap",
                    StopReason::Budget => "budget",
                    StopReason::Unfinished => "unfinished",
                };
                name.to_owned()
            },
        ),
    ]
}

/// The tests behind the verdict.
fn tests() -> [Column<FindingRow>; 6] {
    let number = |name: &str, doc: &str, value: fn(&Tests) -> Option<f64>| {
        Column::new(name, doc, move |row: &FindingRow| {
            let tests = row.comparison().and_then(|comparison| comparison.tests.as_ref());
            figure(tests.and_then(value))
        })
    };
    [
        number("p", "two-sided p of no difference (paired t)", |tests| Some(tests.p)),
        number(
            "adjusted_p",
            "the same, adjusted for all comparisons (Benjamini and Hochberg); empty before the campaign has ended",
            |tests| tests.adjusted_p,
        ),
        number(
            "equivalence_p",
            "p of a difference as large as the margin or larger (two one-sided tests)",
            |tests| Some(tests.equivalence_p),
        ),
        number("adjusted_equivalence_p", "the same, adjusted likewise", |tests| tests.adjusted_equivalence_p),
        number("e", "e-value against no difference, valid at any time", |tests| Some(tests.e)),
        number("equivalence_e", "e-value against a difference as large as the margin or larger", |tests| {
            Some(tests.equivalence_e)
        }),
    ]
}

/// The range of a claim.
fn claimed() -> [Column<FindingRow>; 2] {
    let end = |name: &str, doc: &str, of: fn(&Interval) -> f64| {
        Column::new(name, doc, move |row: &FindingRow| {
            figure(row.comparison().and_then(|comparison| Some(of(&comparison.claimed_interval?))))
        })
    };
    [
        end(
            "claimed_low",
            "lower end of the effect's range where the verdict is `better` or `equivalent`, after selection",
            |range| range.low,
        ),
        end("claimed_high", "upper end of that range", |range| range.high),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::{findings, without_comparisons};

    fn rows(text: &str) -> Vec<csv::StringRecord> {
        csv::Reader::from_reader(text.as_bytes())
            .records()
            .map(|row| row.expect("as wide as the header"))
            .collect()
    }

    fn field<'a>(row: &'a csv::StringRecord, column: &str) -> &'a str {
        &row[columns().iter().position(|known| known.name == column).unwrap()]
    }

    #[test]
    fn a_row_for_each_comparison_reads_back_unrounded() {
        let findings = findings();
        let rows = rows(&render(&findings, Cells::Guarded));
        let compared = rows.iter().filter(|row| !field(row, "factor").is_empty());
        for (row, comparison) in compared.zip(&findings.comparisons) {
            let effect = comparison.effect.as_ref();
            assert_eq!(field(row, "effect").parse().ok(), effect.map(|effect| effect.estimate));
            assert_eq!(field(row, "metric"), comparison.question.metric.name());
            assert_eq!(field(row, "baseline_mean").parse().ok(), comparison.baseline_estimate.mean);
        }
        assert_eq!((field(&rows[0], "verdict"), field(&rows[0], "better")), ("better", "ipv4"));
    }

    #[test]
    fn what_is_missing_is_empty_and_says_why() {
        let findings = findings();
        let rows = rows(&render(&findings, Cells::Guarded));
        let nothing = rows.iter().find(|row| field(row, "verdict") == "nothing").unwrap();
        assert_eq!((field(nothing, "effect"), field(nothing, "candidate_mean")), ("", ""));
        assert_eq!(field(nothing, "candidate_n"), "0");
        assert!(!field(nothing, "reason").is_empty() && !field(nothing, "candidate_missing").is_empty());
    }

    #[test]
    fn a_study_without_comparisons_has_a_row_for_each_cell() {
        let findings = without_comparisons();
        let rows = rows(&render(&findings, Cells::Guarded));
        assert_eq!(rows.len(), findings.cells.len());
        assert_eq!((field(&rows[0], "factor"), field(&rows[0], "verdict")), ("", ""));
        assert_eq!(field(&rows[0], "family"), findings.cells[0].cell.family.name());
        assert_eq!(field(&rows[0], "baseline_mean").parse().ok(), findings.cells[0].estimate.mean);
        let median = findings.cells[0].estimate.median_interval.map(|interval| interval.low);
        assert_eq!(field(&rows[0], "baseline_median_low").parse().ok(), median);
        assert!(median.is_some() && field(&rows[0], "p").is_empty());
    }

    #[test]
    fn other_tests_stand_in_columns_of_their_own() {
        let findings = findings();
        let rows = rows(&render(&findings, Cells::Guarded));
        let tests = findings.comparisons[0].tests.as_ref().unwrap();
        for (column, expected) in [
            ("p", tests.p),
            ("adjusted_p", tests.adjusted_p.unwrap()),
            ("equivalence_e", tests.equivalence_e),
            ("e", tests.e),
        ] {
            assert_eq!(field(&rows[0], column).parse(), Ok(expected), "{column}");
        }
        assert_eq!(
            field(&rows[0], "candidate_fitted").parse().ok(),
            findings.comparisons[0].fitted.map(|two| two[1])
        );
        let median = findings.comparisons[0].candidate_estimate.median_interval.unwrap();
        assert_eq!(field(&rows[0], "candidate_median_high").parse(), Ok(median.high));
    }
}
