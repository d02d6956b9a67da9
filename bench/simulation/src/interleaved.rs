//! Prints how often intervals of interleaved trials cover, by campaigns of recorded trials.

use crate::campaign::{Rule, Tally};
use crate::recorded::{RECORDINGS, RecordedTrials};
use stacklab_analysis::Paired;
use stacklab_model::Scale;

/// Real differences between the arms of recorded trials.
const EFFECTS: [f64; 3] = [1.005, 1.02, 1.05];

/// Studies for recorded trials: what they are like, least and most blocks, and margin.
const STUDIES: [(&str, Rule, f64); 7] = [
    ("fixed", Rule { min: 6, max: 6 }, 1e-4),
    ("fixed", Rule { min: 10, max: 10 }, 1e-4),
    ("fixed", Rule { min: 20, max: 20 }, 1e-4),
    ("fixed", Rule { min: 40, max: 40 }, 1e-4),
    ("default", Rule { min: 10, max: 40 }, 0.02),
    ("quickstart", Rule { min: 8, max: 40 }, 0.01),
    ("measure", Rule { min: 6, max: 100 }, 0.01),
];

/// Prints all of them.
pub fn print(count: usize) {
    println!(
        "\nInterleaved trials of an arm against itself, as recorded. Trials are drawn with replacement, arms exchanged by chance;"
    );
    println!("then the candidate's slices are made larger by the effect.");
    println!(
        "no effect: per cent `better` (an error), `equivalent`, and 95 % intervals that cover; mean number of blocks."
    );
    println!("effect: per cent of 95 % intervals that cover where the arms differ by 0.5, 2 and 5 %.");
    for (recording, (name, slices)) in RECORDINGS.into_iter().enumerate() {
        let all = RecordedTrials::all(slices);
        println!("\nMachine: {name}");
        let about = slices.lines().map_while(|line| line.strip_prefix("# "));
        about.for_each(|line| println!("  {line}"));
        println!(
            "\n{:<11} {:>6} {:>6}  {:>22}  {:>7} {:>7}",
            "trials of", "trials", "rounds", "b against a [95 %], %", "sd, %", "most, %"
        );
        all.iter().for_each(print_trials);
        println!("\n{:<37}  {:-^27}  {:-^27}", "", "no effect", "effect");
        println!(
            "{:<11} {:<10} {:>7} {:>6}  {:>6} {:>6} {:>6} {:>6}  {:>6} {:>6} {:>6} {:>6}",
            "trials of",
            "study",
            "min-max",
            "margin",
            "better",
            "equiv.",
            "cover",
            "blocks",
            "0.5 %",
            "2 %",
            "5 %",
            "blocks"
        );
        let mut outcomes = Vec::new();
        for (kind, recorded) in all.iter().enumerate() {
            for (place, study) in STUDIES.into_iter().enumerate() {
                outcomes.push(line(count, recorded, ((recording * 10 + kind) * 10 + place) as u128, study));
            }
        }
        summary(&outcomes);
    }
}

/// What the trials are like.
fn print_trials(recorded: &RecordedTrials) {
    let figures: Vec<(f64, f64)> = recorded.figures(1.0).iter().map(|[figures, _]| *figures).collect();
    let logs: Vec<f64> = figures.iter().map(|(a, b)| 100.0 * (b / a).ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let sd = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (logs.len() - 1) as f64).sqrt();
    let most = logs.iter().fold(0.0_f64, |most, log| most.max(log.abs()));
    let effect = Paired::of(Scale::Ratio, &figures).expect("figures are positive").effect();
    let [middle, low, high] = [effect.estimate, effect.interval95.low, effect.interval95.high]
        .map(|ratio| format!("{:+.2}", 100.0 * (ratio - 1.0)));
    println!(
        "{:<11} {:>6} {:>6}  {:>22}  {sd:>7.2} {most:>7.2}",
        recorded.name(),
        recorded.trials.len(),
        recorded.trials.iter().map(|[arm, _]| arm.len()).sum::<usize>(),
        format!("{middle} [{low}, {high}]")
    );
}

/// Prints a line, and gives its outcomes: without an effect, then those of [`EFFECTS`].
fn line(count: usize, recorded: &RecordedTrials, place: u128, study: (&str, Rule, f64)) -> Vec<Tally> {
    let (name, rule, margin) = study;
    let of = |seed: u128, ratio| recorded.campaigns(count, (place * 10 + seed) << 32, margin, rule, ratio);
    let same = of(1, 1.0);
    let apart: Vec<Tally> = EFFECTS.iter().zip(2..).map(|(ratio, seed)| of(seed, *ratio)).collect();
    let covered: Vec<String> =
        apart.iter().map(|outcome| format!("{:>6.1}", outcome.percent(outcome.covered))).collect();
    println!(
        "{:<11} {name:<10} {:>7} {:>6}  {:>6.1} {:>6.1} {:>6.1} {:>6.1}  {} {:>6.1}",
        recorded.name(),
        format!("{}-{}", rule.min, rule.max),
        format!("{} %", 100.0 * margin),
        same.percent(same.better),
        same.percent(same.equivalent),
        same.percent(same.covered),
        mean_blocks(&[same]),
        covered.join(" "),
        mean_blocks(&apart)
    );
    std::iter::once(same).chain(apart).collect()
}

/// Mean number of blocks of these campaigns.
fn mean_blocks(outcomes: &[Tally]) -> f64 {
    let mut blocks = 0;
    let mut campaigns = 0;
    for outcome in outcomes {
        blocks += outcome.blocks;
        campaigns += outcome.campaigns;
    }
    blocks as f64 / campaigns as f64
}

/// Prints mean, least and most of all lines.
fn summary(lines: &[Vec<Tally>]) {
    let mut better = Vec::new();
    let mut covered = Vec::new();
    let mut covered_of_many = Vec::new();
    for line in lines {
        better.push(line[0].percent(line[0].better));
        for outcome in line {
            let percent = outcome.percent(outcome.covered);
            covered.push(percent);
            if outcome.blocks >= 20 * outcome.campaigns {
                covered_of_many.push(percent);
            }
        }
    }
    println!();
    print_shares("better without an effect, per cent", &better);
    print_shares("95 % intervals that cover, per cent", &covered);
    print_shares("the same where there were 20 blocks or more on average", &covered_of_many);
}

fn print_shares(name: &str, shares: &[f64]) {
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let least = shares.iter().copied().fold(f64::MAX, f64::min);
    let most = shares.iter().copied().fold(f64::MIN, f64::max);
    println!("{name}: mean {mean:.2}, {least:.1} to {most:.1}");
}
