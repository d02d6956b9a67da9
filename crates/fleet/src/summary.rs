//! What a report needs of a block: the figures of each question. A result has all that its runs measured.

use crate::message::BlockResult;
use serde::{Deserialize, Serialize};
use stacklab_analysis::{BlockFigures, Blocks, Runs, block_figures, pair_answers};
use stacklab_model::{FleetPair, PairAnswer, Question, Until};
use stacklab_study::Study;

/// The summary of a block's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of valid runs, and of all.
    pub runs: [usize; 2],
    /// The figures of each question of the study, in their order.
    pub figures: Vec<BlockFigures>,
}

impl Summary {
    /// Of the runs of a result.
    pub(crate) fn of(questions: &[Question], result: &BlockResult) -> Self {
        let valid = result.runs.iter().filter(|run| run.is_valid()).count();
        let figures = block_figures(questions, &Runs::new(&result.runs));
        Summary { runs: [valid, result.runs.len()], figures }
    }
}

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

    /// Adds a block.
    ///
    /// # Errors
    /// If it is not of this study.
    pub(crate) fn add(&mut self, summary: &Summary) -> Result<(), String> {
        let [valid, all] = summary.runs;
        if summary.figures.len() != self.questions.len() || valid > all {
            let (found, expected) = (summary.figures.len(), self.questions.len());
            return Err(format!("it has {found} questions, and the study has {expected}"));
        }
        self.pair.blocks += u32::from(all > 0);
        self.pair.valid_runs += valid;
        self.pair.invalid_runs += all - valid;
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
