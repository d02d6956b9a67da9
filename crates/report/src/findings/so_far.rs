//! What a campaign that has not ended shows of its open comparisons. None of it is a claim, and no word of it may read
//! as one.

use crate::findings::claims::{Claimed, range_text};
use stacklab_model::{APPEARS, Better, Comparison, Headline, Interval, Metric, StopReason, Verdict, count};

/// What comes before such differences in the answer.
pub(crate) const NOT_YET_CLAIMED: &str = "not yet claimed, as the campaign has not ended:";

/// Whether an inconclusive comparison of a campaign that has not ended looks lower or higher.
pub(crate) fn is_plain(row: &Comparison) -> bool {
    row.effect.is_some()
        && row.verdict == Verdict::Inconclusive
        && row.remarks.iter().any(|remark| remark.starts_with(APPEARS))
}

/// Whether a campaign that has not ended has too few runs of a comparison, and nothing else keeps it from one.
pub(crate) fn is_without_data(row: &Comparison) -> bool {
    row.stop_reason == StopReason::Unfinished
        && row.effect.is_none()
        && row.unpaired.is_none()
        && row.baseline_estimate.missing.is_none()
        && row.candidate_estimate.missing.is_none()
}

/// Whether that is so of all comparisons of a headline.
pub(crate) fn has_no_data(one: &Headline, comparisons: &[Comparison]) -> bool {
    let mut rows = comparisons.iter().filter(|row| is_of(one, row)).peekable();
    rows.peek().is_some() && rows.all(is_without_data)
}

/// The comparisons of a headline that look lower or higher so far.
pub(crate) fn list_plain<'a>(one: &Headline, comparisons: &'a [Comparison]) -> Vec<&'a Comparison> {
    comparisons.iter().filter(|row| is_of(one, row) && is_plain(row)).collect()
}

fn is_of(one: &Headline, row: &Comparison) -> bool {
    let question = &row.question;
    let transport = question.transport();
    question.factor == one.factor
        && question.metric == one.metric
        && transport == one.transport
        && question.baseline.level(question.factor) == one.baseline
        && question.candidate.level(question.factor) == one.candidate
}

/// `throughput looks lower by 69.1 to 80.8 % in 6 of 7 cases (about 4 blocks more)`; `None` if nothing is plain.
pub(crate) fn describe_plain(one: &Headline, comparisons: &[Comparison]) -> Option<String> {
    let rows = list_plain(one, comparisons);
    let mut parts = Vec::new();
    for is_higher in [false, true] {
        let of_way: Vec<&Comparison> =
            rows.iter().copied().filter(|row| looks_higher(row) == is_higher).collect();
        if of_way.is_empty() {
            continue;
        }
        let way = if is_higher { "higher" } else { "lower" };
        let by = describe_amount(one.metric, &of_way, is_higher);
        parts.push(format!("{way}{by}{}", describe_cases(of_way.len(), one.comparisons)));
    }
    if parts.is_empty() {
        return None;
    }
    let more = rows.iter().filter_map(|row| row.more_blocks).max();
    let more = more.map_or_else(String::new, |more| format!(" (about {} more)", count(more, "block")));
    Some(format!("{} looks {}{more}", one.metric.label(), parts.join(" and ")))
}

/// How a candidate looks so far in all comparisons of a headline that are plain: `looks worse so far`.
pub(crate) fn describe_way(one: &Headline, comparisons: &[Comparison]) -> Option<&'static str> {
    let rows = list_plain(one, comparisons);
    let is_higher = looks_higher(rows.first()?);
    if rows.iter().any(|row| looks_higher(row) != is_higher) {
        return None;
    }
    let is_better = is_higher == (one.metric.better() == Better::Higher);
    Some(if is_better { SO_FAR_BETTER } else { SO_FAR_WORSE })
}

pub(crate) const SO_FAR_BETTER: &str = "looks better, not claimed,";
pub(crate) const SO_FAR_WORSE: &str = "looks worse, not claimed,";

fn looks_higher(row: &Comparison) -> bool {
    row.effect.as_ref().is_some_and(|effect| effect.scale.to_distance(effect.estimate) > 0.0)
}

/// `-80.8 to -69.1 %`: the estimates of those that are plain; `None` if none is.
pub(crate) fn describe_estimates(rows: &[&Comparison]) -> Option<String> {
    let plain: Vec<&Comparison> = rows.iter().copied().filter(|row| is_plain(row)).collect();
    let metric = plain.first()?.question.metric;
    let range = find_range(&plain);
    Some(range_text(metric, [range.low, range.high]))
}

/// ` by 69.1 to 80.8 %`, from the lowest to the highest estimate.
fn describe_amount(metric: Metric, rows: &[&Comparison], is_higher: bool) -> String {
    let amount = Claimed::new(metric, metric.scale(), find_range(rows), is_higher);
    amount.map_or_else(String::new, |amount| format!(" by {amount}"))
}

/// From the lowest to the highest estimate.
fn find_range(rows: &[&Comparison]) -> Interval {
    let mut range = Interval { low: f64::INFINITY, high: f64::NEG_INFINITY };
    for effect in rows.iter().filter_map(|row| row.effect.as_ref()) {
        range = Interval { low: range.low.min(effect.estimate), high: range.high.max(effect.estimate) };
    }
    range
}

fn describe_cases(some: usize, all: usize) -> String {
    match some {
        _ if all == 1 => String::new(),
        _ if some == all => format!(" in all {all} cases"),
        _ => format!(" in {some} of {all} cases"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::answer::answer;
    use crate::tests::fixtures::no_estimate;
    use crate::tests::fixtures::{compare_families, findings};
    use crate::{OutputFormat, WIDTH, render};
    use stacklab_model::Factor;
    use stacklab_model::{Estimate, Findings, Transport};

    fn row(size: u32, estimate: f64) -> Comparison {
        let arms = [(86.1, 11.3), (86.1 * estimate, 2.8)];
        let of = (estimate, 0.01);
        let row = compare_families(Transport::Tcp, size, Metric::Throughput, arms, of, Verdict::Inconclusive);
        let remarks = vec![format!("{APPEARS} lower: no claim before the campaign has ended")];
        Comparison { stop_reason: StopReason::Unfinished, remarks, ..row }
    }

    /// A headline of comparisons by one metric, of which none is answered.
    fn headline(rows: &[Comparison]) -> Headline {
        Headline {
            factor: Factor::Family,
            baseline: "ipv4".into(),
            candidate: "ipv6".into(),
            metric: Metric::Throughput,
            transport: Some(Transport::Tcp),
            comparisons: rows.len(),
            answered: 0,
            effect: None,
            range: None,
            claimed_range: None,
            unpaired: None,
            verdict: Verdict::Inconclusive,
            margin: 0.02,
        }
    }

    fn answer_of(comparisons: Vec<Comparison>) -> String {
        let overall = vec![headline(&comparisons)];
        answer(&Findings { overall, comparisons, ..findings() }).unwrap()
    }

    #[test]
    fn answer_says_what_is_visible_and_not_claimed() {
        let rows = vec![row(64, 0.19), row(128, 0.31)];
        assert_eq!(
            answer_of(rows.clone()),
            "IPv6 vs IPv4 over TCP: not yet claimed, as the campaign has not ended: throughput looks lower by 69.0 to \
             81.0 % in all 2 cases. 0 of 2 comparisons answered."
        );
        let open = Comparison { remarks: Vec::new(), ..row(1408, 1.0) };
        let needs = Comparison { more_blocks: Some(4), ..row(256, 1.5) };
        assert_eq!(
            answer_of([rows, vec![open.clone(), needs]].concat()),
            "IPv6 vs IPv4 over TCP: not yet claimed, as the campaign has not ended: throughput looks lower by 69.0 to \
             81.0 % in 2 of 4 cases and higher by 50.0 % in 1 of 4 cases (about 4 blocks more). 0 of 4 comparisons \
             answered."
        );
        assert_eq!(
            answer_of(vec![open]),
            "IPv6 vs IPv4 over TCP: undecided in throughput. 0 of 1 comparison answered."
        );
    }

    #[test]
    fn metric_without_runs_so_far_has_no_data_yet() {
        let row = Comparison {
            effect: None,
            baseline_estimate: Estimate::default(),
            candidate_estimate: Estimate::default(),
            verdict: Verdict::Nothing("no block has both".into()),
            ..row(64, 1.0)
        };
        assert_eq!(
            answer_one(row.clone()),
            "IPv6 vs IPv4 over TCP: no data yet in throughput. 0 of 1 comparison answered."
        );
        let nothing = "IPv6 vs IPv4 over TCP: nothing to compare in throughput. 0 of 1 comparison answered.";
        assert_eq!(answer_one(Comparison { stop_reason: StopReason::Cap, ..row.clone() }), nothing);
        let missing = no_estimate("the stack does not report it");
        assert_eq!(answer_one(Comparison { baseline_estimate: missing, ..row }), nothing);
    }

    /// The answer of one comparison whose verdict is also the one over all cells.
    fn answer_one(row: Comparison) -> String {
        let overall = vec![Headline { verdict: row.verdict.clone(), ..headline(std::slice::from_ref(&row)) }];
        answer(&Findings { overall, comparisons: vec![row], ..findings() }).unwrap()
    }

    #[test]
    fn answered_part_keeps_its_own_words() {
        let rows = vec![row(64, 0.19), Comparison { verdict: Verdict::Equivalent, ..row(128, 1.0) }];
        let overall = vec![Headline { answered: 1, range: Some([1.0, 1.0]), ..headline(&rows) }];
        assert_eq!(
            answer(&Findings { overall, comparisons: rows, ..findings() }).unwrap(),
            "IPv6 vs IPv4 over TCP: answered in part: throughput (0.0 %, 1 of 2 answered); not yet claimed, as the \
             campaign has not ended: throughput looks lower by 81.0 % in 1 of 2 cases. 1 of 2 comparisons answered."
        );
    }

    #[test]
    fn levels_of_many_are_counted_by_their_way() {
        let levels = ["6in4", "gre4", "ipip", "siit"];
        let mut rows = Vec::new();
        let mut overall = Vec::new();
        for (place, level) in levels.into_iter().enumerate() {
            let mut row = row(64, if place < 3 { 0.5 } else { 1.5 });
            row.question.factor = Factor::Mechanism;
            row.question.baseline.set(Factor::Mechanism, "native").unwrap();
            row.question.candidate = row.question.baseline.clone();
            row.question.candidate.set(Factor::Mechanism, level).unwrap();
            let one = headline(std::slice::from_ref(&row));
            overall.push(Headline {
                factor: Factor::Mechanism,
                baseline: "native".into(),
                candidate: level.into(),
                ..one
            });
            rows.push(row);
        }
        let found = Findings { overall, comparisons: rows, ..findings() };
        let text = render(&found, OutputFormat::Text, WIDTH);
        assert!(text.contains("? -50.0 %") && text.contains("? +50.0 %"), "{text}");
        let legend = text.replace('\n', " ");
        assert!(legend.contains("? undecided, with a figure: how it looks so far"), "{text}");
        assert_eq!(
            answer(&found).unwrap(),
            "4 mechanisms vs native over TCP: throughput looks better, not claimed, with 1, looks worse, not claimed, \
             with 3. 0 of 4 comparisons answered."
        );
    }
}
