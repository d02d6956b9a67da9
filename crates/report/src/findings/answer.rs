//! The answer of a campaign, in a sentence for each pair of levels and each transport.

use crate::findings::claims::of_overall;
use crate::findings::groups::level_name;
use crate::findings::why::why;
use crate::rendering::numbers::{DisplayUnit, fixed, signed};
use stacklab_model::{Effect, Factor, Findings, Metric, Overall, Scale, Transport, Verdict};

/// `ipv6 against ipv4 over udp: throughput 3.9 to 4.9 % lower, rtt 0.8 to 1.4 % higher; loss equivalent. 40 of 42
/// comparisons answered.` After each pair, why it differs, if that is known. Of runs that were sampled only that.
/// `None` without comparisons.
pub(crate) fn answer(findings: &Findings) -> Option<String> {
    let all = &findings.overall;
    let mut sentences: Vec<String> = Vec::new();
    let mut seen: Vec<Key> = Vec::new();
    for one in all {
        if seen.contains(&key(one)) {
            continue;
        }
        seen.push(key(one));
        let group: Vec<&Overall> = all.iter().filter(|other| key(other) == key(one)).collect();
        if !findings.is_sampled {
            sentences.push(sentence(&group));
        }
        sentences.extend(why(
            &findings.explanations,
            one.factor,
            [&one.baseline, &one.candidate],
            one.transport,
        ));
    }
    if findings.is_sampled {
        return (!sentences.is_empty()).then(|| sentences.join(" "));
    }
    let [asked, answered] = [|one: &Overall| one.comparisons, |one: &Overall| one.answered]
        .map(|part| all.iter().map(part).sum::<usize>());
    (asked > 0).then(|| format!("{} {answered} of {asked} comparisons answered.", sentences.join(" ")))
}

/// What a sentence is about. Two factors may have the same levels.
type Key<'a> = (Factor, &'a str, &'a str, Option<Transport>);

fn key(one: &Overall) -> Key<'_> {
    (one.factor, &one.baseline, &one.candidate, one.transport)
}

fn sentence(group: &[&Overall]) -> String {
    let first = group[0];
    let over = first.transport.map_or_else(String::new, |transport| format!(" over {transport}"));
    let arms = format!(
        "{} against {}{over}",
        level_name(first.factor, &first.candidate),
        level_name(first.factor, &first.baseline)
    );
    let parts = |of: fn(&Verdict) -> bool, say: fn(&Overall) -> String| -> Option<String> {
        let said: Vec<String> = group.iter().filter(|one| of(&one.verdict)).map(|one| say(one)).collect();
        (!said.is_empty()).then(|| said.join(", "))
    };
    let name = |one: &Overall| one.metric.to_string();
    let differs = parts(|verdict| matches!(verdict, Verdict::Better(_)), of_overall);
    let same = parts(|verdict| matches!(verdict, Verdict::Equivalent), name);
    let none = parts(|verdict| matches!(verdict, Verdict::Nothing(_)), name);
    let unseen = parts(|verdict| matches!(verdict, Verdict::NoneSeen(_)), name);
    let open = |one: &&&Overall| one.verdict == Verdict::Inconclusive;
    let join = |all: Vec<String>| (!all.is_empty()).then(|| all.join(", "));
    let mixed =
        join(group.iter().filter(open).filter(|one| one.answered > 0).map(|one| by_cell(one)).collect());
    let open = join(group.iter().filter(open).filter(|one| one.answered == 0).map(|one| name(one)).collect());
    let said = [
        differs,
        mixed,
        same.map(|names| format!("{names} equivalent")),
        unseen.map(|names| format!("{names} none seen")),
        open.map(|names| format!("{names} inconclusive")),
        none.map(|names| format!("{names} without figures")),
    ];
    format!("{arms}: {}.", said.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// `throughput -10.0 to +0.1 %, 3 of 6 answered`: what holds at one size does not at another.
fn by_cell(one: &Overall) -> String {
    let unit = DisplayUnit::of(one.metric);
    let range = one.range.map_or_else(String::new, |range| {
        let [low, high] = range.map(|figure| signed(unit.difference(one.metric.scale(), figure), 1));
        format!(" {low} to {high} {}", unit.difference_unit)
    });
    format!("{}{range}, {} of {} answered", one.metric, one.answered, one.comparisons)
}

/// `throughput 4.4 ± 0.3 % lower`.
pub fn difference(metric: Metric, effect: &Effect) -> String {
    let unit = DisplayUnit::of(metric);
    let [estimate, low, high] = [effect.estimate, effect.interval95.low, effect.interval95.high]
        .map(|figure| unit.difference(effect.scale, figure));
    let half = (high - low) / 2.0;
    let decimals = if half < 0.1 { 2 } else { 1 };
    let than_none = if effect.scale == Scale::Ratio { effect.estimate - 1.0 } else { effect.estimate };
    let way = if than_none > 0.0 { "higher" } else { "lower" };
    format!(
        "{metric} {} ± {} {} {way}",
        fixed(estimate.abs(), decimals),
        fixed(half, decimals),
        unit.difference_unit
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::{explanations, findings};
    use stacklab_model::Interval;

    fn overall(metric: Metric, transport: Transport, estimate: f64, verdict: Verdict) -> Overall {
        let interval = Interval { low: estimate - 0.003, high: estimate + 0.003 };
        Overall {
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
            verdict,
            margin: 0.02,
        }
    }

    #[test]
    fn the_answer_names_what_differs_what_is_equivalent_and_what_is_open() {
        use Metric::*;
        let overall = vec![
            overall(Throughput, Transport::Udp, 0.956, Verdict::Better("ipv4".into())),
            overall(Loss, Transport::Udp, 0.0, Verdict::Equivalent),
            overall(Rtt, Transport::Udp, 1.011, Verdict::Better("ipv4".into())),
            overall(Throughput, Transport::Tcp, 0.99, Verdict::Inconclusive),
            Overall { answered: 0, ..overall(Rtt, Transport::Tcp, 1.0, Verdict::Inconclusive) },
        ];
        let said = answer(&Findings { overall, ..findings() }).unwrap();
        assert_eq!(
            said,
            "ipv6 against ipv4 over udp: throughput 3.9 to 4.9 % lower, rtt 0.6 to 1.6 % higher; loss equivalent. \
             ipv6 against ipv4 over tcp: throughput -3.0 to 0.0 %, 4 of 6 answered; rtt inconclusive. 22 of 30 comparisons \
             answered."
        );
        assert_eq!(answer(&Findings { overall: vec![], ..findings() }), None);
    }

    #[test]
    fn factors_with_the_same_levels_have_a_sentence_each() {
        let of = |factor| Overall {
            factor,
            baseline: "65536".into(),
            candidate: "1048576".into(),
            ..overall(Metric::Throughput, Transport::Tcp, 1.0, Verdict::Equivalent)
        };
        let overall = vec![of(Factor::SendBuffer), of(Factor::ReceiveBuffer)];
        let said = answer(&Findings { overall, ..findings() }).unwrap();
        assert!(
            said.contains("send_buffer=1048576 against send_buffer=65536 over tcp: throughput equiv"),
            "{said}"
        );
        assert!(said.contains("receive_buffer=1048576 against receive_buffer=65536 over tcp"), "{said}");
    }

    #[test]
    fn the_answer_says_why_and_of_sampled_runs_nothing_else() {
        let overall =
            vec![overall(Metric::Throughput, Transport::Udp, 0.956, Verdict::Better("ipv4".into()))];
        let explained = Findings { overall, explanations: explanations(), ..findings() };
        let why = "Why, stream udp segment 128 B: mostly route lookup, +74 ± 12 of +122 ns per message.";
        assert_eq!(
            answer(&explained).unwrap(),
            format!(
                "ipv6 against ipv4 over udp: throughput 3.9 to 4.9 % lower. {why} 6 of 6 comparisons answered."
            )
        );
        assert_eq!(answer(&Findings { is_sampled: true, ..explained }).unwrap(), why);
    }
}
