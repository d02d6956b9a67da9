//! Campaigns that tempt the rule keep its promise: seeded simulations, of which `bench/coverage` prints more.

use stacklab_simulation::stress::{Until, all, campaigns, simulate, slow_parts};

#[test]
fn tempted_claims_are_rarely_false() {
    for (place, stress) in all().iter().enumerate() {
        let count = campaigns(600, stress);
        let found = simulate(count, (0x5eed_0050 + place as u128) << 32, stress);
        // Above 5 % by no more than the simulation's own error.
        let error = (0.05 / count as f64).sqrt();
        assert!(found.false_claims <= 0.05 + 2.0 * error, "{}: {found:?}", stress.name);
        if let Until::Precise(_) = stress.until {
            assert!(found.covered >= 0.93 - error, "{}: {found:?}", stress.name);
        }
        if let Until::TimeIsUp(..8) = stress.until {
            assert_eq!(found.claimed, 0.0, "{}", stress.name);
        }
    }
}

#[test]
fn slow_parts_are_equivalent_only_where_unseen() {
    for (place, stress) in slow_parts().iter().enumerate() {
        let found = simulate(600, (0x5eed_00a0 + place as u128) << 32, stress);
        let share = 0.05 * (place + 1) as f64;
        // None of fourteen blocks, which are the fewest, is of the part.
        let unseen = (1.0 - share).powi(14);
        assert!(found.equivalent <= unseen + 0.05, "{}: {found:?}", stress.name);
        let error = (0.05_f64 / 600.0).sqrt();
        assert!(found.false_claims <= 0.05 + 2.0 * error, "{}: {found:?}", stress.name);
    }
}
