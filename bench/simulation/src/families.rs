//! Families of comparisons: which share of the claims of a report is false.

use crate::campaign::{Rule, campaign_of, question};
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
    let mixture = |n: usize| (0..n).map(move |place| 0.01 + 0.02 * place as f64 / (n - 1) as f64);
    let of = |name, effects: Vec<f64>, sd| Comparisons { name, effects, sd, goes_on: false };
    vec![
        of("1 null", vec![0.0], 0.02),
        of("21 nulls", vec![0.0; 21], 0.02),
        of("60 nulls", vec![0.0; 60], 0.02),
        of("300 nulls", vec![0.0; 300], 0.02),
        of("15 of 1 to 3 %, 6 nulls", mixture(15).chain(vec![0.0; 6]).collect(), 0.02),
        of("the same, sd 0.9 %", mixture(15).chain(vec![0.0; 6]).collect(), 0.009),
        of("10 of 2 %, 50 nulls", [vec![0.02; 10], vec![0.0; 50]].concat(), 0.02),
        of("30 of 2 %, 270 nulls", [vec![0.02; 30], vec![0.0; 270]].concat(), 0.02),
        of("21 at the margin", vec![0.01_f64.ln_1p(); 21], 0.009),
    ]
}

/// Families whose differences are small beside their noise: those that are claimed are the ones that look large.
pub fn weak() -> Vec<Comparisons> {
    let of = |name, n: usize, goes_on| {
        // Half of the arms are alike.
        let effects = (0..n).map(|place| if place % 2 == 0 { 0.01 } else { 0.0 }).collect();
        Comparisons { name, effects, sd: 0.03, goes_on }
    };
    vec![
        of("1 of 1 %", 1, false),
        of("21, half of 1 %", 21, false),
        of("60, half of 1 %", 60, false),
        of("300, half of 1 %", 300, false),
        of("1, measured further", 1, true),
        of("21, measured further", 21, true),
        of("60, measured further", 60, true),
        of("300, measured further", 300, true),
    ]
}

/// What campaigns of a family gave, on average.
#[derive(Debug, Clone, Copy, Default)]
pub struct Found {
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
pub fn simulate(count: usize, seed: u128, family: &Comparisons, rule: Rule) -> Found {
    // Each arm's log figure has half of the pair's variance.
    let arm_sd = family.sd / std::f64::consts::SQRT_2;
    let mut simulation = Simulation::new(seed, Spread::LogNormal, arm_sd);
    let questions = vec![question(Metric::Throughput, MARGIN); family.effects.len()];
    let beyond = |effect: f64| effect.abs() >= MARGIN.ln_1p() - 1e-12;
    let mut found = Found::default();
    let n = family.effects.len() as f64;
    let mut rightly = 0.0;
    for _ in 0..count {
        let ended = campaign_of(&questions, rule, family.goes_on, |number| {
            simulation.pair(family.effects[number].exp())
        });
        let mut claims = 0.0;
        let mut wrong = 0.0;
        let mut ranges = [Ranges::default(); 2];
        let mut plain = Ranges::default();
        for (one, effect) in ended.iter().zip(&family.effects) {
            let is_wrong = match &one.verdict {
                Verdict::Better(level) => *effect == 0.0 || (*effect > 0.0) != (level == "ipv6"),
                Verdict::Equivalent => beyond(*effect),
                _ => continue,
            };
            let kind = usize::from(one.verdict == Verdict::Equivalent);
            ranges[kind].add(one.claimed_interval, *effect);
            let paired = one.paired.as_ref().expect("claims have pairs");
            if kind == 0 {
                plain.add(Some(paired.interval(0.95)), *effect);
                if *effect != 0.0 && !is_wrong {
                    rightly += 1.0;
                    found.exaggeration += paired.estimate().ln() / effect;
                }
            }
            claims += 1.0;
            wrong += f64::from(u8::from(is_wrong));
        }
        let share = |is_of: &dyn Fn(f64) -> bool, is_right: &dyn Fn(&Verdict) -> bool| {
            let own: Vec<&Verdict> = ended
                .iter()
                .zip(&family.effects)
                .filter(|(_, effect)| is_of(**effect))
                .map(|(one, _)| &one.verdict)
                .collect();
            own.iter().filter(|verdict| is_right(verdict)).count() as f64 / own.len().max(1) as f64
        };
        found.false_claims += if claims > 0.0 { wrong / claims } else { 0.0 };
        let [better, equivalent] = ranges;
        let missed = [better, equivalent, better.with(equivalent)].map(Ranges::missed);
        for (sum, share) in found.missed.iter_mut().zip(missed) {
            *sum += share;
        }
        found.missed_plainly += plain.missed();
        found.any_false += f64::from(u8::from(wrong > 0.0));
        found.better += share(&beyond, &|verdict| matches!(verdict, Verdict::Better(_)));
        found.equivalent += share(&|effect| effect == 0.0, &|verdict| *verdict == Verdict::Equivalent);
        found.answered += claims / n;
        found.blocks += ended.iter().map(|one| one.blocks as f64).sum::<f64>() / n;
    }
    let mean = |sum: f64| sum / count as f64;
    Found {
        false_claims: mean(found.false_claims),
        any_false: mean(found.any_false),
        better: mean(found.better),
        equivalent: mean(found.equivalent),
        answered: mean(found.answered),
        blocks: mean(found.blocks),
        missed: found.missed.map(mean),
        missed_plainly: mean(found.missed_plainly),
        exaggeration: found.exaggeration / f64::max(rightly, 1.0),
    }
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
    fn missed(self) -> f64 {
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
