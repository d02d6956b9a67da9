//! The A/A control beside the comparisons, in every format.

use crate::page::tests as page;
use crate::tests::fixtures::{cell, control, findings, with_controls};
use crate::tests::rows::CsvRows;
use crate::{OutputFormat, WIDTH, Width, brief, compact, render};
use stacklab_model::{Factor, Family, Findings, Metric, Transport, Verdict};

/// The line that begins so, with single spaces.
fn line(text: &str, start: &str) -> String {
    let found = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut found = found.filter(|line| line.starts_with(start));
    found.next().unwrap_or_else(|| panic!("no line begins with `{start}`: {text}"))
}

#[test]
fn control_is_below_its_metric_in_the_first_table() {
    let text = brief(&with_controls(), Width::of_terminal(100));
    let table = text.split("size in bytes").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows: Vec<String> =
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).skip(2).collect();
    assert_eq!(
        rows,
        [
            "throughput, TCP ? IPv4 8.4 % =",
            "control IPv4 vs IPv4 +0.1 ± 0.6 %",
            "loss, UDP IPv4 2.1 pt -",
            "control IPv4 vs IPv4 0",
            "receiver CPU, UDP ?",
            "RTT, UDP IPv4 5.5 %",
            "control IPv4 vs IPv4 -0.2 ± 0.4 %",
        ]
    );
    let legend = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        legend.contains("; control: one arm measured against itself")
            && legend.contains("no verdict depends on it")
    );
    assert!(!brief(&findings(), WIDTH).contains("control"), "none was measured");
}

#[test]
fn table_of_a_metric_has_the_control_and_its_width() {
    let text = render(&with_controls(), OutputFormat::Text, WIDTH);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // [0.9948, 1.0072] and [0.9939, 1.0021], rounded up.
    assert!(flat.contains("margin 2 % control: IPv4 vs IPv4 at 64 B, at most 0.8 % apart"), "{text}");
    assert!(flat.contains("margin 2 % control: IPv4 vs IPv4 at 128 B, at most 0.7 % apart"), "{text}");
    assert!(flat.contains("IPv4 vs IPv4 at 128 B, without an event in either arm"), "{text}");
    let table = text.split("\nthroughput, TCP: IPv6 vs IPv4\n").nth(1).unwrap();
    assert_eq!(line(table, "IPv4 vs IPv4"), "IPv4 vs IPv4 21.50 ± 0.21 - +0.10 [-0.52, +0.72] 8 control");
    // No event, no difference: an interval without width would claim too much.
    let table = text.split("\nloss, UDP: IPv6 vs IPv4\n").nth(1).unwrap();
    assert_eq!(line(table, "IPv4 vs IPv4"), "IPv4 vs IPv4 0.00 ± 0.00 - - 8 control");
}

#[test]
fn control_is_in_every_format() {
    let findings = with_controls();
    for format in [OutputFormat::Text, OutputFormat::Markdown, OutputFormat::Latex] {
        let text = render(&findings, format, WIDTH);
        assert!(text.contains("control IPv4 vs IPv4"), "{format:?}: {text}");
        assert!(text.contains("+0.10 [-0.52, +0.72]"), "{format:?}: {text}");
        assert!(text.contains("at 64 B, at most 0.8"), "{format:?}: {text}");
    }
    let json = render(&findings, OutputFormat::Json, WIDTH);
    assert_eq!(serde_json::from_str::<Findings>(&json).unwrap(), findings);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let check = &json["same_arm"][0];
    assert_eq!((&check["cell"]["family"], &check["cell"]["size"]), (&"ipv4".into(), &64.into()));
    assert_eq!(check["effect"]["interval95"]["high"], 1.001 + 0.0062);
}

#[test]
fn csv_has_the_control_as_two_replicas() {
    let text = render(&with_controls(), OutputFormat::Csv, WIDTH);
    let rows = CsvRows::read(&text);
    let controls = rows.find("verdict", "control");
    assert_eq!(controls.len(), 3);
    let expected = [
        ("factor", "replica"),
        ("metric", "throughput"),
        ("transport", "tcp"),
        ("family", "ipv4"),
        ("size", "64"),
        ("replica", ""),
        ("baseline", "self 1"),
        ("candidate", "self 2"),
        ("margin", ""),
        ("baseline_mean", "21.5"),
        ("candidate_n", "8"),
        ("effect_scale", "ratio"),
        ("pairs", "8"),
        ("effect", "1.001"),
        ("p", "0.6"),
        ("better", ""),
    ];
    for (name, value) in expected {
        assert_eq!(rows.at(controls[0], name), value, "{name}");
    }
    assert_eq!(rows.at(controls[0], "low95").parse(), Ok(1.001 - 0.0062));
}

#[test]
fn compact_has_a_control_for_each_metric() {
    let mut found = with_controls();
    found.comparisons.retain(|one| one.question.metric == Metric::Rtt);
    let text = compact(&found, Width::of_terminal(120));
    assert_eq!(
        line(&text, "RTT, IPv4 vs IPv4"),
        "RTT, IPv4 vs IPv4 45.1 ± 0.5 us - -0.2 [-0.6, +0.2] % control"
    );
    assert!(!text.contains("throughput"), "{text}");
}

#[test]
fn control_of_many_levels_is_one_row() {
    let mut found = findings();
    let first = found.comparisons.remove(0);
    found.comparisons.clear();
    found.cells.clear();
    for mechanism in ["6in4", "gre4", "nat64", "siit"] {
        let mut row = first.clone();
        row.question.factor = Factor::Mechanism;
        row.question.candidate = row.question.baseline.clone();
        row.question.baseline.set(Factor::Mechanism, "native").unwrap();
        row.question.candidate.set(Factor::Mechanism, mechanism).unwrap();
        row.verdict = Verdict::Better("native".into());
        found.comparisons.push(row);
    }
    let mut native = control(Transport::Tcp, 128, Metric::Throughput, 57.3, (1.001, 0.0062));
    native.cell = cell(Transport::Tcp, Family::Ipv4, 128);
    native.cell.set(Factor::Mechanism, "native").unwrap();
    found.same_arm = vec![native];
    let text = brief(&found, WIDTH);
    assert_eq!(line(&text, "control native"), "control native vs native +0.1 ± 0.6 %");
    assert_eq!(text.matches("native vs native").count(), 1, "{text}");
    let text = render(&found, OutputFormat::Text, WIDTH);
    assert!(line(&text, "native vs native").ends_with(" 8 control"), "{text}");
}

#[test]
fn page_has_the_control_below_its_row() {
    let page = serde_json::to_value(page::of(&with_controls())).unwrap();
    let rows = page["matrix"]["rows"].as_array().unwrap();
    let shown: Vec<[&str; 2]> = rows
        .iter()
        .flat_map(|row| row["controls"].as_array().unwrap().iter().map(move |control| (row, control)))
        .map(|(row, control)| [row["label"].as_str().unwrap(), control["shown"].as_str().unwrap()])
        .collect();
    assert_eq!(
        shown,
        [
            ["throughput, TCP", "+0.1 [-0.5, +0.7] %"],
            ["loss, UDP", "none seen"],
            ["RTT, UDP", "-0.2 [-0.6, +0.2] %"],
        ]
    );
    let control = &rows[0]["controls"][0];
    assert_eq!((&control["arms"], &control["size"]), (&"IPv4 vs IPv4".into(), &64.into()));
    assert_eq!((&control["sign"], &control["whole"]["high"]), (&"+0.1 ± 0.6 %".into(), &0.72.into()));
}

#[test]
fn control_without_a_useful_interval_says_so() {
    let mut found = with_controls();
    let interval = &mut found.same_arm[0].effect.interval95;
    interval.low = 0.01;
    interval.high = 52.0;
    let text = render(&found, OutputFormat::Text, WIDTH);
    assert_eq!(line(&text, "control IPv4"), "control IPv4 vs IPv4 too wide");
    assert!(text.contains("control: IPv4 vs IPv4 at 64 B, an interval that is too wide"), "{text}");
}
