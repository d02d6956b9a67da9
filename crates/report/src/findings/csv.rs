//! The comparisons as tidy CSV, and the columns that the CSV of two records shares.
//!
//! A row is a comparison, or a cell and metric that no comparison shows: then `factor` is empty, `baseline_*` hold its
//! estimate, and everything about a comparison is empty. Figures are unrounded and in the metric's unit (shares from 0
//! to 1); an empty field is an absent figure, never zero.

use crate::findings::estimates::uncompared;
use crate::rendering::csv::{self, Field, field};
use crate::rendering::format::OutputFormat;
use stacklab_model::{
    Cell, CellEstimate, Comparison, Estimate, Factor, Findings, Interval, Metric, Scale, StopReason, Verdict,
};

pub(crate) fn render(findings: &Findings, format: OutputFormat) -> String {
    let comparisons = findings.comparisons.iter().map(|one| fields(Some(one), None));
    let cells = uncompared(findings).map(|cell| fields(None, Some(cell)));
    csv::render(&fields(None, None), comparisons.chain(cells), format)
}

/// The row of a comparison or of a cell; without either, the columns.
pub(crate) fn fields(comparison: Option<&Comparison>, cell: Option<&CellEstimate>) -> Vec<Field> {
    let question = comparison.map(|one| &one.question);
    let factor = question.map(|question| question.factor);
    let level = |of: Option<&Cell>| Some(of?.level(factor?));
    let [baseline_cell, candidate_cell] =
        [question.map(|question| &question.baseline), question.map(|question| &question.candidate)];
    let subject = Subject {
        metric: question.map(|question| question.metric).or(cell.map(|cell| cell.metric)),
        cell: baseline_cell.or(cell.map(|cell| &cell.cell)),
        compared: factor,
        compares: true,
    };
    let baseline = comparison.map(|one| &one.baseline_estimate).or(cell.map(|cell| &cell.estimate));
    let candidate = comparison.map(|one| &one.candidate_estimate);
    let effect = comparison.and_then(|one| one.effect.as_ref());
    let fitted = |arm: usize| Some(comparison?.fitted?[arm]);
    let explained = comparison.and_then(|one| one.explained.as_ref());
    let verdict = comparison.map(|one| &one.verdict);
    let tests = comparison.and_then(|one| one.tests.as_ref());
    let claimed = comparison.and_then(|one| one.claimed_interval);
    let mut row =
        vec![field("factor", "the compared factor; empty in the row of a cell", factor.map(Factor::name))];
    row.extend(subject.fields());
    row.extend([
        field("baseline", "level compared with", level(baseline_cell)),
        field("candidate", "level compared", level(candidate_cell)),
        field("margin", MARGIN, question.map(|question| question.margin)),
    ]);
    row.extend(estimate("baseline_", None, baseline));
    row.extend(estimate("candidate_", Some("the baseline"), candidate));
    row.extend([
        field(
            "effect_scale",
            "`ratio`: candidate over baseline; `difference`: candidate minus baseline",
            effect.map(|effect| scale(effect.scale)),
        ),
        field("pairs", "blocks in which both arms have a figure", effect.map(|effect| effect.pairs as u64)),
        field("effect", "how far the candidate is from the baseline", effect.map(|effect| effect.estimate)),
        field("low95", "lower end of the effect's 95 % interval", effect.map(|effect| effect.interval95.low)),
        field(
            "high95",
            "upper end of the effect's 95 % interval",
            effect.map(|effect| effect.interval95.high),
        ),
        field(
            "baseline_fitted",
            "figure of the baseline that fits the effect, as tables print it",
            fitted(0),
        ),
        field(
            "candidate_fitted",
            "figure of the candidate that fits the effect, as tables print it",
            fitted(1),
        ),
        field(
            "explained",
            "the ratio that headers, or airtime on Wi-Fi, alone explain",
            explained.and_then(|explained| explained.ratio),
        ),
        field(
            "residual",
            "measured ratio over explained ratio",
            explained.and_then(|explained| explained.residual),
        ),
        field(
            "because",
            "the reasoning behind `explained`, or why it is empty",
            explained.map(|explained| explained.because.as_str()),
        ),
        field(
            "verdict",
            "`better`, `equivalent`, `inconclusive`, `none_seen` or `nothing`",
            verdict.map(verdict_name),
        ),
        field(
            "better",
            "the better level, where the verdict is `better`",
            match verdict {
                Some(Verdict::Better(level)) => Some(level.as_str()),
                _ => None,
            },
        ),
        field(
            "reason",
            "why there is nothing to compare, or the bounds on events that were not seen",
            match verdict {
                Some(Verdict::Nothing(reason) | Verdict::NoneSeen(reason)) => Some(reason.as_str()),
                _ => None,
            },
        ),
        field(
            "settled",
            "why no more was measured: `precise`, `decided`, `cap`, `budget` or `unfinished`",
            comparison.map(|one| match one.stop_reason {
                StopReason::Precise => "precise",
                StopReason::Decided => "decided",
                StopReason::Cap => "cap",
                StopReason::Budget => "budget",
                StopReason::Unfinished => "unfinished",
            }),
        ),
    ]);
    row.extend(subject.settings());
    row.extend([
        field("p", "two-sided p of no difference (paired t)", tests.map(|tests| tests.p)),
        field(
            "adjusted_p",
            "the same, adjusted for all comparisons (Benjamini and Hochberg); empty before the campaign has ended",
            tests.and_then(|tests| tests.adjusted_p),
        ),
        field(
            "equivalence_p",
            "p of a difference as large as the margin or larger (two one-sided tests)",
            tests.map(|tests| tests.equivalence_p),
        ),
        field(
            "adjusted_equivalence_p",
            "the same, adjusted likewise",
            tests.and_then(|tests| tests.adjusted_equivalence_p),
        ),
        field("e", "e-value against no difference, valid at any time", tests.map(|tests| tests.e)),
        field(
            "equivalence_e",
            "e-value against a difference as large as the margin or larger",
            tests.map(|tests| tests.equivalence_e),
        ),
    ]);
    row.extend(claimed_fields("`better` or `equivalent`", claimed));
    row.extend(median("baseline_", None, baseline));
    row.extend(median("candidate_", Some("the baseline"), candidate));
    row
}

pub(crate) const MARGIN: &str =
    "the largest difference that does not matter: a ratio (0.02 is 2 %), or in the unit";

/// The name of a verdict in CSV and metrics.
pub fn verdict_name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Better(_) => "better",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "inconclusive",
        Verdict::NoneSeen(_) => "none_seen",
        Verdict::Nothing(_) => "nothing",
    }
}

/// The name of a scale in CSV and metrics.
pub fn scale(scale: Scale) -> &'static str {
    match scale {
        Scale::Ratio => "ratio",
        Scale::Difference => "difference",
    }
}

pub(crate) fn claimed_fields(verdicts: &str, claimed: Option<Interval>) -> [Field; 2] {
    let low = format!("lower end of the effect's range where the verdict is {verdicts}, after selection");
    [
        field("claimed_low", low, claimed.map(|range| range.low)),
        field("claimed_high", "upper end of that range", claimed.map(|range| range.high)),
    ]
}

pub(crate) struct Subject<'a> {
    pub metric: Option<Metric>,
    pub cell: Option<&'a Cell>,
    /// The factor that the row compares. Its level has separate columns.
    pub compared: Option<Factor>,
    /// Whether rows can compare levels of a factor.
    pub compares: bool,
}

impl Subject<'_> {
    fn level(&self, factor: Factor) -> Option<String> {
        Some(self.cell?.level(factor)).filter(|_| self.compared != Some(factor))
    }

    /// Metric, unit, and the cell's levels.
    pub(crate) fn fields(&self) -> Vec<Field> {
        let empty = if self.compares { "; empty if it is the compared factor" } else { "" };
        let replica = if self.compares { ", or it is what is compared" } else { "" };
        let factors = [
            (Factor::Transport, format!("transport protocol{empty}")),
            (Factor::SizeOf, format!("what size means{empty}")),
            (Factor::Family, format!("address family{empty}")),
            (Factor::Size, format!("bytes{empty}")),
            (Factor::Replica, format!("replica; empty where there is none{replica}")),
        ];
        let mut fields = vec![
            field("metric", "the metric", self.metric.map(Metric::name)),
            field(
                "unit",
                "unit of means, and of effects on the difference scale",
                self.metric.map(|metric| metric.unit().symbol()),
            ),
        ];
        fields.extend(factors.map(|(factor, doc)| field(factor.name(), doc, self.level(factor))));
        fields
    }

    pub(crate) fn settings(&self) -> impl Iterator<Item = Field> {
        let compared = if self.compares { ", or is what is compared" } else { "" };
        let first = format!("level of this setting; empty if the default applies{compared}");
        let docs = std::iter::once(first).chain(std::iter::repeat("as for os".to_owned()));
        let factors = Factor::ALL.iter().filter(|factor| factor.is_setting());
        factors.zip(docs).map(|(factor, doc)| field(factor.name(), doc, self.level(*factor)))
    }
}

/// An estimate's fields, each name with a prefix. With `as_for`, they are documented as those of that name.
pub(crate) fn estimate(prefix: &str, as_for: Option<&str>, estimate: Option<&Estimate>) -> [Field; 7] {
    let interval = estimate.and_then(|estimate| estimate.interval);
    [
        field("n", "valid runs with a figure", estimate.map(|estimate| estimate.n as u64)),
        field("mean", "mean over runs", estimate.and_then(|estimate| estimate.mean)),
        field("sd", "standard deviation over runs (n - 1)", estimate.and_then(|estimate| estimate.sd)),
        field("median", "median over runs", estimate.and_then(|estimate| estimate.median)),
        field("low", "lower end of the mean's 95 % interval", interval.map(|interval| interval.low)),
        field("high", "upper end of the mean's 95 % interval", interval.map(|interval| interval.high)),
        field(
            "missing",
            "why runs have no figure, if any has none",
            estimate.and_then(|estimate| estimate.missing.as_deref()),
        ),
    ]
    .map(|field| prefixed(field, prefix, as_for))
}

fn median(prefix: &str, as_for: Option<&str>, estimate: Option<&Estimate>) -> [Field; 2] {
    let interval = estimate.and_then(|estimate| estimate.median_interval);
    [
        field("median_low", "lower end of the median's 95 % interval", interval.map(|interval| interval.low)),
        field(
            "median_high",
            "upper end of the median's 95 % interval",
            interval.map(|interval| interval.high),
        ),
    ]
    .map(|field| prefixed(field, prefix, as_for))
}

fn prefixed(field: Field, prefix: &str, as_for: Option<&str>) -> Field {
    let doc = as_for.map_or(field.doc, |other| format!("as for {other}").into());
    Field { name: format!("{prefix}{}", field.name).into(), doc, ..field }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::{findings, without_comparisons};

    fn rows(text: &str) -> Vec<::csv::StringRecord> {
        ::csv::Reader::from_reader(text.as_bytes())
            .records()
            .map(|row| row.expect("as wide as the header"))
            .collect()
    }

    fn cell<'a>(row: &'a ::csv::StringRecord, column: &str) -> &'a str {
        &row[fields(None, None).iter().position(|known| known.name == column).unwrap()]
    }

    #[test]
    fn a_row_for_each_comparison_reads_back_unrounded() {
        let findings = findings();
        let rows = rows(&render(&findings, OutputFormat::Csv));
        let compared = rows.iter().filter(|row| !cell(row, "factor").is_empty());
        for (row, comparison) in compared.zip(&findings.comparisons) {
            let effect = comparison.effect.as_ref();
            assert_eq!(cell(row, "effect").parse().ok(), effect.map(|effect| effect.estimate));
            assert_eq!(cell(row, "metric"), comparison.question.metric.name());
            assert_eq!(cell(row, "baseline_mean").parse().ok(), comparison.baseline_estimate.mean);
        }
        assert_eq!((cell(&rows[0], "verdict"), cell(&rows[0], "better")), ("better", "ipv4"));
    }

    #[test]
    fn what_is_missing_is_empty_and_says_why() {
        let findings = findings();
        let rows = rows(&render(&findings, OutputFormat::Csv));
        let nothing = rows.iter().find(|row| cell(row, "verdict") == "nothing").unwrap();
        assert_eq!((cell(nothing, "effect"), cell(nothing, "candidate_mean")), ("", ""));
        assert_eq!(cell(nothing, "candidate_n"), "0");
        assert!(!cell(nothing, "reason").is_empty() && !cell(nothing, "candidate_missing").is_empty());
    }

    #[test]
    fn a_study_without_comparisons_has_a_row_for_each_cell() {
        let findings = without_comparisons();
        let rows = rows(&render(&findings, OutputFormat::Csv));
        assert_eq!(rows.len(), findings.cells.len());
        assert_eq!((cell(&rows[0], "factor"), cell(&rows[0], "verdict")), ("", ""));
        assert_eq!(cell(&rows[0], "family"), findings.cells[0].cell.family.name());
        assert_eq!(cell(&rows[0], "baseline_mean").parse().ok(), findings.cells[0].estimate.mean);
        let median = findings.cells[0].estimate.median_interval.map(|interval| interval.low);
        assert_eq!(cell(&rows[0], "baseline_median_low").parse().ok(), median);
        assert!(median.is_some() && cell(&rows[0], "p").is_empty());
    }

    #[test]
    fn other_tests_stand_in_columns_of_their_own() {
        let findings = findings();
        let rows = rows(&render(&findings, OutputFormat::Csv));
        let tests = findings.comparisons[0].tests.as_ref().unwrap();
        for (column, expected) in [
            ("p", tests.p),
            ("adjusted_p", tests.adjusted_p.unwrap()),
            ("equivalence_e", tests.equivalence_e),
            ("e", tests.e),
        ] {
            assert_eq!(cell(&rows[0], column).parse(), Ok(expected), "{column}");
        }
        assert_eq!(
            cell(&rows[0], "candidate_fitted").parse().ok(),
            findings.comparisons[0].fitted.map(|two| two[1])
        );
        let median = findings.comparisons[0].candidate_estimate.median_interval.unwrap();
        assert_eq!(cell(&rows[0], "candidate_median_high").parse(), Ok(median.high));
    }
}
