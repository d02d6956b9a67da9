//! The answers of a pair of hosts, from the summaries of its blocks.

use stacklab_analysis::{Blocks, pair_answers};
use stacklab_model::{BlockSummary, FleetPair, PairAnswer, Question, Until};
use stacklab_study::Study;

/// The summaries of a pair, added block by block: they need no more memory than the figures themselves.
pub(crate) struct PairSummary<'a> {
    study: &'a Study,
    questions: &'a [Question],
    pair: FleetPair,
    blocks: Vec<Blocks>,
}

impl<'a> PairSummary<'a> {
    pub(crate) fn new(study: &'a Study, questions: &'a [Question], name: String) -> Self {
        let pair = FleetPair { name, blocks: 0, valid_runs: 0, invalid_runs: 0 };
        PairSummary { study, questions, pair, blocks: vec![Blocks::default(); questions.len()] }
    }

    pub(crate) fn name(&self) -> &str {
        &self.pair.name
    }

    /// Adds a block.
    ///
    /// # Errors
    /// If it is not of this study.
    pub(crate) fn add(&mut self, summary: &BlockSummary) -> Result<(), String> {
        let [valid, all] = summary.runs;
        let (found, expected) = (summary.figures.len(), self.questions.len());
        if found != expected {
            return Err(format!("it has {found} comparisons, and the study has {expected}"));
        }
        if valid > all {
            return Err(format!("it has {valid} valid runs of {all}"));
        }
        self.pair.blocks += u32::from(all > 0);
        self.pair.valid_runs += valid as usize;
        self.pair.invalid_runs += (all - valid) as usize;
        for (blocks, figures) in self.blocks.iter_mut().zip(&summary.figures) {
            blocks.add(figures);
        }
        Ok(())
    }

    /// The pair's answers; `is_whole` if every block has a result.
    pub(crate) fn finish(self, is_whole: bool) -> (FleetPair, Vec<PairAnswer>) {
        let settles = self.study.rule.until == Until::Verdict;
        (self.pair, pair_answers(self.questions, &self.blocks, settles, is_whole))
    }
}
