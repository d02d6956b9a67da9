//! The intervals and the stopping rule meet their promises: seeded simulations, of which `bench/coverage` prints
//! more.

use stacklab_analysis::{Paired, estimate_of};
use stacklab_model::{Metric, Scale, Verdict};
use stacklab_simulation::campaign::{Rule, campaign, campaigns, question};
use stacklab_simulation::families;
use stacklab_simulation::recorded::{RECORDINGS, RecordedTrials};
use stacklab_simulation::runs::{Simulation, Spread};

const CASES: usize = 4000;

/// Spreads for which 95 % intervals of a comparison cover in 93 to 97 %. Where the difference itself wanders they do
/// not quite, as docs/method.md says.
const KEPT: [Spread; 4] = [Spread::Normal, Spread::LogNormal, Spread::Skewed, Spread::Autocorrelated];

#[test]
fn interval_of_a_mean_covers_it_in_93_to_97_per_cent() {
    for spread in [Spread::Normal, Spread::LogNormal] {
        let mut simulation = Simulation::new(0x5eed_0001, spread, 0.1);
        for n in [3, 6, 10, 20, 40] {
            let covered = (0..CASES).filter(|_| {
                let figures: Vec<f64> = (0..n).map(|_| simulation.figure(50.0)).collect();
                estimate_of(&figures).interval.unwrap().contains(50.0)
            });
            let share = covered.count() as f64 / CASES as f64;
            assert!((0.93..=0.97).contains(&share), "{}, n = {n}: {share}", spread.name());
        }
    }
}

#[test]
fn interval_of_a_ratio_covers_it_in_93_to_97_per_cent() {
    for spread in KEPT {
        for (n, ratio) in [(3, 0.9), (6, 1.0), (12, 1.3), (30, 1.0)] {
            let found = campaigns(CASES, 0x5eed_0002, spread, 0.05, ratio, Rule { min: n, max: n });
            let share = found.percent(found.covered);
            assert!((93.0..=97.0).contains(&share), "{}, n = {n}, ratio {ratio}: {share}", spread.name());
        }
    }
}

#[test]
fn settled_comparison_interval_covers_88_per_cent() {
    for spread in KEPT {
        for (sd, apart) in [(0.02, 0.0), (0.02, 0.5), (0.05, 0.5), (0.05, 1.5)] {
            let rule = Rule { min: 10, max: 40 };
            let found = campaigns(CASES, 0x5eed_0003, spread, sd, f64::exp(apart * sd), rule);
            let share = found.percent(found.covered);
            // A comparison that stopped because of its difference shows a larger one (docs/method.md).
            assert!((88.0..=98.0).contains(&share), "{}, sd {sd}, {apart} sd apart: {share}", spread.name());
        }
    }
}

#[test]
fn same_arm_is_better_in_at_most_5_per_cent() {
    for spread in Spread::ALL {
        for max in [12, 40, 60] {
            // From so quiet that it is soon equivalent to so noisy that it runs to the cap.
            for sd in [0.005, 0.02, 0.2] {
                let found = campaigns(CASES / 4, 0x5eed_0004, spread, sd, 1.0, Rule { min: 6, max });
                let share = found.percent(found.better);
                // Blocks that resemble each other, as in the last two, are not what the rule assumes.
                let most =
                    if matches!(spread, Spread::Autocorrelated | Spread::Wandering) { 11.0 } else { 5.0 };
                assert!(share <= most, "{}, at most {max} blocks, sd {sd}: {share}", spread.name());
            }
        }
    }
}

#[test]
fn difference_at_the_margin_is_rarely_equivalent() {
    for sd in [0.01, 0.02, 0.05] {
        let found = campaigns(CASES, 0x5eed_0005, Spread::Normal, sd, 1.02, Rule { min: 6, max: 40 });
        let share = found.percent(found.equivalent);
        assert!(share <= 4.0, "sd {sd}: {share}");
    }
}

#[test]
fn one_claim_in_twenty_is_false_at_most() {
    for (place, family) in families::all().iter().enumerate() {
        let count = (2000 / family.effects.len()).clamp(20, 600);
        let found = families::simulate(count, (0x5eed_0010 + place as u128) << 32, family, families::RULE);
        // Above 5 % by no more than the simulation's own error.
        let error = (0.05 / count as f64).sqrt();
        assert!(found.false_claims <= 0.05 + 2.0 * error, "{}: {found:?}", family.name);
    }
}

#[test]
fn one_claimed_range_in_twenty_misses_at_most() {
    for (place, family) in families::weak().iter().enumerate() {
        let count = (2000 / family.effects.len()).clamp(20, 600);
        let found = families::simulate(count, (0x5eed_0020 + place as u128) << 32, family, families::RULE);
        // Above 5 % by no more than the simulation's own error.
        let most = 0.05 + 2.0 * (0.05 / count as f64).sqrt();
        assert!(found.missed.iter().all(|missed| *missed <= most), "{}: {found:?}", family.name);
        // Plain intervals do not pass: what is claimed looks larger than it is.
        let is_large = family.effects.len() > 1;
        assert!(!is_large || found.missed_plainly > most, "{}: {found:?}", family.name);
        assert!(found.exaggeration > 1.3, "{}: {found:?}", family.name);
    }
}

#[test]
fn interval_covers_alike_at_each_number_of_blocks() {
    let mut simulation = Simulation::new(0x5eed_0011, Spread::LogNormal, 0.1);
    for n in 5..=20 {
        let missed = (0..4 * CASES).filter(|_| {
            let pairs: Vec<(f64, f64)> = (0..n).map(|_| simulation.pair(0.9)).collect();
            !Paired::of(Scale::Ratio, &pairs).unwrap().interval(0.95).contains(0.9)
        });
        let share = 100.0 * missed.count() as f64 / (4 * CASES) as f64;
        assert!((4.3..=6.3).contains(&share), "n = {n}: {share} % missed");
    }
}

#[test]
fn rare_events_are_equivalent_in_at_most_5_per_cent() {
    let mut simulation = Simulation::new(0x5eed_0012, Spread::Normal, 0.1);
    let questions = [question(Metric::Loss, 0.001)];
    for min in [6, 8, 10] {
        let mut wrong = 0;
        for _ in 0..1000 {
            // One in twenty trials of the candidate loses 4 %: twice the margin on average.
            let ended = campaign(&questions, Rule { min, max: 40 }, |_| {
                (0.0, if simulation.uniform() < 0.05 { 0.04 } else { 0.0 })
            });
            wrong += usize::from(ended[0].verdict == Verdict::Equivalent);
        }
        assert!(wrong <= 50, "min {min}: {wrong} of 1000");
    }
}

#[test]
fn a_real_difference_is_found_and_the_measuring_ends() {
    let found = campaigns(CASES / 4, 0x5eed_0006, Spread::Normal, 0.02, 0.9, Rule { min: 6, max: 40 });
    assert!(found.percent(found.better) > 99.0, "{found:?}");
    assert!(found.blocks < 12 * found.campaigns, "{found:?}");
}

/// Recorded trials of all kinds, with their names.
fn all_recorded() -> impl Iterator<Item = (String, RecordedTrials)> {
    RECORDINGS.into_iter().flat_map(|(machine, slices)| {
        RecordedTrials::all(slices).into_iter().map(move |of| (format!("{machine}, {}", of.name()), of))
    })
}

#[test]
fn effect_of_slices_is_the_effect_of_trial_figures() {
    for (name, recorded) in all_recorded() {
        assert!(recorded.trials.len() >= 60, "{name}: {}", recorded.trials.len());
        for (alike, apart) in recorded.figures(1.0).iter().zip(recorded.figures(1.02)) {
            let ratios = [0, 1].map(|way| (apart[way].1 / apart[way].0) / (alike[way].1 / alike[way].0));
            assert!(ratios.iter().all(|ratio| (ratio - 1.02).abs() < 1e-4), "{name}: {ratios:?}");
            // Arms that are exchanged invert the ratio.
            let product = alike[0].1 / alike[0].0 * alike[1].1 / alike[1].0;
            assert!((product - 1.0).abs() < 1e-9, "{name}: {product}");
        }
    }
}

#[test]
fn intervals_of_recorded_trials_cover_as_they_say() {
    for (name, recorded) in all_recorded() {
        for rule in [Rule { min: 6, max: 6 }, Rule { min: 20, max: 20 }, Rule { min: 10, max: 40 }] {
            for ratio in [1.0, 1.02] {
                let found = recorded.campaigns(CASES / 4, 0x5eed_0007, 0.02, rule, ratio);
                let share = found.percent(found.covered);
                // 93 % less two standard errors of 1000 campaigns, and 88 % of what may settle early. There is no upper
                // limit: with few blocks, outlying trials make the interval wider than it need be.
                let least = if rule.min == rule.max { 91.6 } else { 88.0 };
                assert!(share >= least, "{name}, {rule:?}, ratio {ratio}: {share}");
                let wrong = if ratio == 1.0 { found.percent(found.better) } else { 0.0 };
                assert!(wrong <= 5.0, "{name}, {rule:?}: {wrong}");
            }
        }
    }
}
