//! Reports of arms that do not differ, under noise of many kinds: which share of the claims is false. Of some kinds the
//! rule promises nothing, and the figures say how far it is off.

use crate::campaign::{Rule, campaign, question};
use crate::families::{MARGIN, RULE};
use crate::runs::{Simulation, Spread};
use stacklab_analysis::{Claim, Paired, claims};
use stacklab_model::{Metric, Scale, Verdict};

/// Standard deviation of a pair's log ratio.
const SD: f64 = 0.02;
/// Campaigns of a large family that are simulated at least, of as many that were asked for.
pub(crate) const MIN_CAMPAIGNS: usize = 20;
/// Of the comparisons of a path.
const MARGIN_OF_PATHS: f64 = 0.05;

/// How the pairs of a comparison are spread, in standard deviations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// Normal.
    Normal,
    /// Student's t of this number of degrees of freedom.
    HeavyTails(u32),
    /// Each block resembles the one before it: a first-order autoregression of this correlation.
    Correlated(f64),
    /// The standard deviation grows or falls this many times over a campaign.
    Drift(f64),
    /// One of the first 20 blocks is this far away.
    Outlier(f64),
    /// Part of the noise of a block is that of all comparisons: this share of its variance.
    Shared(f64),
    /// One of two states that are this far apart, drawn in each block.
    TwoStates(f64),
    /// One of two states that last: one is drawn with a chance of one to this number in each block.
    LastingStates(u32),
    /// Several blocks in turn are on one testbed: this number, and the testbed's share of the variance.
    Testbeds(usize, f64),
}

impl Noise {
    /// The kinds that are simulated, with their names.
    pub const ALL: [(&'static str, Noise); 16] = [
        ("normal", Noise::Normal),
        ("t, 3 degrees of freedom", Noise::HeavyTails(3)),
        ("t, 2 degrees of freedom", Noise::HeavyTails(2)),
        ("drift x10", Noise::Drift(10.0)),
        ("outlier of 20 sd", Noise::Outlier(20.0)),
        ("shared, 0.8", Noise::Shared(0.8)),
        ("two states, 3 sd apart", Noise::TwoStates(3.0)),
        ("two states, 11 sd apart", Noise::TwoStates(11.0)),
        ("correlated, 0.1", Noise::Correlated(0.1)),
        ("correlated, 0.2", Noise::Correlated(0.2)),
        ("correlated, 0.3", Noise::Correlated(0.3)),
        ("correlated, 0.5", Noise::Correlated(0.5)),
        ("states that last 3 blocks", Noise::LastingStates(3)),
        // Rounds, sockets and testbed of a stream over UDP have variances of 0.85, 0.52 and, here, 0.52.
        ("testbeds of 4 blocks, 0.28", Noise::Testbeds(4, 0.28)),
        ("testbeds of 2 blocks, 0.5", Noise::Testbeds(2, 0.5)),
        ("testbeds of 4 blocks, 0.5", Noise::Testbeds(4, 0.5)),
    ];

    /// Whether blocks depend on each other, which is beyond what the rule promises.
    pub fn is_beyond_promise(self) -> bool {
        matches!(self, Noise::Correlated(_) | Noise::LastingStates(_) | Noise::Testbeds(..))
    }
}

/// The noise of one campaign.
struct Drawing {
    noise: Noise,
    most_blocks: usize,
    /// The current block, from 0.
    block: usize,
    /// What is common to all comparisons of it.
    common: f64,
    /// The state of each comparison.
    states: Vec<Option<f64>>,
    grows: bool,
    outlier_at: usize,
    outlier_way: f64,
}

impl Drawing {
    fn new(noise: Noise, comparisons: usize, most_blocks: usize, simulation: &mut Simulation) -> Self {
        Drawing {
            noise,
            most_blocks,
            block: 0,
            common: simulation.normal(),
            states: vec![None; comparisons],
            grows: simulation.uniform() < 0.5,
            outlier_at: (20.0 * simulation.uniform()) as usize,
            outlier_way: if simulation.uniform() < 0.5 { 1.0 } else { -1.0 },
        }
    }

    fn next_block(&mut self, simulation: &mut Simulation) {
        self.block += 1;
        self.common = simulation.normal();
    }

    /// The next figure of a comparison, in standard deviations.
    fn draw(&mut self, number: usize, simulation: &mut Simulation) -> f64 {
        let normal = simulation.normal();
        match self.noise {
            Noise::Normal => normal,
            Noise::HeavyTails(degrees) => {
                let squares: f64 = (0..degrees).map(|_| simulation.normal().powi(2)).sum();
                normal / (squares / f64::from(degrees)).sqrt()
            }
            Noise::Correlated(correlation) => {
                let rest = (1.0 - correlation * correlation).sqrt() * normal;
                let next = self.states[number].map_or(normal, |last| correlation * last + rest);
                self.states[number] = Some(next);
                next
            }
            Noise::Drift(times) => {
                let part = self.block as f64 / self.most_blocks as f64 - 0.5;
                normal * times.powf(if self.grows { part } else { -part })
            }
            Noise::Outlier(far) if self.block == self.outlier_at => normal + far * self.outlier_way,
            Noise::Outlier(_) => normal,
            Noise::Shared(share) => share.sqrt() * self.common + (1.0 - share).sqrt() * normal,
            Noise::TwoStates(apart) => normal + apart * draw_state(simulation),
            Noise::LastingStates(blocks) => {
                let changes = simulation.uniform() < 1.0 / f64::from(blocks);
                let kept = self.states[number].filter(|_| !changes);
                let state = kept.unwrap_or_else(|| draw_state(simulation));
                self.states[number] = Some(state);
                0.6 * normal + 1.6 * state
            }
            Noise::Testbeds(blocks, share) => {
                let kept = self.states[number].filter(|_| !self.block.is_multiple_of(blocks));
                let testbed = kept.unwrap_or_else(|| simulation.normal());
                self.states[number] = Some(testbed);
                share.sqrt() * testbed + (1.0 - share).sqrt() * normal
            }
        }
    }
}

fn draw_state(simulation: &mut Simulation) -> f64 {
    if simulation.uniform() < 0.5 { -0.5 } else { 0.5 }
}

/// What campaigns gave.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullResults {
    /// Share of false claims among the claims of a report, on average.
    pub false_claims: f64,
    /// Share of the 95 % intervals that hold the truth.
    pub covered: f64,
}

/// Simulates campaigns of a number of comparisons.
pub fn simulate(count: usize, seed: u128, noise: Noise, comparisons: usize, rule: Rule) -> NullResults {
    let mut simulation = Simulation::new(seed, Spread::Normal, SD);
    let questions = vec![question(Metric::Throughput, MARGIN); comparisons];
    let mut found = NullResults::default();
    for _ in 0..count {
        let mut drawing = Drawing::new(noise, comparisons, rule.max, &mut simulation);
        let mut is_begun = false;
        let ended = campaign(&questions, rule, |number| {
            if number == 0 && is_begun {
                drawing.next_block(&mut simulation);
            }
            is_begun = true;
            (100.0, 100.0 * (SD * drawing.draw(number, &mut simulation)).exp())
        });
        let better = ended.iter().filter(|one| matches!(one.verdict, Verdict::Better(_))).count();
        let equivalent = ended.iter().filter(|one| one.verdict == Verdict::Equivalent).count();
        found.false_claims += better as f64 / (better + equivalent).max(1) as f64;
        for one in &ended {
            let covers = one.paired.as_ref().is_ok_and(|paired| paired.interval(0.95).contains(1.0));
            found.covered += f64::from(u8::from(covers)) / comparisons as f64;
        }
    }
    NullResults { false_claims: found.false_claims / count as f64, covered: found.covered / count as f64 }
}

/// How often the rounds of a path are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Once, after a planned number.
    Once,
    /// After each, for ever: here until this number.
    Each,
}

/// The share of reports of a path with a false claim, in any look: of a number of figures, after a number of rounds.
pub fn simulate_path(
    count: usize,
    seed: u128,
    noise: Noise,
    figures: usize,
    rounds: usize,
    look: Look,
) -> f64 {
    let mut simulation = Simulation::new(seed, Spread::Normal, SD);
    let mut wrong = 0;
    for _ in 0..count {
        let mut drawing = Drawing::new(noise, figures, rounds, &mut simulation);
        let mut pairs: Vec<Vec<(f64, f64)>> = vec![Vec::new(); figures];
        for round in 1..=rounds {
            for (number, pairs) in pairs.iter_mut().enumerate() {
                pairs.push((100.0, 100.0 * (SD * drawing.draw(number, &mut simulation)).exp()));
            }
            drawing.next_block(&mut simulation);
            let is_last = round == rounds;
            if (is_last || look == Look::Each) && claims_difference(&pairs, look == Look::Once) {
                wrong += 1;
                break;
            }
        }
    }
    wrong as f64 / count as f64
}

fn claims_difference(pairs: &[Vec<(f64, f64)>], is_planned: bool) -> bool {
    let paired: Vec<Option<Paired>> =
        pairs.iter().map(|pairs| Paired::of(Scale::Ratio, pairs).ok()).collect();
    let paired: Vec<Option<&Paired>> = paired.iter().map(Option::as_ref).collect();
    claims(&paired, MARGIN_OF_PATHS, is_planned).contains(&Some(Claim::Different))
}

/// The reports of paths that are simulated: noise, figures, rounds and looks.
pub fn paths() -> Vec<(&'static str, Noise, usize, usize, Look)> {
    let kinds = [
        ("normal", Noise::Normal),
        ("two states, 11 sd apart", Noise::TwoStates(11.0)),
        ("correlated, 0.5", Noise::Correlated(0.5)),
    ];
    let mut paths = Vec::new();
    for (name, noise) in kinds {
        for figures in [4, 80] {
            for (rounds, look) in [(10, Look::Once), (30, Look::Once), (60, Look::Each)] {
                paths.push((name, noise, figures, rounds, look));
            }
        }
    }
    paths
}

/// How many campaigns are simulated: fewer of large families.
pub fn campaigns(count: usize, comparisons: usize) -> usize {
    (count * 5 / comparisons).max(MIN_CAMPAIGNS).min(count)
}

/// Prints all kinds.
pub fn print(count: usize) {
    println!(
        "\nArms that do not differ, {} to {} blocks, margin {} %, sd {} %: per cent of the claims of a report that are\n\
         false, on average (at most 5), for 1, 21 and 60 comparisons ({}, {} and {} campaigns); and of the 95 % intervals\n\
         of 21, how many hold the truth. Where blocks depend on each other, in the last eight rows, nothing is promised.\n",
        RULE.min,
        RULE.max,
        100.0 * MARGIN,
        100.0 * SD,
        campaigns(count, 1),
        campaigns(count, 21),
        campaigns(count, 60)
    );
    println!("{:<26} {:>6} {:>6} {:>6}  {:>8}", "noise", "1", "21", "60", "covered");
    for (place, (name, noise)) in Noise::ALL.into_iter().enumerate() {
        let found = [1, 21, 60].map(|comparisons| {
            let seed = (0x2011 + 100 * place as u128 + comparisons as u128) << 32;
            simulate(campaigns(count, comparisons), seed, noise, comparisons, RULE)
        });
        let [one, some, many] = found.map(|found| 100.0 * found.false_claims);
        println!("{name:<26} {one:>6.2} {some:>6.2} {many:>6.2}  {:>8.1}", 100.0 * found[1].covered);
    }
    println!(
        "\nReports of `path`, whose families do not differ: per cent with any false claim, by the number of figures and of\n\
         rounds (at most 5, but where rounds are correlated).\n"
    );
    println!("{:<26} {:>7} {:>7}  {:>6}", "noise", "figures", "rounds", "false");
    for (place, (name, noise, figures, rounds, look)) in paths().into_iter().enumerate() {
        let rounds_text = if look == Look::Each { format!("to {rounds}") } else { rounds.to_string() };
        let seed = (0x2fa0 + place as u128) << 32;
        let wrong = simulate_path(campaigns(count, figures), seed, noise, figures, rounds, look);
        println!("{name:<26} {figures:>7} {rounds_text:>7}  {:>6.2}", 100.0 * wrong);
    }
}
