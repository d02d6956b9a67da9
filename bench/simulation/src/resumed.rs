//! Campaigns that are interrupted and resumed. They are those of a real one but for their runs: its schedule asks for
//! trials, a record keeps them, and what a report says is read from that record, at each interruption and at the end.

use crate::families::MARGIN;
use crate::nulls::MIN_CAMPAIGNS;
use crate::runs::{Simulation, Spread};
use stacklab_campaign::progress::Progress;
use stacklab_campaign::record::conclude;
use stacklab_campaign::sources::StudySource;
use stacklab_campaign::{CampaignError, measure};
use stacklab_model::{Family, Metric, RunRecord, SplitMix64, Trial, Value, Verdict};
use stacklab_store::{Campaign, Record};
use stacklab_study::{Plan, Study};
use std::f64::consts::SQRT_2;

/// Blocks of a campaign.
const MIN_BLOCKS: u32 = 8;
const MAX_BLOCKS: u32 = 40;
/// The smallest of the sizes, each of which is a comparison.
const FIRST_SIZE: u32 = 100;
/// Standard deviation of a pair's log ratio.
const SD: f64 = 0.02;

/// How another hour differs from the one before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HourChange {
    /// Not at all.
    Nothing,
    /// All figures are this many times as large, or as small.
    Level(f64),
    /// Figures are spread this many times as far.
    Noise(f64),
}

/// Campaigns of one kind.
#[derive(Debug, Clone)]
pub struct Resumed {
    /// What it is like.
    pub name: &'static str,
    /// The real difference of each comparison, as a logarithm.
    pub effects: Vec<f64>,
    /// `sequential`, where the two runs of a pair may be of different hours, or `interleaved`.
    pub schedule: &'static str,
    /// How often it is interrupted, after a number of trials that is drawn.
    pub interruptions: usize,
    /// What is different after each.
    pub change: HourChange,
}

/// What campaigns of a kind gave.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResumedResults {
    /// Share of false claims among the claims of the last report, on average.
    pub false_claims: f64,
    /// The same of the reports that were read at interruptions: of each campaign, of the worst one.
    pub false_before: f64,
    /// Claims of such a report that a later one does not have.
    pub withdrawn: usize,
    /// Share of the comparisons that were settled before an interruption.
    pub settled_before: f64,
    /// Share of the comparisons with a claim in the end.
    pub claimed: f64,
    /// Blocks of a campaign.
    pub blocks: f64,
}

/// The campaigns that are simulated.
pub fn all() -> Vec<Resumed> {
    let other_hour = HourChange::Level(1.4);
    let kinds = [
        ("1 null, same level", vec![0.0], "sequential", 1, HourChange::Nothing),
        ("1 null", vec![0.0], "sequential", 1, other_hour),
        ("1 null, in turns", vec![0.0], "interleaved", 1, other_hour),
        ("1 null, four times", vec![0.0], "sequential", 4, other_hour),
        ("1 null, then noise x3", vec![0.0], "sequential", 1, HourChange::Noise(3.0)),
        ("1 null, then noise /3", vec![0.0], "sequential", 1, HourChange::Noise(1.0 / 3.0)),
        ("1 at the margin", vec![MARGIN.ln_1p()], "sequential", 1, other_hour),
        ("21 nulls", vec![0.0; 21], "sequential", 1, other_hour),
        ("21 nulls, four times", vec![0.0; 21], "interleaved", 4, other_hour),
        ("21, half of 4 %", make_half_differ(21), "sequential", 1, other_hour),
        ("21, half of 4 %, four times", make_half_differ(21), "sequential", 4, other_hour),
        ("60, half of 4 %", make_half_differ(60), "sequential", 1, other_hour),
    ];
    let mut all = Vec::new();
    for (name, effects, schedule, interruptions, change) in kinds {
        all.push(Resumed { name, effects, schedule, interruptions, change });
    }
    all
}

/// Differences of which every other one is 4 %.
fn make_half_differ(n: usize) -> Vec<f64> {
    (0..n).map(|place| if place % 2 == 0 { 0.04 } else { 0.0 }).collect()
}

/// Reports of a campaign, the last of which is that of its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Reports {
    /// The verdicts of each.
    pub verdicts: Vec<Vec<Verdict>>,
    /// Blocks that were measured.
    pub blocks: u32,
}

/// A kind of campaigns with its study.
pub struct Rig {
    effects: Vec<f64>,
    change: HourChange,
    study: Study,
    plan: Plan,
    row: Campaign,
}

impl Rig {
    /// The study of a kind of campaigns.
    pub fn of(resumed: &Resumed) -> Self {
        let sizes: Vec<String> =
            (0..resumed.effects.len()).map(|number| (FIRST_SIZE + number as u32).to_string()).collect();
        let text = format!(
            "title = \"simulated\"\n\
             [factors]\nfamily = [\"ipv4\", \"ipv6\"]\ntransport = [\"udp\"]\nsize = [{}]\n\
             [probe.stream]\nmetrics = [\"throughput\"]\nlength = {{ time = \"100ms\" }}\n\
             [blocks]\nmin = {MIN_BLOCKS}\nmax = {MAX_BLOCKS}\nschedule = \"{}\"\n\
             [[comparison]]\nfactor = \"family\"\nbaseline = \"ipv4\"\ncandidate = \"ipv6\"\nmargin = \"{} %\"\n",
            sizes.join(", "),
            resumed.schedule,
            100.0 * MARGIN
        );
        let source = StudySource { name: "simulated.toml".to_owned(), text };
        let study = source.check(None, &[]).expect("the study is valid");
        let row = Campaign { seed: 1, ..source.campaign() };
        Rig {
            effects: resumed.effects.clone(),
            change: resumed.change,
            plan: Plan::new(&study, row.seed),
            study,
            row,
        }
    }

    /// Trials of a campaign that has all of its blocks.
    pub fn most_trials(&self) -> usize {
        self.plan.trials_per_block() * MAX_BLOCKS as usize
    }

    /// Measures a campaign that is interrupted after each of these numbers of trials, counted from the interruption
    /// before. Each run has its figure from the seed and its place in the plan.
    pub fn run(&self, seed: u64, interruptions: &[usize]) -> Reports {
        let mut record = Record::in_memory("simulated.stacklab", &self.row).expect("memory suffices");
        let mut reports = Reports { verdicts: Vec::new(), blocks: 0 };
        for hour in 0.. {
            let mut left = interruptions.get(hour).copied().unwrap_or(usize::MAX);
            let measured = measure(
                &self.study,
                &self.plan,
                |trials: &[Trial], _: &[RunRecord]| {
                    if left == 0 {
                        return Err(CampaignError::Interrupted(record_name()));
                    }
                    left = left.saturating_sub(trials.len());
                    Ok(trials.iter().map(|trial| self.draw_run(seed, hour, trial)).collect())
                },
                &mut record,
                Progress::hidden(),
            );
            let findings = conclude(&record).expect("the record is whole");
            reports.verdicts.push(findings.comparisons.into_iter().map(|one| one.verdict).collect());
            reports.blocks = findings.blocks;
            match measured {
                Ok(()) => break,
                Err(error) => assert!(error.is_interruption(), "{error}"),
            }
        }
        reports
    }

    fn draw_run(&self, seed: u64, hour: usize, trial: &Trial) -> RunRecord {
        let place = u64::from(trial.block) << 32 | u64::from(trial.position);
        let mut noise = simulation(SplitMix64::mix(seed) ^ place);
        let mut of_hour = simulation(SplitMix64::mix(!seed) ^ hour as u64);
        let is_up = of_hour.uniform() < 0.5;
        let mut log = 0.0;
        let mut sd = SD / SQRT_2;
        match self.change {
            HourChange::Level(times) if hour > 0 => log = if is_up { times.ln() } else { -times.ln() },
            HourChange::Noise(times) if hour > 0 => sd *= times,
            _ => {}
        }
        log += sd * noise.normal();
        if trial.cell.family == Family::Ipv6 {
            log += self.effects[(trial.cell.size - FIRST_SIZE) as usize];
        }
        RunRecord::with_value(trial.clone(), Metric::Throughput, Value::Measured(100.0 * log.exp()))
    }

    /// The share of false claims among those of a report.
    fn false_claims(&self, verdicts: &[Verdict]) -> f64 {
        let mut wrong = 0;
        for (verdict, effect) in verdicts.iter().zip(&self.effects) {
            wrong += usize::from(match verdict {
                Verdict::Better(level) => *effect == 0.0 || (*effect > 0.0) != (level == "ipv6"),
                Verdict::Equivalent => effect.abs() >= MARGIN.ln_1p() - 1e-12,
                _ => false,
            });
        }
        wrong as f64 / count_claims(verdicts).max(1) as f64
    }
}

fn record_name() -> std::path::PathBuf {
    "simulated.stacklab".into()
}

/// Two numbers, since seeds that are near each other give similar figures.
fn simulation(seed: u64) -> Simulation {
    let [high, low] = [seed, !seed].map(|part| u128::from(SplitMix64::mix(part)));
    Simulation::new(high << 64 | low, Spread::Normal, 1.0)
}

fn is_claim(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Better(_) | Verdict::Equivalent)
}

fn count_claims(verdicts: &[Verdict]) -> usize {
    verdicts.iter().filter(|verdict| is_claim(verdict)).count()
}

/// Simulates campaigns of a kind.
pub fn simulate(count: usize, seed: u64, resumed: &Resumed) -> ResumedResults {
    let rig = Rig::of(resumed);
    let mut found = ResumedResults::default();
    for number in 0..count {
        let own = SplitMix64::mix(seed ^ (number as u64) << 32);
        let mut drawn = simulation(own);
        let longest = rig.most_trials() as f64 / resumed.interruptions as f64;
        let interruptions: Vec<usize> =
            (0..resumed.interruptions).map(|_| 1 + (longest * drawn.uniform()) as usize).collect();
        let reports = rig.run(own, &interruptions);
        let Some((last, before)) = reports.verdicts.split_last() else { continue };
        let comparisons = last.len() as f64;
        found.false_claims += rig.false_claims(last);
        found.false_before += before.iter().map(|one| rig.false_claims(one)).fold(0.0, f64::max);
        for one in before {
            let pairs = one.iter().zip(last);
            found.withdrawn += pairs.filter(|(then, now)| is_claim(then) && then != now).count();
        }
        found.settled_before += before.last().map_or(0, |one| count_claims(one)) as f64 / comparisons;
        found.claimed += count_claims(last) as f64 / comparisons;
        found.blocks += f64::from(reports.blocks);
    }
    let sums =
        [&mut found.false_claims, &mut found.false_before, &mut found.settled_before, &mut found.claimed];
    for sum in sums {
        *sum /= count as f64;
    }
    found.blocks /= count as f64;
    found
}

/// How many campaigns are simulated: fewer of large families.
pub fn campaigns(count: usize, resumed: &Resumed) -> usize {
    (count * 5 / resumed.effects.len()).max(MIN_CAMPAIGNS).min(count)
}

/// Prints all kinds.
pub fn print(count: usize) {
    println!(
        "\nCampaigns that are interrupted and resumed, {MIN_BLOCKS} to {MAX_BLOCKS} blocks, sd {} %, margin {} %. All figures are\n\
         1.4 times as large or as small after an interruption, also within a pair, unless the name says otherwise.",
        100.0 * SD,
        100.0 * MARGIN
    );
    println!(
        "false: per cent of the claims of the last report that are false, on average (at most 5); before: of the worst report\n\
         that was read at an interruption; withdrawn: claims of such a report that a later one does not have; settled: per\n\
         cent of the comparisons that were settled before the last interruption.\n"
    );
    println!(
        "{:<30} {:>9} {:>6} {:>7} {:>9} {:>8} {:>8} {:>7}",
        "campaigns", "simulated", "false", "before", "withdrawn", "settled", "claimed", "blocks"
    );
    for (place, resumed) in all().iter().enumerate() {
        let count = campaigns(count, resumed);
        let found = simulate(count, 0x4e50_0000 + place as u64, resumed);
        println!(
            "{:<30} {count:>9} {:>6.2} {:>7.2} {:>9} {:>8.1} {:>8.1} {:>7.1}",
            resumed.name,
            100.0 * found.false_claims,
            100.0 * found.false_before,
            found.withdrawn,
            100.0 * found.settled_before,
            100.0 * found.claimed,
            found.blocks
        );
    }
}
