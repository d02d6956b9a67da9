//! The comparisons as tidy CSV (RFC 4180).

use crate::findings::estimates::uncompared;
use stacklab_model::{
    Cell, CellEstimate, Comparison, Estimate, Factor, Findings, Interval, Metric, Scale, StopReason, Tests,
    Verdict,
};

/// The columns, with what each holds.
///
/// A row is a comparison, or a cell and metric that no comparison shows: then `factor` is empty, `baseline_*` hold its
/// estimate, and everything about a comparison is empty. Figures are unrounded and in the metric's unit (shares from 0
/// to 1); an empty field is an absent figure, never zero.
pub const COLUMNS: [(&str, &str); 76] = [
    ("factor", "what is compared; empty in the row of a cell"),
    ("metric", "the metric"),
    ("unit", "unit of means, and of effects on the difference scale"),
    ("transport", "transport protocol; empty where it is what is compared"),
    ("framing", "what size means; empty where it is what is compared"),
    ("family", "address family; empty where it is what is compared"),
    ("size", "bytes; empty where it is what is compared"),
    ("replica", "replica; empty where there is none, or it is what is compared"),
    ("baseline", "level compared with"),
    ("candidate", "level compared"),
    ("margin", "the largest difference that counts as none: a ratio (0.02 is 2 %), or in the unit"),
    ("baseline_n", "valid runs with a figure"),
    ("baseline_mean", "mean over runs"),
    ("baseline_sd", "standard deviation over runs (n - 1)"),
    ("baseline_median", "median over runs"),
    ("baseline_low", "lower end of the mean's 95 % interval"),
    ("baseline_high", "upper end of the mean's 95 % interval"),
    ("baseline_missing", "why runs have no figure, where any has none"),
    ("candidate_n", "as for the baseline"),
    ("candidate_mean", "as for the baseline"),
    ("candidate_sd", "as for the baseline"),
    ("candidate_median", "as for the baseline"),
    ("candidate_low", "as for the baseline"),
    ("candidate_high", "as for the baseline"),
    ("candidate_missing", "as for the baseline"),
    ("effect_scale", "`ratio`: candidate over baseline; `difference`: candidate minus baseline"),
    ("pairs", "blocks in which both arms have a figure"),
    ("effect", "how far the candidate is from the baseline"),
    ("low95", "lower end of the effect's 95 % interval"),
    ("high95", "upper end of the effect's 95 % interval"),
    ("explained", "the ratio that headers alone explain"),
    ("left", "measured ratio over explained ratio"),
    ("because", "the reasoning behind `explained`, or why it is empty"),
    ("verdict", "`better`, `equivalent`, `inconclusive` or `nothing`"),
    ("better", "the better level, where the verdict is `better`"),
    ("reason", "why there is nothing to compare, where the verdict is `nothing`"),
    ("settled", "why no more was measured: `narrow`, `decided`, `cap`, `budget` or `unfinished`"),
    ("os", "level of this setting; empty where it is left as it is, or is what is compared"),
    ("services", "as for os"),
    ("mechanism", "as for os"),
    ("routers", "as for os"),
    ("translator", "as for os"),
    ("io", "as for os"),
    ("flows", "as for os"),
    ("direction", "as for os"),
    ("mtu", "as for os"),
    ("queue_length", "as for os"),
    ("pinning", "as for os"),
    ("send_buffer", "as for os"),
    ("receive_buffer", "as for os"),
    ("mss", "as for os"),
    ("nodelay", "as for os"),
    ("congestion_control", "as for os"),
    ("dscp", "as for os"),
    ("flow_label", "as for os"),
    ("busy_poll", "as for os"),
    ("kernel_pacing", "as for os"),
    ("p", "two-sided p of no difference (paired t)"),
    ("adjusted_p", "the same, adjusted for the number of comparisons"),
    ("adjustment", "`holm` over the claims by the headline metric, else `benjamini-hochberg`"),
    ("equivalence_p", "p of a difference as large as the margin or larger (two one-sided tests)"),
    ("bootstrap_low95", "lower end of the effect's 95 % BCa bootstrap interval"),
    ("bootstrap_high95", "upper end of the effect's 95 % BCa bootstrap interval"),
    ("signed_rank_p", "two-sided p of Wilcoxon's signed-rank test"),
    ("hodges_lehmann", "Hodges and Lehmann's estimate of the effect"),
    ("hodges_lehmann_low95", "lower end of its 95 % interval"),
    ("hodges_lehmann_high95", "upper end of its 95 % interval"),
    ("ratio_of_medians", "median of the candidate's runs over the baseline's"),
    ("cliffs_delta", "how much more often the candidate's figure is the larger, -1 to 1"),
    ("drift_p", "p that the effect does not drift over the blocks (Mann and Kendall)"),
    ("autocorrelation", "correlation of the pairs with the ones before them"),
    ("widening", "by how much the effect's intervals are wider than Student's for it"),
    ("baseline_median_low", "lower end of the median's 95 % interval"),
    ("baseline_median_high", "upper end of the median's 95 % interval"),
    ("candidate_median_low", "as for the baseline"),
    ("candidate_median_high", "as for the baseline"),
];

/// Columns that a comparison has and a single cell has not, among the last ones.
const TESTS: usize = 15;

/// Header and rows.
pub fn render(findings: &Findings) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = COLUMNS.map(|(name, _)| name.to_owned()).to_vec();
    let comparisons = findings.comparisons.iter().map(comparison);
    for row in std::iter::once(header).chain(comparisons).chain(uncompared(findings).map(cell)) {
        writer.write_record(row).expect("every row has the header's columns, and memory can be written to");
    }
    let bytes = writer.into_inner().expect("memory can be written to");
    String::from_utf8(bytes).expect("CSV of strings is a string")
}

fn comparison(comparison: &Comparison) -> Vec<String> {
    let question = &comparison.question;
    let mut row = vec![question.factor.to_string()];
    row.extend(place(question.metric, &question.baseline, Some(question.factor)));
    row.extend([&question.baseline, &question.candidate].map(|cell| cell.level(question.factor)));
    row.push(question.margin.to_string());
    row.extend(
        [&comparison.baseline_estimate, &comparison.candidate_estimate].into_iter().flat_map(estimate),
    );
    row.extend(match &comparison.effect {
        None => [const { String::new() }; 5],
        Some(effect) => [
            match effect.scale {
                Scale::Ratio => "ratio".to_owned(),
                Scale::Difference => "difference".to_owned(),
            },
            effect.pairs.to_string(),
            effect.estimate.to_string(),
            effect.interval95.low.to_string(),
            effect.interval95.high.to_string(),
        ],
    });
    row.extend(match &comparison.explained {
        None => [const { String::new() }; 3],
        Some(explained) => [figure(explained.ratio), figure(explained.left), explained.because.clone()],
    });
    let (verdict, better, reason) = match &comparison.verdict {
        Verdict::Better(level) => ("better", level.as_str(), ""),
        Verdict::Equivalent => ("equivalent", "", ""),
        Verdict::Inconclusive => ("inconclusive", "", ""),
        Verdict::Nothing(reason) => ("nothing", "", reason.as_str()),
    };
    let stop_reason = match comparison.stop_reason {
        StopReason::Narrow => "narrow",
        StopReason::Decided => "decided",
        StopReason::Cap => "cap",
        StopReason::Budget => "budget",
        StopReason::Unfinished => "unfinished",
    };
    row.extend([verdict, better, reason, stop_reason].map(str::to_owned));
    row.extend(settings(&question.baseline, Some(question.factor)));
    row.extend(comparison.tests.as_ref().map_or([const { String::new() }; TESTS], tests));
    row.extend(median_interval(&comparison.baseline_estimate));
    row.extend(median_interval(&comparison.candidate_estimate));
    row
}

/// What other tests say of a comparison.
fn tests(tests: &Tests) -> [String; TESTS] {
    let low = |interval: Option<Interval>| figure(interval.map(|interval| interval.low));
    let high = |interval: Option<Interval>| figure(interval.map(|interval| interval.high));
    [
        figure(Some(tests.p)),
        figure(Some(tests.adjusted_p)),
        tests.adjustment.name().to_owned(),
        figure(Some(tests.equivalence_p)),
        low(tests.bootstrap95),
        high(tests.bootstrap95),
        figure(tests.signed_rank_p),
        figure(Some(tests.hodges_lehmann)),
        low(tests.hodges_lehmann95),
        high(tests.hodges_lehmann95),
        figure(tests.ratio_of_medians),
        figure(Some(tests.cliffs_delta)),
        figure(tests.order.map(|order| order.drift_p)),
        figure(tests.order.and_then(|order| order.autocorrelation)),
        figure(tests.order.map(|order| order.widening)),
    ]
}

fn median_interval(estimate: &Estimate) -> [String; 2] {
    let interval = estimate.median_interval;
    [figure(interval.map(|interval| interval.low)), figure(interval.map(|interval| interval.high))]
}

fn cell(cell: &CellEstimate) -> Vec<String> {
    let mut row = vec![String::new()];
    row.extend(place(cell.metric, &cell.cell, None));
    row.extend([const { String::new() }; 3]);
    row.extend(estimate(&cell.estimate));
    let settings: Vec<String> = settings(&cell.cell, None).collect();
    let first_setting = COLUMNS.iter().position(|(name, _)| *name == "os").expect("os is a column");
    row.resize(first_setting, String::new());
    row.extend(settings);
    row.extend([const { String::new() }; TESTS]);
    row.extend(median_interval(&cell.estimate));
    row.resize(COLUMNS.len(), String::new());
    row
}

/// The cell's settings but the one compared.
pub fn settings(cell: &Cell, compared: Option<Factor>) -> impl Iterator<Item = String> {
    let all = Factor::ALL.iter().filter(|factor| factor.is_setting());
    all.map(move |f| if Some(*f) == compared { String::new() } else { cell.level(*f) })
}

/// Metric, unit, and the cell's levels but the one compared.
pub fn place(metric: Metric, cell: &Cell, compared: Option<Factor>) -> Vec<String> {
    let factors = [Factor::Transport, Factor::Framing, Factor::Family, Factor::Size, Factor::Replica];
    let levels = factors.map(|f| if Some(f) == compared { String::new() } else { cell.level(f) });
    [metric.to_string(), metric.unit().symbol().to_owned()].into_iter().chain(levels).collect()
}

/// One cell's runs: how many, mean, standard deviation, median, interval, and why figures are missing.
pub fn estimate(estimate: &Estimate) -> [String; 7] {
    [
        estimate.n.to_string(),
        figure(estimate.mean),
        figure(estimate.sd),
        figure(estimate.median),
        figure(estimate.interval.map(|interval| interval.low)),
        figure(estimate.interval.map(|interval| interval.high)),
        estimate.missing.clone().unwrap_or_default(),
    ]
}

/// A figure unrounded; empty where there is none.
pub fn figure(figure: Option<f64>) -> String {
    figure.filter(|figure| figure.is_finite()).map(|figure| figure.to_string()).unwrap_or_default()
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
        &row[COLUMNS.iter().position(|(name, _)| *name == column).unwrap()]
    }

    #[test]
    fn a_row_for_each_comparison_reads_back_unrounded() {
        let findings = findings();
        let rows = rows(&render(&findings));
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
        let rows = rows(&render(&findings));
        let nothing = rows.iter().find(|row| field(row, "verdict") == "nothing").unwrap();
        assert_eq!((field(nothing, "effect"), field(nothing, "candidate_mean")), ("", ""));
        assert_eq!(field(nothing, "candidate_n"), "0");
        assert!(!field(nothing, "reason").is_empty() && !field(nothing, "candidate_missing").is_empty());
    }

    #[test]
    fn a_study_without_comparisons_has_a_row_for_each_cell() {
        let findings = without_comparisons();
        let rows = rows(&render(&findings));
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
        let rows = rows(&render(&findings));
        let tests = findings.comparisons[0].tests.as_ref().unwrap();
        for (column, expected) in [
            ("p", tests.p),
            ("adjusted_p", tests.adjusted_p),
            ("bootstrap_high95", tests.bootstrap95.unwrap().high),
            ("hodges_lehmann", tests.hodges_lehmann),
            ("widening", tests.order.unwrap().widening),
            ("cliffs_delta", tests.cliffs_delta),
        ] {
            assert_eq!(field(&rows[0], column).parse(), Ok(expected), "{column}");
        }
        assert_eq!(field(&rows[0], "adjustment"), "holm");
        let median = findings.comparisons[0].candidate_estimate.median_interval.unwrap();
        assert_eq!(field(&rows[0], "candidate_median_high").parse(), Ok(median.high));
    }
}
