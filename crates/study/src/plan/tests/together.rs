//! Which trials are arms of one interleaved trial.

use crate::plan::Plan;
use crate::plan::interleave::{interleaves, is_against_itself};
use crate::plan::tests::{interleaved, quickstart, varied};
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
    let arms = |factor: Factor| -> Vec<usize> {
        let of = |arms: &&[Trial]| !arms[0].cell.level(factor).is_empty() && arms[0].probe == Probe::Stream;
        plan.together(&block).filter(of).map(<[Trial]>::len).collect()
    };
    assert_eq!(arms(Factor::ReceiveBuffer), [2]);
    // One link has one MTU at a time.
    assert_eq!(arms(Factor::Mtu), [1, 1]);
    let at = |mtu: &str| block.iter().position(|trial| trial.cell.level(Factor::Mtu) == mtu).unwrap();
    assert_eq!(at("1280").abs_diff(at("1500")), 1);
}

#[test]
fn several_comparisons_share_a_trial_with_room() {
    let text = |sizes: &str| {
        format!(
            r#"
title = "families and sizes"
[factors]
family = ["ipv4", "ipv6"]
transport = ["tcp", "udp"]
size = [{sizes}]
[probe.stream]
metrics = ["throughput"]
length = {{ time = "100ms" }}
[probe.echo]
metrics = ["rtt"]
length = {{ time = "100ms" }}
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
"#
        )
    };
    let of = |sizes: &str, probe: Probe, schedule: ArmSchedule| -> Vec<usize> {
        let study = parse(&Input::file("both.toml", &text(sizes))).unwrap();
        let plan = Plan::new(&Study { schedule, ..study }, 1);
        let block = plan.block(0);
        let kind = |arms: &&[Trial]| arms[0].probe == probe && !is_against_itself(&arms[0].cell);
        let mut arms: Vec<usize> = plan.together(&block).filter(kind).map(<[Trial]>::len).collect();
        arms.sort_unstable();
        arms
    };
    let interleaved = ArmSchedule::TokenPassing(None);
    // Of each transport; a size that is not compared with another is a trial of its own.
    assert_eq!(of("64, 200, 512", Probe::Echo, interleaved), [2, 2, 4, 4]);
    // No comparison of sizes asks for streams.
    assert_eq!(of("64, 200, 512", Probe::Stream, interleaved), [2; 6]);
    assert_eq!(of("64, 200, 512", Probe::Echo, ArmSchedule::Alone), [1; 12]);
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
    let open =
        |question: &Question| question.factor == Factor::Mtu && question.baseline.family == Family::Ipv6;
    let settled: Vec<_> =
        questions.iter().map(|question| (!open(question)).then_some(StopReason::Precise)).collect();
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
        let study =
            Study { schedule: ArmSchedule::TokenPassing(None), ..varied(factor, baseline, candidate) };
        let plan = Plan::new(&study, 1);
        let block = plan.block(0);
        // Connections are opened one after the other, by a probe that takes no turns.
        let arms = |probe| {
            plan.together(&block).filter(|arms| arms[0].probe == probe).map(<[Trial]>::len).max().unwrap()
        };
        assert_eq!(arms(Probe::Stream) > 1, together, "{factor}");
        assert_eq!(arms(Probe::Connect), 1, "{factor}");
    }
    assert!(!interleaves(Factor::Mtu) && interleaves(Factor::Os) && interleaves(Factor::Mss));
}
