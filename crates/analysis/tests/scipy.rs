//! Statistics compared with SciPy's, on the samples of `vectors/scipy.json` (made by `scripts/scipy-vectors`).

use serde_json::Value;
use stacklab_analysis::statistics as ours;
use stacklab_model::Interval;

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors/scipy.json")).expect("the vectors are JSON")
}

fn cases(of: &str) -> Vec<Value> {
    let cases = vectors()[of].as_array().expect("a list of cases").clone();
    assert!(!cases.is_empty(), "{of}");
    cases
}

fn figures(of: &Value) -> Vec<f64> {
    of.as_array().expect("a list of figures").iter().map(number).collect()
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_else(|| panic!("{of} is no number"))
}

/// Within 1e-9 of the expected figure, or of one where that is smaller.
fn close(what: &str, case: &Value, found: f64, expected: &Value) {
    let expected = number(expected);
    let far = (found - expected).abs() / expected.abs().max(1.0);
    assert!(far < 1e-9, "{what} of {}: {found}, SciPy has {expected}", case["name"]);
}

/// p-values are compared relatively: within 1e-7 of their own size.
fn close_p(what: &str, case: &Value, found: f64, expected: &Value) {
    close(what, case, found, expected);
    let expected = number(expected);
    assert!((found / expected - 1.0).abs() < 1e-7, "{what} of {}: {found}, {expected}", case["name"]);
}

fn close_interval(what: &str, case: &Value, found: Option<Interval>, expected: &Value) {
    match found {
        Some(found) => {
            close(what, case, found.low, &expected[0]);
            close(what, case, found.high, &expected[1]);
        }
        None => assert!(expected.is_null(), "{what} of {}: none, SciPy has {expected}", case["name"]),
    }
}

#[test]
fn the_vectors_say_what_made_them() {
    let vectors = vectors();
    assert!(vectors["scipy"].is_string() && vectors["numpy"].is_string() && vectors["python"].is_string());
}

#[test]
fn means_and_their_intervals() {
    for case in cases("samples") {
        let sample = figures(&case["figures"]);
        for (confidence, key) in [(0.95, "95"), (0.99, "99"), (0.999, "999")] {
            let key = format!("mean_interval_{key}");
            close_interval(&key, &case, ours::mean_interval(&sample, confidence), &case[&key]);
        }
        close_p("mean_p", &case, ours::mean_p(&sample).unwrap(), &case["mean_p"]);
    }
}

#[test]
fn medians_and_the_ranks_of_their_intervals() {
    for case in cases("samples") {
        let sample = figures(&case["figures"]);
        close("median", &case, ours::median(&sample).unwrap(), &case["median"]);
        let found = ours::median_interval(&sample, 0.95).map(|found| vec![found.ranks.0, found.ranks.1]);
        assert_eq!(serde_json::to_value(found).unwrap(), case["median_ranks"], "{}", case["name"]);
    }
}

#[test]
fn percentiles_by_nearest_rank() {
    for case in cases("samples") {
        let sample = figures(&case["figures"]);
        for (p, key) in [(0.25, "p25"), (0.9, "p90")] {
            close(key, &case, ours::nearest_rank(&sample, p).unwrap(), &case[key]);
        }
    }
    for pair in cases("fewest_for") {
        assert_eq!(ours::fewest_for(number(&pair[0])) as f64, number(&pair[1]));
    }
}

#[test]
fn signed_ranks() {
    let mut compared = 0;
    for case in cases("samples") {
        let expected = &case["signed_rank"];
        if expected.is_null() {
            continue;
        }
        let found = ours::signed_rank(&figures(&case["figures"])).unwrap();
        close("positive", &case, found.positive, &expected["positive"]);
        close_p("p", &case, found.p, &expected["p"]);
        assert_eq!(found.n as f64, number(&expected["n"]));
        compared += 1;
    }
    assert!(compared >= 10, "{compared}");
}

#[test]
fn hodges_and_lehmanns_estimate_and_interval() {
    for case in cases("samples") {
        let (found, expected) =
            (ours::hodges_lehmann(&figures(&case["figures"]), 0.95).unwrap(), &case["hodges_lehmann"]);
        close("estimate", &case, found.estimate, &expected["estimate"]);
        close_interval("interval", &case, found.interval, &expected["interval"]);
    }
}

#[test]
fn the_bootstrap_interval_of_the_same_resamples() {
    for case in cases("samples") {
        let expected = &case["bca"];
        let (resamples, seed) = (number(&expected["resamples"]) as usize, number(&expected["seed"]) as u64);
        let found = ours::bca(&figures(&case["figures"]), resamples, 0.95, seed);
        close_interval("bca", &case, found, &expected["interval"]);
    }
}

#[test]
fn equivalence_by_two_one_sided_tests() {
    for case in cases("samples") {
        let half = number(&case["margin"]);
        let margin = Interval { low: -half, high: half };
        let found = ours::equivalence(&figures(&case["figures"]), &margin, 1.0).unwrap();
        close("equivalence", &case, found.p, &case["equivalence_p"]);
        assert_eq!(found.equivalent, found.p <= 0.05, "{}", case["name"]);
    }
}

#[test]
fn trends_and_autocorrelation() {
    for case in cases("samples") {
        let sample = figures(&case["figures"]);
        let found = ours::trend(&sample).unwrap();
        close("tau", &case, found.tau, &case["tau"]);
        close_p("trend_p", &case, found.p, &case["trend_p"]);
        match ours::autocorrelation(&sample) {
            Some(found) => close("lag1", &case, found.lag1, &case["lag1"]),
            None => assert!(sample.len() < 8, "{}", case["name"]),
        }
    }
}

#[test]
fn two_samples_that_are_not_paired() {
    for case in cases("pairs") {
        let (first, second) = (figures(&case["first"]), figures(&case["second"]));
        let welch = ours::welch(&first, &second).unwrap();
        close_p("welch_p", &case, welch.p, &case["welch_p"]);
        close("welch_df", &case, welch.degrees_of_freedom, &case["welch_df"]);
        close_interval("welch", &case, Some(welch.interval(0.95)), &case["welch_interval_95"]);
        let rank = ours::mann_whitney(&first, &second).unwrap();
        close("u", &case, rank.u, &case["u"]);
        close_p("mann_whitney_p", &case, rank.p, &case["mann_whitney_p"]);
        close("shift", &case, ours::shift(&first, &second, 0.95).unwrap().estimate, &case["shift"]);
        close("delta", &case, ours::cliffs_delta(&first, &second).unwrap(), &case["cliffs_delta"]);
    }
}

#[test]
fn friedmans_test() {
    for case in cases("friedman") {
        let blocks: Vec<Vec<f64>> = case["blocks"].as_array().unwrap().iter().map(figures).collect();
        let found = ours::friedman(&blocks).unwrap();
        close("statistic", &case, found.statistic, &case["statistic"]);
        close_p("p", &case, found.p, &case["p"]);
    }
}

#[test]
fn adjusted_p_values() {
    let vectors = vectors();
    let case = &vectors["multiple"];
    let p = figures(&case["p"]);
    for (found, key) in [(ours::holm(&p), "holm"), (ours::benjamini_hochberg(&p), "benjamini_hochberg")] {
        for (found, expected) in found.iter().zip(figures(&case[key])) {
            assert!((found - expected).abs() < 1e-12, "{key}: {found}, {expected}");
        }
    }
}

#[test]
fn warm_ups() {
    for case in cases("mser5") {
        let found = match ours::mser5(&figures(&case["series"])) {
            ours::Warmup::Cut(cut) => Value::from(cut),
            ours::Warmup::Unsettled => Value::Null,
            ours::Warmup::TooShort => panic!("{} is long enough", case["name"]),
        };
        assert_eq!(found, case["cut"], "{}", case["name"]);
    }
}
