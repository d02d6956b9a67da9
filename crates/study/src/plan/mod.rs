//! A study as randomised complete blocks of trials.

mod adjacent;
pub mod estimate;
pub(crate) mod interleave;
mod shuffle;
pub mod stopping;

use crate::plan::adjacent::{Group, against_themselves, groups};
use crate::plan::interleave::{interleaves, is_against_itself, takes_turns};
use crate::plan::shuffle::{generator, shuffle};
use crate::study::Study;
use stacklab_model::{Cell, Probe, Question, Slicing, StopReason, Trial};
use std::collections::{HashMap, HashSet};

/// The trials of a study in their order. A block contains every cell once for every probe that supports its
/// transport. Only the seed and the block's number determine its order: a campaign is resumed without its history.
///
/// Cells that differ only in the compared factor are adjacent, to measure compared cells under the same conditions.
/// That factor is the first comparison's, or the family in a study without comparisons. Cells that have no others like
/// them but for it are adjacent by the factor of the next comparison that they have others for.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    seed: u64,
    /// The adjacent cells, in the study's order.
    groups: Vec<Group>,
    /// The group of each cell whose trials are arms of interleaved trials.
    interleaved: HashMap<(Cell, Probe), usize>,
}

impl Plan {
    /// The plan of a study for a seed.
    pub fn new(study: &Study, seed: u64) -> Self {
        let mut groups = groups(study);
        if study.slicing.is_some() && groups.iter().any(|group| interleaves(group.factor)) {
            groups.extend(against_themselves(study));
        }
        let mut interleaved = HashMap::new();
        for (number, Group { factor, arms }) in groups.iter().enumerate() {
            let takes_turns = |(cell, probe): &&(Cell, Probe)| takes_turns(cell, *probe, *factor);
            if study.slicing.is_some() && interleaves(*factor) {
                interleaved.extend(arms.iter().filter(takes_turns).map(|arm| (arm.clone(), number)));
            }
        }
        Plan { seed, groups, interleaved }
    }

    /// Whether every trial is an arm of an interleaved trial with others.
    pub fn interleaves_all(&self) -> bool {
        let block = self.block(0);
        self.together(&block).all(|arms| arms.len() > 1)
    }

    /// Divides trials of one block into those that run together: the arms of interleaved trials, and each other trial
    /// by itself.
    pub fn together<'t>(&self, trials: &'t [Trial]) -> impl Iterator<Item = &'t [Trial]> {
        let group = |trial: &Trial| self.interleaved.get(&(trial.cell.clone(), trial.probe));
        let alike = move |a: &Trial, b: &Trial| group(a).is_some() && group(a) == group(b);
        // As even as possible: no arm stays alone.
        let evenly =
            |arms: &'t [Trial]| arms.chunks(arms.len().div_ceil(arms.len().div_ceil(Slicing::MOST_ARMS)));
        trials.chunk_by(alike).flat_map(evenly)
    }

    /// The seed that the orders are drawn from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Trials of one block.
    pub fn trials_per_block(&self) -> usize {
        self.arms().count()
    }

    /// The trials of one block, in the study's order.
    pub(crate) fn arms(&self) -> impl Iterator<Item = &(Cell, Probe)> {
        self.groups.iter().flat_map(|group| &group.arms)
    }

    /// The trials of a block (from 0) in the order in which they run.
    pub fn block(&self, block: u32) -> Vec<Trial> {
        let mut generator = generator(self.seed, block);
        let mut groups: Vec<_> = self.groups.iter().map(|group| group.arms.clone()).collect();
        shuffle(&mut groups, &mut generator);
        for group in &mut groups {
            shuffle(group, &mut generator);
        }
        let trial = |(position, (cell, probe))| Trial { block, position, cell, probe };
        (0..).zip(groups.into_iter().flatten()).map(trial).collect()
    }

    /// The trials of a block that are still needed: all except trials with stopped questions only. A trial without
    /// any question stays. `stop_reason` has an item for each of `questions`; a missing one is open. Trials keep
    /// their order and positions.
    pub fn active(
        study: &Study,
        trials: Vec<Trial>,
        stop_reason: &[Option<StopReason>],
        questions: &[Question],
    ) -> Vec<Trial> {
        let mut asked = HashSet::new();
        let mut open = HashSet::new();
        for (index, question) in questions.iter().enumerate() {
            let is_open = stop_reason.get(index).is_none_or(Option::is_none);
            for cell in [&question.baseline, &question.candidate] {
                let arm = (cell, study.probe_of(question.metric));
                asked.insert(arm);
                if is_open {
                    open.insert(arm);
                }
            }
        }
        let worth = |trial: &Trial| {
            let arm = (&trial.cell, trial.probe);
            open.contains(&arm) || !asked.contains(&arm)
        };
        let active: Vec<Trial> = trials.into_iter().filter(worth).collect();
        // Arms against themselves are measured for the others.
        if active.iter().all(|trial| is_against_itself(&trial.cell)) { Vec::new() } else { active }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, parse};
    use proptest::prelude::*;
    use stacklab_model::{Factor, Metric};
    use std::collections::BTreeSet;

    fn interleaved() -> Study {
        parse(&Input::file("quickstart.toml", include_str!("../../../../studies/quickstart.toml"))).unwrap()
    }

    fn quickstart() -> Study {
        Study { slicing: None, ..interleaved() }
    }

    /// Every probe, both transports, two framings' worth of cells and replicas, compared by the given factor.
    fn varied(factor: &str, baseline: &str, candidate: &str) -> Study {
        let text = format!(
            r#"
title = "varied"
[factors]
family = ["ipv4", "ipv6"]
transport = ["tcp", "udp"]
framing = ["segment", "message"]
size = [64, 512]
replica = ["a", "b", "c"]
[probe.stream]
metrics = ["throughput"]
length = {{ packets = 10 }}
[probe.connect]
metrics = ["connect_time"]
length = {{ packets = 10 }}
[[comparison]]
factor = "{factor}"
baseline = "{baseline}"
candidate = "{candidate}"
"#
        );
        parse(&Input::file("varied.toml", &text)).unwrap()
    }

    fn arms(trials: &[Trial]) -> BTreeSet<(Cell, Probe)> {
        trials.iter().map(|trial| (trial.cell.clone(), trial.probe)).collect()
    }

    /// Whether all trials of the same probe that differ in nothing but the factor follow each other directly.
    fn side_by_side(trials: &[Trial], factor: Factor) -> bool {
        let alike = |a: &Trial, b: &Trial| a.probe == b.probe && a.cell.same_but(&b.cell, factor);
        let runs = trials.chunk_by(alike).count();
        let mut kinds: Vec<&Trial> = Vec::new();
        for trial in trials {
            if !kinds.iter().any(|kind| alike(kind, trial)) {
                kinds.push(trial);
            }
        }
        runs == kinds.len() && runs < trials.len()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_block_holds_every_cell_and_probe_once(seed: u64, block: u32) {
            let study = varied("family", "ipv4", "ipv6");
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
                let study = varied(factor, baseline, candidate);
                let trials = Plan::new(&study, seed).block(block);
                prop_assert!(side_by_side(&trials, factor.parse().unwrap()), "{}", factor);
            }
        }

        #[test]
        fn an_order_depends_on_seed_and_block_alone(seed: u64, block in 0..u32::MAX) {
            let study = quickstart();
            let plan = Plan::new(&study, seed);
            let order = |plan: &Plan, block| -> Vec<(Cell, Probe)> {
                plan.block(block).into_iter().map(|trial| (trial.cell, trial.probe)).collect()
            };
            prop_assert_eq!(plan.block(block), Plan::new(&study, seed).block(block));
            prop_assert_ne!(order(&plan, block), order(&plan, block + 1));
            prop_assert_ne!(order(&plan, block), order(&Plan::new(&study, seed.wrapping_add(1)), block));
        }
    }

    #[test]
    fn both_families_come_first_about_equally_often() {
        let plan = Plan::new(&quickstart(), 3);
        let first = |trials: &[Trial]| {
            trials.chunks(2).filter(|pair| pair[0].cell.family == stacklab_model::Family::Ipv4).count()
        };
        let ipv4_first: usize = (0..100).map(|block| first(&plan.block(block))).sum();
        // Six standard deviations of a binomial with n = 1200 and p = 1/2.
        assert!((496..=704).contains(&ipv4_first), "{ipv4_first} of 1200");
    }

    #[test]
    fn without_comparisons_the_families_stand_side_by_side() {
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
                "block 1 stream ipv6 tcp segment 1408 B",
                "block 1 stream ipv4 tcp segment 1408 B",
                "block 1 echo ipv4 udp segment 128 B",
                "block 1 echo ipv6 udp segment 128 B",
                "block 1 stream ipv6 udp segment 1408 B",
                "block 1 stream ipv4 udp segment 1408 B"
            ]
        );
    }

    #[test]
    fn a_trial_is_left_out_when_all_its_questions_are_settled() {
        let study = quickstart();
        let plan = Plan::new(&study, 1);
        let questions = study.questions();
        let active =
            |stop_reason: &[Option<StopReason>]| Plan::active(&study, plan.block(0), stop_reason, &questions);

        assert_eq!(active(&[]), plan.block(0));
        assert_eq!(active(&vec![None; questions.len()]), plan.block(0));
        assert!(active(&vec![Some(StopReason::Cap); questions.len()]).is_empty());

        // Round trips are the only questions of echo: all echo trials are dropped. A stream stays for its other
        // metrics.
        let rtt: Vec<_> =
            questions.iter().map(|q| (q.metric == Metric::Rtt).then_some(StopReason::Narrow)).collect();
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
            [&questions[5].baseline, &questions[5].candidate]
                .map(|cell| (cell.clone(), Probe::Stream))
                .into()
        );
    }

    #[test]
    fn compared_cells_run_together_and_one_cell_of_each_kind_against_itself() {
        let plan = Plan::new(&interleaved(), 1);
        let block = plan.block(0);
        let together: Vec<&[Trial]> = plan.together(&block).collect();
        assert_eq!(together.iter().map(|arms| arms.len()).sum::<usize>(), block.len());
        assert!(plan.interleaves_all());
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
    fn cells_beside_the_matrix_take_turns_with_those_like_them() {
        let text = include_str!("../../../../studies/soorty2013linux.toml");
        let study = parse(&Input::file("soorty2013linux.toml", text)).unwrap();
        let plan = Plan::new(&study, 1);
        let block = plan.block(0);
        let arms = |factor: Factor| -> Vec<usize> {
            let of =
                |arms: &&[Trial]| !arms[0].cell.level(factor).is_empty() && arms[0].probe == Probe::Stream;
            plan.together(&block).filter(of).map(<[Trial]>::len).collect()
        };
        assert_eq!(arms(Factor::ReceiveBuffer), [2]);
        // One link has one MTU at a time.
        assert_eq!(arms(Factor::Mtu), [1, 1]);
        let at = |mtu: &str| block.iter().position(|trial| trial.cell.level(Factor::Mtu) == mtu).unwrap();
        assert_eq!(at("1280").abs_diff(at("1500")), 1);
    }

    #[test]
    fn arms_of_several_comparisons_are_in_one_trial_that_has_room_for_them() {
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
        let of = |sizes: &str, probe: Probe, slicing: Option<Slicing>| -> Vec<usize> {
            let study = parse(&Input::file("both.toml", &text(sizes))).unwrap();
            let plan = Plan::new(&Study { slicing, ..study }, 1);
            let block = plan.block(0);
            let kind = |arms: &&[Trial]| arms[0].probe == probe && !is_against_itself(&arms[0].cell);
            let mut arms: Vec<usize> = plan.together(&block).filter(kind).map(<[Trial]>::len).collect();
            arms.sort_unstable();
            arms
        };
        let slicing = Some(Slicing::default());
        // Of each transport; a size that is not compared with another is a trial of its own.
        assert_eq!(of("64, 200, 512", Probe::Echo, slicing), [2, 2, 4, 4]);
        // No comparison of sizes asks for streams.
        assert_eq!(of("64, 200, 512", Probe::Stream, slicing), [2; 6]);
        assert_eq!(of("64, 200, 512", Probe::Echo, None), [1; 12]);
    }

    #[test]
    fn arms_against_themselves_end_with_the_last_question() {
        let study = interleaved();
        let (plan, questions) = (Plan::new(&study, 1), study.questions());
        let all = vec![Some(StopReason::Decided); questions.len()];
        assert!(Plan::active(&study, plan.block(0), &all, &questions).is_empty());
        let mut but_one = all;
        but_one[0] = None;
        assert_eq!(Plan::active(&study, plan.block(0), &but_one, &questions).len(), 2 + 2 * 4);
    }

    #[test]
    fn what_one_testbed_cannot_hold_at_once_is_measured_apart() {
        for (factor, baseline, candidate, together) in
            [("size", "64", "512", true), ("replica", "a", "b", true), ("transport", "tcp", "udp", true)]
        {
            let study = Study { slicing: Some(Default::default()), ..varied(factor, baseline, candidate) };
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

    #[test]
    fn a_trial_that_no_question_asks_for_stays() {
        let mut study = quickstart();
        study.comparisons[0].metrics = vec![Metric::Throughput];
        let questions = study.questions();
        let trials = Plan::new(&study, 1).block(0);
        let left = Plan::active(&study, trials, &vec![Some(StopReason::Cap); questions.len()], &questions);
        assert_eq!(left.len(), 12);
        assert!(left.iter().all(|trial| trial.probe == Probe::Echo));
    }
}
