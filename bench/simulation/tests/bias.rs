//! The arithmetic of `bench/bias`.

use stacklab_model::{
    ArmOrder, Cell, Comparison, Control, CpuScope, Effect, Estimate, Factor, Family, Findings, Interval,
    Metric, Question, Scale, SizeOf, StopReason, Transport, Verdict,
};
use stacklab_simulation::bias::{Pooled, biases, lines};

const KEY: (Metric, Transport) = (Metric::Throughput, Transport::Udp);

fn effect(pairs: usize, log: f64, error: f64, degrees_of_freedom: f64) -> Effect {
    let interval = Interval { low: log.exp(), high: log.exp() };
    Effect {
        scale: Scale::Ratio,
        pairs,
        estimate: log.exp(),
        error,
        degrees_of_freedom,
        interval90: interval,
        interval95: interval,
    }
}

/// A comparison without figures.
fn make_comparison(metric: Metric) -> Comparison {
    Comparison {
        question: Question {
            factor: Factor::Family,
            metric,
            baseline: Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 128),
            candidate: Cell::new(Family::Ipv6, Transport::Udp, SizeOf::Payload, 128),
            margin: 0.01,
        },
        baseline_estimate: Estimate::default(),
        candidate_estimate: Estimate::default(),
        effect: None,
        unpaired: None,
        is_bound_wide: false,
        fitted: None,
        tests: None,
        explained: None,
        verdict: Verdict::Inconclusive,
        claimed_interval: None,
        stop_reason: StopReason::Cap,
        more_blocks: None,
        remarks: Vec::new(),
    }
}

fn control(metric: Metric, effect: Effect) -> Control {
    Control {
        metric,
        transport: Transport::Udp,
        cell: Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 128),
        estimates: [Estimate::default(), Estimate::default()],
        fitted: [1.0, 1.0],
        effect,
        p: 0.5,
    }
}

fn report(label: Effect, order: Effect) -> Findings {
    let (metric, transport) = KEY;
    Findings {
        is_resumable: false,
        record_name: None,
        title: "an arm against itself".into(),
        version: "0.1.0".into(),
        started_unix_ns: 1,
        seed: 1,
        blocks: 10,
        valid_runs: 20,
        measured_ns: 0,
        invalid_runs: vec![],
        testbed_description: "a link".into(),
        hosts: vec![],
        instruments: vec![],
        constraints: vec![],
        cpu_scope: CpuScope::Shared,
        cells: vec![],
        comparisons: vec![make_comparison(metric), make_comparison(Metric::Loss)],
        overall: vec![],
        same_arm: vec![
            control(metric, label.clone()),
            // Compared by its difference: it has no bias in per cent.
            control(Metric::Loss, label.clone()),
            // Not compared.
            control(Metric::Jitter, label),
        ],
        carry_over: Vec::new(),
        frame_loss: None,
        loss_by_load: Vec::new(),
        rfc8219: None,
        arm_order: vec![ArmOrder { metric, transport, pairs: order.pairs, effect: order, p: 0.5 }],
        warnings: vec![],
        is_sampled: false,
        explanations: vec![],
        uncounted: vec![],
    }
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
}

#[test]
fn campaigns_count_by_their_pairs() {
    let small = effect(10, 0.004, 0.003, 9.0);
    let large = effect(30, -0.002, 0.001, 29.0);
    let pooled = Pooled::of(&[&small, &large]).unwrap();
    assert_eq!(pooled.pairs, 40);
    close(pooled.bias.estimate, 0.25 * 0.004 - 0.75 * 0.002);
    // Both have a standard error of 0.00075 by their weights; 2^2 / (1/9 + 1/29) degrees of freedom.
    close(pooled.bias.error, 0.00075 * 2.0_f64.sqrt());
    // t of 95 % with 27.47 degrees is 1.702291.
    close(pooled.bound(), 0.0005 + 1.702291 * pooled.bias.error);
    assert_eq!(Pooled::of(&[]), None);
}

#[test]
fn bound_is_the_larger_one_of_both_contrasts() {
    let reports = [
        report(effect(20, 0.0002, 0.0002, 19.0), effect(20, -0.0010, 0.0002, 19.0)),
        report(effect(20, -0.0002, 0.0002, 19.0), effect(20, -0.0010, 0.0002, 19.0)),
    ];
    let found = biases(&reports);
    assert_eq!(found.keys().collect::<Vec<_>>(), [&KEY]);
    let labels = found[&KEY].labels.unwrap();
    let order = found[&KEY].order.unwrap();
    close(labels.bias.estimate, 0.0);
    close(order.bias.estimate, -0.001);
    assert_eq!(found[&KEY].bound(), Some(order.bound()));
    let said = lines(&reports).remove(0);
    let expected = "stream udp throughput: bias of the method: below 0.12 % (one arm against itself ";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.contains("-0.10 ± 0.03 % of 40 pairs"), "{said}");
}
