//! Which trials are arms of one interleaved trial.

use crate::plan::Plan;
use crate::plan::interleave::{interleaves, is_against_itself};
use crate::plan::tests::{interleaved, make_varied_study, quickstart};
use crate::study::Study;
use crate::{Input, parse};
use stacklab_model::{ArmSchedule, Factor, Family, Probe, Question, StopReason, Trial};

#[test]
fn compared_cells_and_self_comparisons_run_together() {
    let plan = Plan::new(&interleaved(), 1);
    let block = plan.block(0);
    let together: Vec<&[Trial]> = plan.together(&block).collect();
    assert_eq!(together.iter().map(|arms| arms.len()).sum::<usize>(), block.len());
    assert!(plan.interleaves(|_| true) == Some(true));
    let (own, others): (Vec<&[Trial]>, Vec<&[Trial]>) =
        together.into_iter().partition(|arms| is_against_itself(&arms[0].cell));
    // Two transports by two probes; three sizes of each.
    assert_eq!((own.len(), others.len()), (4, 12));
    for arms in others {
        let [a, b] = arms else { panic!("{arms:?}") };
        assert!(a.probe == b.probe && a.cell.family != b.cell.family);
        assert!(a.cell.same_but(&b.cell, Factor::Family));
    }
    for arms in own {
        let [a, b] = arms else { panic!("{arms:?}") };
        assert!(a.cell.replica != b.cell.replica && a.cell.same_but(&b.cell, Factor::Replica));
    }
    let alone = Plan::new(&quickstart(), 1);
    let block = alone.block(0);
    assert!(alone.together(&block).all(|arms| arms.len() == 1));
}

#[test]
fn cells_beside_the_matrix_take_turns_with_like_ones() {
    let text = include_str!("../../../../../studies/soorty2013linux.toml");
    let study = parse(&Input::file("soorty2013linux.toml", text)).unwrap();
    let plan = Plan::new(&study, 1);
    let block = plan.block(0);
    let streams: Vec<&[Trial]> =
        plan.together(&block).filter(|arms| arms[0].probe == Probe::Stream).collect();
    for (factor, expected) in [
        (Factor::ReceiveBuffer, &[2][..]),
        // One link has one MTU at a time.
        (Factor::Mtu, &[1, 1]),
    ] {
        let varied = streams.iter().filter(|arms| !arms[0].cell.level(factor).is_empty());
        assert_eq!(varied.map(|arms| arms.len()).collect::<Vec<_>>(), expected, "{factor}");
    }
    let [at_1280, at_1500] = ["1280", "1500"]
        .map(|mtu| block.iter().position(|trial| trial.cell.level(Factor::Mtu) == mtu).unwrap());
    assert_eq!(at_1280.abs_diff(at_1500), 1);
}

#[test]
fn several_comparisons_share_a_trial_with_room() {
    let text = r#"
title = "families and sizes"
[factors]
family = ["ipv4", "ipv6"]
transport = ["tcp", "udp"]
size = [64, 200, 512]
[probe.stream]
metrics = ["throughput"]
length = { time = "100ms" }
[probe.echo]
metrics = ["rtt"]
length = { time = "100ms" }
[[comparison]]
factor = "family"
baseline = "ipv4"
candidate = "ipv6"
metrics = ["throughput", "rtt"]
[[comparison]]
factor = "size"
baseline = 64
candidate = 512
metrics = ["rtt"]
"#;
    let study = parse(&Input::file("both.toml", text)).unwrap();
    let alone = Study { schedule: ArmSchedule::Alone, ..study.clone() };
    let interleaved = Study { schedule: ArmSchedule::TokenPassing(None), ..study };
    // Of each transport; a size that is not compared with another is a trial of its own.
    assert_eq!(count_arms(&interleaved, Probe::Echo), [2, 2, 4, 4]);
    // No comparison of sizes asks for streams.
    assert_eq!(count_arms(&interleaved, Probe::Stream), [2; 6]);
    assert_eq!(count_arms(&alone, Probe::Echo), [1; 12]);
}

/// The arms in each trial of a probe, without those against themselves, the fewest first.
fn count_arms(study: &Study, probe: Probe) -> Vec<usize> {
    let plan = Plan::new(study, 1);
    let mut counts = Vec::new();
    for arms in plan.together(&plan.block(0)) {
        if arms[0].probe == probe && !is_against_itself(&arms[0].cell) {
            counts.push(arms.len());
        }
    }
    counts.sort_unstable();
    counts
}

#[test]
fn self_arms_end_with_the_last_question_of_their_kind() {
    let study = interleaved();
    let plan = Plan::new(&study, 1);
    let questions = study.questions();
    let all = vec![Some(StopReason::Decided); questions.len()];
    assert!(plan.active(&study, plan.block(0), &all, &questions).is_empty());
    let mut but_one = all;
    but_one[0] = None;
    // Those of its probe and transport, in every second block.
    assert_eq!(plan.active(&study, plan.block(0), &but_one, &questions).len(), 2 + 2);
    assert_eq!(plan.active(&study, plan.block(3), &but_one, &questions).len(), 2);
}

#[test]
fn no_arm_stays_alone_in_an_interleaved_trial() {
    let text = r#"
title = "families and MTUs"
[factors]
family = ["ipv4", "ipv6"]
transport = ["udp"]
size = [128]
mtu = [1500, 1280]
[probe.stream]
metrics = ["throughput"]
length = { time = "100ms" }
[[comparison]]
factor = "family"
baseline = "ipv4"
candidate = "ipv6"
metrics = ["throughput"]
[[comparison]]
factor = "mtu"
baseline = 1500
candidate = 1280
metrics = ["throughput"]
"#;
    let study = parse(&Input::file("both.toml", text)).unwrap();
    let study = Study { schedule: ArmSchedule::TokenPassing(None), ..study };
    let plan = Plan::new(&study, 1);
    let questions = study.questions();
    // The families are settled, and of the MTUs one is open: of the other family's arms none is asked for.
    let mut settled = Vec::new();
    for Question { factor, baseline, .. } in &questions {
        let is_open = *factor == Factor::Mtu && baseline.family == Family::Ipv6;
        settled.push((!is_open).then_some(StopReason::Precise));
    }
    let active = plan.active(&study, plan.block(0), &settled, &questions);
    let active: Vec<Trial> = active.into_iter().filter(|trial| !is_against_itself(&trial.cell)).collect();
    assert_eq!(active.len(), 4, "{active:?}");
    assert!(plan.together(&active).all(|arms| arms.len() == 2), "{active:?}");
}

#[test]
fn what_one_testbed_cannot_hold_is_measured_apart() {
    for (factor, baseline, candidate, together) in
        [("size", "64", "512", true), ("replica", "a", "b", true), ("transport", "tcp", "udp", true)]
    {
        let study = Study {
            schedule: ArmSchedule::TokenPassing(None),
            ..make_varied_study(factor, baseline, candidate)
        };
        let plan = Plan::new(&study, 1);
        let block = plan.block(0);
        let trials: Vec<&[Trial]> = plan.together(&block).collect();
        let takes_turns = trials.iter().any(|arms| arms[0].probe == Probe::Stream && arms.len() > 1);
        assert_eq!(takes_turns, together, "{factor}");
        // Connections are opened one after the other, by a probe that takes no turns.
        let connects: Vec<_> = trials.iter().filter(|arms| arms[0].probe == Probe::Connect).collect();
        assert!(!connects.is_empty() && connects.iter().all(|arms| arms.len() == 1), "{factor}");
    }
    assert!(!interleaves(Factor::Mtu) && interleaves(Factor::Os) && interleaves(Factor::Mss));
}
