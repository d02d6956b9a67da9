//! Statistics compared with SciPy's, on the samples of `vectors/scipy.json` (made by `scripts/scipy-vectors`).

use serde_json::Value;
use stacklab_analysis::statistics::{self as ours, Moments, Student};
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
        let mean = Moments::of(&sample).map(|moments| moments.student());
        for (confidence, key) in [(0.95, "95"), (0.99, "99"), (0.999, "999")] {
            let key = format!("mean_interval_{key}");
            close_interval(&key, &case, mean.map(|mean| mean.interval(confidence)), &case[&key]);
        }
        close_p("mean_p", &case, mean.unwrap().p(), &case["mean_p"]);
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
fn equivalence_by_two_one_sided_tests() {
    for case in cases("samples") {
        let half = number(&case["margin"]);
        let margin = Interval { low: -half, high: half };
        let mean = Moments::of(&figures(&case["figures"])).unwrap().student();
        let p = mean.equivalence_p(&margin);
        close("equivalence", &case, p, &case["equivalence_p"]);
        assert_eq!(mean.interval(0.90).is_within(&margin), p <= 0.05, "{}", case["name"]);
    }
}

#[test]
fn two_samples_that_are_not_paired() {
    for case in cases("pairs") {
        let [first, second] = ["first", "second"].map(|sample| Moments::of(&figures(&case[sample])).unwrap());
        let found = ours::yuen_welch(&first, &second);
        // Welch's estimate and error; the degrees of freedom are the smaller ones of both samples.
        let of_scipy = Student { degrees_of_freedom: number(&case["welch_df"]), ..found };
        close_p("welch_p", &case, of_scipy.p(), &case["welch_p"]);
        close_interval("welch", &case, Some(of_scipy.interval(0.95)), &case["welch_interval_95"]);
        assert_eq!(found.degrees_of_freedom, first.n.min(second.n) - 1.0, "{}", case["name"]);
        assert!(found.degrees_of_freedom <= of_scipy.degrees_of_freedom + 1e-9, "{}", case["name"]);
    }
}

#[test]
fn random_effects() {
    for case in cases("random_effects") {
        let units = figures(&case["figures"]).into_iter().zip(figures(&case["errors"]));
        let found = ours::RandomEffects::of(&units.collect::<Vec<_>>()).unwrap();
        close_interval("mean", &case, Some(found.mean.interval(0.95)), &case["mean_interval_95"]);
        close("spread", &case, found.spread, &case["spread"]);
        close_interval("spread_interval", &case, Some(found.spread_interval), &case["spread_interval_95"]);
        close_interval("prediction", &case, found.prediction, &case["prediction_interval_95"]);
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
