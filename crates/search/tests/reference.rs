//! The program of RFC 9971's authors, MLRsearch 1.2.1, on random devices: the same trials in the same order, and the
//! same bounds. Needs Python and the package, which `scripts/setup test-all` puts into target/tools.

mod support;

use serde_json::Value;
use stacklab_search::controller::Search;
use std::path::Path;
use std::process::Command;
use support::{compare_result, goal};

const SEEDS: &str = "5";
/// Five lists of goals, four kinds of devices.
const SEARCHES: usize = 100;

/// What the reference asked and found.
fn run_reference() -> Vec<Value> {
    let of_crate = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tools = of_crate.join("../../target/tools/mlrsearch");
    assert!(tools.exists(), "{} is missing: scripts/setup test-all", tools.display());
    let mut python = Command::new("python3");
    python.arg(of_crate.join("tests/reference.py")).arg(SEEDS).env("PYTHONPATH", tools);
    let output = python.output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn random_devices_are_searched_alike() {
    let searches = run_reference();
    assert_eq!(searches.len(), SEARCHES);
    for expected in searches {
        let name = expected["name"].as_str().unwrap();
        let goals = expected["goals"].as_array().unwrap().iter().map(goal).collect();
        let loads = ["min_load", "max_load"].map(|key| expected[key].as_f64().unwrap());
        let mut search = Search::new(goals, loads[0], loads[1]).unwrap();
        for (number, trial) in expected["trials"].as_array().unwrap().iter().enumerate() {
            let request = search.next_trial().unwrap_or_else(|| panic!("{name}: only {number} trials"));
            let seconds = trial[0].as_f64().unwrap();
            let load = trial[1].as_f64().unwrap();
            assert!((request.duration.as_secs_f64() - seconds).abs() < 1e-6, "{name}: trial {}", number + 1);
            assert!((request.load / load - 1.0).abs() < 1e-9, "{name}: trial {}", number + 1);
            let offered = trial[2].as_u64().unwrap();
            search.add((load * seconds) as u64, offered, trial[3].as_u64().unwrap());
        }
        assert_eq!(search.next_trial(), None, "{name}: more trials");
        for (found, result) in search.results().iter().zip(expected["results"].as_array().unwrap()) {
            compare_result(name, found, [&result["lower"], &result["upper"]], result);
        }
    }
}
