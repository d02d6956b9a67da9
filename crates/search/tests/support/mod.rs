//! Goals and results as files have them.

use serde_json::Value;
use stacklab_search::controller::Found;
use stacklab_search::goal::{Goal, PPM};
use std::time::Duration;

fn ppm(value: &Value) -> u32 {
    (value.as_f64().unwrap() * f64::from(PPM)).round() as u32
}

fn seconds(of: &Value, key: &str) -> Duration {
    Duration::from_secs_f64(of[key].as_f64().unwrap())
}

pub(crate) fn goal(of: &Value) -> Goal {
    Goal {
        loss_ratio: ppm(&of["loss_ratio"]),
        exceed_ratio: ppm(&of["exceed_ratio"]),
        width: of["width"].as_f64().unwrap(),
        initial_trial: seconds(of, "initial_trial_s"),
        final_trial: seconds(of, "final_trial_s"),
        duration_sum: seconds(of, "duration_sum_s"),
        coarser_targets: of["coarser_targets"].as_u64().unwrap() as u32,
        expansion: of["expansion"].as_u64().unwrap() as u32,
    }
}

fn is_close(found: Option<f64>, expected: &Value) -> bool {
    match (found, expected.as_f64()) {
        (Some(found), Some(expected)) => (found / expected - 1.0).abs() < 1e-9,
        (found, expected) => found.is_none() && expected.is_none(),
    }
}

/// Panics where bounds or the conditional throughput differ.
pub(crate) fn compare_result(name: &str, found: &Found, [lower, upper]: [&Value; 2], result: &Value) {
    assert!(is_close(found.lower, lower), "{name}: {found:?}");
    assert!(is_close(found.upper, upper), "{name}: {found:?}");
    assert!(is_close(found.conditional_throughput, &result["conditional_throughput"]), "{name}: {found:?}");
}
