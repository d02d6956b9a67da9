//! Tests of more than two arms of one factor together.

use crate::runs::{Runs, figure};
use crate::statistics::friedman;
use stacklab_model::{Cell, ManyArms, Question};
use std::collections::BTreeMap;

/// Every factor, metric and place of which the study compares more than two arms, in the order of the questions. Places
/// where fewer than two blocks have all arms are left out.
pub(crate) fn many_arms(questions: &[Question], runs: &Runs) -> Vec<ManyArms> {
    let mut places: Vec<(&Question, Vec<&Cell>)> = Vec::new();
    for question in questions {
        let same = |(known, _): &&mut (&Question, Vec<&Cell>)| {
            (known.factor, known.metric) == (question.factor, question.metric)
                && known.baseline.same_but(&question.baseline, question.factor)
        };
        let arms = match places.iter_mut().find(same) {
            Some((_, arms)) => arms,
            None => {
                places.push((question, Vec::new()));
                &mut places.last_mut().expect("one was just pushed").1
            }
        };
        for cell in [&question.baseline, &question.candidate] {
            if !arms.contains(&cell) {
                arms.push(cell);
            }
        }
    }
    places
        .iter()
        .filter(|(_, arms)| arms.len() > 2)
        .filter_map(|(question, arms)| test(question, arms, runs))
        .collect()
}

fn test(question: &Question, arms: &[&Cell], runs: &Runs) -> Option<ManyArms> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for cell in arms {
        for run in runs.of(cell, question.metric) {
            if let Some(figure) = figure(run, question.metric) {
                blocks.entry(run.trial.block).or_default().push(figure);
            }
        }
    }
    // A block without a figure for each arm is skipped.
    let complete: Vec<Vec<f64>> =
        blocks.into_values().filter(|figures| figures.len() == arms.len()).collect();
    let found = friedman(&complete)?;
    Some(ManyArms {
        factor: question.factor,
        metric: question.metric,
        cell: arms[0].clone(),
        levels: arms.iter().map(|cell| cell.level(question.factor)).collect(),
        blocks: found.blocks,
        statistic: found.statistic,
        p: found.p,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, run};
    use stacklab_model::{Factor, Family, Metric, RunRecord};

    fn question(baseline: u32, candidate: u32) -> Question {
        Question {
            factor: Factor::Size,
            metric: Metric::Throughput,
            baseline: cell(Family::Ipv4, baseline),
            candidate: cell(Family::Ipv4, candidate),
            margin: 0.02,
        }
    }

    fn runs(sizes: &[u32]) -> Vec<RunRecord> {
        (0..6)
            .flat_map(|block| {
                sizes.iter().map(move |size| {
                    let cell = cell(Family::Ipv4, *size);
                    run(block, &cell, Metric::Throughput, f64::from(*size) + f64::from(block))
                })
            })
            .collect()
    }

    #[test]
    fn three_arms_are_tested_together_and_two_are_not() {
        let records = runs(&[64, 128, 256]);
        let found = many_arms(&[question(64, 128), question(64, 256)], &Runs::new(&records));
        let [arms] = &found[..] else { panic!("one place: {found:?}") };
        assert_eq!((arms.levels.join(" ").as_str(), arms.blocks), ("64 128 256", 6));
        assert!((arms.statistic - 12.0).abs() < 1e-9 && arms.p < 0.01);
        assert_eq!(many_arms(&[question(64, 128)], &Runs::new(&records)), []);
    }

    #[test]
    fn a_block_that_lacks_an_arm_does_not_count() {
        let mut records = runs(&[64, 128, 256]);
        records.remove(4);
        let found = many_arms(&[question(64, 128), question(64, 256)], &Runs::new(&records));
        assert_eq!(found[0].blocks, 5);
    }
}
