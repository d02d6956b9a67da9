//! A simulated campaign: its blocks, its looks, and its stopping point.

use crate::runs::{Simulation, Spread};
use stacklab_analysis::{Paired, stopping_state_of, verdict};
use stacklab_model::{Cell, Factor, Family, Framing, Metric, Question, Scale, Transport, Verdict};

/// The stopping rule's limits.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Blocks before the first look.
    pub min: usize,
    /// Maximum number of blocks; equal to `min` for a fixed number.
    pub max: usize,
}

/// The results of simulated campaigns, each a count.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
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

impl Outcome {
    /// Per cent of the campaigns.
    pub fn percent(&self, count: usize) -> f64 {
        100.0 * count as f64 / self.campaigns as f64
    }
}

/// Target and margin, a share: the study language's default.
pub const MARGIN: f64 = 0.02;

/// ipv6 against ipv4.
pub fn question() -> Question {
    let cell = |family| Cell::new(family, Transport::Udp, Framing::Segment, 128);
    Question {
        factor: Factor::Family,
        metric: Metric::Throughput,
        baseline: cell(Family::Ipv4),
        candidate: cell(Family::Ipv6),
        margin: MARGIN,
    }
}

/// Runs this many campaigns with arms that differ by `ratio`; each stops by a study's rule.
pub fn campaigns(count: usize, seed: u128, spread: Spread, sd: f64, ratio: f64, rule: Rule) -> Outcome {
    let mut simulation = Simulation::new(seed, spread, sd);
    let question = question();
    let mut outcome = Outcome { campaigns: count, ..Outcome::default() };
    for _ in 0..count {
        simulation.restart();
        let paired = campaign(&mut simulation, &question, ratio, rule);
        let effect = paired.effect();
        match verdict(&question, Ok(&effect)) {
            Verdict::Better(_) => outcome.better += 1,
            Verdict::Equivalent => outcome.equivalent += 1,
            Verdict::Inconclusive | Verdict::Nothing(_) => {}
        }
        outcome.covered += usize::from(effect.interval95.contains(ratio));
        outcome.blocks += effect.pairs;
    }
    outcome
}

fn campaign(simulation: &mut Simulation, question: &Question, ratio: f64, rule: Rule) -> Paired {
    let mut pairs = Vec::new();
    loop {
        pairs.push(simulation.pair(ratio));
        if pairs.len() < rule.min {
            continue;
        }
        let paired = Paired::of(Scale::Ratio, &pairs).expect("figures are positive");
        if pairs.len() >= rule.max {
            return paired;
        }
        let standing = stopping_state_of(question, &paired, MARGIN);
        if standing.narrow || standing.decided {
            return paired;
        }
    }
}
