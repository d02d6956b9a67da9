//! A simulated campaign: a family of comparisons that is looked at after each block, by the rule of every verdict.

use crate::runs::{Simulation, Spread};
use stacklab_analysis::{BLOCKS_WHEN_NARROW, Conclusion, Ending, Evidence, Paired, conclude, settle};
use stacklab_model::{Cell, Factor, Family, Interval, Metric, Question, SizeOf, Transport, Verdict};

/// The stopping rule's limits.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Blocks before the first look.
    pub min: usize,
    /// Maximum number of blocks; equal to `min` for a fixed number.
    pub max: usize,
}

/// How a comparison ended.
#[derive(Debug, Clone)]
pub struct EndedComparison {
    /// Its verdict.
    pub verdict: Verdict,
    /// The range of a claim.
    pub claimed_interval: Option<Interval>,
    /// Its pairs.
    pub paired: Result<Paired, String>,
    /// Blocks measured.
    pub blocks: usize,
}

/// Runs a campaign. `pair` gives the next block of a comparison, by its number: (baseline, candidate).
pub fn campaign(
    questions: &[Question],
    rule: Rule,
    pair: impl FnMut(usize) -> (f64, f64),
) -> Vec<EndedComparison> {
    campaign_of(questions, rule, false, pair)
}

/// The same. If `goes_on`, settled comparisons are measured further, as where their arms are in one trial with others.
pub fn campaign_of(
    questions: &[Question],
    rule: Rule,
    goes_on: bool,
    mut pair: impl FnMut(usize) -> (f64, f64),
) -> Vec<EndedComparison> {
    let mut pairs: Vec<Vec<(f64, f64)>> = vec![Vec::new(); questions.len()];
    let mut settled: Vec<Option<Verdict>> = vec![None; questions.len()];
    for block in 1..=rule.max {
        for (number, pairs) in pairs.iter_mut().enumerate() {
            let next = pair(number);
            if goes_on || settled[number].is_none() {
                pairs.push(next);
            }
        }
        if block >= rule.min && block < rule.max {
            let mut evidence = Vec::new();
            for (number, question) in questions.iter().enumerate() {
                evidence.push(match &settled[number] {
                    Some(verdict) => Evidence::of_verdict(verdict.clone()),
                    None => Evidence::of_pairs(question, &pairs[number]),
                });
            }
            settle(&mut settled, questions, &evidence);
            if settled.iter().all(Option::is_some) {
                break;
            }
        }
    }
    end(questions, rule, pairs, &settled, Ending::Planned)
}

/// Runs a campaign whose comparisons end when their 95 % intervals are as narrow as a target.
pub fn campaign_until_precise(
    questions: &[Question],
    rule: Rule,
    target: f64,
    mut pair: impl FnMut(usize) -> (f64, f64),
) -> Vec<EndedComparison> {
    let mut pairs: Vec<Vec<(f64, f64)>> = vec![Vec::new(); questions.len()];
    for (number, pairs) in pairs.iter_mut().enumerate() {
        let question = &questions[number];
        let mut ends_at = rule.max;
        while pairs.len() < ends_at {
            pairs.push(pair(number));
            let is_looked_at = pairs.len() >= rule.min && ends_at == rule.max;
            if is_looked_at
                && Paired::of(question.metric.scale(), pairs)
                    .is_ok_and(|paired| paired.is_narrow(target, question.margin))
            {
                ends_at = rule.max.min(pairs.len() + BLOCKS_WHEN_NARROW as usize);
            }
        }
    }
    end(questions, rule, pairs, &[], Ending::Precise)
}

fn end(
    questions: &[Question],
    rule: Rule,
    pairs: Vec<Vec<(f64, f64)>>,
    settled: &[Option<Verdict>],
    ending: Ending,
) -> Vec<EndedComparison> {
    let mut evidence = Vec::new();
    for (question, pairs) in questions.iter().zip(&pairs) {
        evidence.push(Evidence::of_pairs(question, pairs).with_at_least(rule.min));
    }
    let conclusions = conclude(settled, questions, &mut evidence, ending);
    let all = conclusions.into_iter().zip(evidence).zip(pairs);
    all.map(|((Conclusion { verdict, claimed_interval }, found), pairs)| EndedComparison {
        verdict,
        claimed_interval,
        paired: found.paired,
        blocks: pairs.len(),
    })
    .collect()
}

/// The results of campaigns of one comparison, each a count.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Campaigns.
    pub campaigns: usize,
    /// The verdict was `better`.
    pub better: usize,
    /// The verdict was `equivalent`.
    pub equivalent: usize,
    /// The 95 % interval covered the ratio.
    pub covered: usize,
    /// Blocks measured.
    pub blocks: usize,
}

impl Tally {
    /// Adds a campaign whose arms differ by `ratio`.
    pub fn add(&mut self, ended: &EndedComparison, ratio: f64) {
        match ended.verdict {
            Verdict::Better(_) => self.better += 1,
            Verdict::Equivalent => self.equivalent += 1,
            _ => {}
        }
        self.campaigns += 1;
        let covers = ended.paired.as_ref().is_ok_and(|paired| paired.interval(0.95).contains(ratio));
        self.covered += usize::from(covers);
        self.blocks += ended.blocks;
    }

    /// Per cent of the campaigns.
    pub fn percent(&self, count: usize) -> f64 {
        100.0 * count as f64 / self.campaigns as f64
    }
}

/// The margin, a share: the study language's default.
pub const MARGIN: f64 = 0.02;

/// ipv6 against ipv4.
pub fn question(metric: Metric, margin: f64) -> Question {
    Question {
        factor: Factor::Family,
        metric,
        baseline: Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 128),
        candidate: Cell::new(Family::Ipv6, Transport::Udp, SizeOf::Payload, 128),
        margin,
    }
}

/// Runs this many campaigns with arms that differ by `ratio`.
pub fn campaigns(count: usize, seed: u128, spread: Spread, sd: f64, ratio: f64, rule: Rule) -> Tally {
    let mut simulation = Simulation::new(seed, spread, sd);
    let questions = [question(Metric::Throughput, MARGIN)];
    let mut outcome = Tally::default();
    for _ in 0..count {
        simulation.restart();
        outcome.add(&campaign(&questions, rule, |_| simulation.pair(ratio))[0], ratio);
    }
    outcome
}
