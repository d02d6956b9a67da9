//! Prints, by simulation, how often intervals cover and how often an arm against itself is reported as better.
//!
//! `bench/coverage` runs it. Every figure is seeded and therefore reproducible.

mod campaign;
mod families;
mod interleaved;
mod recorded;
mod runs;

use campaign::{MARGIN, Outcome, Rule, campaigns};
use runs::{Simulation, Spread};
use stacklab_analysis::statistics::median_interval;
use stacklab_analysis::{Paired, estimate_of};
use stacklab_model::Scale;

/// Standard deviations of a run, from low noise (arms are soon equivalent) to high noise (campaigns run to the end).
const SDS: [f64; 5] = [0.003, 0.01, 0.02, 0.05, 0.2];

/// Real differences, in standard deviations of a run.
const APART: [f64; 4] = [0.5, 1.0, 1.5, 3.0];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let count = match words.first().map(|count| count.parse()) {
        None => 10_000,
        Some(Ok(count)) => count,
        Some(Err(_)) => refuse("the number of campaigns is a whole number"),
    };
    let part = words.get(1).map(String::as_str);
    if part.is_some_and(|part| !["simulated", "families", "recorded"].contains(&part)) {
        refuse("a part is `simulated`, `families` or `recorded`");
    }
    println!("{count} simulated campaigns for each figure");
    let is_asked = |name| part.is_none_or(|part| part == name);
    if is_asked("simulated") {
        fixed(count);
        sequential(count);
    }
    if is_asked("families") {
        families::print(count);
        families::print_ranges(count);
    }
    if is_asked("recorded") {
        interleaved::print(count);
    }
}

fn refuse(reason: &str) -> ! {
    eprintln!("coverage: {reason}");
    std::process::exit(2);
}

/// 95 % intervals for a number of runs that is fixed beforehand.
fn fixed(count: usize) {
    println!("\nFixed number of blocks: per cent of 95 % intervals that cover (sd of a run 20 %)");
    println!(
        "mean, median: of one cell's runs. ratio: of two arms, as reported. A dash: so few runs have no such interval.\n"
    );
    println!("{:<15} {:>6}  {:>6} {:>6}  {:>6}", "runs", "blocks", "mean", "median", "ratio");
    for spread in Spread::ALL {
        for blocks in [5, 6, 7, 8, 9, 10, 11, 14, 15, 19, 20, 40] {
            let [mean, median] = of_one_cell(count, spread, blocks);
            let ratio = of_two_arms(count, spread, blocks);
            println!("{:<15} {blocks:>6}  {mean:>6} {median:>6}  {ratio:>6}", spread.name());
        }
    }
    println!();
}

fn of_one_cell(count: usize, spread: Spread, blocks: usize) -> [String; 2] {
    // The mean is the median only for symmetric distributions.
    let symmetric = !matches!(spread, Spread::LogNormal | Spread::Skewed);
    let middle = if symmetric { 1.0 } else { middle_of(spread) };
    let mut simulation = Simulation::new(seed(1, spread, blocks), spread, 0.2);
    let (mut mean, mut median) = (Share::default(), Share::default());
    for _ in 0..count {
        simulation.restart();
        let figures: Vec<f64> = (0..blocks).map(|_| simulation.figure(1.0)).collect();
        mean.add(estimate_of(&figures).interval.map(|interval| interval.contains(1.0)));
        median.add(median_interval(&figures, 0.95).map(|found| found.interval.contains(middle)));
    }
    [mean.percent(), median.percent()]
}

/// The median of a distribution with mean 1 and sd 0.2.
fn middle_of(spread: Spread) -> f64 {
    match spread {
        Spread::LogNormal => (-0.02_f64).exp(),
        _ => {
            let mean = 0.125_f64.exp();
            1.0 + 0.2 * (1.0 - mean) / (mean * (0.25_f64.exp() - 1.0).sqrt())
        }
    }
}

fn of_two_arms(count: usize, spread: Spread, blocks: usize) -> String {
    const RATIO: f64 = 0.9;
    let mut simulation = Simulation::new(seed(2, spread, blocks), spread, 0.2);
    let mut ratio = Share::default();
    for _ in 0..count {
        simulation.restart();
        let pairs: Vec<(f64, f64)> = (0..blocks).map(|_| simulation.pair(RATIO)).collect();
        let effect = Paired::of(Scale::Ratio, &pairs).expect("figures are positive").effect();
        ratio.add(Some(effect.interval95.contains(RATIO)));
    }
    ratio.percent()
}

/// Campaigns that look after every block.
fn sequential(count: usize) {
    println!("Looking after every block, and stopping when the comparison is settled. Blocks are a mean.");
    println!("The margin is {} %.", 100.0 * MARGIN);
    println!(
        "same arm: two arms that are alike; per cent `better` (an error), `equivalent`, and 95 % intervals that cover."
    );
    println!(
        "apart: arms 0.5, 1, 1.5 and 3 sd apart; least and most per cent of 95 % intervals that cover.\n"
    );
    println!(
        "{:<15} {:>9} {:>6}  {:>6} {:>6} {:>6} {:>6}  {:>6} {:>6} {:>6}",
        "runs", "min-max", "sd", "better", "equiv.", "cover", "blocks", "least", "most", "blocks"
    );
    for spread in Spread::ALL {
        for rule in [(6, 12), (6, 40), (10, 40), (10, 100)].map(|(min, max)| Rule { min, max }) {
            for sd in SDS {
                line(count, spread, rule, sd);
            }
        }
    }
}

fn line(count: usize, spread: Spread, rule: Rule, sd: f64) {
    let of = |place: usize, ratio: f64| {
        let seed = seed(3 + place, spread, rule.min * 1000 + rule.max) + (sd * 1e6) as u128;
        campaigns(count, seed, spread, sd, ratio, rule)
    };
    let same = of(0, 1.0);
    let apart: Vec<Outcome> =
        APART.iter().enumerate().map(|(place, apart)| of(place + 1, (apart * sd).exp())).collect();
    let covered = apart.iter().map(|outcome| outcome.percent(outcome.covered));
    let (least, most) =
        covered.fold((f64::MAX, f64::MIN), |(least, most), share| (least.min(share), most.max(share)));
    println!(
        "{:<15} {:>9} {:>5.1}%  {:>6.1} {:>6.1} {:>6.1} {:>6.1}  {least:>6.1} {most:>6.1} {:>6.1}",
        spread.name(),
        format!("{}-{}", rule.min, rule.max),
        100.0 * sd,
        same.percent(same.better),
        same.percent(same.equivalent),
        same.percent(same.covered),
        mean_blocks(&[same]),
        mean_blocks(&apart)
    );
}

/// Mean number of blocks of these campaigns.
fn mean_blocks(outcomes: &[Outcome]) -> f64 {
    let sum = |of: fn(&Outcome) -> usize| outcomes.iter().map(of).sum::<usize>() as f64;
    sum(|outcome| outcome.blocks) / sum(|outcome| outcome.campaigns)
}

/// A separate seed for each figure.
fn seed(part: usize, spread: Spread, place: usize) -> u128 {
    let spread = Spread::ALL.iter().position(|other| *other == spread).expect("it is one of all");
    (((part * 10 + spread) * 1_000_000 + place) as u128) << 32
}

/// The number of decided cases among those that were testable.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    hits: usize,
    told: usize,
}

impl Share {
    fn add(&mut self, hit: Option<bool>) {
        self.told += usize::from(hit.is_some());
        self.hits += usize::from(hit == Some(true));
    }

    fn percent(&self) -> String {
        match self.told {
            0 => "-".to_owned(),
            told => format!("{:.1}", 100.0 * self.hits as f64 / told as f64),
        }
    }
}
