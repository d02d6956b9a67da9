//! The state of a campaign, from its study, plan and runs alone.
//!
//! The same runs always give the same schedule. So a resumed campaign makes the same decisions as an uninterrupted
//! one, and a report of a record shows why measuring stopped for each question.

use stacklab_analysis::{Paired, Runs, stopping_state, verdict};
use stacklab_model::{Effect, Metric, Question, RunRecord, StopReason, StoppingState, Trial, Verdict};
use stacklab_study::{Plan, Study, look};
use std::collections::BTreeMap;

/// So many questions have their differences shown while they are measured.
const FEW: usize = 6;

/// A campaign's progress through its blocks.
pub(crate) struct Schedule<'a> {
    study: &'a Study,
    plan: &'a Plan,
    questions: Vec<Question>,
    stop_reasons: Vec<Option<StopReason>>,
    /// Number of settled questions per verdict.
    verdicts: BTreeMap<String, usize>,
    /// The differences so far, if few are asked for.
    differences: Vec<(Metric, Effect)>,
    block: u32,
}

impl<'a> Schedule<'a> {
    /// Starts at the first block.
    pub(crate) fn new(study: &'a Study, plan: &'a Plan) -> Self {
        let questions = study.questions();
        Schedule {
            study,
            plan,
            stop_reasons: vec![None; questions.len()],
            questions,
            verdicts: BTreeMap::new(),
            differences: Vec::new(),
            block: 0,
        }
    }

    /// The current block, from 0.
    pub(crate) fn block(&self) -> u32 {
        self.block
    }

    /// The trials of the current block; none when the campaign has ended.
    pub(crate) fn trials(&self) -> Vec<Trial> {
        if self.block >= self.study.rule.max {
            return Vec::new();
        }
        self.plan.active(self.study, self.plan.block(self.block), &self.stop_reasons, &self.questions)
    }

    /// Goes to the next block, after every trial of the current one has been run, and decides which questions are
    /// settled, and how.
    pub(crate) fn advance(&mut self, runs: &[RunRecord]) {
        let (index, newly) = self.update_stop_reasons(runs);
        for number in newly {
            *self.verdicts.entry(answer(&self.questions[number], &index)).or_default() += 1;
        }
        if self.questions.len() <= FEW {
            let effect = |question: &Question| Some(Paired::new(question, &index).ok()?.effect());
            let found =
                self.questions.iter().filter_map(|question| Some((question.metric, effect(question)?)));
            self.differences = found.collect();
        }
    }

    /// Goes to the next block and decides which questions are settled. Returns the runs before it and the newly
    /// settled questions.
    fn update_stop_reasons<'r>(&mut self, runs: &'r [RunRecord]) -> (Runs<'r>, Vec<usize>) {
        self.block += 1;
        let block = self.block;
        let seen = || runs.iter().filter(move |run| run.trial.block < block);
        let spent_ns = seen().map(|run| run.wall_ns).fold(0, u64::saturating_add);
        let index = Runs::new(seen());
        let mut newly = Vec::new();
        for (number, (question, stop_reason)) in self.questions.iter().zip(&mut self.stop_reasons).enumerate()
        {
            if stop_reason.is_none() {
                let state = stopping_state(question, &index, self.study.rule.target);
                *stop_reason = look(&self.study.rule, self.block, spent_ns, state);
                if stop_reason.is_some() {
                    newly.push(number);
                }
            }
        }
        // The rule's limits also apply to trials without a question.
        let open = StoppingState { narrow: false, decided: false };
        let is_over = look(&self.study.rule, self.block, spent_ns, open).is_some();
        if is_over && self.stop_reasons.iter().all(Option::is_some) {
            self.block = self.study.rule.max;
        }
        (index, newly)
    }

    /// The number of questions, and how many of them are settled.
    pub(crate) fn answered(&self) -> (usize, usize) {
        (self.questions.len(), self.stop_reasons.iter().flatten().count())
    }

    /// The differences so far, with their metrics; none if many questions are asked.
    pub(crate) fn differences(&self) -> &[(Metric, Effect)] {
        &self.differences
    }

    /// The verdicts of the settled questions with their counts, the most common first.
    pub(crate) fn verdicts(&self) -> Vec<(&str, usize)> {
        let mut told: Vec<(&str, usize)> =
            self.verdicts.iter().map(|(verdict, n)| (verdict.as_str(), *n)).collect();
        told.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        told
    }

    /// Replays the runs. Returns the questions and why measuring stopped for each.
    pub(crate) fn walk(mut self, runs: &[RunRecord]) -> (Vec<Question>, Vec<StopReason>) {
        let measured: std::collections::HashSet<(u32, u32)> = runs.iter().map(key).collect();
        loop {
            let trials = self.trials();
            if trials.is_empty()
                || trials.iter().any(|trial| !measured.contains(&(trial.block, trial.position)))
            {
                break;
            }
            // Intermediate verdicts are not needed here.
            self.update_stop_reasons(runs);
        }
        let stop_reason =
            self.stop_reasons.into_iter().map(|stop_reason| stop_reason.unwrap_or(StopReason::Unfinished));
        (self.questions, stop_reason.collect())
    }
}

/// The study of a campaign that has these runs. One from before arms took turns unless the study says otherwise is as
/// it began: without turns.
pub(crate) fn as_it_began(study: Study, seed: u64, runs: &[RunRecord]) -> Study {
    let plan = Plan::new(&study, seed);
    let mut of_arms = runs.iter().filter(|run| plan.takes_turns(&run.trial)).peekable();
    let began_without = of_arms.peek().is_some() && of_arms.all(|run| run.spec.slicing.is_none());
    if began_without { Study { slicing: None, ..study } } else { study }
}

/// A verdict in one or two words.
fn answer(question: &Question, runs: &Runs) -> String {
    let effect = Paired::new(question, runs).map(|paired| paired.effect());
    match verdict(question, effect.as_ref().map_err(String::as_str)) {
        Verdict::Better(level) => format!("{level} better"),
        Verdict::Equivalent => "equivalent".to_owned(),
        Verdict::Inconclusive => "inconclusive".to_owned(),
        Verdict::Nothing(_) => "nothing to compare".to_owned(),
    }
}

/// The key of a run within its campaign.
pub(crate) fn key(run: &RunRecord) -> (u32, u32) {
    (run.trial.block, run.trial.position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::sources::StudySource;
    use crate::trial::fixtures::trial_and_spec;
    use stacklab_model::RunStatus;
    use std::collections::BTreeMap;

    /// A run of so many seconds in a block.
    fn run(block: u32, seconds: u64) -> RunRecord {
        let (trial, spec) = trial_and_spec();
        RunRecord {
            trial: Trial { block, ..trial },
            spec,
            started_unix_ns: 0,
            wall_ns: seconds * 1_000_000_000,
            status: RunStatus::Valid,
            values: BTreeMap::new(),
            drops: Default::default(),
            host_reports: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_campaign_ends_with_its_budget_though_nobody_asks_for_some_trials() {
        for questions in ["[\"throughput\"]", "[]"] {
            let source = StudySource::read(Some(std::path::Path::new("quickstart"))).unwrap();
            let mut study = source.check(None, &["runs.budget=\"60s\"".to_owned()]).unwrap();
            if questions == "[]" {
                study.comparisons.clear();
            } else {
                // Of round trips nobody asks.
                study.comparisons.iter_mut().for_each(|one| one.metrics = vec![Metric::Throughput]);
            }
            let plan = Plan::new(&study, 1);
            let mut schedule = Schedule::new(&study, &plan);
            let mut runs = vec![run(0, 61)];
            schedule.advance(&runs);
            assert!(!schedule.trials().is_empty(), "an interval needs two blocks: {questions}");
            runs.push(run(1, 1));
            schedule.advance(&runs);
            assert!(schedule.trials().is_empty(), "{questions}: {:?}", schedule.trials());
        }
    }
}
