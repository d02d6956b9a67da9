//! The order of trials, and which are still needed.

use crate::plan::tests::{arms, make_varied_study, quickstart};
use crate::plan::{Plan, generator, shuffle};
use crate::study::Study;
use proptest::prelude::*;
use stacklab_model::{Cell, Factor, Metric, Probe, StopReason, Trial};

/// Whether all trials of the same probe that differ in nothing but the factor follow each other directly.
fn side_by_side(trials: &[Trial], factor: Factor) -> bool {
    let runs = trials.chunk_by(|a, b| is_alike(a, b, factor)).count();
    let mut kinds: Vec<&Trial> = Vec::new();
    for trial in trials {
        if !kinds.iter().any(|kind| is_alike(kind, trial, factor)) {
            kinds.push(trial);
        }
    }
    runs == kinds.len() && runs < trials.len()
}

fn is_alike(a: &Trial, b: &Trial, factor: Factor) -> bool {
    a.probe == b.probe && a.cell.same_but(&b.cell, factor)
}

/// What a block runs, in its order.
fn list_arms(plan: &Plan, block: u32) -> Vec<(Cell, Probe)> {
    plan.block(block).into_iter().map(|trial| (trial.cell, trial.probe)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_block_holds_every_cell_and_probe_once(seed: u64, block: u32) {
        let study = make_varied_study("family", "ipv4", "ipv6");
        let trials = Plan::new(&study, seed).block(block);
        // 48 cells stream, the 24 of TCP connect.
        prop_assert_eq!(trials.len(), 72);
        prop_assert_eq!(arms(&trials).len(), 72);
        for (index, trial) in trials.iter().enumerate() {
            prop_assert_eq!(trial.position as usize, index);
            prop_assert_eq!(trial.block, block);
            prop_assert!(trial.probe.supports(trial.cell.transport));
        }
    }

    #[test]
    fn the_compared_arms_stand_side_by_side(seed: u64, block: u32) {
        for (factor, baseline, candidate) in
            [("family", "ipv4", "ipv6"), ("transport", "tcp", "udp"), ("replica", "a", "b"), ("size", "64", "512")]
        {
            let study = make_varied_study(factor, baseline, candidate);
            let trials = Plan::new(&study, seed).block(block);
            prop_assert!(side_by_side(&trials, factor.parse().unwrap()), "{}", factor);
        }
    }

    #[test]
    fn an_order_depends_on_seed_and_block_alone(seed: u64, block in 0..u32::MAX) {
        let study = quickstart();
        let plan = Plan::new(&study, seed);
        let other = Plan::new(&study, seed.wrapping_add(1));
        prop_assert_eq!(plan.block(block), Plan::new(&study, seed).block(block));
        prop_assert_ne!(list_arms(&plan, block), list_arms(&plan, block + 1));
        prop_assert_ne!(list_arms(&plan, block), list_arms(&other, block));
    }
}

#[test]
fn both_families_come_first_about_equally_often() {
    let plan = Plan::new(&quickstart(), 3);
    let mut ipv4_first = 0;
    for block in 0..100 {
        for pair in plan.block(block).chunks(2) {
            ipv4_first += usize::from(pair[0].cell.family == stacklab_model::Family::Ipv4);
        }
    }
    // Six standard deviations of a binomial with n = 1200 and p = 1/2.
    assert!((496..=704).contains(&ipv4_first), "{ipv4_first} of 1200");
}

#[test]
fn families_are_side_by_side_without_comparisons() {
    let study = Study { comparisons: Vec::new(), ..quickstart() };
    assert!(side_by_side(&Plan::new(&study, 1).block(0), Factor::Family));
}

#[test]
fn the_order_of_the_quickstart_never_changes() {
    let trials = Plan::new(&quickstart(), 42).block(0);
    let first: Vec<String> = trials.iter().take(6).map(Trial::to_string).collect();
    assert_eq!(
        first,
        [
            "block 1 stream ipv6 tcp 1408 B payload",
            "block 1 stream ipv4 tcp 1408 B payload",
            "block 1 echo ipv4 udp 128 B payload",
            "block 1 echo ipv6 udp 128 B payload",
            "block 1 stream ipv6 udp 1408 B payload",
            "block 1 stream ipv4 udp 1408 B payload"
        ]
    );
}

#[test]
fn trial_is_left_out_when_its_questions_are_settled() {
    let study = quickstart();
    let plan = Plan::new(&study, 1);
    let questions = study.questions();
    let active =
        |stop_reason: &[Option<StopReason>]| plan.active(&study, plan.block(0), stop_reason, &questions);

    assert_eq!(active(&[]), plan.block(0));
    assert_eq!(active(&vec![None; questions.len()]), plan.block(0));
    assert!(active(&vec![Some(StopReason::Cap); questions.len()]).is_empty());

    // Round trips are the only questions of echo: all echo trials are dropped. A stream stays for its other
    // metrics.
    let rtt: Vec<_> =
        questions.iter().map(|q| (q.metric == Metric::Rtt).then_some(StopReason::Precise)).collect();
    let left = active(&rtt);
    assert_eq!(left.len(), 12);
    assert!(left.iter().all(|trial| trial.probe == Probe::Stream));
    assert!(left.iter().any(|trial| trial.position >= 12), "positions are those of the full order");

    // One open question keeps its two arms.
    let mut all_but_one = vec![Some(StopReason::Decided); questions.len()];
    all_but_one[5] = None;
    let left = active(&all_but_one);
    assert_eq!(
        arms(&left),
        [&questions[5].baseline, &questions[5].candidate].map(|cell| (cell.clone(), Probe::Stream)).into()
    );
}

#[test]
fn a_trial_that_no_question_asks_for_stays() {
    let mut study = quickstart();
    study.comparisons[0].metrics = vec![Metric::Throughput];
    let questions = study.questions();
    let plan = Plan::new(&study, 1);
    let left = plan.active(&study, plan.block(0), &vec![Some(StopReason::Cap); questions.len()], &questions);
    assert_eq!(left.len(), 12);
    assert!(left.iter().all(|trial| trial.probe == Probe::Echo));
}

/// Campaigns are resumed by their seed alone: if this order ever changes, no old campaign can be resumed.
#[test]
fn the_order_of_a_seed_never_changes() {
    let mut items: Vec<u32> = (0..12).collect();
    shuffle(&mut items, &mut generator(42, 0));
    assert_eq!(items, [2, 9, 5, 10, 11, 7, 3, 1, 6, 4, 0, 8]);
}

#[test]
fn every_order_of_three_is_about_equally_frequent() {
    let mut seen = std::collections::BTreeMap::new();
    for block in 0..6000 {
        let mut items = [0, 1, 2];
        shuffle(&mut items, &mut generator(7, block));
        *seen.entry(items).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 6);
    // Six standard deviations of a binomial with n = 6000 and p = 1/6.
    assert!(seen.values().all(|count| (827..=1173).contains(count)), "{seen:?}");
}
