//! Published studies: looked up, audited, and replicated within seconds; the verdicts are recomputed from the record.

use crate::support;

use serde_json::Value;
use stacklab_model::{Family, Metric, RunRecord, Services, Transport};
use std::collections::BTreeMap;
use support::program::{Outcome, Program, code, require_root};
use support::records::{figure, runs};

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

#[test]
fn the_studies_are_listed_with_their_counts() {
    let outcome = Program::new().run(&["reference", "list"]).expect(code::DONE);
    for line in [
        ["soorty2013linux", "20", "21", "10"],
        ["sarkar2013winlin", "4", "3", "4"],
        ["ogunleye2016", "260", "9", "5"],
        ["kolahi2011wlan", "54", "12", "7"],
        ["kolahi2009lan", "122", "16", "5"],
    ] {
        let found = outcome.stdout.lines().find(|row| row.starts_with(line[0])).unwrap_or_default();
        assert_eq!(found.split_whitespace().take(4).collect::<Vec<_>>(), line, "{outcome}");
    }
}

#[test]
fn a_study_is_shown_as_its_tables() {
    let program = Program::new();
    let shown = program.run(&["reference", "show", "ogunleye2016"]).expect(code::DONE).stdout;
    assert!(shown.contains("Figure 7: throughput, Mbit/s, tcp, configured-tunnel"), "{shown}");
    let row = ["1536", "84.07", "84.0"];
    assert!(shown.lines().any(|line| line.split_whitespace().collect::<Vec<_>>() == row), "{shown}");
    program
        .run(&["reference", "show", "kolahi2009wlan"])
        .expect(code::REQUEST)
        .says(&["there is no published study `kolahi2009wlan`", "did you mean `kolahi"]);
}

#[test]
fn stated_differences_are_audited_by_four_formulas() {
    let program = Program::new();
    let rows = json(&program.run(&["reference", "audit", "--format", "json"]).expect(code::DONE));
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 61);
    let none = rows.iter().filter(|row| row["reproduced_by"].is_null()).count();
    assert_eq!(none, 22);
    for row in rows {
        let fields: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            fields,
            [
                "consistent_with_rounding",
                "location",
                "metric",
                "published",
                "recomputed",
                "reproduced_by",
                "source"
            ]
        );
        if let Some(formula) = row["reproduced_by"].as_str() {
            let apart = row["recomputed"][formula].as_f64().unwrap() - row["published"].as_f64().unwrap();
            assert!(apart.abs() <= 0.5, "{row}");
        }
    }
    let text = program.run(&["reference", "audit"]).expect(code::DONE).stdout;
    assert!(text.contains(&format!("{} of 61 claims are reproduced", 61 - none)), "{text}");
    let mut rounding = 0;
    for row in rows {
        rounding += u32::from(!row["consistent_with_rounding"].as_array().unwrap().is_empty());
    }
    assert_eq!(rounding, 10);
    assert!(text.contains("10 are consistent with rounding"), "{text}");
    assert!(text.contains("12 are not reproduced"), "{text}");
}

/// The mean of the log ratios of IPv4 over IPv6 between hosts with the same system: geometric over sizes within each
/// block, as a ratio.
fn ratio(runs: &[RunRecord], transport: Transport, metric: Metric, size: u32) -> f64 {
    let mut blocks: BTreeMap<u32, f64> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.trial.probe == metric.probe()) {
        let cell = &run.trial.cell;
        if (cell.transport, cell.size) == (transport, size) && Services::of(cell).is_empty() {
            let sign = if cell.family == Family::Ipv4 { 1.0 } else { -1.0 };
            *blocks.entry(run.trial.block).or_default() += sign * figure(run, metric).ln();
        }
    }
    (blocks.values().sum::<f64>() / blocks.len() as f64).exp()
}

/// The expected verdict of a finding from its parts. Each finding holds for all sizes; one part that Holm refutes
/// refutes it.
fn outcome_of(finding: &Value) -> &'static str {
    const OPEN: &str = "no larger than the margin, direction open";
    let parts = finding["parts"].as_array().unwrap();
    let count = |outcome: &str| parts.iter().filter(|part| part["outcome"] == outcome).count();
    let hold = count("holds");
    let negligible = count("holds, negligible");
    let open = count(OPEN);
    if count("the other way") > 0 {
        "the other way"
    } else if count("larger than stated") > 0 {
        "larger than stated"
    } else if hold + negligible == parts.len() {
        if hold > 0 { "holds" } else { "holds, negligible" }
    } else if negligible + open == parts.len() {
        OPEN
    } else {
        "cannot tell"
    }
}

/// Checks the verdict of a part by its intervals of arm a over arm b. An end of the 90 % interval is a one-sided test
/// at 5 %. Ten standard errors are beyond 0.5 %, Holm's strictest level for ten parts.
fn check_outcome(id: &str, part: &Value) {
    let [low, high] = ["low", "high"].map(|end| part["effect"]["interval90"][end].as_f64().unwrap());
    let above = low > 1.0;
    let below = high < 1.0;
    let margin = part["margin"].as_f64().unwrap();
    let estimate = part["effect"]["estimate"].as_f64().unwrap();
    let error = part["effect"]["error"].as_f64().unwrap();
    // Student's quantile at two degrees of freedom is 9.9.
    let surely_above = estimate.ln() > 10.0 * error;
    let surely_below = -estimate.ln() > 10.0 * error;
    let is_enough = part["effect"]["pairs"].as_u64().unwrap() >= 14;
    let inside = is_enough && low >= 1.0 / (1.0 + margin) && high <= 1.0 + margin;
    let outcome = part["outcome"].as_str().unwrap();
    let (claimed, opposite, surely_opposite) = match id {
        "L1" | "L3" => (above, below, surely_below),
        "L4" | "L5" => (below, above, surely_above),
        // Equal in both: it holds inside the margin, and is refuted beyond it.
        "L2" => {
            assert_eq!(outcome == "holds", inside, "{part}");
            let beyond = low > 1.0 + margin || high < 1.0 / (1.0 + margin);
            assert!(outcome != "larger than stated" || beyond, "{part}");
            return;
        }
        _ => panic!("there is no finding {id}"),
    };
    assert_eq!(claimed && !inside, outcome == "holds", "{part}");
    assert_eq!(claimed && inside, outcome == "holds, negligible", "{part}");
    assert!(outcome != "the other way" || opposite, "{part}");
    assert!(!surely_opposite || outcome == "the other way", "{part}");
}

#[test]
fn a_replication_judges_every_finding_by_its_record() {
    require_root();
    let program = Program::new();
    let outcome = replicate_small(&program);
    let report = json(&outcome);
    let findings = report["findings"].as_array().unwrap();
    let ids: Vec<&str> = findings.iter().map(|finding| finding["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["L1", "L2", "L3", "L4", "L5"]);
    findings.iter().for_each(check_finding);
    check_ratios(findings, &runs(&program.work().join("lan.stacklab")));
    // Two sizes, two families, two transports have a published standard deviation.
    assert_eq!(report["precision"]["cells"], 8);
    assert_eq!(report["precision"]["published_runs"], 40);
    check_judging_again(&program, &outcome);
    // A record that does not exist is reported as missing.
    program.run(&["replicate", "kolahi2009lan", "--from", "nothing.stacklab"]).expect(code::RECORD);
}

/// Replicates a study in two sizes and three blocks.
fn replicate_small(program: &Program) -> Outcome {
    let mut args =
        vec!["replicate", "kolahi2009lan", "--out", "lan.stacklab", "--seed", "1", "--format", "json"];
    for setting in [
        "factors.size=[128, 1408]",
        "blocks.min=3",
        "blocks.max=3",
        "blocks.schedule=sequential",
        "probe.echo.length.time=50ms",
    ] {
        args.extend(["--set", setting]);
    }
    program.run(&args).expect(code::DONE).says(&[
        "a pair of Windows Vista SP1",
        "DNS and directory and DHCP services",
        "To have it:",
    ])
}

/// A finding's outcome follows from its parts, and each part's from its interval.
fn check_finding(finding: &Value) {
    assert_eq!(finding["outcome"], outcome_of(finding), "{finding}");
    // Results of the replacement hosts are not labelled as Windows.
    assert!(finding["instead"].as_str().unwrap().contains("not the study's"), "{finding}");
    assert!(!finding["parts"].as_array().unwrap().is_empty(), "{finding}");
    for part in finding["parts"].as_array().unwrap() {
        let interval = &part["effect"]["interval95"];
        let low = interval["low"].as_f64().unwrap();
        let high = interval["high"].as_f64().unwrap();
        assert!(low <= part["effect"]["estimate"].as_f64().unwrap() && low < high, "{part}");
        check_outcome(finding["id"].as_str().unwrap(), part);
    }
}

/// The throughput of each size is that of the record.
fn check_ratios(findings: &[Value], runs: &[RunRecord]) {
    for (finding, transport) in [(0, Transport::Tcp), (1, Transport::Udp)] {
        let parts = findings[finding]["parts"].as_array().unwrap();
        let sizes: Vec<&str> = parts.iter().map(|part| part["part"].as_str().unwrap()).collect();
        assert_eq!(sizes, ["128 B", "1408 B"]);
        for (part, size) in parts.iter().zip([128, 1408]) {
            let found = part["effect"]["estimate"].as_f64().unwrap();
            let expected = ratio(runs, transport, Metric::Throughput, size);
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} is not {expected}: {part}");
        }
    }
}

/// The same record gives the same verdicts, in each format.
fn check_judging_again(program: &Program, outcome: &Outcome) {
    let again = program
        .run(&["replicate", "kolahi2009lan", "--from", "lan.stacklab", "--format", "json"])
        .expect(code::DONE);
    assert!(again.stdout == outcome.stdout, "the same record must give the same verdicts, byte by byte");
    let text =
        program.run(&["replicate", "kolahi2009lan", "--from", "lan.stacklab"]).expect(code::DONE).stdout;
    for part in [
        "Time to an answer",
        "published: 87.48 against 85.27 Mbit/s",
        "Differences from the study's testbed",
        "Verdicts",
    ] {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
}

#[test]
fn presets_are_studies_that_run_and_plan_know_by_name() {
    let program = Program::new();
    for (name, runs) in [("soorty2013linux", ", 10 blocks"), ("kolahi2009lan", ", 40 blocks")] {
        let plan = program.run(&["plan", name, "--scale", "paper"]).expect(code::DONE).stdout;
        assert!(plan.contains(runs) && plan.contains("1000000 packets"), "{plan}");
    }
    program.run(&["replicate", "nothing"]).expect(code::REQUEST).says(&["there is no published study"]);
}
