//! Two records of the same thing are seldom called different: seeded simulations, of which `bench/coverage` prints
//! more.

use stacklab_simulation::records::{all, simulate};

/// Standard errors of the simulation that a share may be off by: many are checked.
const ERRORS: f64 = 3.0;

#[test]
fn same_records_are_seldom_called_different() {
    for (place, records) in all().iter().enumerate() {
        let count = if records.figures == 1 { 1000 } else { 200 };
        let wrong = simulate(count, (0x5eed_0100 + place as u128) << 32, records);
        let most = 0.05 + ERRORS * (0.05 * 0.95 / count as f64).sqrt();
        assert!(wrong <= most, "{records:?}: {wrong}");
    }
}
