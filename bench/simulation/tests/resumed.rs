//! Campaigns that are interrupted and resumed keep the promises of one that is not: seeded simulations, of which
//! `bench/coverage` prints more.

use stacklab_simulation::resumed::{HourChange, Resumed, Rig, all, simulate};

#[test]
fn claims_of_resumed_campaigns_are_rarely_false() {
    for (place, resumed) in all().iter().enumerate() {
        let count = (60 / resumed.effects.len()).clamp(4, 30);
        let found = simulate(count, 0x5eed_0060 + place as u64, resumed);
        // Above 5 % by no more than the simulation's own error.
        let most = 0.05 + 2.0 * (0.05 / count as f64).sqrt();
        assert!(found.false_claims <= most && found.false_before <= most, "{}: {found:?}", resumed.name);
        // What a report has claimed stays claimed.
        assert_eq!(found.withdrawn, 0, "{}", resumed.name);
        if resumed.effects.len() > 1 && resumed.effects[0] > 0.0 {
            assert!(found.settled_before > 0.05 && found.claimed > 0.4, "{}: {found:?}", resumed.name);
        }
    }
}

#[test]
fn an_interruption_alone_changes_no_verdict() {
    for resumed in all().iter().filter(|resumed| resumed.effects.len() <= 21) {
        let rig = Rig::of(&Resumed { change: HourChange::Nothing, ..resumed.clone() });
        let third = rig.most_trials() / 3;
        for seed in 0..3 {
            let whole = rig.run(seed, &[]);
            let resumed_twice = rig.run(seed, &[third / 2, third]);
            assert_eq!(whole.verdicts.last(), resumed_twice.verdicts.last(), "{}, {seed}", resumed.name);
            assert_eq!(whole.blocks, resumed_twice.blocks, "{}, {seed}", resumed.name);
        }
    }
}
