//! Campaigns that tempt the rule to claim something false: comparisons that end when their intervals are narrow or
//! when time is up, noise in two states, parts of the blocks that are worse in one arm, coarse figures, rare bursts of
//! loss.

use crate::campaign::{EndedComparison, Rule, campaign, campaign_until_precise, question};
use crate::families::MARGIN;
use crate::nulls::MIN_CAMPAIGNS;
use crate::runs::{Simulation, Spread};
use stacklab_model::{Metric, Question, Verdict};

/// How the pairs of a comparison are spread. No arm is better but for what is named.
#[derive(Debug, Clone, Copy)]
pub enum StressNoise {
    /// Normal log ratios, with a standard deviation of 2 %.
    Normal,
    /// One of two states in each block, this number of standard deviations of 2 % apart.
    TwoStates(f64),
    /// The candidate is 20 % slower in this share of the blocks; a standard deviation of 0.5 %.
    SlowPart(f64),
    /// Figures are counts of ticks: 20 of the baseline and 20.4 of the candidate, with a standard deviation of 0.1.
    Ticks,
    /// About 0.015 % of messages are lost, and 3 % in one trial of 50 of the baseline, and of 17 of the candidate.
    Bursts,
}

/// When comparisons end.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    /// They are settled, or all blocks are measured.
    Verdict(Rule),
    /// The 95 % interval is as narrow as this.
    Precise(f64),
    /// After this number of blocks, though at least 8 were planned.
    TimeIsUp(usize),
}

/// Campaigns of one kind.
#[derive(Debug, Clone)]
pub struct Stress {
    /// What it is like.
    pub name: String,
    /// Number of comparisons.
    pub comparisons: usize,
    /// Their pairs.
    pub noise: StressNoise,
    /// Their end.
    pub until: Until,
}

/// What campaigns of a kind gave.
#[derive(Debug, Clone, Copy, Default)]
pub struct StressResults {
    /// Share of false claims among the claims of a report, on average.
    pub false_claims: f64,
    /// Share of the 95 % intervals that hold the truth.
    pub covered: f64,
    /// Share of the comparisons with a claim.
    pub claimed: f64,
    /// Share of the comparisons that are called equivalent.
    pub equivalent: f64,
    /// Blocks of a comparison.
    pub blocks: f64,
}

/// The smallest part of all blocks that `equivalent` states not to be otherwise.
const EXCLUDED_PART: f64 = 0.2;

const RULE: Rule = Rule { min: 8, max: 40 };

/// The campaigns that are simulated.
pub fn all() -> Vec<Stress> {
    let mut all = Vec::new();
    for comparisons in [1, 21, 60] {
        for target in [0.005, 0.0075, 0.01, 0.015] {
            let name = format!("{comparisons} until +-{} %", 100.0 * target);
            all.push(Stress { name, comparisons, noise: StressNoise::Normal, until: Until::Precise(target) });
        }
        for apart in [3.0, 6.0, 11.0] {
            let name = format!("{comparisons} in two states, {apart} sd");
            let noise = StressNoise::TwoStates(apart);
            all.push(Stress { name, comparisons, noise, until: Until::Verdict(RULE) });
        }
        for blocks in [2, 5, 7, 8] {
            let name = format!("{comparisons} in two states, {blocks} blocks");
            let noise = StressNoise::TwoStates(11.0);
            all.push(Stress { name, comparisons, noise, until: Until::TimeIsUp(blocks) });
        }
    }
    all.push(Stress {
        name: "1 in ticks of 5 %".to_owned(),
        comparisons: 1,
        noise: StressNoise::Ticks,
        until: Until::Verdict(RULE),
    });
    all.push(Stress {
        name: "1 with bursts of loss".to_owned(),
        comparisons: 1,
        noise: StressNoise::Bursts,
        until: Until::Verdict(Rule { min: 8, max: 80 }),
    });
    all
}

/// Campaigns in which a part of the blocks is far worse in one arm. What is not there cannot be seen: of a share of 5
/// % no block is among 40 in 13 %.
pub fn slow_parts() -> Vec<Stress> {
    [0.05, 0.10, 0.15, 0.20, 0.25]
        .map(|share| Stress {
            name: format!("20 % slower in {:.0} % of blocks", 100.0 * share),
            comparisons: 1,
            noise: StressNoise::SlowPart(share),
            until: Until::Verdict(RULE),
        })
        .to_vec()
}

impl Stress {
    fn question(&self) -> Question {
        match self.noise {
            StressNoise::Bursts => question(Metric::Loss, 0.001),
            _ => question(Metric::Throughput, MARGIN),
        }
    }

    fn is_false(&self, verdict: &Verdict) -> bool {
        match (self.noise, verdict) {
            // Of a smaller part it says nothing.
            (StressNoise::SlowPart(share), Verdict::Equivalent) => share >= EXCLUDED_PART,
            // Its mean, and true difference, is beyond the margin.
            (StressNoise::Ticks | StressNoise::Bursts, Verdict::Equivalent) => true,
            (StressNoise::SlowPart(_) | StressNoise::Bursts, Verdict::Better(level)) => level == "ipv6",
            (StressNoise::Ticks, Verdict::Better(level)) => level == "ipv4",
            (_, Verdict::Better(_)) => true,
            _ => false,
        }
    }
}

fn next_pair(noise: StressNoise, simulation: &mut Simulation) -> (f64, f64) {
    const SD: f64 = 0.02;
    let mut log_ratio = SD * simulation.normal();
    match noise {
        StressNoise::Normal => {}
        StressNoise::TwoStates(apart) => {
            let state = if simulation.uniform() < 0.5 { -0.5 } else { 0.5 };
            log_ratio += apart * SD * state;
        }
        StressNoise::SlowPart(share) => {
            log_ratio *= 0.25;
            if simulation.uniform() < share {
                log_ratio -= 0.2;
            }
        }
        StressNoise::Ticks => {
            let baseline = (20.0 + 0.1 * simulation.normal()).round();
            let candidate = (20.4 + 0.1 * simulation.normal()).round();
            return (baseline, candidate);
        }
        StressNoise::Bursts => {
            let baseline = next_loss(1.0 / 50.0, simulation);
            let candidate = next_loss(1.0 / 17.0, simulation);
            return (baseline, candidate);
        }
    }
    (100.0, 100.0 * log_ratio.exp())
}

/// The share of messages that a trial loses.
fn next_loss(burst: f64, simulation: &mut Simulation) -> f64 {
    let steady = (0.00015 + 0.00005 * simulation.normal()).max(0.0);
    if simulation.uniform() < burst { steady + 0.03 } else { steady }
}

/// Simulates campaigns of a kind.
pub fn simulate(count: usize, seed: u128, stress: &Stress) -> StressResults {
    let mut simulation = Simulation::new(seed, Spread::Normal, 0.02);
    let questions = vec![stress.question(); stress.comparisons];
    let mut found = StressResults::default();
    for _ in 0..count {
        let pair = |_| next_pair(stress.noise, &mut simulation);
        let ended: Vec<EndedComparison> = match stress.until {
            Until::Verdict(rule) => campaign(&questions, rule, pair),
            Until::Precise(target) => campaign_until_precise(&questions, RULE, target, pair),
            Until::TimeIsUp(blocks) => campaign(&questions, Rule { min: RULE.min, max: blocks }, pair),
        };
        let better = ended.iter().filter(|one| matches!(one.verdict, Verdict::Better(_))).count();
        let alike = ended.iter().filter(|one| one.verdict == Verdict::Equivalent).count();
        let claims = better + alike;
        let wrong = ended.iter().filter(|one| stress.is_false(&one.verdict)).count();
        found.false_claims += wrong as f64 / claims.max(1) as f64;
        found.claimed += claims as f64 / ended.len() as f64;
        found.equivalent += alike as f64 / ended.len() as f64;
        for one in &ended {
            let covers = one.paired.as_ref().is_ok_and(|paired| paired.interval(0.95).contains(1.0));
            found.covered += f64::from(u8::from(covers)) / ended.len() as f64;
            found.blocks += one.blocks as f64 / ended.len() as f64;
        }
    }
    let count = count as f64;
    StressResults {
        false_claims: found.false_claims / count,
        covered: found.covered / count,
        claimed: found.claimed / count,
        equivalent: found.equivalent / count,
        blocks: found.blocks / count,
    }
}

/// How many campaigns are simulated: fewer of large families.
pub fn campaigns(count: usize, stress: &Stress) -> usize {
    (count * 5 / stress.comparisons).max(MIN_CAMPAIGNS).min(count)
}

/// Prints all kinds.
pub fn print(count: usize) {
    println!(
        "\nCampaigns that tempt the rule, {} to {} blocks, margin {} %.",
        RULE.min,
        RULE.max,
        100.0 * MARGIN
    );
    println!(
        "false: per cent of the claims of a report that are false, on average (at most 5); covered: per cent of the 95 %\n\
         intervals that hold the truth. Equivalent is said of all blocks but a part below {:.0} %: of a smaller part it is not false\n\
         though the mean is beyond the margin.\n",
        100.0 * EXCLUDED_PART
    );
    println!(
        "{:<34} {:>6} {:>8} {:>8} {:>11} {:>7}",
        "campaigns", "false", "covered", "claimed", "equivalent", "blocks"
    );
    for (place, stress) in all().iter().chain(&slow_parts()).enumerate() {
        let found = simulate(campaigns(count, stress), (0x57e5 + place as u128) << 32, stress);
        println!(
            "{:<34} {:>6.2} {:>8.1} {:>8.1} {:>11.1} {:>7.1}",
            stress.name,
            100.0 * found.false_claims,
            100.0 * found.covered,
            100.0 * found.claimed,
            100.0 * found.equivalent,
            found.blocks
        );
    }
}
