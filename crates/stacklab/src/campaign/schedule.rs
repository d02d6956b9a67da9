//! The state of a campaign, from its study, plan and runs alone.
//!
//! The same runs always give the same schedule. So a resumed campaign makes the same decisions as an uninterrupted
//! one, and a report of a record shows why measuring stopped for each question.

use stacklab_analysis::{Paired, Runs, stopping_state, verdict};
use stacklab_model::{Effect, Metric, Question, RunRecord, StopReason, Trial, Verdict};
use stacklab_study::{Plan, Study, look};
use std::collections::BTreeMap;

/// So many questions have their differences shown while they are measured.
const FEW: usize = 6;

/// A campaign's progress through its blocks.
pub struct Schedule<'a> {
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
    pub fn new(study: &'a Study, plan: &'a Plan) -> Self {
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
    pub fn block(&self) -> u32 {
        self.block
    }

    /// The trials of the current block; none when the campaign has ended.
    pub fn trials(&self) -> Vec<Trial> {
        if self.block >= self.study.rule.max {
            return Vec::new();
        }
        Plan::active(self.study, self.plan.block(self.block), &self.stop_reasons, &self.questions)
    }

    /// Goes to the next block, after every trial of the current one has been run, and decides which questions are
    /// settled, and how.
    pub fn advance(&mut self, runs: &[RunRecord]) {
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
        let budget_is_spent = self.study.rule.budget_ns.is_some_and(|budget| spent_ns >= budget);
        if self.questions.is_empty() && budget_is_spent {
            self.block = self.study.rule.max;
        }
        (index, newly)
    }

    /// The number of questions, and how many of them are settled.
    pub fn answered(&self) -> (usize, usize) {
        (self.questions.len(), self.stop_reasons.iter().flatten().count())
    }

    /// The differences so far, with their metrics; none if many questions are asked.
    pub fn differences(&self) -> &[(Metric, Effect)] {
        &self.differences
    }

    /// The verdicts of the settled questions with their counts, the most common first.
    pub fn verdicts(&self) -> Vec<(&str, usize)> {
        let mut told: Vec<(&str, usize)> =
            self.verdicts.iter().map(|(verdict, n)| (verdict.as_str(), *n)).collect();
        told.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        told
    }

    /// Replays the runs. Returns the questions and why measuring stopped for each.
    pub fn walk(mut self, runs: &[RunRecord]) -> (Vec<Question>, Vec<StopReason>) {
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
pub fn key(run: &RunRecord) -> (u32, u32) {
    (run.trial.block, run.trial.position)
}
