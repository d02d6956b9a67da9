//! How large a claimed difference is: the range that allows for the selection of the claims.

use crate::rendering::numbers::{
    DisplayUnit, factor, format_decimals, format_with_sign, is_factor, range, significant,
};
use stacklab_model::{Better, Change, Comparison, Headline, Interval, Metric, MetricDiff, Scale, Verdict};
use std::fmt;

/// The least and the most of a difference in the claimed direction, in the difference's unit.
///
/// The least is zero where the range includes no difference. That is possible: a comparison that is settled stays so,
/// whatever is measured afterwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Claimed {
    least: f64,
    most: f64,
    unit: &'static str,
}

impl Claimed {
    /// `None` if the whole range contradicts the direction.
    pub(crate) fn new(metric: Metric, scale: Scale, range: Interval, is_more: bool) -> Option<Self> {
        let unit = DisplayUnit::of_differences(metric, scale, [range.low, range.high].into_iter());
        let [low, high] = [range.low, range.high].map(|end| unit.difference(scale, end));
        let (least, most) = if is_more { (low, high) } else { (-high, -low) };
        (most > 0.0).then_some(Claimed { least: least.max(0.0), most, unit: unit.difference_unit })
    }

    pub(crate) fn with(self, other: Claimed) -> Claimed {
        Claimed { least: self.least.min(other.least), most: self.most.max(other.most), ..self }
    }
}

impl fmt::Display for Claimed {
    /// `1.2 to 4.0 %`, or `up to 4.0 %` where the least is printed as zero; `a factor of 3.7 to 7.4` above 100 %.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unit == "%" && self.most > 100.0 {
            let [least, most] = [self.least, self.most].map(|percent| significant(1.0 + percent / 100.0, 2));
            return if least == most {
                write!(f, "a factor of {most}")
            } else if is_zero(least.trim_start_matches('1')) {
                write!(f, "a factor of up to {most}")
            } else {
                write!(f, "a factor of {least} to {most}")
            };
        }
        let both = range(&[self.least, self.most], format_decimals);
        match both.split_once(" to ") {
            Some((least, most)) if is_zero(least) => write!(f, "up to {most} {}", self.unit),
            _ => write!(f, "{both} {}", self.unit),
        }
    }
}

/// Whether a figure is printed without any digit but zeros.
fn is_zero(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '0' | '.'))
}

pub(crate) fn of_row(row: &Comparison) -> Option<Claimed> {
    let Verdict::Better(level) = &row.verdict else { return None };
    let question = &row.question;
    let is_candidate = *level == question.candidate.level(question.factor);
    let scale = row.effect.as_ref()?.scale;
    Claimed::new(question.metric, scale, row.claimed_interval?, is_more(question.metric, is_candidate))
}

pub(crate) fn of_figure(row: &MetricDiff) -> Option<Claimed> {
    let is_better = match row.change {
        Change::Better => true,
        Change::Worse => false,
        _ => return None,
    };
    let effect = row.effect.as_ref()?;
    Claimed::new(row.metric, effect.scale, effect.claimed_interval?, is_more(row.metric, is_better))
}

/// Of a difference over all cells in which one arm is better, as of the candidate, its estimates: `1.2 to 4.0 % lower
/// throughput`, `throughput lower by a factor of 2.1 to 3.5`.
pub(crate) fn of_overall(one: &Headline) -> String {
    let is_candidate = one.verdict == Verdict::Better(one.candidate.clone());
    let is_more = is_more(one.metric, is_candidate);
    let estimates = one.range.map(|[low, high]| Interval { low, high });
    let claimed = estimates.and_then(|range| Claimed::new(one.metric, one.metric.scale(), range, is_more));
    words(one.metric, is_more, claimed)
}

/// A candidate that is worse, or lacks a figure: `IPv4 TCP 1408 B: new has 1.2 to 4.0 % lower throughput than old`.
pub fn worse(row: &Comparison) -> String {
    let question = &row.question;
    let [candidate, baseline] = [&question.candidate, &question.baseline]
        .map(|cell| question.factor.level_label(&cell.level(question.factor)));
    let difference = match row.candidate_estimate.n {
        0 => format!("lacks {}, unlike {baseline}", question.metric.label()),
        _ => {
            let is_more = is_more(question.metric, false);
            format!("has {} than {baseline}", words(question.metric, is_more, of_row(row)))
        }
    };
    format!("{}: {candidate} {difference}", question.candidate.label_without(Some(question.factor)))
}

fn words(metric: Metric, is_more: bool, claimed: Option<Claimed>) -> String {
    let way = if is_more { "higher" } else { "lower" };
    let metric = metric.label();
    match claimed.map(|claimed| claimed.to_string()) {
        Some(factor) if factor.starts_with("a factor") => format!("{metric} {way} by {factor}"),
        Some(percent) => format!("{percent} {way} {metric}"),
        None => format!("{way} {metric}"),
    }
}

/// `-10.0 to +0.1 %`, or `2.10x to 3.50x`.
pub(crate) fn range_text(metric: Metric, [low, high]: [f64; 2]) -> String {
    let unit = DisplayUnit::of_differences(metric, metric.scale(), [low, high].into_iter());
    let [from, to] = match is_factor(metric.scale(), high) {
        true => [low, high].map(factor),
        false => [low, high].map(|figure| format_with_sign(unit.difference(metric.scale(), figure), 1)),
    };
    let unit =
        if is_factor(metric.scale(), high) { String::new() } else { format!(" {}", unit.difference_unit) };
    if from == to { format!("{from}{unit}") } else { format!("{from} to {to}{unit}") }
}

/// Whether the candidate's figure is the higher one.
fn is_more(metric: Metric, is_candidate_better: bool) -> bool {
    is_candidate_better == (metric.better() == Better::Higher)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::compare_families;
    use stacklab_model::{Estimate, Transport};

    fn write_claim(low: f64, high: f64, is_more: bool) -> Option<String> {
        let claimed = Claimed::new(Metric::Throughput, Scale::Ratio, Interval { low, high }, is_more);
        claimed.map(|claimed| claimed.to_string())
    }

    #[test]
    fn range_is_in_the_claimed_direction() {
        assert_eq!(write_claim(0.96, 0.988, false).unwrap(), "1.2 to 4.0 %");
        assert_eq!(write_claim(1.012, 1.04, true).unwrap(), "1.2 to 4.0 %");
        assert_eq!(write_claim(1.04, 1.04, true).unwrap(), "4.0 %");
        assert_eq!(write_claim(3.7, 7.44, true).unwrap(), "a factor of 3.7 to 7.4");
        assert_eq!(write_claim(0.9, 2.5, true).unwrap(), "a factor of up to 2.5");
        assert_eq!(write_claim(1.0, 1.9, true).unwrap(), "up to 90.0 %");
        let points = Interval { low: -0.031, high: -0.012 };
        let claimed = Claimed::new(Metric::Loss, Scale::Difference, points, false).unwrap();
        assert_eq!(claimed.to_string(), "1.2 to 3.1 points");
    }

    #[test]
    fn range_with_zero_has_an_upper_end_alone() {
        // Settled, and more was measured since.
        assert_eq!(write_claim(0.96, 1.002, false).unwrap(), "up to 4.0 %");
        // No digit of the lower end is printed.
        assert_eq!(write_claim(0.96, 0.9998, false).unwrap(), "up to 4.0 %");
        assert_eq!(write_claim(0.9996, 0.9999, false).unwrap(), "0.01 to 0.04 %");
        // Nothing supports the claim's direction any more.
        assert_eq!(write_claim(1.001, 1.03, false), None);
    }

    #[test]
    fn ranges_of_several_claims_are_joined() {
        let [first, second] = [Interval { low: 1.02, high: 1.04 }, Interval { low: 1.01, high: 1.03 }]
            .map(|range| Claimed::new(Metric::Throughput, Scale::Ratio, range, true).unwrap());
        assert_eq!(first.with(second).to_string(), "1.0 to 4.0 %");
    }

    #[test]
    fn worse_candidate_is_named_with_its_range() {
        let verdict = Verdict::Better("ipv4".to_owned());
        let means = [(100.0, 1.0), (93.0, 1.0)];
        let mut row = compare_families(Transport::Udp, 128, Metric::Throughput, means, (0.93, 0.01), verdict);
        assert_eq!(worse(&row), "UDP 128 B: IPv6 has 5.5 to 8.5 % lower throughput than IPv4");
        row.candidate_estimate = Estimate::default();
        assert_eq!(worse(&row), "UDP 128 B: IPv6 lacks throughput, unlike IPv4");
    }
}
