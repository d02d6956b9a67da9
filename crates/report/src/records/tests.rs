//! Two records compared.

use super::*;
use crate::WIDTH;
use crate::tests::fixtures::{cell, estimate as estimated, no_estimate};
use crate::tests::rows::CsvRows;
use stacklab_model::{
    Change, CpuScope, Family, Interval, Metric, MetricDiff, OtherLoad, Scale, Transport, Unpaired,
};

const LOADS: RecordLoads = RecordLoads {
    a: OtherLoad { disturbed: 0, runs: 12, share: 0.0 },
    b: OtherLoad { disturbed: 1, runs: 12, share: 0.0 },
};

fn record(name: &str, rate: &str) -> RecordFacts {
    RecordFacts {
        name: name.to_owned(),
        title: "a small study".to_owned(),
        version: "0.1.0".to_owned(),
        started_unix_ns: 1_700_000_000_000_000_000,
        seed: 7,
        testbed_description: format!("two namespaces, {rate}"),
        cpu_scope: CpuScope::Shared,
        valid_runs: 12,
        invalid_runs: 1,
    }
}

fn row(family: Family, means: [f64; 2], change: Change) -> MetricDiff {
    let ratio = means[1] / means[0];
    MetricDiff {
        cell: cell(Transport::Udp, family, 128),
        metric: Metric::Throughput,
        margin: 0.02,
        a: estimated(means[0], 0.5),
        b: estimated(means[1], 0.5),
        effect: Some(Unpaired {
            scale: Scale::Ratio,
            estimate: ratio,
            error: 0.003,
            degrees_of_freedom: 20.0,
            interval95: Interval { low: ratio - 0.006, high: ratio + 0.006 },
            claimed_interval: Some(Interval { low: ratio - 0.008, high: ratio + 0.008 }),
            p: 0.0001,
            adjusted_p: 0.0002,
            equivalence_p: 0.9,
            adjusted_equivalence_p: 0.95,
        }),
        fitted: Some(means),
        lacking: None,
        fails: change == Change::Worse,
        change,
    }
}

pub(crate) fn found() -> RecordDiff {
    let mut gone = row(Family::Ipv6, [90.0, 90.0], Change::Nothing("B: not measured".to_owned()));
    (gone.effect, gone.b, gone.fails) = (None, no_estimate("not measured"), true);
    RecordDiff {
        a: record("a.stacklab", "100 Mbit/s"),
        b: record("b.stacklab", "50 Mbit/s"),
        differences: vec![Apart {
            what: "testbed.rate".to_owned(),
            a: "100 Mbit/s".to_owned(),
            b: "50 Mbit/s".to_owned(),
        }],
        only_a: OnlyInOne { cells: vec![cell(Transport::Tcp, Family::Ipv4, 64)], metrics: vec![] },
        only_b: OnlyInOne { cells: vec![], metrics: vec![Metric::Jitter] },
        allowed: Some(0.05),
        figures: vec![row(Family::Ipv4, [90.0, 45.0], Change::Worse), gone],
    }
}

#[test]
fn text_and_markdown_tell_differences_and_omissions() {
    let [text, markdown] =
        [OutputFormat::Text, OutputFormat::Markdown].map(|format| between(&found(), &LOADS, format, WIDTH));
    for part in [
        "B against A: a small study",
        "Of 2 figures, 1 worse, 1 without figures in one of them.",
        "other load disturbed 0 of 12 runs",
        "other load disturbed 1 of 12 runs",
        "testbed.rate: 100 Mbit/s in A, 50 Mbit/s in B",
        "-50.0 [-50.6, -49.4]",
        "B worse (not allowed)",
        "nothing [",
        "B: not measured",
        "only A has 1 cell: IPv4 TCP 64 B",
        "only B has 1 metric: jitter",
        "throughput, UDP: B worse at 1 of 2 (by 49.2 to 50.8 %), nothing to compare at 1 of 2",
        "margin 2 %",
        "< 0.001",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
        assert!(markdown.contains(part), "no `{part}` in\n{markdown}");
    }
    assert!(text.contains("2 figures of B worse by more than 5 %, or gone: throughput IPv4 UDP"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
}

#[test]
fn load_of_one_record_is_warned_of() {
    let loads = RecordLoads { b: OtherLoad { disturbed: 7, runs: 12, share: 0.0 }, ..LOADS };
    let warning = "other load disturbed 7 of 12 runs in B and 0 of 12 runs in A";
    for format in [OutputFormat::Text, OutputFormat::Markdown] {
        let text = between(&found(), &loads, format, WIDTH);
        assert!(text.contains(&format!("Not comparable: {warning}")), "{text}");
        assert!(!between(&found(), &LOADS, format, WIDTH).contains("Not comparable"));
    }
    let loaded = parse_json(&loads);
    assert!(loaded["warning"].as_str().unwrap().starts_with(warning), "{loaded}");
    assert_eq!(loaded["loads"]["b"], serde_json::json!({ "disturbed": 7, "runs": 12, "share": 0.0 }));
    assert_eq!(parse_json(&LOADS).get("warning"), None);
}

fn parse_json(loads: &RecordLoads) -> serde_json::Value {
    serde_json::from_str(&between(&found(), loads, OutputFormat::Json, WIDTH)).unwrap()
}

#[test]
fn too_few_runs_are_the_reason() {
    let mut found = found();
    found.figures[0].change = Change::Inconclusive;
    let text = between(&found, &LOADS, OutputFormat::Text, WIDTH);
    assert!(text.contains("inconclusive") && !text.contains("too few"), "{text}");
    found.figures[0].b.n = 5;
    let text = between(&found, &LOADS, OutputFormat::Text, WIDTH);
    assert!(text.contains("too few [") && text.contains("fewer than 6 runs"), "{text}");
}

#[test]
fn records_of_one_place_are_said_to_be() {
    let alike = RecordDiff { differences: vec![], allowed: None, ..found() };
    let text = between(&alike, &LOADS, OutputFormat::Text, WIDTH);
    assert!(text.contains("none recorded") && !text.contains("more than"), "{text}");
}

#[test]
fn csv_has_a_row_for_each_figure_and_is_unrounded() {
    let found = found();
    let text = between(&found, &LOADS, OutputFormat::Csv, WIDTH);
    let rows = CsvRows::read(&text);
    assert_eq!(rows.lines.len(), 2);
    assert_eq!(rows.at(0, "effect").parse(), Ok(0.5));
    assert_eq!(rows.at(0, "a_mean").parse(), Ok(90.0));
    assert_eq!([rows.at(0, "verdict"), rows.at(0, "fails")], ["worse", "yes"]);
    assert_eq!([rows.at(1, "effect"), rows.at(1, "b_mean")], ["", ""]);
    assert_eq!([rows.at(1, "reason"), rows.at(1, "family")], ["B: not measured", "ipv6"]);
}

#[test]
fn csv_texts_are_no_formulas_unless_raw() {
    let mut found = found();
    found.figures[1].change = Change::Nothing("=1+x".to_owned());
    let text = between(&found, &LOADS, OutputFormat::Csv, WIDTH);
    assert!(text.contains("'=1+x") && !text.contains(",=1+x"), "{text}");
    assert!(between(&found, &LOADS, OutputFormat::RawCsv, WIDTH).contains(",=1+x"));
}

#[test]
fn json_reads_back() {
    let found = found();
    let text = between(&found, &LOADS, OutputFormat::Json, WIDTH);
    assert!(text.starts_with("{\n  \"format\": 1,"), "{text}");
    assert_eq!(serde_json::from_str::<RecordDiff>(&text).unwrap(), found);
}
