//! Where a campaign stands, from its study, plan and runs alone.
//!
//! The same runs always give the same course. So a campaign that goes on after having been killed decides what it
//! would have decided, and a report of a record knows why each question was measured no further.

use stacklab_analysis::{Runs, standing};
use stacklab_model::{Question, RunRecord, Settled, Trial};
use stacklab_study::{Plan, Study, look};

/// A campaign on its way through its blocks.
pub struct Course<'a> {
    study: &'a Study,
    plan: &'a Plan,
    questions: Vec<Question>,
    settled: Vec<Option<Settled>>,
    block: u32,
}

impl<'a> Course<'a> {
    /// At the first block.
    pub fn new(study: &'a Study, plan: &'a Plan) -> Self {
        let questions = study.questions();
        Course { study, plan, settled: vec![None; questions.len()], questions, block: 0 }
    }

    /// The present block, from 0.
    pub fn block(&self) -> u32 {
        self.block
    }

    /// The trials of the present block; none when the campaign has ended.
    pub fn trials(&self) -> Vec<Trial> {
        if self.block >= self.study.rule.max {
            return Vec::new();
        }
        Plan::active(self.plan.block(self.block), &self.settled, &self.questions)
    }

    /// Goes to the next block, every trial of the present one having been run, and decides what is settled.
    pub fn advance(&mut self, runs: &[RunRecord]) {
        self.block += 1;
        let seen = || runs.iter().filter(|run| run.trial.block < self.block);
        let spent_ns = seen().map(|run| run.wall_ns).sum();
        let index = Runs::new(seen());
        for (question, settled) in self.questions.iter().zip(&mut self.settled) {
            if settled.is_none() {
                let standing = standing(question, &index, self.study.rule.target);
                *settled = look(&self.study.rule, self.block, spent_ns, standing);
            }
        }
        // Trials that no question asks for have the rule's limits too.
        let budget_is_spent = self.study.rule.budget_ns.is_some_and(|budget| spent_ns >= budget);
        if self.questions.is_empty() && budget_is_spent {
            self.block = self.study.rule.max;
        }
    }

    /// Questions, and how many of them are settled.
    pub fn answered(&self) -> (usize, usize) {
        (self.questions.len(), self.settled.iter().flatten().count())
    }

    /// Walks through runs as far as they go. Gives the questions and why each was measured no further.
    pub fn walk(mut self, runs: &[RunRecord]) -> (Vec<Question>, Vec<Settled>) {
        let measured: std::collections::HashSet<(u32, u32)> = runs.iter().map(key).collect();
        loop {
            let trials = self.trials();
            if trials.is_empty()
                || trials.iter().any(|trial| !measured.contains(&(trial.block, trial.position)))
            {
                break;
            }
            self.advance(runs);
        }
        let settled = self.settled.into_iter().map(|settled| settled.unwrap_or(Settled::Unfinished));
        (self.questions, settled.collect())
    }
}

/// What identifies a run within its campaign.
pub fn key(run: &RunRecord) -> (u32, u32) {
    (run.trial.block, run.trial.position)
}
