//! The state of a campaign, from its study, plan and runs alone: which block is next, and which questions are settled.
//!
//! The same runs always give the same schedule. So a resumed campaign makes the same decisions as an uninterrupted
//! one, and a report of a record shows why measuring stopped for each question.

use crate::appearing::Appearing;
use stacklab_analysis::{BLOCKS_WHEN_NARROW, Evidence, RunningEvidence, Runs, may_settle, settle};
use stacklab_model::{
    Cell, Effect, Metric, Probe, Question, RunRecord, SpentTime, StopReason, Trial, Until, Verdict,
    print_duration,
};
use stacklab_study::{Plan, Study, is_over, may_look};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Maximum number of comparisons whose differences are all shown while they are measured.
const MAX_SHOWN: usize = 6;
const SECOND_NS: u64 = 1_000_000_000;

/// A campaign's progress through its blocks.
pub struct Schedule<'a> {
    study: &'a Study,
    plan: &'a Plan,
    questions: Vec<Question>,
    /// The evidence of each question.
    running: Vec<RunningEvidence>,
    /// The time that the runs so far took, of all blocks before the current one.
    spent: SpentTime,
    stop_reasons: Vec<Option<StopReason>>,
    /// The verdict of each settled question: a report says the same.
    settled: Vec<Option<Verdict>>,
    /// Questions that are no longer measured, whose events are not surely rarer than the margin: no answer.
    without_answer: HashSet<usize>,
    /// The block at which each interval was as narrow as the target for the first time.
    narrow_at: Vec<Option<u32>>,
    /// The differences so far, with their metrics; none if many questions are asked.
    pub(crate) differences: Vec<(Metric, Effect)>,
    /// The differences that appear so far, if many questions are asked.
    pub(crate) appearing: Option<Appearing>,
    /// The current one, from 0.
    pub(crate) block: u32,
}

impl<'a> Schedule<'a> {
    /// Starts at the first block.
    pub fn new(study: &'a Study, plan: &'a Plan) -> Self {
        let questions = study.questions();
        Schedule {
            study,
            plan,
            stop_reasons: vec![None; questions.len()],
            settled: vec![None; questions.len()],
            without_answer: HashSet::new(),
            narrow_at: vec![None; questions.len()],
            running: questions.iter().map(RunningEvidence::new).collect(),
            spent: SpentTime::default(),
            questions,
            differences: Vec::new(),
            appearing: None,
            block: 0,
        }
    }

    /// The trials of the current block; none when the campaign has ended.
    pub(crate) fn trials(&self) -> Vec<Trial> {
        if self.block >= self.study.rule.max {
            return Vec::new();
        }
        self.plan.active(self.study, self.plan.block(self.block), &self.stop_reasons, &self.questions)
    }

    /// Whether the budget is spent before all trials of the current block were run, after these `runs` of it. Until two
    /// blocks are complete it is not: nothing could be compared.
    pub(crate) fn is_time_up<'r>(&self, runs: impl IntoIterator<Item = &'r RunRecord>) -> bool {
        let mut spent = self.spent.clone();
        spent.add_all(runs);
        is_over(&self.study.rule, self.block, spent.ns()) == Some(StopReason::Budget)
    }

    /// Says after the first block that it took all of the budget, and that a second one follows.
    pub(crate) fn warn_of_budget(&self) -> Option<String> {
        let budget_ns = self.study.rule.budget_ns?;
        if self.block != 1 || self.spent.ns() < budget_ns || self.questions.is_empty() {
            return None;
        }
        let took = print_duration(self.spent.ns().div_ceil(SECOND_NS) * SECOND_NS);
        Some(format!(
            "the first block took {took}, and the budget is {}: a second one follows, without which nothing can be compared",
            print_duration(budget_ns)
        ))
    }

    /// Goes to the next block, after every trial of the current one has been run or the time was up, and decides which
    /// questions are settled, and how. `runs` are those of the current block.
    pub(crate) fn advance(&mut self, runs: &[RunRecord]) {
        self.update_stop_reasons(runs, false);
        if self.questions.len() <= MAX_SHOWN {
            self.differences.clear();
            for (question, running) in self.questions.iter().zip(&self.running) {
                if let Ok(paired) = running.pair_blocks() {
                    self.differences.push((question.metric, paired.effect()));
                }
            }
        } else {
            self.appearing = Appearing::find(&self.questions, &self.running);
        }
    }

    /// Goes to the next block and decides which questions are settled. The budget does not end a campaign that has runs
    /// of later blocks: an earlier version counted it in another way.
    fn update_stop_reasons<'r>(
        &mut self,
        runs: impl IntoIterator<Item = &'r RunRecord> + Clone,
        has_later: bool,
    ) {
        self.block += 1;
        self.spent.add_all(runs.clone());
        let index = Runs::new(runs);
        self.running.iter_mut().for_each(|running| running.add(&index));
        let rule = &self.study.rule;
        if may_look(rule, self.block) {
            match rule.until {
                Until::Verdict => self.settle(),
                Until::Precise => self.stop_precise(),
            }
        }
        // The rule's limits also apply to trials without a question.
        let over = is_over(rule, self.block, self.spent.ns());
        if let Some(reason) = over.filter(|reason| *reason != StopReason::Budget || !has_later) {
            self.stop_reasons.iter_mut().for_each(|stop_reason| *stop_reason = stop_reason.or(Some(reason)));
            self.block = rule.max;
        }
    }

    /// Takes all blocks into account only where that may settle a question: a long campaign has many blocks.
    fn settle(&mut self) {
        if may_settle(&self.settled, &self.running) {
            let mut evidence = Vec::new();
            for (running, settled) in self.running.iter().zip(&self.settled) {
                evidence.push(match settled {
                    Some(verdict) => Evidence::of_verdict(verdict.clone()),
                    None => running.evidence(),
                });
            }
            for number in settle(&mut self.settled, &self.questions, &evidence) {
                self.stop_reasons[number] = Some(StopReason::Decided);
            }
        }
        self.stop_none_seen();
    }

    /// Stops questions about events of which none was seen, where everything else that their trials measure is settled:
    /// more trials would only make the bound smaller, and would take the time of what is open.
    fn stop_none_seen(&mut self) {
        let mut open = HashSet::new();
        let mut settled = HashSet::new();
        let mut none_seen = Vec::new();
        for (number, question) in self.questions.iter().enumerate() {
            match (self.stop_reasons[number], self.running[number].none_seen()) {
                (Some(_), _) => settled.extend(self.list_arms(question)),
                (None, Some(is_bounded)) => none_seen.push((number, is_bounded, self.list_arms(question))),
                (None, None) => open.extend(self.list_arms(question)),
            }
        }
        for (number, is_bounded, arms) in none_seen {
            if arms.iter().any(|arm| settled.contains(arm)) && !arms.iter().any(|arm| open.contains(arm)) {
                self.stop_reasons[number] = Some(StopReason::Decided);
                if !is_bounded {
                    self.without_answer.insert(number);
                }
            }
        }
    }

    fn list_arms(&self, question: &Question) -> [(Cell, Probe); 2] {
        let probe = self.study.probe_of(question.metric);
        [&question.baseline, &question.candidate].map(|cell| (cell.clone(), probe))
    }

    /// Stops questions whose interval was as narrow as the target some blocks ago.
    fn stop_precise(&mut self) {
        let target = self.study.rule.target;
        for (number, question) in self.questions.iter().enumerate() {
            let running = &self.running[number];
            if !running.has_pairs() {
                continue;
            }
            if self.narrow_at[number].is_none()
                && running.may_be_narrow(target)
                && running.pair_blocks().is_ok_and(|paired| paired.is_narrow(target, question.margin))
            {
                self.narrow_at[number] = Some(self.block);
            }
            let is_due = self.narrow_at[number].is_some_and(|block| block + BLOCKS_WHEN_NARROW <= self.block);
            if is_due && self.stop_reasons[number].is_none() {
                self.stop_reasons[number] = Some(StopReason::Precise);
            }
        }
    }

    /// The number of questions, and how many of them are settled.
    pub(crate) fn count_questions(&self) -> (usize, usize) {
        let stopped = self.stop_reasons.iter().flatten().count();
        (self.questions.len(), stopped - self.without_answer.len())
    }

    /// The verdicts of the settled questions with their counts, the most common first.
    pub(crate) fn verdicts(&self) -> Vec<(String, usize)> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for verdict in self.settled.iter().flatten() {
            *counts.entry(answer(verdict)).or_default() += 1;
        }
        let mut sorted: Vec<(String, usize)> = counts.into_iter().collect();
        sorted.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        sorted
    }

    /// Replays the runs.
    pub fn walk(mut self, runs: &[RunRecord]) -> Replayed {
        let mut blocks: HashMap<u32, Vec<&RunRecord>> = HashMap::new();
        for run in runs {
            blocks.entry(run.trial.block).or_default().push(run);
        }
        let has_ended = loop {
            let trials = self.trials();
            if trials.is_empty() {
                break true;
            }
            let runs = blocks.remove(&self.block).unwrap_or_default();
            let measured: HashSet<u32> = runs.iter().map(|run| run.trial.position).collect();
            let is_complete = trials.iter().all(|trial| measured.contains(&trial.position));
            if !is_complete && !self.is_time_up(runs.iter().copied()) {
                break false;
            }
            self.update_stop_reasons(runs, !blocks.is_empty());
        };
        let stop_reason =
            self.stop_reasons.into_iter().map(|stop_reason| stop_reason.unwrap_or(StopReason::Unfinished));
        Replayed {
            questions: self.questions,
            stop_reasons: stop_reason.collect(),
            settled: self.settled,
            has_ended,
        }
    }
}

/// The questions of a campaign, and what its runs decided while they were measured.
pub struct Replayed {
    /// The questions.
    pub questions: Vec<Question>,
    /// Why measuring stopped for each.
    pub stop_reasons: Vec<StopReason>,
    /// The verdict of each that was settled.
    pub settled: Vec<Option<Verdict>>,
    /// Whether nothing is left to be measured.
    pub has_ended: bool,
}

fn answer(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Better(level) => format!("{level} better"),
        Verdict::Equivalent => "equivalent".to_owned(),
        Verdict::Inconclusive => "inconclusive".to_owned(),
        Verdict::NoneSeen(_) => "none seen".to_owned(),
        Verdict::Nothing(_) => "nothing to compare".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::StudySource;
    use crate::trial::fixtures::trial_and_spec;
    use stacklab_model::{Family, RunStatus, Scale, Value};

    /// A run of so many seconds in a block.
    fn run(block: u32, seconds: u64) -> RunRecord {
        let (trial, spec) = trial_and_spec();
        RunRecord {
            trial: Trial { block, ..trial },
            spec,
            started_unix_ns: 0,
            wall_ns: seconds * 1_000_000_000,
            status: RunStatus::Valid,
            values: Default::default(),
            drops: Default::default(),
            host_reports: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn campaign_ends_with_its_budget_whatever_is_asked() {
        for questions in ["[\"throughput\"]", "[]"] {
            let source = StudySource::read(Some(std::path::Path::new("quickstart"))).unwrap();
            let mut study = source.check(None, &["blocks.budget=\"60s\"".to_owned()]).unwrap();
            if questions == "[]" {
                study.comparisons.clear();
            } else {
                // Of round trips nobody asks.
                study.comparisons.iter_mut().for_each(|one| one.metrics = vec![Metric::Throughput]);
            }
            let plan = Plan::new(&study, 1);
            let mut schedule = Schedule::new(&study, &plan);
            schedule.advance(&[run(0, 61)]);
            assert!(!schedule.trials().is_empty(), "an interval needs two blocks: {questions}");
            assert_eq!(schedule.warn_of_budget().is_some(), questions != "[]");
            schedule.advance(&[run(1, 1)]);
            assert!(schedule.trials().is_empty(), "{questions}: {:?}", schedule.trials());
        }
    }

    #[test]
    fn budget_ends_within_the_third_block() {
        let source = StudySource::read(Some(std::path::Path::new("quickstart"))).unwrap();
        let study = source.check(None, &["blocks.budget=\"60s\"".to_owned()]).unwrap();
        let plan = Plan::new(&study, 1);
        let mut schedule = Schedule::new(&study, &plan);
        // Two blocks are complete, however long they take.
        let mut measured = Vec::new();
        for block in 0..2 {
            let trials = schedule.trials();
            let runs = trials.into_iter().map(|trial| RunRecord { trial, ..run(block, 1) });
            let runs: Vec<RunRecord> = runs.collect();
            assert!(!schedule.is_time_up(&runs), "{block}");
            schedule.advance(&runs);
            measured.extend(runs);
            if block == 0 {
                assert!(study.rule.budget_ns.is_some_and(|budget| budget > schedule.spent.ns()));
            }
        }
        assert!(schedule.trials().is_empty(), "64 trials of a second");
        // A longer budget ends the third one.
        let study = source.check(None, &["blocks.budget=\"70s\"".to_owned()]).unwrap();
        let mut schedule = Schedule::new(&study, &plan);
        schedule.advance(&measured[..32]);
        schedule.advance(&measured[32..]);
        let trials = schedule.trials();
        let third: Vec<RunRecord> =
            trials.into_iter().take(8).map(|trial| RunRecord { trial, ..run(2, 1) }).collect();
        assert!(!schedule.is_time_up(&third[..4]) && schedule.is_time_up(&third));
        measured.extend_from_slice(&third);
        let replayed = Schedule::new(&study, &plan).walk(&measured);
        assert!(replayed.has_ended);
        assert!(replayed.stop_reasons.iter().all(|reason| *reason == StopReason::Budget));
        assert!(!Schedule::new(&study, &plan).walk(&measured[..68]).has_ended);
    }

    /// Runs of a study whose families differ by a tenth in each figure but counts, of which there are none.
    fn simulate_runs(trials: Vec<Trial>) -> Vec<RunRecord> {
        let mut runs = Vec::new();
        for trial in trials {
            let wanders = 1.0 + 0.001 * f64::from((7 * trial.block + 3 * trial.position) % 5);
            let six = if trial.cell.family == Family::Ipv6 { 0.9 } else { 1.0 };
            let mut values = Vec::new();
            for metric in Metric::ALL.iter().filter(|metric| metric.probe() == trial.probe) {
                let figure = if metric.scale() == Scale::Ratio { 100.0 * six * wanders } else { 0.0 };
                values.push((*metric, Value::Measured(figure)));
            }
            runs.push(RunRecord { trial, values: values.into_iter().collect(), ..run(0, 0) });
        }
        runs
    }

    #[test]
    fn most_certain_difference_appears_after_three_blocks() {
        let source = StudySource::read(Some(std::path::Path::new("quickstart"))).unwrap();
        let study = source.check(None, &[]).unwrap();
        let plan = Plan::new(&study, 1);
        let mut schedule = Schedule::new(&study, &plan);
        assert!(schedule.questions.len() > MAX_SHOWN);
        for block in 0..3 {
            assert_eq!(schedule.appearing, None, "{block}");
            schedule.advance(&simulate_runs(schedule.trials()));
        }
        // All but the three of loss differ by a tenth.
        let line = schedule.appearing.map(|appearing| appearing.describe()).unwrap();
        assert_eq!(line, "18 appear to differ, most surely IPv6 UDP 1408 B: throughput 9.82 ± 0.00 % lower");
    }

    #[test]
    fn counts_without_events_end_with_other_questions() {
        let source = StudySource::read(Some(std::path::Path::new("quickstart"))).unwrap();
        let settings =
            ["probe.stream.metrics=[\"throughput\", \"loss\", \"reorder\"]", "blocks.budget=\"1h\""];
        let study = source.check(None, &settings.map(str::to_owned)).unwrap();
        let plan = Plan::new(&study, 1);
        let mut schedule = Schedule::new(&study, &plan);
        let mut blocks = 0;
        while !schedule.trials().is_empty() {
            schedule.advance(&simulate_runs(schedule.trials()));
            blocks += 1;
        }
        assert!((study.rule.min..study.rule.max / 2).contains(&blocks), "{blocks} blocks");
        assert!(schedule.stop_reasons.iter().all(|reason| *reason == Some(StopReason::Decided)));
    }
}
