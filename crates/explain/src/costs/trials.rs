//! The costs of both arms in each trial, and their means over trials.

use crate::costs::blocks::{Block, CpuTime};
use stacklab_analysis::statistics::{Moments, Student, holm};
use stacklab_model::StageCost;

/// An arm's costs in a trial, nanoseconds per message.
#[derive(Default)]
pub(super) struct ArmCosts {
    pub clock: f64,
    /// The clock without sampling over the clock with it.
    pub scale: f64,
    /// Nanoseconds a message over nanoseconds of all samples.
    pub factor: f64,
    pub ns: Vec<f64>,
    /// What samples of the stack show that were not in threads of the study.
    pub outside: f64,
    pub other: f64,
    /// What samples of the stack show.
    pub sampled: f64,
}

impl ArmCosts {
    /// `parts` are the stages of the stack; `is_whole` is whether both hosts count their CPU time.
    pub(super) fn of<'a>(blocks: impl Iterator<Item = &'a Block>, parts: &[usize], is_whole: bool) -> Self {
        let mut sampled = CpuTime::default();
        let mut free = CpuTime::default();
        let mut arm = ArmCosts::default();
        for block in blocks {
            sampled.add(block.sampled);
            free.add(block.free);
            arm.ns.resize(block.ns.len(), 0.0);
            arm.ns.iter_mut().zip(&block.ns).for_each(|(sum, each)| *sum += each);
            arm.outside += block.outside;
            arm.other += block.other;
        }
        arm.clock = free.per_message();
        arm.scale = arm.clock / sampled.per_message();
        arm.factor = arm.scale / sampled.messages;
        let factor = arm.factor;
        arm.ns.iter_mut().chain([&mut arm.outside, &mut arm.other]).for_each(|each| *each *= factor);
        arm.sampled = parts.iter().map(|stage| arm.ns[*stage]).sum();
        if !is_whole {
            arm.clock = arm.sampled - arm.outside;
        }
        arm
    }
}

/// The costs of both arms, by trial: two trials or more.
pub(super) struct TrialCosts(pub Vec<[ArmCosts; 2]>);

impl TrialCosts {
    pub(super) fn degrees_of_freedom(&self) -> f64 {
        (self.0.len() - 1) as f64
    }

    /// The mean of a figure over trials in each arm, with the standard error of the difference.
    pub(super) fn cost(&self, name: &str, figure: impl Fn(&ArmCosts) -> f64) -> StageCost {
        let figures = |arm: usize| self.0.iter().map(|trial| figure(&trial[arm])).collect::<Vec<f64>>();
        let [a, b] = [figures(0), figures(1)];
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
        let difference = moments_of(&differences);
        StageCost {
            name: name.to_owned(),
            ns: [&a, &b].map(|figures| moments_of(figures).mean),
            difference_ns: difference.mean,
            error_ns: difference.error(),
            adjusted_p: None,
        }
    }

    /// The cost of several places together: stages, or functions.
    pub(super) fn sum(&self, name: &str, places: &[usize]) -> StageCost {
        self.cost(name, |arm| places.iter().map(|place| arm.ns[*place]).sum())
    }

    /// The costs of places that have some, the greatest difference first, with p adjusted for their number.
    pub(super) fn rank(&self, places: Vec<(String, Vec<usize>)>) -> Vec<StageCost> {
        let mut rows: Vec<StageCost> =
            places.into_iter().map(|(name, places)| self.sum(&name, &places)).collect();
        rows.retain(|row| row.ns != [0.0, 0.0]);
        adjust(&mut rows, self.degrees_of_freedom());
        rows.sort_by(|a, b| b.difference_ns.abs().total_cmp(&a.difference_ns.abs()));
        rows
    }

    /// A figure of both arms together.
    pub(super) fn of_both(&self, figure: impl Fn(&ArmCosts) -> f64) -> f64 {
        self.cost("", figure).ns.iter().sum()
    }
}

fn moments_of(figures: &[f64]) -> Moments {
    Moments::of(figures).expect("there are two trials or more")
}

fn adjust(rows: &mut [StageCost], degrees: f64) {
    let mut p = Vec::new();
    for row in rows.iter() {
        let student =
            Student { estimate: row.difference_ns, error: row.error_ns, degrees_of_freedom: degrees };
        p.push(student.p());
    }
    for (row, p) in rows.iter_mut().zip(holm(&p)) {
        row.adjusted_p = Some(p);
    }
}
