//! Arms that do not differ are rarely called different, whatever their noise: seeded simulations, of which
//! `bench/coverage` prints more.

use stacklab_simulation::families::RULE;
use stacklab_simulation::nulls::{Noise, campaigns, paths, simulate, simulate_path};

fn most(count: usize) -> f64 {
    // Above 5 % by no more than the simulation's own error: many are checked.
    0.05 + 2.5 * (0.05 / count as f64).sqrt()
}

#[test]
fn claims_without_a_difference_are_rarely_false() {
    for (place, (name, noise)) in Noise::ALL.into_iter().enumerate() {
        if noise.is_beyond_promise() {
            continue;
        }
        for comparisons in [1, 21] {
            let count = (300 / comparisons).max(20);
            let seed = (0x5eed_0200 + 32 * place as u128 + comparisons as u128) << 32;
            let found = simulate(count, seed, noise, comparisons, RULE);
            assert!(found.false_claims <= most(count), "{name}, {comparisons}: {found:?}");
        }
    }
}

#[test]
fn no_more_campaigns_than_asked_for() {
    assert_eq!([campaigns(10, 60), campaigns(400, 60), campaigns(400, 1)], [10, 33, 400]);
}

#[test]
fn paths_without_a_difference_have_few_claims() {
    for (place, (name, noise, figures, rounds, look)) in paths().into_iter().enumerate() {
        if noise.is_beyond_promise() {
            continue;
        }
        let count = campaigns(200, figures);
        let wrong = simulate_path(count, (0x5eed_0300 + place as u128) << 32, noise, figures, rounds, look);
        assert!(wrong <= most(count), "{name}, {figures} figures, {rounds} rounds: {wrong}");
    }
}
