//! Searches of equal devices rarely claim a difference, whatever the machine: seeded simulations, of which
//! `bench/coverage` prints more.

use stacklab_simulation::searches::{SearchedFigure, SimulatedMachine, simulate};

const CAMPAIGNS: usize = 100;

#[test]
fn equal_devices_are_rarely_called_different() {
    for (place, (name, machine)) in SimulatedMachine::ALL.into_iter().enumerate() {
        let found = simulate(
            CAMPAIGNS,
            (0x5eed_0500 + place as u128) << 32,
            machine,
            1.0,
            SearchedFigure::HighestLoad,
        );
        // Above 5 % by no more than the simulation's own error.
        assert!(found.better <= 5 + 5, "{name}: {found:?}");
    }
}

#[test]
fn devices_three_per_cent_apart_are_told_apart() {
    let (name, quiet) = SimulatedMachine::ALL[0];
    let found = simulate(CAMPAIGNS, 0x5eed_0600 << 32, quiet, 0.97, SearchedFigure::HighestLoad);
    assert!(found.better >= 95 && found.covered >= 88, "{name}: {found:?}");
}

#[test]
fn lower_bounds_of_equal_devices_rarely_differ() {
    for (place, (name, machine)) in SimulatedMachine::ALL.into_iter().enumerate() {
        let seed = (0x5eed_0700 + place as u128) << 32;
        let found = simulate(CAMPAIGNS / 2, seed, machine, 1.0, SearchedFigure::LowerBound);
        assert!(found.better <= 5, "{name}: {found:?}");
    }
    let quiet = SimulatedMachine::ALL[0].1;
    let apart = simulate(CAMPAIGNS / 2, 0x5eed_0800 << 32, quiet, 0.97, SearchedFigure::LowerBound);
    assert!(apart.better >= 47 && apart.covered >= 43, "{apart:?}");
}
