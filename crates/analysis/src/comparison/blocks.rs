//! The figures of a question's two arms by block, of which its pairs are made. A fleet keeps them, and needs no runs.

use crate::runs::{Runs, figure, missing};
use stacklab_model::{
    ArmFigure, Better, BlockFigures, BlockSummary, Length, Metric, Pacing, Question, RunRecord, Scale,
};
use std::collections::BTreeMap;

const MAX_REASON_LENGTH: usize = 300;

fn arm_figure(run: &RunRecord, metric: Metric) -> ArmFigure {
    match figure(run, metric) {
        Some(figure) if counts_events(metric) => {
            let messages = messages(run).filter(|count| count.is_finite());
            ArmFigure::Events([figure, messages.unwrap_or(0.0)])
        }
        Some(figure) => ArmFigure::Measured(figure),
        None => {
            // A peer's reason may be of any length.
            let absent =
                missing(&[run], metric).unwrap_or_default().chars().take(MAX_REASON_LENGTH).collect();
            ArmFigure::Absent { absent, valid: run.is_valid() }
        }
    }
}

/// What the runs of one block gave for the arms of a question.
pub(crate) fn find_figures(question: &Question, block: &Runs) -> BlockFigures {
    question.cells().map(|cell| {
        let run = block.of(cell, question.metric).last()?;
        Some(arm_figure(run, question.metric))
    })
}

/// What the runs of one block gave for each question.
pub fn block_summary(questions: &[Question], runs: &[RunRecord]) -> BlockSummary {
    let index = Runs::new(runs);
    let valid = runs.iter().filter(|run| run.is_valid()).count();
    BlockSummary {
        runs: [valid, runs.len()].map(|count| count as u32),
        figures: questions.iter().map(|question| find_figures(question, &index)).collect(),
    }
}

/// The figures of a question, added block by block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Blocks {
    /// Baseline and candidate of each block in which both have a figure.
    pub(crate) pairs: Vec<(f64, f64)>,
    /// Blocks in which only the other arm has a figure, of each arm.
    pub(crate) lost: [usize; 2],
    has_figure: [bool; 2],
    /// Why an arm has no figure, and whether a valid run says so.
    absent: [Option<(String, bool)>; 2],
    /// About how many messages each arm sent in these pairs, where events are counted.
    pub(crate) messages: [f64; 2],
}

impl Blocks {
    pub(crate) fn of_pairs(pairs: &[(f64, f64)]) -> Self {
        Blocks { pairs: pairs.to_vec(), has_figure: [!pairs.is_empty(); 2], ..Blocks::default() }
    }

    pub(crate) fn of(question: &Question, runs: &Runs) -> Self {
        let mut by_block: BTreeMap<u32, BlockFigures> = BTreeMap::new();
        for (arm, cell) in question.cells().into_iter().enumerate() {
            for run in runs.of(cell, question.metric) {
                let found = arm_figure(run, question.metric);
                by_block.entry(run.trial.block).or_default()[arm] = Some(found);
            }
        }
        let mut blocks = Blocks::default();
        by_block.values().for_each(|block| blocks.add(block));
        blocks
    }

    /// Adds the figures of a block.
    pub fn add(&mut self, block: &BlockFigures) {
        let figures = block.each_ref().map(|arm| arm.as_ref().and_then(ArmFigure::figure));
        for (arm, found) in block.iter().enumerate() {
            self.has_figure[arm] |= figures[arm].is_some();
            if let Some(ArmFigure::Absent { absent, valid }) = found {
                let known = &mut self.absent[arm];
                if known.as_ref().is_none_or(|(_, known)| *valid && !known) {
                    *known = Some((absent.clone(), *valid));
                }
            }
        }
        match figures {
            [Some(baseline), Some(candidate)] => {
                self.pairs.push((baseline, candidate));
                for (sum, found) in self.messages.iter_mut().zip(block) {
                    if let Some(ArmFigure::Events([_, messages])) = found {
                        *sum += messages;
                    }
                }
            }
            // An arm that was not run has lost nothing.
            [None, Some(_)] => self.lost[0] += usize::from(block[0].is_some()),
            [Some(_), None] => self.lost[1] += usize::from(block[1].is_some()),
            [None, None] => {}
        }
    }

    /// Why an arm has no figure in any block.
    pub(crate) fn nothing(&self, question: &Question) -> Option<String> {
        let arm = self.has_figure.iter().position(|has| !has)?;
        let cell = question.cells()[arm];
        let reason = self.absent[arm].as_ref().map_or("not measured", |(reason, _)| reason);
        Some(format!("{}: {reason}", cell.level(question.factor)))
    }
}

/// Whether a metric counts events of which none may be seen.
pub fn counts_events(metric: Metric) -> bool {
    metric.scale() == Scale::Difference && metric.better() == Better::Lower
}

fn messages(run: &RunRecord) -> Option<f64> {
    match run.spec.probe.length {
        Length::Packets(count) => Some(count as f64),
        // Rows of an export do not say for how long a run sent.
        Length::Time(0) => None,
        Length::Time(ns) => {
            let seconds = ns as f64 / 1e9;
            Some(seconds * find_rate(run)?)
        }
    }
}

/// Messages per second.
fn find_rate(run: &RunRecord) -> Option<f64> {
    if let Some(rate) = read_value(run, Metric::MessageRate) {
        return Some(rate);
    }
    if let Some(throughput) = read_value(run, Metric::Throughput) {
        return Some(throughput * 1e6 / 8.0 / f64::from(run.spec.message_bytes));
    }
    derive_rate(run)
}

fn read_value(run: &RunRecord, metric: Metric) -> Option<f64> {
    run.values.get(&metric)?.measured()
}

/// Messages per second by the pacing of a probe: of round trips no rate is measured.
fn derive_rate(run: &RunRecord) -> Option<f64> {
    match run.spec.probe.pacing {
        Pacing::Schedule(per_second) => Some(per_second),
        Pacing::Lockstep => {
            let mean = run.values.get(&Metric::RttMean).or(run.values.get(&Metric::Rtt));
            Some(1000.0 / mean?.measured()?)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, invalid, question, run, run_with};
    use stacklab_model::{Family, Value};

    #[test]
    fn summaries_as_json_give_the_figures_of_the_runs() {
        let four = cell(Family::Ipv4, 128);
        let six = cell(Family::Ipv6, 128);
        for metric in [Metric::Throughput, Metric::Loss] {
            let records = [
                run(0, &four, metric, 10.0),
                run(0, &six, metric, 11.5),
                run(1, &four, metric, 0.1 + 0.2),
                invalid(run(1, &six, metric, 99.0), "wrong family"),
                run_with(2, &four, metric, Value::Missing("no arrivals".into())),
                run(2, &six, metric, 0.0),
                run(3, &four, metric, 10.0),
            ];
            let question = question(metric, 0.02);
            let mut added = Blocks::default();
            for block in 0..4 {
                let runs: Vec<RunRecord> =
                    records.iter().filter(|run| run.trial.block == block).cloned().collect();
                let summary = block_summary(std::slice::from_ref(&question), &runs);
                let json = serde_json::to_string(&summary).unwrap();
                let read: BlockSummary = serde_json::from_str(&json).unwrap();
                assert_eq!(read, summary);
                added.add(&read.figures[0]);
            }
            assert_eq!(added, Blocks::of(&question, &Runs::new(&records)));
            assert_eq!((added.pairs.len(), added.lost), (1, [1, 1]));
            assert_eq!(added.messages.map(|count| count > 0.0), [metric == Metric::Loss; 2]);
        }
    }

    #[test]
    fn what_a_peer_says_is_finite_and_short() {
        let four = cell(Family::Ipv4, 128);
        let six = cell(Family::Ipv6, 128);
        let question = question(Metric::Loss, 0.02);
        let mut strange = run(0, &four, Metric::Loss, 0.0);
        (strange.spec.probe.length, strange.spec.message_bytes) = (Length::Time(1), 0);
        strange.values.insert(Metric::Throughput, Value::Measured(0.0));
        let long = run_with(0, &six, Metric::Loss, Value::Missing("x".repeat(1000)));
        let summary = block_summary(std::slice::from_ref(&question), &[strange, long]);
        let read: BlockSummary = serde_json::from_str(&serde_json::to_string(&summary).unwrap()).unwrap();
        assert_eq!(read.figures[0][0], Some(ArmFigure::Events([0.0, 0.0])));
        let Some(ArmFigure::Absent { absent, .. }) = &read.figures[0][1] else { panic!("{read:?}") };
        assert_eq!(absent.len(), MAX_REASON_LENGTH);
    }

    /// Why an arm of these runs has no round trips.
    fn explain_nothing(records: &[RunRecord]) -> Option<String> {
        let question = question(Metric::Rtt, 0.02);
        Blocks::of(&question, &Runs::new(records)).nothing(&question)
    }

    #[test]
    fn reason_of_a_valid_run_comes_first() {
        let four = cell(Family::Ipv4, 128);
        let six = cell(Family::Ipv6, 128);
        let metric = Metric::Rtt;
        let invalid = invalid(run(0, &six, metric, 1.0), "MTU is 1280");
        let dead = run_with(1, &six, metric, Value::Missing("no arrivals".into()));
        let four = run(0, &four, metric, 1.0);
        assert_eq!(
            explain_nothing(&[four.clone(), invalid.clone()]).unwrap(),
            "ipv6: no run is valid: MTU is 1280"
        );
        assert_eq!(explain_nothing(&[four.clone(), invalid, dead]).unwrap(), "ipv6: no arrivals");
        assert_eq!(explain_nothing(&[four]).unwrap(), "ipv6: not measured");
    }
}
