//! The differences as a forest plot: each over all cells, with those of single cells, and the margin.

use crate::page::document::{ForestRow, Span};
use crate::page::rounding::rounded;
use crate::rendering::numbers::DisplayUnit;
use stacklab_model::{Comparison, Effect, Factor, Findings, Interval, Overall};

/// The rows, in the order of the answer.
pub(super) fn rows(findings: &Findings) -> Vec<ForestRow> {
    findings.overall.iter().filter_map(|one| row(findings, one)).collect()
}

fn row(findings: &Findings, one: &Overall) -> Option<ForestRow> {
    let unit = DisplayUnit::of(one.metric);
    let span = |effect: &Effect| {
        let [middle, low, high] = [effect.estimate, effect.interval95.low, effect.interval95.high]
            .map(|figure| rounded(unit.difference(effect.scale, figure), 4));
        Some(Span { middle: middle?, low: low?, high: high? })
    };
    let scale = one.metric.scale();
    let Interval { low, high } = Interval::of_margin(scale, one.margin);
    let margin = |effect| rounded(unit.difference(scale, effect), 4);
    let transport =
        one.transport.map_or_else(String::new, |transport| format!(", {}", transport.name().to_uppercase()));
    let levels = [&one.candidate, &one.baseline].map(|level| one.factor.level_label(level));
    Some(ForestRow {
        label: format!("{}{transport}", one.metric.label()),
        arms: levels.join(" vs "),
        unit: unit.difference_unit.to_owned(),
        whole: span(one.effect.as_ref()?)?,
        parts: findings
            .comparisons
            .iter()
            .filter(|comparison| is_part(one, comparison))
            .filter_map(|comparison| span(comparison.effect.as_ref()?))
            .collect(),
        margin: [margin(low)?, margin(high)?],
    })
}

/// Whether a difference over all cells is over this comparison's, too.
fn is_part(one: &Overall, comparison: &Comparison) -> bool {
    let question = &comparison.question;
    let transport = (question.factor != Factor::Transport).then_some(question.baseline.transport);
    (question.factor, question.metric, transport) == (one.factor, one.metric, one.transport)
        && question.baseline.level(one.factor) == one.baseline
        && question.candidate.level(one.factor) == one.candidate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::findings;
    use stacklab_model::{Interval, Metric, Scale, Transport, Verdict};

    #[test]
    fn row_has_its_cells_and_the_margin_in_shown_units() {
        let mut findings = findings();
        let of = findings.comparisons.iter().find(|one| one.effect.is_some()).unwrap().clone();
        let interval = Interval { low: 0.94, high: 0.96 };
        let effect = Effect {
            scale: Scale::Ratio,
            pairs: 9,
            estimate: 0.95,
            error: 0.005,
            degrees_of_freedom: 8.0,
            interval90: interval,
            interval95: interval,
        };
        findings.overall = vec![Overall {
            factor: of.question.factor,
            baseline: of.question.baseline.level(of.question.factor),
            candidate: of.question.candidate.level(of.question.factor),
            metric: of.question.metric,
            transport: Some(of.question.baseline.transport),
            comparisons: 1,
            answered: 1,
            effect: Some(effect),
            range: None,
            claimed_range: None,
            verdict: Verdict::Inconclusive,
            margin: 0.25,
        }];
        let (metric, transport) = (of.question.metric, of.question.baseline.transport);
        assert_eq!((metric, transport), (Metric::Throughput, Transport::Tcp), "the fixture is a ratio's");
        let [row] = &rows(&findings)[..] else { panic!("one row") };
        assert_eq!((row.label.as_str(), row.arms.as_str()), ("throughput, TCP", "IPv6 vs IPv4"));
        assert_eq!((row.whole.middle, row.whole.low, row.unit.as_str()), (-5.0, -6.0, "%"));
        assert_eq!(row.margin, [-20.0, 25.0]);
        assert!(!row.parts.is_empty(), "{row:?}");
    }
}
