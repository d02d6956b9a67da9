//! Claims over pairs of hosts keep their promises: seeded simulations, of which `bench/coverage` prints more.

use stacklab_model::MIN_PAIRS_OF_MEAN;
use stacklab_simulation::fleets::{FleetNoise, SimulatedFleet, Truths};
use stacklab_simulation::fleets::{
    RULES, all, families, simulate, simulate_family, simulate_skewed_fleets, skewed,
};

/// Standard errors of the simulation that a share may be off by: many are checked.
const ERRORS: f64 = 3.0;

fn most(share: f64, count: usize) -> f64 {
    share + ERRORS * (share * (1.0 - share) / count as f64).sqrt()
}

#[test]
fn interval_over_pairs_covers_and_claims_are_true() {
    for (place, fleet) in all().iter().enumerate() {
        // Comparisons that stop early take many looks.
        let count = if fleet.rule.max == fleet.rule.min { 300 } else { 1000 / (fleet.pairs * 5) };
        let found = simulate(count, (0x5eed_0030 + place as u128) << 32, fleet);
        assert!(1.0 - found.covered <= most(0.05, count), "{fleet:?}: {found:?}");
        assert!(found.better <= most(0.025, count), "{fleet:?}: {found:?}");
        assert!(found.equivalent <= most(0.025, count), "{fleet:?}: {found:?}");
        assert!(1.0 - found.spread_covered <= most(0.1, count), "{fleet:?}: {found:?}");
        assert!(fleet.pairs == 2 || 1.0 - found.predicted <= most(0.06, count), "{fleet:?}: {found:?}");
    }
}

#[test]
fn one_claim_over_pairs_in_twenty_is_false_at_most() {
    for (place, (name, effects)) in families().iter().enumerate() {
        for (number, spread) in [0.0, 0.05].into_iter().enumerate() {
            let fleet = SimulatedFleet {
                pairs: 10,
                spread,
                truths: Truths::Normal,
                noise: FleetNoise::Unequal,
                rule: RULES[0],
            };
            let seed = (0x5eed_0080 + 2 * place as u128 + number as u128) << 32;
            let [wrong, found] = simulate_family(100, seed, &fleet, effects);
            assert!(wrong <= most(0.05, 100), "{name}, {fleet:?}: {wrong}");
            assert!(spread > 0.0 || place == 0 || found > 0.5, "{name}, {fleet:?}: {found}");
        }
    }
}

#[test]
fn skewed_fleets_make_few_false_claims() {
    for (place, fleet) in skewed().iter().enumerate() {
        let count = (1500 / fleet.pairs).clamp(20, 150);
        let found = simulate_skewed_fleets(count, (0x5eed_00a0 + place as u128) << 32, fleet);
        assert!(found.wrong <= most(0.05, count), "{fleet:?}: {found:?}");
        if fleet.truths == Truths::LogNormal || fleet.pairs <= 20 {
            assert!(found.wrong_at_null <= most(0.05, count), "{fleet:?}: {found:?}");
        }
        // A fleet of eight pairs says something of the typical one; three and five do not.
        let is_silent = fleet.pairs < 7;
        assert!(!is_silent || found.claimed == 0.0, "{fleet:?}: {found:?}");
        if fleet.truths == Truths::OneOfTen && (8..MIN_PAIRS_OF_MEAN).contains(&fleet.pairs) {
            assert!(found.claimed > 0.2, "{fleet:?}: {found:?}");
        }
    }
}
