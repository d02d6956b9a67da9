//! Fleets: whether the difference over pairs of hosts, their spread and its claims are right.

use crate::campaign::{EndedComparison, Rule, campaign, question};
use crate::runs::{SKEWED_MEAN, SKEWED_SD, Simulation, Spread};
use stacklab_analysis::OverPairs;
use stacklab_model::{
    FleetComparison, FleetFindings, FleetPair, MIN_PAIRS_OF_MEAN, Metric, PairAnswer, Question, Verdict,
};

/// The margin of all of them.
pub const MARGIN: f64 = 0.01;
/// Standard deviation of a block's log ratio, of a usual pair.
const SD: f64 = 0.02;

/// How noisy the pairs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetNoise {
    /// All alike.
    Equal,
    /// Each by a separate factor, up to 11 between the quietest and the noisiest.
    Unequal,
    /// All alike but for one, which is 20 times as noisy.
    OneNoisy,
}

/// How the pairs' true differences are spread about their mean, in standard deviations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truths {
    /// Normal.
    Normal,
    /// One pair in ten is 3 above it, the others a third below.
    OneOfTen,
    /// Log-normal of 0.8: skewed as delays are.
    LogNormal,
}

impl Truths {
    /// A pair's true difference from the mean.
    fn draw(self, simulation: &mut Simulation) -> f64 {
        match self {
            Truths::Normal => simulation.normal(),
            Truths::OneOfTen if simulation.uniform() < 0.1 => 3.0,
            Truths::OneOfTen => -1.0 / 3.0,
            Truths::LogNormal => ((0.8 * simulation.normal()).exp() - SKEWED_MEAN) / SKEWED_SD,
        }
    }

    /// The typical pair: the median.
    fn median(self) -> f64 {
        match self {
            Truths::Normal => 0.0,
            Truths::OneOfTen => -1.0 / 3.0,
            Truths::LogNormal => (1.0 - SKEWED_MEAN) / SKEWED_SD,
        }
    }
}

/// A fleet.
#[derive(Debug, Clone, Copy)]
pub struct SimulatedFleet {
    /// Pairs of hosts.
    pub pairs: usize,
    /// Standard deviation of the pairs' true log ratios.
    pub spread: f64,
    /// How these are distributed.
    pub truths: Truths,
    /// How noisy the pairs are.
    pub noise: FleetNoise,
    /// When a pair is looked at.
    pub rule: Rule,
}

/// Blocks of a fixed number, and of comparisons that stop when they are settled.
pub const RULES: [Rule; 2] = [Rule { min: 8, max: 8 }, Rule { min: 8, max: 40 }];

/// The fleets that are simulated.
pub fn all() -> Vec<SimulatedFleet> {
    let mut all = Vec::new();
    for pairs in [2, 3, 5, 20] {
        for spread in [0.0, 0.05] {
            for noise in [FleetNoise::Equal, FleetNoise::Unequal, FleetNoise::OneNoisy] {
                let truths = Truths::Normal;
                all.extend(RULES.map(|rule| SimulatedFleet { pairs, spread, truths, noise, rule }));
            }
        }
    }
    all
}

/// What fleets gave, on average.
#[derive(Debug, Clone, Copy, Default)]
pub struct FleetResults {
    /// Share of the 95 % intervals that cover the mean difference.
    pub covered: f64,
    /// Half their width, as a logarithm.
    pub half_width: f64,
    /// Share of the intervals of the spread that cover it.
    pub spread_covered: f64,
    /// Share of the prediction intervals that have the true difference of another pair; 0 without any.
    pub predicted: f64,
    /// Share of the fleets without a mean difference in which one arm is called better.
    pub better: f64,
    /// Share of the fleets with a mean difference as large as the margin that are called equivalent.
    pub equivalent: f64,
}

/// Simulates fleets of one comparison.
pub fn simulate(count: usize, seed: u128, fleet: &SimulatedFleet) -> FleetResults {
    let mut simulation = Simulation::new(seed, Spread::LogNormal, 1.0);
    let mut found = FleetResults::default();
    for _ in 0..count {
        let over = one(&mut simulation, fleet, &[0.0]);
        let pooled = over.pooled.expect("there are two pairs");
        let interval = pooled.effect.interval95;
        found.covered += count_if(interval.contains(1.0));
        found.half_width += (interval.high / interval.low).ln() / 2.0;
        found.spread_covered += count_if(pooled.spread_interval.contains(fleet.spread));
        let another = (fleet.spread * simulation.normal()).exp();
        let predicts = pooled.prediction.is_some_and(|prediction| prediction.contains(another));
        found.predicted += count_if(predicts);
        found.better += count_if(matches!(over.verdict, Verdict::Better(_)));
        let over = one(&mut simulation, fleet, &[MARGIN.ln_1p()]);
        found.equivalent += count_if(over.verdict == Verdict::Equivalent);
    }
    let count = count as f64;
    FleetResults {
        covered: found.covered / count,
        half_width: found.half_width / count,
        spread_covered: found.spread_covered / count,
        predicted: found.predicted / count,
        better: found.better / count,
        equivalent: found.equivalent / count,
    }
}

fn count_if(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// The share of false claims among the claims over pairs, on average, and the share of the comparisons with a
/// difference that are called better: of a fleet with these mean differences, as logarithms.
pub fn simulate_family(count: usize, seed: u128, fleet: &SimulatedFleet, effects: &[f64]) -> [f64; 2] {
    let mut simulation = Simulation::new(seed, Spread::LogNormal, 1.0);
    let mut sums = [0.0; 2];
    for _ in 0..count {
        let found = findings(&mut simulation, fleet, effects);
        let mut claims = 0.0;
        let mut wrong = 0.0;
        let mut right = 0.0;
        for (of, effect) in found.comparisons.iter().zip(effects) {
            if !is_claim(&of.verdict) {
                continue;
            }
            let is_wrong = is_false(&of.verdict, *effect);
            claims += 1.0;
            wrong += f64::from(u8::from(is_wrong));
            right += f64::from(u8::from(!is_wrong && *effect != 0.0));
        }
        sums[0] += wrong / f64::max(claims, 1.0);
        let differing = effects.iter().filter(|effect| **effect != 0.0).count();
        sums[1] += right / differing.max(1) as f64;
    }
    sums.map(|sum| sum / count as f64)
}

/// Fleets whose pairs' true differences are skewed.
pub fn skewed() -> Vec<SimulatedFleet> {
    let mut fleets = Vec::new();
    for truths in [Truths::OneOfTen, Truths::LogNormal] {
        for pairs in [3, 5, 8, 20, 50, MIN_PAIRS_OF_MEAN] {
            fleets.push(SimulatedFleet {
                pairs,
                spread: 0.05,
                truths,
                noise: FleetNoise::Equal,
                rule: RULES[1],
            });
        }
    }
    fleets
}

/// What skewed fleets gave.
#[derive(Debug, Clone, Copy, Default)]
pub struct Skewed {
    /// Share of the fleets with a mean difference of zero whose claim is false.
    pub wrong: f64,
    /// The same if the typical difference is zero.
    pub wrong_at_null: f64,
    /// Share of the fleets with a mean difference of zero that have a claim.
    pub claimed: f64,
}

/// Simulates skewed fleets of one comparison. A claim of few pairs is about the typical one, of many about their mean.
pub fn simulate_skewed_fleets(count: usize, seed: u128, fleet: &SimulatedFleet) -> Skewed {
    let mut simulation = Simulation::new(seed, Spread::LogNormal, 1.0);
    let typical = fleet.spread * fleet.truths.median();
    let claimed_of_zero_mean = if fleet.pairs < MIN_PAIRS_OF_MEAN { typical } else { 0.0 };
    let mut found = Skewed::default();
    for _ in 0..count {
        let of_zero_mean = one(&mut simulation, fleet, &[0.0]).verdict;
        found.claimed += f64::from(u8::from(is_claim(&of_zero_mean)));
        found.wrong += f64::from(u8::from(is_false(&of_zero_mean, claimed_of_zero_mean)));
        if fleet.pairs < MIN_PAIRS_OF_MEAN {
            let at_null = one(&mut simulation, fleet, &[-typical]).verdict;
            found.wrong_at_null += f64::from(u8::from(is_false(&at_null, 0.0)));
        }
    }
    for sum in [&mut found.wrong, &mut found.wrong_at_null, &mut found.claimed] {
        *sum /= count as f64;
    }
    found
}

fn is_claim(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Better(_) | Verdict::Equivalent)
}

/// Whether a verdict is a false claim about a difference of this size, as a logarithm.
fn is_false(verdict: &Verdict, effect: f64) -> bool {
    match verdict {
        Verdict::Better(level) => effect == 0.0 || (effect > 0.0) != (level == "ipv6"),
        Verdict::Equivalent => effect.abs() >= MARGIN.ln_1p() - 1e-12,
        _ => false,
    }
}

fn one(simulation: &mut Simulation, fleet: &SimulatedFleet, effects: &[f64]) -> FleetComparison {
    findings(simulation, fleet, effects).comparisons.remove(0)
}

/// A fleet's campaign: each pair's runs, its own findings, and what holds over pairs.
fn findings(simulation: &mut Simulation, fleet: &SimulatedFleet, effects: &[f64]) -> FleetFindings {
    let questions: Vec<Question> = (0..effects.len()).map(make_question).collect();
    let mut over = OverPairs::new("", questions.clone());
    for pair in 0..fleet.pairs {
        let factor = match fleet.noise {
            FleetNoise::Unequal => (1.2 * (2.0 * simulation.uniform() - 1.0)).exp(),
            FleetNoise::OneNoisy if pair == 0 => 20.0,
            _ => 1.0,
        };
        let truth: Vec<f64> =
            effects.iter().map(|effect| effect + fleet.spread * fleet.truths.draw(simulation)).collect();
        let ended = campaign(&questions, fleet.rule, |number| {
            (100.0, 100.0 * (truth[number] + SD * factor * simulation.normal()).exp())
        });
        let named = FleetPair { name: pair.to_string(), blocks: 0, valid_runs: 0, invalid_runs: 0 };
        over.add(named, ended.into_iter().map(answer).collect());
    }
    over.finish(true)
}

/// Questions that differ in their sizes.
fn make_question(number: usize) -> Question {
    let mut question = question(Metric::Throughput, MARGIN);
    for cell in [&mut question.baseline, &mut question.candidate] {
        cell.size = 100 + number as u32;
    }
    question
}

fn answer(ended: EndedComparison) -> PairAnswer {
    PairAnswer {
        verdict: ended.verdict,
        effect: ended.paired.ok().map(|paired| paired.effect()),
        claimed_interval: ended.claimed_interval,
    }
}

/// Families of comparisons over pairs: a name, and their mean differences.
pub fn families() -> [(&'static str, Vec<f64>); 3] {
    let some = (0..15).map(|place| 0.01 + 0.02 * f64::from(place) / 14.0);
    [
        ("21 nulls", vec![0.0; 21]),
        ("15 of 1 to 3 %, 6 nulls", some.chain([0.0; 6]).collect()),
        ("10 of 5 %, 50 nulls", [vec![0.05; 10], vec![0.0; 50]].concat()),
    ]
}

/// Prints all fleets.
pub fn print(count: usize) {
    println!(
        "\nFleets: one comparison over pairs of hosts, margin {} %, sd of a block {} %.",
        100.0 * MARGIN,
        100.0 * SD
    );
    println!(
        "spread: standard deviation of the pairs' true differences. noise: of the pairs (unequal: up to 11 times; one: one\n\
         pair 20 times as noisy). covered: per cent of the 95 % intervals that cover the mean difference (at least 95);\n\
         +-: half their width; tau: of the intervals of the spread; new: per cent of the prediction intervals that have the true\n\
         difference of another pair. better: per cent that are called better without a difference (at most 2.5);\n\
         equiv.: that are called equivalent with a difference as large as the margin (at most 2.5).\n"
    );
    println!(
        "{:>5} {:>6} {:<8} {:>7}  {:>7} {:>6} {:>7} {:>7}  {:>6} {:>6}",
        "pairs", "spread", "noise", "blocks", "covered", "+-", "tau", "new", "better", "equiv."
    );
    for (place, fleet) in all().iter().enumerate() {
        let found = simulate(count, (0x0fc0 + place as u128) << 32, fleet);
        let blocks = match fleet.rule {
            Rule { min, max } if min == max => min.to_string(),
            Rule { min, max } => format!("{min}..{max}"),
        };
        let noise = match fleet.noise {
            FleetNoise::Equal => "equal",
            FleetNoise::Unequal => "unequal",
            FleetNoise::OneNoisy => "one",
        };
        let new = if fleet.pairs > 2 { format!("{:.1}", 100.0 * found.predicted) } else { String::new() };
        println!(
            "{:>5} {:>4} % {noise:<8} {blocks:>7}  {:>7.1} {:>6.2} {:>7.1} {new:>7}  {:>6.2} {:>6.2}",
            fleet.pairs,
            100.0 * fleet.spread,
            100.0 * found.covered,
            100.0 * found.half_width,
            100.0 * found.spread_covered,
            100.0 * found.better,
            100.0 * found.equivalent
        );
    }
    print_skewed_fleets(count.div_ceil(2));
    print_families(count.div_ceil(4));
}

fn print_families(count: usize) {
    println!(
        "\nFamilies of comparisons over pairs, {count} campaigns each: per cent of the claims that are false (at most 5), and\n\
         of the differences found.\n"
    );
    println!("{:<26} {:>5} {:>6}  {:>6} {:>6}", "family", "pairs", "spread", "false", "found");
    for (place, (name, effects)) in families().iter().enumerate() {
        for (number, (pairs, spread)) in [(3, 0.0), (3, 0.05), (20, 0.0), (20, 0.05)].into_iter().enumerate()
        {
            let truths = Truths::Normal;
            let fleet = SimulatedFleet { pairs, spread, truths, noise: FleetNoise::Unequal, rule: RULES[0] };
            let seed = (0x0fe0 + 8 * place as u128 + number as u128) << 32;
            let [wrong, right] = simulate_family(count, seed, &fleet, effects).map(|share| 100.0 * share);
            let right = if place > 0 { format!("{right:.1}") } else { String::new() };
            println!("{name:<26} {pairs:>5} {:>4} %  {wrong:>6.2} {right:>6}", 100.0 * spread);
        }
    }
}

fn print_skewed_fleets(count: usize) {
    println!(
        "\nSkewed fleets, {count} of each, spread 5 %: one pair in ten 15 % better and the others 1.7 % worse, or log-normal.\n\
         mean 0: per cent with a false claim where the mean difference is zero; claims: with any claim then; typical 0: with a\n\
         false claim where the typical difference is (at most 5). With fewer than {MIN_PAIRS_OF_MEAN} pairs, claims are about the\n\
         typical pair.\n"
    );
    println!("{:<12} {:>5}  {:>7} {:>7} {:>10}", "truths", "pairs", "mean 0", "claims", "typical 0");
    for (place, fleet) in skewed().iter().enumerate() {
        let found = simulate_skewed_fleets(count, (0x1040 + place as u128) << 32, fleet);
        let truths = if fleet.truths == Truths::OneOfTen { "one of ten" } else { "log-normal" };
        let [wrong, claimed, at_null] =
            [found.wrong, found.claimed, found.wrong_at_null].map(|share| 100.0 * share);
        println!("{truths:<12} {:>5}  {wrong:>7.2} {claimed:>7.1} {at_null:>10.2}", fleet.pairs);
    }
}
