//! A simulated campaign: its blocks, its looks, and its stopping point.

use crate::runs::{Simulation, Spread};
use stacklab_analysis::{Paired, stopping_state_of, verdict};
use stacklab_model::{Cell, Factor, Family, Framing, Metric, Question, Scale, Transport, Verdict};

/// The stopping rule's limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Blocks before the first look.
    pub min: usize,
    /// Maximum number of blocks; equal to `min` for a fixed number.
    pub max: usize,
}

/// The results of simulated campaigns, each a count.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcome {
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
    /// Adds a campaign whose arms differ by `ratio`.
    pub(crate) fn add(&mut self, design: &Design, paired: &Paired, ratio: f64) {
        let effect = paired.effect();
        match verdict(&design.question, Ok(&effect)) {
            Verdict::Better(_) => self.better += 1,
            Verdict::Equivalent => self.equivalent += 1,
            Verdict::Inconclusive | Verdict::Nothing(_) => {}
        }
        self.campaigns += 1;
        self.covered += usize::from(effect.interval95.contains(ratio));
        self.blocks += effect.pairs;
    }

    /// Per cent of the campaigns.
    pub(crate) fn percent(&self, count: usize) -> f64 {
        100.0 * count as f64 / self.campaigns as f64
    }
}

/// Target and margin, a share: the study language's default.
pub(crate) const MARGIN: f64 = 0.02;

/// ipv6 against ipv4.
pub(crate) fn question() -> Question {
    let cell = |family| Cell::new(family, Transport::Udp, Framing::Segment, 128);
    Question {
        factor: Factor::Family,
        metric: Metric::Throughput,
        baseline: cell(Family::Ipv4),
        candidate: cell(Family::Ipv6),
        margin: MARGIN,
    }
}

/// How a campaign is measured and judged.
#[derive(Debug, Clone)]
pub(crate) struct Design {
    /// What is asked.
    pub question: Question,
    /// Half-width of the 99 % interval at which it ends, a share.
    pub target: f64,
    /// Its number of blocks.
    pub rule: Rule,
    /// Whether its arms are interleaved.
    pub interleaved: bool,
}

impl Design {
    /// Runs a campaign whose blocks, each (baseline, candidate), are `pair`'s.
    pub(crate) fn campaign(&self, mut pair: impl FnMut() -> (f64, f64)) -> Paired {
        let mut pairs = Vec::new();
        loop {
            pairs.push(pair());
            if pairs.len() < self.rule.min {
                continue;
            }
            let paired = Paired::of(Scale::Ratio, &pairs).expect("figures are positive");
            let paired = if self.interleaved { paired.trimmed() } else { paired };
            if pairs.len() >= self.rule.max {
                return paired;
            }
            let standing = stopping_state_of(&self.question, &paired, self.target);
            if standing.narrow || standing.decided {
                return paired;
            }
        }
    }
}

/// Runs this many campaigns with arms that differ by `ratio`; each stops by a study's rule.
pub(crate) fn campaigns(
    count: usize,
    seed: u128,
    spread: Spread,
    sd: f64,
    ratio: f64,
    rule: Rule,
) -> Outcome {
    let mut simulation = Simulation::new(seed, spread, sd);
    let design = Design { question: question(), target: MARGIN, rule, interleaved: false };
    let mut outcome = Outcome::default();
    for _ in 0..count {
        simulation.restart();
        outcome.add(&design, &design.campaign(|| simulation.pair(ratio)), ratio);
    }
    outcome
}
