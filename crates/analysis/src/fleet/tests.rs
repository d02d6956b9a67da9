use super::*;
use crate::comparison::blocks::block_summary;
use crate::findings::findings;
use crate::fixtures::{campaign, link_config, question, runs_of};
use crate::runs::Runs;
use stacklab_model::{Findings, Interval, Metric, RunRecord, StopReason};

/// The findings of a pair of hosts whose blocks have these log ratios, or differences.
fn of(metric: Metric, distances: &[f64]) -> Findings {
    let margin = if metric == Metric::Loss { 0.001 } else { 0.02 };
    findings(&campaign(&link_config(None), &[question(metric, margin)], &runs_with(metric, distances)))
}

fn runs_with(metric: Metric, distances: &[f64]) -> Vec<RunRecord> {
    let pairs: Vec<(f64, f64)> = match metric {
        Metric::Loss => distances.iter().map(|distance| ((-distance).max(0.0), distance.max(0.0))).collect(),
        _ => distances.iter().map(|distance| (100.0, 100.0 * distance.exp())).collect(),
    };
    runs_of(metric, &pairs)
}

/// The fleet of pairs with these findings.
fn fleet_of(pairs: &[(&str, Findings)], has_ended: bool) -> FleetFindings {
    let questions = pairs[0].1.comparisons.iter().map(|of| of.question.clone());
    let mut fleet = OverPairs::new("", questions.collect());
    for (name, findings) in pairs {
        let Findings { blocks, valid_runs, .. } = *findings;
        let pair = FleetPair { name: (*name).to_owned(), blocks, valid_runs, invalid_runs: 0 };
        fleet.add(pair, answers(findings));
    }
    fleet.finish(has_ended)
}

fn answers(findings: &Findings) -> Vec<PairAnswer> {
    let mut answers = Vec::new();
    for comparison in &findings.comparisons {
        answers.push(PairAnswer {
            verdict: comparison.verdict.clone(),
            effect: comparison.effect.clone(),
            claimed_interval: comparison.claimed_interval,
        });
    }
    answers
}

fn fleet(metric: Metric, pairs: &[&[f64]], has_ended: bool) -> FleetFindings {
    let names: Vec<String> = (0..pairs.len()).map(|number| format!("a -> {number}")).collect();
    let all: Vec<_> =
        names.iter().zip(pairs).map(|(name, distances)| (&**name, of(metric, distances))).collect();
    fleet_of(&all, has_ended)
}

/// Blocks about a middle, all of them kept by the trimmed mean.
fn about(middle: f64) -> [f64; 4] {
    [0.01, -0.01, 0.005, -0.005].map(|noise| middle + noise)
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
}

#[test]
fn worked_example_agrees_with_scipy() {
    let pairs: [&[f64]; 4] = [
        &[-0.05, -0.07, -0.06],
        &[-0.03, -0.05, -0.01, -0.03],
        &[-0.09, -0.05, -0.10],
        &[-0.04, -0.045, -0.05],
    ];
    let found = fleet(Metric::Throughput, &pairs, true);
    let [one] = &found.comparisons[..] else { panic!("{found:?}") };
    assert_eq!((one.counted, one.left_out, found.pairs[1].blocks), (4, 0, 4));
    let pooled = one.pooled.as_ref().unwrap();
    // By SciPy's brentq and distributions, from the means and standard errors of the pairs.
    close(pooled.effect.estimate, 0.949_690_157);
    close(pooled.effect.error, 0.010_041_439);
    close(pooled.effect.interval95.low, 0.919_277_19);
    close(pooled.effect.interval95.high, 0.981_109_3);
    close(pooled.spread, 0.017_778_517);
    close(pooled.spread_interval.low, 0.005_205_924);
    close(pooled.spread_interval.high, 0.078_704_234);
    let prediction = pooled.prediction.unwrap();
    close(prediction.low, 0.866_104_46);
    close(prediction.high, 1.041_342_51);
    // Two signs in sixteen, which the mean's p of 0.0154 does not say.
    close(pooled.p, 0.125);
    assert_eq!(pooled.equivalence_p, 1.0);
    assert_eq!((pooled.effect.pairs, pooled.adjusted_p), (4, Some(pooled.p)));
    // Four pairs describe, and claim nothing.
    assert_eq!((&one.verdict, one.claimed_interval), (&Verdict::Inconclusive, None));
}

#[test]
fn verdict_over_pairs_is_not_that_of_each() {
    // Sure in each pair, and the pairs contradict each other.
    let lower = [about(-0.1), about(-0.1)].concat();
    let higher = [about(0.1), about(0.1)].concat();
    let found = fleet(Metric::Throughput, &[&lower, &higher, &lower], true);
    let one = &found.comparisons[0];
    let verdicts: Vec<_> = one.answers.iter().map(|answer| &answer.verdict).collect();
    let four = Verdict::Better("ipv4".to_owned());
    let six = Verdict::Better("ipv6".to_owned());
    assert_eq!(verdicts, [&four, &six, &four]);
    assert_eq!((&one.verdict, one.claimed_interval), (&Verdict::Inconclusive, None));
    // Open in each pair, and sure over many.
    let noisy = [0.012, -0.004, 0.02, -0.012, 0.03, 0.008];
    let found = fleet(Metric::Throughput, &[&noisy[..]; 12], true);
    let one = &found.comparisons[0];
    assert_eq!(one.answers[0].verdict, Verdict::Inconclusive);
    assert_eq!(one.verdict, six);
}

#[test]
fn nothing_is_claimed_before_the_end() {
    let blocks: Vec<[f64; 4]> = (0..7).map(|pair| about(-0.1 - 0.01 * f64::from(pair))).collect();
    let pairs: Vec<&[f64]> = blocks.iter().map(|blocks| &blocks[..]).collect();
    let found = fleet(Metric::Throughput, &pairs, false);
    let one = &found.comparisons[0];
    assert_eq!((&one.verdict, one.claimed_interval), (&Verdict::Inconclusive, None));
    assert_eq!(one.pooled.as_ref().unwrap().adjusted_p, None);
    assert!(one.pooled.as_ref().unwrap().p < 0.02);
    let ended = fleet(Metric::Throughput, &pairs, true);
    assert_eq!(ended.comparisons[0].verdict, Verdict::Better("ipv4".into()));
}

#[test]
fn one_pair_is_no_claim_and_two_are_a_wide_one() {
    let found = fleet(Metric::Throughput, &[&about(-0.1)], true);
    let one = &found.comparisons[0];
    assert!(matches!(&one.verdict, Verdict::Nothing(why) if why.contains("below two")), "{one:?}");
    assert_eq!((&one.pooled, one.counted), (&None, 1));
    let found = fleet(Metric::Throughput, &[&about(-0.1), &about(-0.1)], true);
    let one = &found.comparisons[0];
    // Two are alike by chance; their errors are those of the pairs.
    let error = (0.00025_f64 / 3.0 / 4.0 * 2.0).sqrt() / 2.0;
    close(one.pooled.as_ref().unwrap().effect.error, error);
    let Interval { low, high } = one.pooled.as_ref().unwrap().effect.interval95;
    close((high / low).ln(), 2.0 * 12.706_204_7 * error);
}

#[test]
fn pair_without_figure_is_left_out_and_counted() {
    let mut lost = of(Metric::Throughput, &about(0.3));
    lost.comparisons[0].verdict = Verdict::Nothing("ipv6 has no figure in 7 of 20 blocks".into());
    let usual = of(Metric::Throughput, &about(-0.1));
    // One has never begun.
    let pairs = [("a", usual.clone()), ("b", lost), ("c", usual), ("d", of(Metric::Throughput, &[]))];
    let found = fleet_of(&pairs, true);
    let [throughput] = &found.comparisons[..] else { panic!("{found:?}") };
    assert_eq!((throughput.counted, throughput.left_out), (2, 2));
    close(throughput.pooled.as_ref().unwrap().effect.estimate.ln(), -0.1);
    assert!(found.pairs.iter().map(|pair| pair.name.as_str()).eq(["a", "b", "c", "d"]));
}

#[test]
fn pair_that_is_added_again_counts_once() {
    let pairs = [("a", 0.3), ("a", 0.2), ("a", -0.1), ("b", -0.1)];
    let found = fleet_of(&pairs.map(|(name, middle)| (name, of(Metric::Throughput, &about(middle)))), true);
    assert_eq!((found.pairs.len(), found.comparisons[0].counted), (2, 2));
    close(found.comparisons[0].pooled.as_ref().unwrap().effect.estimate.ln(), -0.1);
}

#[test]
fn blocks_give_the_answers_of_the_pairs_own_findings() {
    let questions = [question(Metric::Throughput, 0.01), question(Metric::Loss, 0.001)];
    let noisy = [0.012, -0.004, 0.02, -0.012, 0.03, 0.008, -0.02, 0.01];
    let sure = [0.05, 0.051, 0.049, 0.0505, 0.0495, 0.0502, 0.0498, 0.0501];
    let none = [0.0; 8];
    for (throughput, loss) in [(&noisy[..], &none[..]), (&sure, &none), (&sure, &noisy), (&noisy, &noisy)] {
        let mut records = runs_with(Metric::Throughput, throughput);
        for (run, other) in records.iter_mut().zip(runs_with(Metric::Loss, loss)) {
            run.values.extend(other.values);
        }
        for is_whole in [true, false] {
            let link_config = link_config(None);
            let mut own = campaign(&link_config, &questions, &records);
            let mut settled = vec![None; 2];
            let runs = Runs::new(&records);
            let evidence = questions.each_ref().map(|question| Evidence::of(question, &runs));
            settle(&mut settled, &questions, &evidence);
            let reasons = [if is_whole { StopReason::Cap } else { StopReason::Unfinished }; 2];
            (own.stop_reasons, own.settled) = (&reasons, if is_whole { &settled[..] } else { &[] });
            let mut blocks = [Blocks::default(), Blocks::default()];
            for block in 0..8 {
                let of: Vec<RunRecord> =
                    records.iter().filter(|run| run.trial.block == block).cloned().collect();
                for (blocks, figures) in blocks.iter_mut().zip(&block_summary(&questions, &of).figures) {
                    blocks.add(figures);
                }
            }
            let found = pair_answers(&questions, &blocks, true, is_whole);
            assert_eq!(found, answers(&findings(&own)), "{throughput:?} {loss:?} {is_whole}");
        }
    }
}

#[test]
fn events_that_few_pairs_see_are_not_equivalent() {
    let none: &[f64] = &[0.0; 6];
    let found = fleet(Metric::Loss, &[none; 5], true);
    let one = &found.comparisons[0];
    assert_eq!(one.verdict, Verdict::NoneSeen("none in any of 5 pairs of hosts".into()));
    assert_eq!((&one.pooled, one.counted), (&None, 5));
    let few: &[f64] = &[0.0, 1e-6, 0.0, -1e-6, 0.0, 1e-6, 0.0, -1e-6];
    let four = fleet(Metric::Loss, &[vec![few; 4], vec![none; 4]].concat(), true).comparisons.remove(0);
    assert_eq!((four.verdict, four.counted), (Verdict::Inconclusive, 8));
    let five = fleet(Metric::Loss, &[vec![few; 5], vec![none; 3]].concat(), true).comparisons.remove(0);
    assert_eq!(five.verdict, Verdict::Equivalent);
}

/// The first of several questions to seven pairs that agree; those to the others show nothing.
fn compare_among(questions: u32) -> FleetComparison {
    let pairs = [-0.05, -0.02, -0.06, -0.01, -0.04, -0.03, -0.02];
    let mut all = Vec::new();
    for (number, middle) in pairs.into_iter().enumerate() {
        let mut findings = of(Metric::Throughput, &[middle - 1e-4, middle + 1e-4]);
        for size in 1..questions {
            let mut other = of(Metric::Throughput, &about(if number % 2 == 0 { 0.1 } else { -0.1 }));
            let question = &mut other.comparisons[0].question;
            question.baseline.size = size;
            question.candidate.size = size;
            findings.comparisons.append(&mut other.comparisons);
        }
        all.push((["a", "b", "c", "d", "e", "f", "g"][number], findings));
    }
    fleet_of(&all, true).comparisons.remove(0)
}

#[test]
fn many_comparisons_need_more_evidence() {
    // p of 1 in 64 alone is a claim; among questions that show nothing it is none.
    let alone = compare_among(1);
    let among = compare_among(10);
    close(alone.pooled.unwrap().p, 1.0 / 64.0);
    close(among.pooled.unwrap().p, 1.0 / 64.0);
    assert_eq!((alone.verdict, among.verdict), (Verdict::Better("ipv4".into()), Verdict::Inconclusive));
}

#[test]
fn unfinished_pairs_still_count() {
    let mut unfinished = of(Metric::Throughput, &about(0.1));
    unfinished.comparisons[0].stop_reason = StopReason::Unfinished;
    let pairs = [("a", unfinished.clone()), ("b", unfinished)];
    assert_eq!(fleet_of(&pairs, true).comparisons[0].counted, 2);
    assert_eq!(OverPairs::default().finish(true).comparisons, []);
}

/// A fleet of pairs with these differences, each almost exactly known.
fn fleet_at(middles: &[f64]) -> FleetFindings {
    let blocks: Vec<[f64; 2]> = middles.iter().map(|middle| [middle - 1e-5, middle + 1e-5]).collect();
    let pairs: Vec<&[f64]> = blocks.iter().map(|blocks| &blocks[..]).collect();
    fleet(Metric::Throughput, &pairs, true)
}

#[test]
fn few_pairs_claim_the_typical_one() {
    // Fifteen pairs are slower by 1.0 to 2.4 %, and one so much faster that the mean is not.
    let mut middles: Vec<f64> = (0..15).map(|pair| -0.01 - 0.001 * f64::from(pair)).collect();
    middles.push(0.3);
    let found = fleet_at(&middles);
    let one = &found.comparisons[0];
    assert_eq!(one.verdict, Verdict::Better("ipv4".into()));
    assert!(one.pooled.as_ref().unwrap().effect.estimate > 1.0, "the mean is a description");
    // Between the fourth and the thirteenth of sixteen: 97.9 %.
    let range = one.claimed_interval.unwrap();
    close(range.low.ln(), -0.021);
    close(range.high.ln(), -0.012);
    // The first sentence says the typical difference, not the mean.
    let [low, high] = found.overall[0].range.unwrap();
    assert!((low.ln() + 0.0165).abs() < 1e-6 && low == high, "{low}");
    // Two such pairs leave it open.
    middles[0] = 0.3;
    assert_eq!(fleet_at(&middles).comparisons[0].verdict, Verdict::Inconclusive);
}

#[test]
fn six_pairs_claim_nothing() {
    let slower = [-0.1; 7];
    let equal = [0.001, -0.001, 0.001, -0.001, 0.001, -0.001, 0.001];
    for middles in [slower, equal] {
        assert_eq!(fleet_at(&middles[..6]).comparisons[0].verdict, Verdict::Inconclusive);
    }
    assert_eq!(fleet_at(&slower).comparisons[0].verdict, Verdict::Better("ipv4".into()));
    assert_eq!(fleet_at(&equal).comparisons[0].verdict, Verdict::Equivalent);
}

#[test]
fn equivalence_needs_mean_and_typical_pair() {
    let mut middles = vec![0.001; 12];
    assert_eq!(fleet_at(&middles).comparisons[0].verdict, Verdict::Better("ipv6".into()));
    for (place, middle) in middles.iter_mut().enumerate() {
        *middle = if place % 2 == 0 { 0.001 } else { -0.001 };
    }
    assert_eq!(fleet_at(&middles).comparisons[0].verdict, Verdict::Equivalent);
    // One pair of twelve is 30 % slower: the typical pair is inside the margin, and the mean may not be.
    middles[0] = -0.3;
    assert_eq!(fleet_at(&middles).comparisons[0].verdict, Verdict::Inconclusive);
}

#[test]
fn many_pairs_claim_their_mean() {
    for (pairs, better) in [(MIN_PAIRS_OF_MEAN - 1, "ipv4"), (MIN_PAIRS_OF_MEAN, "ipv6")] {
        let middles: Vec<f64> = (0..pairs).map(|pair| if pair % 10 == 0 { 0.5 } else { -0.01 }).collect();
        assert_eq!(fleet_at(&middles).comparisons[0].verdict, Verdict::Better(better.into()));
    }
}
