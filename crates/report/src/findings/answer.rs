//! The answer of a campaign, in a sentence for each pair of levels and each transport.

use crate::findings::claims::{of_overall, range_text};
use crate::findings::groups::{MIN_COUNTED_LEVELS, group_by_key};
use crate::findings::so_far::{
    NOT_YET_CLAIMED, SO_FAR_BETTER, SO_FAR_WORSE, describe_plain, describe_way, has_no_data,
};
use crate::findings::why::why;
use crate::rendering::numbers::{
    DisplayUnit, Distance, difference_places, factor, format_decimals, is_factor,
};
use stacklab_model::{
    Comparison, Effect, Explanation, Factor, Findings, Headline, Metric, Scale, StopReason, UnpairedRange,
    Verdict, capitalize, count, once_each,
};
use std::collections::{BTreeMap, BTreeSet};

/// `Over UDP, IPv6 has 3.9 to 4.9 % lower throughput and 0.8 to 1.4 % higher RTT than IPv4; equivalent in loss. 40 of
/// 42 comparisons answered.` Pairs with such a claim come first. After each pair, why it differs, if that is known. Of
/// runs that were sampled only that. Many levels compared with one baseline have a sentence together. `None` without
/// comparisons.
pub(crate) fn answer(findings: &Findings) -> Option<String> {
    if has_no_data_yet(findings) {
        return Some(if findings.valid_runs == 0 { NO_RUNS_YET } else { NO_BLOCK_YET }.to_owned());
    }
    of_headlines(&findings.overall, &findings.comparisons, &findings.explanations, findings.is_sampled)
}

/// Whether a campaign is in its first seconds, so that nothing can be said of any comparison.
fn has_no_data_yet(findings: &Findings) -> bool {
    let mut comparisons = findings.comparisons.iter();
    if findings.is_sampled || findings.blocks >= 2 || comparisons.len() == 0 {
        return false;
    }
    comparisons.all(|one| {
        one.stop_reason == StopReason::Unfinished && one.effect.is_none() && one.unpaired.is_none()
    })
}

/// The same of differences over all cells, wherever they are from. `comparisons` say what an unfinished campaign shows.
pub(crate) fn of_headlines(
    all: &[Headline],
    comparisons: &[Comparison],
    explanations: &[Explanation],
    is_sampled: bool,
) -> Option<String> {
    let mut candidates: BTreeMap<(Factor, &str), BTreeSet<&str>> = BTreeMap::new();
    for one in all {
        candidates.entry((one.factor, &one.baseline)).or_default().insert(&one.candidate);
    }
    let is_many =
        |one: &Headline| candidates[&(one.factor, one.baseline.as_str())].len() >= MIN_COUNTED_LEVELS;
    let mut keyed = Vec::new();
    for one in all {
        let candidate = if is_many(one) { None } else { Some(&one.candidate) };
        // Two factors may have the same levels.
        keyed.push(((one.factor, &one.baseline, candidate, one.transport), one));
    }
    let mut groups = group_by_key(keyed.into_iter());
    groups.sort_by_key(|(_, group)| !group.iter().any(|one| matches!(one.verdict, Verdict::Better(_))));
    let mut sentences: Vec<String> = Vec::new();
    for (_, group) in groups {
        let first = group[0];
        if !is_sampled {
            let describe = if is_many(first) { of_many } else { sentence };
            sentences.push(describe(&group, comparisons));
        }
        for candidate in once_each(group.iter().map(|one| one.candidate.as_str())) {
            let arms = [first.baseline.as_str(), candidate];
            sentences.extend(why(explanations, first.factor, arms, first.transport));
        }
    }
    let sentences = sentences.join(" ");
    if is_sampled {
        return if sentences.is_empty() { None } else { Some(sentences) };
    }
    let asked: usize = all.iter().map(|one| one.comparisons).sum();
    let answered: usize = all.iter().map(|one| one.answered).sum();
    let text = format!("{sentences} {answered} of {} answered.", count(asked, "comparison"));
    if asked == 0 { None } else { Some(text) }
}

/// The transport, if it is not what differs: `over UDP`.
fn over(one: &Headline) -> Option<String> {
    one.transport.map(|of| format!("over {}", Factor::Transport.level_label(of.name())))
}

/// The outcome of imported runs.
const NOT_PAIRED: &str = "runs not paired";
const UNDECIDED: &str = "undecided";
const NOTHING: &str = "nothing to compare";
/// That of a campaign that has not measured it.
const NO_DATA: &str = "no data yet";
const NO_RUNS_YET: &str = "No data yet.";
const NO_BLOCK_YET: &str = "Nothing to compare yet: it takes two complete blocks.";

/// The outcome over all cells, as sentences name it.
fn outcome(one: &Headline) -> &'static str {
    match &one.verdict {
        Verdict::Better(level) if *level == one.baseline => "worse",
        Verdict::Better(_) => "better",
        Verdict::Equivalent => "equivalent",
        Verdict::NoneSeen(_) => "none seen",
        Verdict::Nothing(_) if one.unpaired.is_some() => NOT_PAIRED,
        Verdict::Nothing(_) => NOTHING,
        Verdict::Inconclusive if one.answered == one.comparisons => "differing by case",
        Verdict::Inconclusive if one.answered > 0 => "answered in part",
        Verdict::Inconclusive => UNDECIDED,
    }
}

/// The same; of a campaign that has not ended, that there is no data yet.
fn outcome_of_data(one: &Headline, comparisons: &[Comparison]) -> &'static str {
    match outcome(one) {
        NOTHING if has_no_data(one, comparisons) => NO_DATA,
        outcome => outcome,
    }
}

/// The same; of one that is undecided, how it looks so far in a campaign that has not ended.
fn outcome_so_far(one: &Headline, comparisons: &[Comparison]) -> &'static str {
    match outcome_of_data(one, comparisons) {
        UNDECIDED => describe_way(one, comparisons).unwrap_or(UNDECIDED),
        outcome => outcome,
    }
}

fn sentence(group: &[&Headline], comparisons: &[Comparison]) -> String {
    let first = group[0];
    let [candidate, baseline] =
        [&first.candidate, &first.baseline].map(|level| first.factor.level_label(level));
    let rest = describe_rest(group, comparisons);
    let claims = group.iter().filter(|one| matches!(one.verdict, Verdict::Better(_)));
    let mut claims: Vec<String> = claims.map(|one| of_overall(one)).collect();
    let Some(last) = claims.pop() else {
        let over = over(first).map_or_else(String::new, |over| format!(" {over}"));
        return format!("{candidate} vs {baseline}{over}: {rest}.");
    };
    let over = over(first).map_or_else(String::new, |over| format!("{}, ", capitalize(&over)));
    let claims = if claims.is_empty() { last } else { format!("{} and {last}", claims.join(", ")) };
    let rest = if rest.is_empty() { rest } else { format!("; {rest}") };
    format!("{over}{candidate} has {claims} than {baseline}{rest}.")
}

/// The metrics in which no arm is called better, by what is said of them.
fn describe_rest(group: &[&Headline], comparisons: &[Comparison]) -> String {
    const OPEN: [&str; 2] = ["differing by case:", "answered in part:"];
    let plain: Vec<Option<String>> = group.iter().map(|one| describe_plain(one, comparisons)).collect();
    let not_paired = format!("{NOT_PAIRED}, so no verdict:");
    let mut parts = Vec::new();
    for words in [
        OPEN[0],
        OPEN[1],
        "equivalent in",
        "none seen of",
        NOT_YET_CLAIMED,
        UNDECIDED,
        NO_DATA,
        not_paired.as_str(),
        NOTHING,
    ] {
        let mut metrics = Vec::new();
        for (one, plain) in group.iter().zip(&plain) {
            match plain {
                Some(plain) if words == NOT_YET_CLAIMED => metrics.push(plain.clone()),
                Some(_) if words == UNDECIDED => {}
                _ if !words.starts_with(outcome_of_data(one, comparisons)) => {}
                _ if OPEN.contains(&words) => metrics.push(by_cell(one)),
                _ => metrics.push(match &one.unpaired {
                    Some(found) if words == not_paired => not_paired_by(one, found),
                    _ => one.metric.label(),
                }),
            }
        }
        if !metrics.is_empty() {
            let preposition = if [UNDECIDED, NO_DATA, NOTHING].contains(&words) { " in" } else { "" };
            parts.push(format!("{words}{preposition} {}", metrics.join(", ")));
        }
    }
    parts.join("; ")
}

/// `12 mechanisms vs native over UDP: throughput worse with 3, undecided with 9; ..`.
fn of_many(group: &[&Headline], comparisons: &[Comparison]) -> String {
    let first = group[0];
    let levels = once_each(group.iter().map(|one| one.candidate.as_str())).len();
    let mut metrics = Vec::new();
    for metric in once_each(group.iter().map(|one| one.metric)) {
        let counts = count_outcomes(group, comparisons, metric);
        if !counts.is_empty() {
            metrics.push(format!("{} {}", metric.label(), counts.join(", ")));
        }
    }
    let text = if metrics.is_empty() { "nothing to compare".to_owned() } else { metrics.join("; ") };
    let baseline = first.factor.level_label(&first.baseline);
    let over = over(first).map_or_else(String::new, |over| format!(" {over}"));
    format!("{levels} {} vs {baseline}{over}: {text}.", first.factor.plural())
}

/// `worse with 3`, `undecided with 9`: the levels of a group with each outcome in a metric.
fn count_outcomes(group: &[&Headline], comparisons: &[Comparison], metric: Metric) -> Vec<String> {
    let of_metric = group.iter().filter(|one| one.metric == metric);
    let outcomes: Vec<&str> = of_metric.map(|one| outcome_so_far(one, comparisons)).collect();
    let mut counts = Vec::new();
    for name in [
        "worse",
        "better",
        "differing by case",
        "answered in part",
        "equivalent",
        "none seen",
        SO_FAR_BETTER,
        SO_FAR_WORSE,
        UNDECIDED,
        NO_DATA,
        NOT_PAIRED,
    ] {
        let n = outcomes.iter().filter(|outcome| **outcome == name).count();
        if n > 0 {
            counts.push(format!("{name} with {n}"));
        }
    }
    counts
}

/// `throughput (-10.0 to +0.1 %, 3 of 6 answered)`: what holds at one size does not at another.
fn by_cell(one: &Headline) -> String {
    let range = match one.range {
        None => String::new(),
        Some([0.0, 0.0]) => "no difference, ".to_owned(),
        Some(range) => format!("{}, ", range_text(one.metric, range)),
    };
    format!("{} ({range}{} of {} answered)", one.metric.label(), one.answered, one.comparisons)
}

/// `throughput (+13.0 %, 2 and 2 runs)`.
fn not_paired_by(one: &Headline, found: &UnpairedRange) -> String {
    let runs = found.runs.map_or_else(String::new, |[first, second]| format!(", {first} and {second} runs"));
    format!("{} ({}{runs})", one.metric.label(), range_text(one.metric, found.range))
}

/// `throughput 4.4 ± 0.3 % lower`.
pub fn difference(metric: Metric, effect: &Effect) -> String {
    let unit = DisplayUnit::of(metric);
    let distance = Distance::from(effect);
    let [estimate, ..] = distance.within(&unit);
    let half = distance.half_width(&unit);
    let decimals = difference_places([distance], &unit);
    let than_none = if effect.scale == Scale::Ratio { effect.estimate - 1.0 } else { effect.estimate };
    let way = if than_none > 0.0 { "higher" } else { "lower" };
    let metric = metric.label();
    if is_factor(effect.scale, effect.estimate) {
        return format!("{metric} higher by a factor of {}", factor(effect.estimate).trim_end_matches('x'));
    }
    let [by, half] = [estimate.abs(), half].map(|figure| format_decimals(figure, decimals));
    format!("{metric} {by} ± {half} {} {way}", unit.difference_unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::{explanations, findings};
    use stacklab_model::{Interval, Transport};

    fn overall(metric: Metric, transport: Transport, estimate: f64, verdict: Verdict) -> Headline {
        let interval = Interval { low: estimate - 0.003, high: estimate + 0.003 };
        Headline {
            factor: Factor::Family,
            baseline: "ipv4".into(),
            candidate: "ipv6".into(),
            metric,
            transport: Some(transport),
            comparisons: 6,
            answered: if verdict == Verdict::Inconclusive { 4 } else { 6 },
            effect: Some(Effect {
                scale: metric.scale(),
                pairs: 60,
                estimate,
                error: 0.0015,
                degrees_of_freedom: 40.0,
                interval90: interval,
                interval95: interval,
            }),
            range: Some([estimate - 0.02, estimate + 0.01]),
            claimed_range: Some(Interval { low: estimate - 0.005, high: estimate + 0.005 }),
            unpaired: None,
            verdict,
            margin: 0.02,
        }
    }

    #[test]
    fn events_that_neither_arm_had_are_no_difference() {
        let loss = overall(Metric::Loss, Transport::Udp, 0.0, Verdict::Inconclusive);
        let none = Headline { range: Some([0.0, 0.0]), ..loss };
        assert_eq!(by_cell(&none), "loss (no difference, 4 of 6 answered)");
    }

    #[test]
    fn answer_names_different_equivalent_and_open_metrics() {
        use Metric::*;
        let overall = vec![
            overall(Throughput, Transport::Udp, 0.956, Verdict::Better("ipv4".into())),
            overall(Loss, Transport::Udp, 0.0, Verdict::Equivalent),
            overall(Rtt, Transport::Udp, 1.011, Verdict::Better("ipv4".into())),
            overall(Throughput, Transport::Tcp, 0.99, Verdict::Inconclusive),
            Headline { answered: 0, ..overall(Rtt, Transport::Tcp, 1.0, Verdict::Inconclusive) },
        ];
        let said = answer(&Findings { overall, ..findings() }).unwrap();
        assert_eq!(
            said,
            "Over UDP, IPv6 has 3.4 to 6.4 % lower throughput and up to 2.1 % higher RTT than IPv4; equivalent in \
             loss. IPv6 vs IPv4 over TCP: answered in part: throughput (-3.0 to 0.0 %, 4 of 6 answered); undecided in RTT. \
             22 of 30 comparisons answered."
        );
        assert_eq!(answer(&Findings { overall: vec![], ..findings() }), None);
    }

    #[test]
    fn runs_that_are_not_paired_have_their_difference() {
        fn of(metric: Metric, unpaired: Option<UnpairedRange>) -> Headline {
            let nothing = Verdict::Nothing("no block has both".into());
            let one = overall(metric, Transport::Tcp, 1.0, nothing);
            Headline { answered: 0, comparisons: 1, range: None, unpaired, ..one }
        }
        let overall = vec![
            of(Metric::Throughput, Some(UnpairedRange { range: [1.13, 1.13], runs: Some([2, 2]) })),
            of(Metric::Rtt, Some(UnpairedRange { range: [0.98, 1.04], runs: None })),
            of(Metric::Retransmits, None),
        ];
        assert_eq!(
            answer(&Findings { overall, ..findings() }).unwrap(),
            "IPv6 vs IPv4 over TCP: runs not paired, so no verdict: throughput (+13.0 %, 2 and 2 runs), RTT (-2.0 to \
             +4.0 %); nothing to compare in retransmits. 0 of 3 comparisons answered."
        );
    }

    #[test]
    fn campaign_in_its_first_seconds_has_no_data_yet() {
        let mut found = Findings { blocks: 1, ..findings() };
        for one in &mut found.comparisons {
            (one.stop_reason, one.effect) = (StopReason::Unfinished, None);
        }
        assert_eq!(answer(&found).unwrap(), NO_BLOCK_YET);
        found.valid_runs = 0;
        assert_eq!(answer(&found).unwrap(), NO_RUNS_YET);
        found.comparisons[0].stop_reason = StopReason::Cap;
        assert_ne!(answer(&found).unwrap_or_default(), NO_RUNS_YET);
    }

    #[test]
    fn many_levels_have_one_sentence() {
        let mut overall = Vec::new();
        for (level, verdict) in [
            ("6in4", Verdict::Better("native".into())),
            ("gre4", Verdict::Better("native".into())),
            ("nat64", Verdict::Nothing("not carried".into())),
            ("siit", Verdict::Equivalent),
            ("ipip", Verdict::Inconclusive),
        ] {
            overall.push(Headline {
                factor: Factor::Mechanism,
                baseline: "native".into(),
                candidate: level.into(),
                ..self::overall(Metric::Throughput, Transport::Udp, 0.9, verdict)
            });
        }
        overall[4].answered = 0;
        let said = answer(&Findings { overall: overall.clone(), ..findings() }).unwrap();
        assert_eq!(
            said,
            "5 mechanisms vs native over UDP: throughput worse with 2, equivalent with 1, undecided with 1. 24 of \
             30 comparisons answered."
        );
        // As many as tables have room for are named.
        let few = answer(&Findings { overall: overall[..3].to_vec(), ..findings() }).unwrap();
        assert!(few.starts_with("Over UDP, 6in4 has"), "{few}");
        assert!(few.contains("lower throughput than native."), "{few}");
    }

    #[test]
    fn factors_with_the_same_levels_have_a_sentence_each() {
        let mut overall = vec![overall(Metric::Throughput, Transport::Tcp, 1.0, Verdict::Equivalent); 2];
        for (one, factor) in overall.iter_mut().zip([Factor::SendBuffer, Factor::ReceiveBuffer]) {
            one.factor = factor;
            one.baseline = "65536".into();
            one.candidate = "1048576".into();
        }
        let said = answer(&Findings { overall, ..findings() }).unwrap();
        let send = "send buffer 1048576 vs send buffer 65536 over TCP: equivalent in throughput";
        assert!(said.contains(send), "{said}");
        assert!(said.contains("receive buffer 1048576 vs receive buffer 65536 over TCP"), "{said}");
    }

    #[test]
    fn answer_says_why_and_only_that_for_sampled_runs() {
        let overall =
            vec![overall(Metric::Throughput, Transport::Udp, 0.956, Verdict::Better("ipv4".into()))];
        let explained = Findings { overall, explanations: explanations(), ..findings() };
        let why = "Why, stream UDP 128 B: mostly route lookup, +74 ± 12 of +122 ns per message.";
        assert_eq!(
            answer(&explained).unwrap(),
            format!(
                "Over UDP, IPv6 has 3.4 to 6.4 % lower throughput than IPv4. {why} 6 of 6 comparisons answered."
            )
        );
        assert_eq!(answer(&Findings { is_sampled: true, ..explained }).unwrap(), why);
    }
}
