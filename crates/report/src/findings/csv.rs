//! The comparisons as tidy CSV, and the columns that the CSV of two records shares.
//!
//! A row is a comparison, an A/A control, or a cell and metric that no comparison shows: then `factor` is empty,
//! `baseline_*` hold its estimate, and everything about a comparison is empty.

use crate::findings::control::CONTROL;
use crate::findings::estimates::uncompared;
use crate::findings::verdicts::verdict_name;
use crate::rendering::csv::{self, Field, FieldValue, cell_fields, field, setting_fields};
use crate::rendering::format::OutputFormat;
use stacklab_model::{
    CellEstimate, Comparison, Control, Estimate, Factor, Findings, Interval, Metric, SELF_ARMS, Scale,
    StopReason, Tests, Verdict,
};
use std::collections::BTreeSet;

pub(crate) fn render(findings: &Findings, format: OutputFormat) -> String {
    let comparisons = findings.comparisons.iter().map(|one| fields(Some(one), None));
    let controls = compared_controls(findings).map(control_fields);
    let cells = uncompared(findings).map(|cell| fields(None, Some(cell)));
    csv::render(&fields(None, None), comparisons.chain(controls).chain(cells), format)
}

/// The controls of metrics that are compared: each trial has figures of others, too.
fn compared_controls(findings: &Findings) -> impl Iterator<Item = &Control> {
    let compared: BTreeSet<Metric> = findings.comparisons.iter().map(|one| one.question.metric).collect();
    findings.same_arm.iter().filter(move |control| compared.contains(&control.metric))
}

/// The row of an A/A control: two replicas of one cell, by the labels that the record has.
fn control_fields(control: &Control) -> Vec<Field> {
    let [first, second] = &control.estimates;
    let effect = &control.effect;
    let cell = CellEstimate { cell: control.cell.clone(), metric: control.metric, estimate: first.clone() };
    let mut row = fields(None, Some(&cell));
    let mut filled = vec![
        field("factor", Some(Factor::Replica.name())),
        field("baseline", Some(SELF_ARMS[0])),
        field("candidate", Some(SELF_ARMS[1])),
        field("effect_scale", Some(scale(effect.scale))),
        field("pairs", Some(effect.pairs as u64)),
        field("effect", Some(effect.estimate)),
        field("low95", Some(effect.interval95.low)),
        field("high95", Some(effect.interval95.high)),
        field("baseline_fitted", Some(control.fitted[0])),
        field("candidate_fitted", Some(control.fitted[1])),
        field("verdict", Some(CONTROL)),
        field("p", Some(control.p)),
    ];
    filled.extend(estimate("candidate_", Some(second)));
    filled.extend(interval("candidate_median", second.median_interval));
    for Field { name, value } in filled {
        set(&mut row, &name, value);
    }
    row
}

fn set(row: &mut [Field], name: &str, value: FieldValue) {
    let known = row.iter_mut().find(|known| known.name == name);
    known.expect("a row has all columns").value = value;
}

/// The row of a comparison or of a cell; without either, the columns.
pub(crate) fn fields(comparison: Option<&Comparison>, cell: Option<&CellEstimate>) -> Vec<Field> {
    let question = comparison.map(|one| &one.question);
    let factor = question.map(|question| question.factor);
    let baseline_cell = question.map(|question| &question.baseline);
    let subject = baseline_cell.or(cell.map(|cell| &cell.cell));
    let baseline = comparison.map(|one| &one.baseline_estimate).or(cell.map(|cell| &cell.estimate));
    let candidate = comparison.map(|one| &one.candidate_estimate);
    let mut row = vec![field("factor", factor.map(Factor::name))];
    row.extend(metric_fields(question.map(|question| question.metric).or(cell.map(|cell| cell.metric))));
    row.extend(cell_fields(subject, factor));
    row.extend([
        field("baseline", question.map(|question| question.baseline.level(question.factor))),
        field("candidate", question.map(|question| question.candidate.level(question.factor))),
        field("margin", question.map(|question| question.margin)),
    ]);
    row.extend(estimate("baseline_", baseline));
    row.extend(estimate("candidate_", candidate));
    row.extend(difference_fields(comparison));
    row.extend(verdict_fields(comparison));
    row.extend(setting_fields(subject, factor));
    row.extend(test_fields(comparison.and_then(|one| one.tests.as_ref())));
    row.extend(interval("claimed", comparison.and_then(|one| one.claimed_interval)));
    for (arm, estimate) in [("baseline", baseline), ("candidate", candidate)] {
        let median = estimate.and_then(|estimate| estimate.median_interval);
        row.extend(interval(&format!("{arm}_median"), median));
    }
    row
}

/// By how much the arms of a comparison differ.
struct Difference {
    scale: Scale,
    /// 0 if the runs are not paired.
    pairs: u64,
    estimate: f64,
    interval95: Interval,
}

fn difference_of(comparison: &Comparison) -> Option<Difference> {
    if let Some(effect) = &comparison.effect {
        return Some(Difference {
            scale: effect.scale,
            pairs: effect.pairs as u64,
            estimate: effect.estimate,
            interval95: effect.interval95,
        });
    }
    let found = comparison.unpaired.as_ref()?;
    Some(Difference { scale: found.scale, pairs: 0, estimate: found.estimate, interval95: found.interval95 })
}

fn difference_fields(comparison: Option<&Comparison>) -> [Field; 10] {
    let difference = comparison.and_then(difference_of);
    let difference = difference.as_ref();
    let fitted = comparison.and_then(|one| one.fitted);
    let explained = comparison.and_then(|one| one.explained.as_ref());
    [
        field("effect_scale", difference.map(|found| scale(found.scale))),
        field("pairs", difference.map(|found| found.pairs)),
        field("effect", difference.map(|found| found.estimate)),
        field("low95", difference.map(|found| found.interval95.low)),
        field("high95", difference.map(|found| found.interval95.high)),
        field("baseline_fitted", fitted.map(|[baseline, _]| baseline)),
        field("candidate_fitted", fitted.map(|[_, candidate]| candidate)),
        field("explained", explained.and_then(|explained| explained.ratio)),
        field("residual", explained.and_then(|explained| explained.residual)),
        field("because", explained.map(|explained| explained.because.as_str())),
    ]
}

fn verdict_fields(comparison: Option<&Comparison>) -> [Field; 4] {
    let better = match comparison.map(|one| &one.verdict) {
        Some(Verdict::Better(level)) => Some(level.as_str()),
        _ => None,
    };
    let settled = comparison.map(|one| match one.stop_reason {
        StopReason::Precise => "precise",
        StopReason::Decided => "decided",
        StopReason::Cap => "cap",
        StopReason::Budget => "budget",
        StopReason::Unfinished => "unfinished",
    });
    [
        field("verdict", comparison.map(|one| verdict_name(&one.verdict))),
        field("better", better),
        field("reason", comparison.and_then(reason_of)),
        field("settled", settled),
    ]
}

/// Why there is no verdict, and the remarks on a comparison.
fn reason_of(comparison: &Comparison) -> Option<String> {
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

fn test_fields(tests: Option<&Tests>) -> [Field; 6] {
    [
        field("p", tests.map(|tests| tests.p)),
        field("adjusted_p", tests.and_then(|tests| tests.adjusted_p)),
        field("equivalence_p", tests.map(|tests| tests.equivalence_p)),
        field("adjusted_equivalence_p", tests.and_then(|tests| tests.adjusted_equivalence_p)),
        field("e", tests.map(|tests| tests.e)),
        field("equivalence_e", tests.map(|tests| tests.equivalence_e)),
    ]
}

/// The name of a scale in CSV and metrics.
pub fn scale(scale: Scale) -> &'static str {
    match scale {
        Scale::Ratio => "ratio",
        Scale::Difference => "difference",
    }
}

pub(crate) fn metric_fields(metric: Option<Metric>) -> [Field; 2] {
    let unit = metric.map(|metric| metric.unit().symbol());
    [field("metric", metric.map(Metric::name)), field("unit", unit)]
}

/// `NAME_low` and `NAME_high`.
pub(crate) fn interval(name: &str, interval: Option<Interval>) -> [Field; 2] {
    let field = |end: &str, value| field(format!("{name}_{end}"), value);
    [field("low", interval.map(|ends| ends.low)), field("high", interval.map(|ends| ends.high))]
}

/// An estimate's fields, each name with a prefix.
pub(crate) fn estimate(prefix: &str, estimate: Option<&Estimate>) -> [Field; 7] {
    let interval = estimate.and_then(|estimate| estimate.interval);
    [
        field("n", estimate.map(|estimate| estimate.n as u64)),
        field("mean", estimate.and_then(|estimate| estimate.mean)),
        field("sd", estimate.and_then(|estimate| estimate.sd)),
        field("median", estimate.and_then(|estimate| estimate.median)),
        field("low", interval.map(|interval| interval.low)),
        field("high", interval.map(|interval| interval.high)),
        field("missing", estimate.and_then(|estimate| estimate.missing.as_deref())),
    ]
    .map(|field| Field { name: format!("{prefix}{}", field.name).into(), ..field })
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
    fn study_without_comparisons_has_a_row_for_each_cell() {
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
