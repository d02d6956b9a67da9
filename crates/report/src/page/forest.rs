//! The differences as a forest plot: each over all cells, with those of single cells, and the margin.

use crate::findings::groups::{control_arms, controls_of};
use crate::findings::{control, verdicts};
use crate::page::cells::Index;
use crate::page::document::{ControlView, ForestRow, Outcome, Span, round_to_digits};
use crate::rendering::numbers::{DisplayUnit, Distance, NONE, difference_places};
use stacklab_model::{
    Better, Comparison, Control, Effect, Factor, Findings, Headline, Interval, Metric, Question, Scale,
    Verdict, count, once_each,
};

type LevelPair<'a> = (Factor, &'a str, &'a str);

/// The pairs in the order of the answer.
pub(super) struct LevelPairs<'a>(Vec<LevelPair<'a>>);

impl<'a> LevelPairs<'a> {
    pub(super) fn new(findings: &'a Findings) -> Self {
        let pairs = findings.overall.iter().map(|one| (one.factor, &one.baseline[..], &one.candidate[..]));
        LevelPairs(once_each(pairs))
    }

    pub(super) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (factor, baseline, candidate) in &self.0 {
            names.push(if factor.is_setting() {
                // `MTU 1280 vs 1500`: the factor once.
                format!("{} {candidate} vs {baseline}", factor.label())
            } else {
                format!("{} vs {}", factor.level_label(candidate), factor.level_label(baseline))
            });
        }
        names
    }

    pub(super) fn of(&self, question: &Question) -> usize {
        let [baseline, candidate] =
            [&question.baseline, &question.candidate].map(|cell| cell.level(question.factor));
        self.number((question.factor, &baseline, &candidate))
    }

    fn number(&self, pair: LevelPair) -> usize {
        self.0.iter().position(|known| *known == pair).unwrap_or_default()
    }

    pub(super) fn rows(&self, findings: &Findings, index: &Index) -> Vec<ForestRow> {
        findings.overall.iter().map(|one| self.row(findings, one, index.find_unit(one.metric))).collect()
    }

    fn row(&self, findings: &Findings, one: &Headline, unit: DisplayUnit) -> ForestRow {
        let scale = one.metric.scale();
        let whole = one.effect.as_ref().and_then(|effect| span(effect, &unit));
        let controls = controls_of(&findings.same_arm, one.metric, one.transport, None);
        ForestRow {
            pair: self.number((one.factor, &one.baseline, &one.candidate)),
            metric: one.metric.label(),
            transport: one.transport.map(|transport| Factor::Transport.level_label(transport.name())),
            unit: unit.difference_unit.to_owned(),
            is_ratio: scale == Scale::Ratio,
            higher_is_better: one.metric.better() == Better::Higher,
            strength: match (&one.verdict, &whole) {
                (Verdict::Better(_), Some(whole)) => {
                    let by = whole.middle.abs();
                    let margin = unit.margin(scale, one.margin);
                    if by > margin { strength(by, margin) } else { 0 }
                }
                _ => 0,
            },
            outcome: outcome(&one.verdict, &one.candidate),
            words: words(one),
            shown: one.effect.as_ref().map_or_else(|| NONE.to_owned(), |effect| format_effect(effect, &unit)),
            whole,
            parts: findings
                .comparisons
                .iter()
                .filter(|comparison| is_part(one, comparison))
                .filter_map(|comparison| span(comparison.effect.as_ref()?, &unit))
                .collect(),
            margin: margin(one.metric, one.margin, &unit),
            controls: controls.into_iter().map(|found| control_view(found, one.factor, &unit)).collect(),
        }
    }
}

fn span(effect: &Effect, unit: &DisplayUnit) -> Option<Span> {
    let [middle, low, high] = Distance::from(effect).within(unit).map(|figure| round_to_digits(figure, 4));
    Some(Span { middle: middle?, low: low?, high: high? })
}

/// A control beside comparisons of a factor.
pub(super) fn control_view(control: &Control, factor: Factor, unit: &DisplayUnit) -> ControlView {
    let is_none_seen = control.is_none_seen();
    ControlView {
        arms: control_arms(control, factor),
        size: control.cell.size,
        sign: control::sign(control),
        whole: if is_none_seen { None } else { span(&control.effect, unit) },
        shown: if is_none_seen { "none seen".to_owned() } else { format_effect(&control.effect, unit) },
    }
}

/// How many comparisons have an answer, of how many.
pub(super) fn count_answers(findings: &Findings) -> String {
    let asked: usize = findings.overall.iter().map(|one| one.comparisons).sum();
    let answered: usize = findings.overall.iter().map(|one| one.answered).sum();
    format!("{answered} of {} answered", count(asked, "comparison"))
}

/// How large a difference is beside the margin: 1 up to twice, 2 up to five times, 3 more.
pub(super) fn strength(by: f64, margin: f64) -> u8 {
    match by {
        by if by > 5.0 * margin => 3,
        by if by > 2.0 * margin => 2,
        _ => 1,
    }
}

/// `-2.0 [-3.1, -0.9] %`, or `15.7x [15.3x, 16.1x]`.
pub(super) fn format_effect(effect: &Effect, unit: &DisplayUnit) -> String {
    let distance = Distance::from(effect);
    let text = distance.parts(unit, difference_places([distance], unit)).concat();
    if distance.is_factor() { text } else { format!("{text} {}", unit.difference_unit) }
}

fn words(one: &Headline) -> String {
    match &one.verdict {
        Verdict::Inconclusive if one.answered > 0 => {
            format!("{} of {} answered", one.answered, one.comparisons)
        }
        verdict => verdicts::words(verdict, |level| one.factor.level_label(level)),
    }
}

pub(super) fn outcome(verdict: &Verdict, candidate: &str) -> Outcome {
    match verdict {
        Verdict::Better(level) if level == candidate => Outcome::Candidate,
        Verdict::Better(_) => Outcome::Baseline,
        Verdict::Equivalent => Outcome::Equivalent,
        Verdict::Inconclusive => Outcome::Inconclusive,
        Verdict::NoneSeen(_) => Outcome::Unseen,
        Verdict::Nothing(_) => Outcome::Nothing,
    }
}

/// Ends of the differences that count as none, in the difference's unit.
pub(super) fn margin(metric: Metric, margin: f64, unit: &DisplayUnit) -> [f64; 2] {
    let scale = metric.scale();
    let Interval { low, high } = Interval::of_margin(scale, margin);
    [low, high].map(|end| round_to_digits(unit.difference(scale, end), 3).unwrap_or_default())
}

fn is_part(one: &Headline, comparison: &Comparison) -> bool {
    let question = &comparison.question;
    let transport = question.transport();
    (question.factor, question.metric, transport) == (one.factor, one.metric, one.transport)
        && question.baseline.level(one.factor) == one.baseline
        && question.candidate.level(one.factor) == one.candidate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::findings;
    use stacklab_model::Transport;

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
        findings.overall = vec![Headline {
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
            unpaired: None,
            verdict: Verdict::Inconclusive,
            margin: 0.25,
        }];
        let metric = of.question.metric;
        let transport = of.question.baseline.transport;
        assert_eq!((metric, transport), (Metric::Throughput, Transport::Tcp), "the fixture is a ratio's");
        let pairs = LevelPairs::new(&findings);
        assert_eq!((pairs.names(), pairs.of(&of.question)), (vec!["IPv6 vs IPv4".to_owned()], 0));
        let index = Index::new(&findings, &[]);
        let [row] = &pairs.rows(&findings, &index)[..] else { panic!("one row") };
        assert_eq!((row.metric.as_str(), row.transport.as_deref()), ("throughput", Some("TCP")));
        let whole = row.whole.as_ref().unwrap();
        assert_eq!((whole.middle, whole.low, row.unit.as_str()), (-5.0, -6.0, "%"));
        assert_eq!((row.shown.as_str(), row.words.as_str()), ("-5.0 [-6.0, -4.0] %", "1 of 1 answered"));
        assert!(row.is_ratio && row.higher_is_better && row.strength == 0);
        assert_eq!(row.margin, [-20.0, 25.0]);
        assert!(!row.parts.is_empty(), "{row:?}");
        // Better by 5 %, within a margin of 20 to 25 %; or beyond one of 2 %.
        let one = &mut findings.overall[0];
        (one.verdict, one.margin) = (Verdict::Better(one.baseline.clone()), 0.02);
        assert_eq!(count_answers(&findings), "1 of 1 comparison answered");
        let index = Index::new(&findings, &[]);
        let row = LevelPairs::new(&findings).rows(&findings, &index).remove(0);
        assert_eq!((row.outcome, row.strength, row.words.as_str()), (Outcome::Baseline, 2, "IPv4 better"));
    }

    fn make_effect(scale: Scale, estimate: f64, low: f64, high: f64) -> Effect {
        let interval = Interval { low, high };
        Effect {
            scale,
            pairs: 9,
            estimate,
            error: 0.1,
            degrees_of_freedom: 8.0,
            interval90: interval,
            interval95: interval,
        }
    }

    #[test]
    fn differences_have_the_text_reports_figures() {
        let rtt = DisplayUnit::of(Metric::Rtt);
        assert_eq!(
            format_effect(&make_effect(Scale::Ratio, 15.7, 15.28, 16.1), &rtt),
            "15.7x [15.3x, 16.1x]"
        );
        assert_eq!(format_effect(&make_effect(Scale::Ratio, 1.2, 0.02, 9.0), &rtt), "+20.0 [too wide] %");
        let late = DisplayUnit::fitting(Metric::PacingError, [0.02].into_iter());
        assert_eq!(
            format_effect(&make_effect(Scale::Difference, 0.01, 0.0, 0.02), &late),
            "+10.0 [0.0, +20.0] us"
        );
    }
}
