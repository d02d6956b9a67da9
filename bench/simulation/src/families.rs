//! Families of comparisons: which share of the claims of a report is false.

use crate::campaign::{EndedComparison, Rule, campaign_of, question};
use crate::runs::{Simulation, Spread};
use stacklab_model::{Interval, Metric, Verdict};

/// A family of comparisons with the same spread.
#[derive(Debug, Clone)]
pub struct Comparisons {
    /// What it is like.
    pub name: &'static str,
    /// The real differences, as logarithms.
    pub effects: Vec<f64>,
    /// Standard deviation of a pair's log ratio.
    pub sd: f64,
    /// Whether settled comparisons are measured further.
    pub goes_on: bool,
}

/// The margin of all of them.
pub const MARGIN: f64 = 0.01;
/// When they are looked at.
pub const RULE: Rule = Rule { min: 8, max: 40 };

/// The families that are simulated.
pub fn all() -> Vec<Comparisons> {
    let mut mixture: Vec<f64> = (0..15).map(|place| 0.01 + 0.02 * f64::from(place) / 14.0).collect();
    mixture.extend([0.0; 6]);
    let kinds = [
        ("1 null", vec![0.0], 0.02),
        ("21 nulls", vec![0.0; 21], 0.02),
        ("60 nulls", vec![0.0; 60], 0.02),
        ("300 nulls", vec![0.0; 300], 0.02),
        ("15 of 1 to 3 %, 6 nulls", mixture.clone(), 0.02),
        ("the same, sd 0.9 %", mixture, 0.009),
        ("10 of 2 %, 50 nulls", [vec![0.02; 10], vec![0.0; 50]].concat(), 0.02),
        ("30 of 2 %, 270 nulls", [vec![0.02; 30], vec![0.0; 270]].concat(), 0.02),
        ("21 at the margin", vec![0.01_f64.ln_1p(); 21], 0.009),
    ];
    let mut families = Vec::new();
    for (name, effects, sd) in kinds {
        families.push(Comparisons { name, effects, sd, goes_on: false });
    }
    families
}

/// Families whose differences are small beside their noise: those that are claimed are the ones that look large.
pub fn weak() -> Vec<Comparisons> {
    let kinds = [
        ("1 of 1 %", 1, false),
        ("21, half of 1 %", 21, false),
        ("60, half of 1 %", 60, false),
        ("300, half of 1 %", 300, false),
        ("1, measured further", 1, true),
        ("21, measured further", 21, true),
        ("60, measured further", 60, true),
        ("300, measured further", 300, true),
    ];
    let mut families = Vec::new();
    for (name, n, goes_on) in kinds {
        // Half of the arms are alike.
        let effects = (0..n).map(|place| if place % 2 == 0 { 0.01 } else { 0.0 }).collect();
        families.push(Comparisons { name, effects, sd: 0.03, goes_on });
    }
    families
}

/// What campaigns of a family gave, on average.
#[derive(Debug, Clone, Copy, Default)]
pub struct FamilyResults {
    /// Share of false claims among the claims of a report, `better` and `equivalent` together; 0 without claims.
    pub false_claims: f64,
    /// Share of reports with a false claim.
    pub any_false: f64,
    /// Share of the differences beyond the margin that are called better.
    pub better: f64,
    /// Share of the comparisons without a difference that are called equivalent.
    pub equivalent: f64,
    /// Share of the comparisons with an answer.
    pub answered: f64,
    /// Blocks of a comparison.
    pub blocks: f64,
    /// Share of the claimed ranges that miss the true difference, of `better`, of `equivalent` and of both.
    pub missed: [f64; 3],
    /// Share of plain 95 % intervals of `better` that miss it.
    pub missed_plainly: f64,
    /// Mean of the estimates of what is rightly `better`, in true differences: 0 where there is none.
    pub exaggeration: f64,
}

/// Simulates campaigns of a family.
pub fn simulate(count: usize, seed: u128, family: &Comparisons, rule: Rule) -> FamilyResults {
    // Each arm's log figure has half of the pair's variance.
    let arm_sd = family.sd / std::f64::consts::SQRT_2;
    let mut simulation = Simulation::new(seed, Spread::LogNormal, arm_sd);
    let questions = vec![question(Metric::Throughput, MARGIN); family.effects.len()];
    let mut sum = FamilyResults::default();
    let mut rightly = 0.0;
    for _ in 0..count {
        let ended = campaign_of(&questions, rule, family.goes_on, |number| {
            simulation.pair(family.effects[number].exp())
        });
        let claims = Claims::of(&ended, &family.effects);
        rightly += claims.exaggerations.len() as f64;
        add_campaign(&mut sum, &claims, &ended, &family.effects);
    }
    let mean = |sum: f64| sum / count as f64;
    FamilyResults {
        false_claims: mean(sum.false_claims),
        any_false: mean(sum.any_false),
        better: mean(sum.better),
        equivalent: mean(sum.equivalent),
        answered: mean(sum.answered),
        blocks: mean(sum.blocks),
        missed: sum.missed.map(mean),
        missed_plainly: mean(sum.missed_plainly),
        exaggeration: sum.exaggeration / f64::max(rightly, 1.0),
    }
}

/// What a campaign claims.
#[derive(Default)]
struct Claims {
    count: f64,
    wrong: f64,
    /// The estimate of each real difference that is rightly called better, in true differences.
    exaggerations: Vec<f64>,
    /// The claimed ranges of what is better.
    better: Ranges,
    /// The claimed ranges of what is equivalent.
    equivalent: Ranges,
    /// Plain 95 % intervals of what is better.
    plain: Ranges,
}

impl Claims {
    fn of(ended: &[EndedComparison], effects: &[f64]) -> Self {
        let mut claims = Claims::default();
        for (one, effect) in ended.iter().zip(effects) {
            match &one.verdict {
                Verdict::Better(level) => claims.add_better(one, level, *effect),
                Verdict::Equivalent => {
                    claims.count += 1.0;
                    claims.wrong += f64::from(u8::from(is_beyond_margin(*effect)));
                    claims.equivalent.add(one.claimed_interval, *effect);
                }
                _ => {}
            }
        }
        claims
    }

    fn add_better(&mut self, one: &EndedComparison, level: &str, effect: f64) {
        let is_wrong = effect == 0.0 || (effect > 0.0) != (level == "ipv6");
        let paired = one.paired.as_ref().expect("claims have pairs");
        self.count += 1.0;
        self.wrong += f64::from(u8::from(is_wrong));
        self.better.add(one.claimed_interval, effect);
        self.plain.add(Some(paired.interval(0.95)), effect);
        if effect != 0.0 && !is_wrong {
            self.exaggerations.push(paired.estimate().ln() / effect);
        }
    }
}

fn is_beyond_margin(effect: f64) -> bool {
    effect.abs() >= MARGIN.ln_1p() - 1e-12
}

fn add_campaign(sum: &mut FamilyResults, claims: &Claims, ended: &[EndedComparison], effects: &[f64]) {
    let n = effects.len() as f64;
    let ranges = [claims.better, claims.equivalent, claims.better.with(claims.equivalent)];
    for (sum, ranges) in sum.missed.iter_mut().zip(ranges) {
        *sum += ranges.find_miss_rate();
    }
    sum.false_claims += if claims.count > 0.0 { claims.wrong / claims.count } else { 0.0 };
    sum.any_false += f64::from(u8::from(claims.wrong > 0.0));
    sum.missed_plainly += claims.plain.find_miss_rate();
    claims.exaggerations.iter().for_each(|one| sum.exaggeration += one);
    sum.better += share_of(ended, effects, is_beyond_margin, |verdict| matches!(verdict, Verdict::Better(_)));
    sum.equivalent +=
        share_of(ended, effects, |effect| effect == 0.0, |verdict| *verdict == Verdict::Equivalent);
    sum.answered += claims.count / n;
    sum.blocks += ended.iter().map(|one| one.blocks as f64).sum::<f64>() / n;
}

/// The share of right verdicts among the comparisons with such an effect.
fn share_of(
    ended: &[EndedComparison],
    effects: &[f64],
    is_of: impl Fn(f64) -> bool,
    is_right: impl Fn(&Verdict) -> bool,
) -> f64 {
    let mut all = 0;
    let mut right = 0;
    for (one, effect) in ended.iter().zip(effects) {
        if is_of(*effect) {
            all += 1;
            right += usize::from(is_right(&one.verdict));
        }
    }
    right as f64 / all.max(1) as f64
}

/// Ranges of the claims of a campaign.
#[derive(Debug, Clone, Copy, Default)]
struct Ranges {
    claims: f64,
    missed: f64,
}

impl Ranges {
    fn add(&mut self, range: Option<Interval>, effect: f64) {
        self.claims += 1.0;
        self.missed += f64::from(u8::from(!range.is_some_and(|range| range.contains(effect.exp()))));
    }

    fn with(self, other: Ranges) -> Ranges {
        Ranges { claims: self.claims + other.claims, missed: self.missed + other.missed }
    }

    /// The share that misses; 0 without claims.
    fn find_miss_rate(self) -> f64 {
        self.missed / self.claims.max(1.0)
    }
}

/// Prints all families.
pub fn print(count: usize) {
    println!("\nFamilies of comparisons, {} to {} blocks, margin {} %.", RULE.min, RULE.max, 100.0 * MARGIN);
    println!(
        "false: per cent of the claims of a report that are false, on average (at most 5); any: reports with one.\n"
    );
    println!(
        "{:<26} {:>6} {:>6}  {:>7} {:>7} {:>9} {:>7}",
        "family", "false", "any", "better", "equiv.", "answered", "blocks"
    );
    for (place, family) in all().iter().enumerate() {
        let found = simulate(campaigns(count, family), (0x0fa0 + place as u128) << 32, family, RULE);
        println!(
            "{:<26} {:>6.2} {:>6.1}  {:>7.1} {:>7.1} {:>9.1} {:>7.1}",
            family.name,
            100.0 * found.false_claims,
            100.0 * found.any_false,
            100.0 * found.better,
            100.0 * found.equivalent,
            100.0 * found.answered,
            found.blocks
        );
    }
}

/// How many campaigns are simulated: fewer of large families.
fn campaigns(count: usize, family: &Comparisons) -> usize {
    (count * 20 / family.effects.len()).clamp(50, count)
}

/// Prints how often the ranges of claims miss.
pub fn print_ranges(count: usize) {
    println!(
        "\nRanges of claims: per cent of a report's ranges that miss the true difference, on average (at most 5)."
    );
    println!(
        "plain: of 95 % intervals that do not allow for the selection. estimate: mean of what is rightly better, in true\n\
         differences.\n"
    );
    println!(
        "{:<26} {:>9} {:>9}  {:>7} {:>7} {:>7}  {:>7} {:>9}",
        "family", "campaigns", "answered", "better", "equiv.", "both", "plain", "estimate"
    );
    for (place, family) in weak().iter().chain(&all()).enumerate() {
        let count = campaigns(count, family);
        let found = simulate(count, (0x0fb0 + place as u128) << 32, family, RULE);
        let [better, equivalent, both] = found.missed.map(|share| 100.0 * share);
        println!(
            "{:<26} {count:>9} {:>9.1}  {better:>7.2} {equivalent:>7.2} {both:>7.2}  {:>7.1} {:>9.2}",
            family.name,
            100.0 * found.answered,
            100.0 * found.missed_plainly,
            found.exaggeration
        );
    }
}
