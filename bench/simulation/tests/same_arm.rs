//! Two arms of one cell differ by chance alone: the p-values of the A/A check, and verdicts of exchanged arms.

use stacklab_analysis::{RecordedCampaign, findings};
use stacklab_model::{
    Cell, Comparison, CpuScope, Factor, Family, Findings, LinkConfig, Metric, Question, RunRecord, SELF_ARMS,
    SizeOf, StopReason, StoppingRule, Topology, Transport, Trial, Until, Value, Verdict,
};
use stacklab_simulation::runs::{Simulation, Spread};

const METRIC: Metric = Metric::Throughput;

fn cell(replica: &str, size: u32) -> Cell {
    Cell { replica: replica.to_owned(), ..Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, size) }
}

/// The runs of a block of two arms, in their order.
fn block(number: u32, arms: [(&Cell, f64); 2]) -> impl Iterator<Item = RunRecord> {
    arms.into_iter().zip(0..).map(move |((cell, figure), position)| {
        let trial = Trial { block: number, position, cell: cell.clone(), probe: METRIC.probe() };
        RunRecord::with_value(trial, METRIC, Value::Measured(figure))
    })
}

fn analyse_runs(questions: &[Question], runs: &[RunRecord]) -> Findings {
    findings(&RecordedCampaign {
        is_resumable: false,
        title: "like arms",
        version: "0.1.0",
        started_unix_ns: 1,
        seed: 1,
        link_config: &LinkConfig { rate: None, mtu: 1500, offloads: false },
        topology: &Topology::Link,
        testbed_description: "a link",
        hosts: &[],
        cpu_scope: CpuScope::Shared,
        cells: &[],
        probes: &[],
        rule: &StoppingRule { min: 2, max: 200, until: Until::Verdict, target: 0.01, budget_ns: None },
        questions,
        stop_reasons: &[StopReason::Cap; 30],
        settled: &[],
        runs,
        throttled_us: 0,
        is_sampled: false,
        explanations: &[],
        uncounted: &[],
    })
}

/// The p of the hypothesis that the figures are uniform between 0 and 1.
///
/// Source: Kolmogorov and Smirnov; Stephens (1970) for the correction of small samples.
fn uniform_p(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let distance = sorted.iter().enumerate().map(|(place, figure)| {
        let place = place as f64;
        (figure - place / n).max((place + 1.0) / n - figure)
    });
    let distance = distance.fold(0.0, f64::max) * (n.sqrt() + 0.12 + 0.11 / n.sqrt());
    if distance < 0.3 {
        // The series converges for larger ones.
        return 1.0;
    }
    let mut sum = 0.0;
    for k in 1..=100 {
        sum += 2.0 * (-1.0_f64).powi(k - 1) * (-2.0 * f64::from(k * k) * distance.powi(2)).exp();
    }
    f64::clamp(sum, 0.0, 1.0)
}

#[test]
fn uniform_p_is_that_of_the_tables() {
    // 1.628 / sqrt(n) is the critical distance at 1 %.
    let shifted: Vec<f64> = (0..1000).map(|place| (f64::from(place) / 1000.0 + 0.0514).min(1.0)).collect();
    assert!((uniform_p(&shifted) - 0.01).abs() < 0.002, "{}", uniform_p(&shifted));
    let even: Vec<f64> = (0..1000).map(|place| (f64::from(place) + 0.5) / 1000.0).collect();
    assert_eq!(uniform_p(&even), 1.0);
}

#[test]
fn p_values_of_like_arms_are_uniform() {
    let arms = SELF_ARMS.map(|label| cell(label, 128));
    for (place, spread) in [Spread::LogNormal, Spread::Skewed].into_iter().enumerate() {
        let mut simulation = Simulation::new(0x5eed_0030 + place as u128, spread, 0.02);
        let mut by_label = Vec::new();
        let mut by_order = Vec::new();
        for _ in 0..1000 {
            let runs: Vec<RunRecord> = (0..20)
                .flat_map(|number| {
                    let (one, other) = simulation.pair(1.0);
                    let mut both = [(&arms[0], one), (&arms[1], other)];
                    if simulation.uniform() < 0.5 {
                        both.reverse();
                    }
                    block(number, both)
                })
                .collect();
            let found = analyse_runs(&[], &runs);
            by_label.push(found.same_arm[0].p);
            by_order.push(found.arm_order[0].p);
        }
        for (what, p) in [("label", by_label), ("order", by_order)] {
            let uniform = uniform_p(&p);
            assert!(uniform > 0.01, "{}, by {what}: {uniform}", spread.name());
        }
    }
}

/// 30 questions with differences of 0 to 2.9 %, of which each has 20 pairs.
fn draw_questions(campaign: u128) -> (Vec<Question>, Vec<Vec<(f64, f64)>>) {
    let mut simulation = Simulation::new(0x5eed_0040 + campaign, Spread::Skewed, 0.014);
    let mut questions = Vec::new();
    let mut pairs = Vec::new();
    for size in 0..30 {
        questions.push(Question {
            factor: Factor::Replica,
            metric: METRIC,
            baseline: cell("a", size),
            candidate: cell("b", size),
            margin: 0.02,
        });
        pairs.push((0..20).map(|_| simulation.pair(1.0 + 0.001 * f64::from(size))).collect());
    }
    (questions, pairs)
}

fn compare_pairs(questions: &[Question], pairs: &[Vec<(f64, f64)>], is_swapped: bool) -> Vec<Comparison> {
    let mut runs = Vec::new();
    for (question, pairs) in questions.iter().zip(pairs) {
        for (number, (one, other)) in (0..).zip(pairs) {
            let (baseline, candidate) = if is_swapped { (*other, *one) } else { (*one, *other) };
            runs.extend(block(number, [(&question.baseline, baseline), (&question.candidate, candidate)]));
        }
    }
    analyse_runs(questions, &runs).comparisons
}

#[test]
fn exchanged_arms_have_mirrored_verdicts() {
    let mut better = 0;
    let mut equivalent = 0;
    let mut inconclusive = 0;
    for campaign in 0..10 {
        let (questions, pairs) = draw_questions(campaign);
        let there = compare_pairs(&questions, &pairs, false);
        let back = compare_pairs(&questions, &pairs, true);
        for (one, other) in there.iter().zip(&back) {
            assert_eq!(mirror(&one.verdict), other.verdict);
            let ratio = one.effect.as_ref().unwrap().estimate;
            let mirrored_ratio = other.effect.as_ref().unwrap().estimate;
            assert!((ratio * mirrored_ratio - 1.0).abs() < 1e-9);
            match (one.claimed_interval, other.claimed_interval) {
                (Some(one), Some(other)) => assert!((one.low * other.high - 1.0).abs() < 1e-9),
                neither => assert_eq!(neither, (None, None)),
            }
            match one.verdict {
                Verdict::Better(_) => better += 1,
                Verdict::Equivalent => equivalent += 1,
                _ => inconclusive += 1,
            }
        }
    }
    assert!(better > 50 && equivalent > 50 && inconclusive > 5, "{better}, {equivalent}, {inconclusive}");
}

fn mirror(verdict: &Verdict) -> Verdict {
    match verdict {
        Verdict::Better(level) => Verdict::Better(if level == "a" { "b" } else { "a" }.to_owned()),
        other => other.clone(),
    }
}
