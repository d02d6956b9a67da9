//! A campaign whose comparisons ask for instructions: a router's table, beside time and memory.

use crate::tests::fixtures::{compare_families, estimate, exact_counts, findings};
use crate::tests::rows::CsvRows;
use crate::{OutputFormat, WIDTH, brief, render, stage_costs};
use insta::assert_snapshot;
use stacklab_model::{
    Cell, CellEstimate, Comparison, ExactCounts, Explanation, Factor, Family, Findings, Metric, Transport,
    Uncounted, Verdict, Why,
};

/// The cells of a family without further routes, and with many.
fn cells(family: Family) -> [Cell; 2] {
    ["0", "100000"].map(|routes| {
        let mut cell = Cell::new(family, Transport::Udp, stacklab_model::SizeOf::Payload, 128);
        cell.set(Factor::Routes, routes).unwrap();
        cell
    })
}

fn compare(family: Family, means: [(f64, f64); 2], difference: (f64, f64)) -> Comparison {
    let metric = Metric::SenderCpuPerMessage;
    let mut found = compare_families(Transport::Udp, 128, metric, means, difference, Verdict::Inconclusive);
    found.question.factor = Factor::Routes;
    [found.question.baseline, found.question.candidate] = cells(family);
    found
}

fn count(family: Family, total: [u64; 2]) -> Explanation {
    let mut counts: ExactCounts = exact_counts();
    counts.cells[0].total = total;
    let [baseline, candidate] = cells(family);
    Explanation {
        probe: stacklab_model::Probe::Stream,
        factor: Factor::Routes,
        baseline,
        candidate,
        why: Why::NotSampled,
        exact: Some(Box::new(counts)),
        programs: None,
    }
}

/// What an entry takes is known of IPv4 alone.
fn with_counts() -> Findings {
    let [_, candidate] = cells(Family::Ipv4);
    let memory =
        CellEstimate { cell: candidate, metric: Metric::MemoryPerRoute, estimate: estimate(151.0, 4.0) };
    Findings {
        comparisons: vec![
            compare(Family::Ipv4, [(1000.0, 9.0), (1010.0, 9.0)], (1.01, 0.02)),
            compare(Family::Ipv6, [(1100.0, 9.0), (1210.0, 9.0)], (1.10, 0.02)),
        ],
        explanations: vec![
            count(Family::Ipv6, [144_014_000, 145_782_000]),
            count(Family::Ipv4, [128_882_000, 128_910_000]),
        ],
        cells: vec![memory],
        is_resumable: true,
        uncounted: vec![
            Uncounted {
                pairs: 8,
                reason: Some("messages to several destinations".to_owned()),
                failure: None,
            },
            Uncounted { pairs: 1, reason: None, failure: None },
            Uncounted { pairs: 2, reason: None, failure: Some("the emulated machine hangs".to_owned()) },
        ],
        ..findings()
    }
}

#[test]
fn instructions_stand_beside_time_and_memory() {
    let found = with_counts();
    let text = render(&found, OutputFormat::Text, WIDTH);
    let (_, table) = text.split_once("Instructions, beside time and memory").unwrap();
    assert_snapshot!("instructions", table.split("sender CPU per message, UDP").next().unwrap());
    assert!(brief(&found, WIDTH).contains("Instructions, beside time and memory"));
    // The table has them all: no stage of a pair stands in the report itself.
    assert!(!text.contains("Instructions: "), "{text}");
    let stages = stage_costs(&found.explanations, OutputFormat::Text, true, WIDTH);
    assert!(
        stages.contains("Instructions: stream IPv6 UDP 128 B") && stages.contains("ip output"),
        "{stages}"
    );
    assert!(stages.starts_with("Instructions by stage of the network stack\n"), "{stages}");
    let csv = stage_costs(&found.explanations, OutputFormat::Csv, true, WIDTH);
    let rows = CsvRows::read(&csv);
    assert_eq!((rows.at(0, "kind"), rows.at(0, "name")), ("instructions", "ip output"), "{csv}");
    assert!(csv.contains(",sum,") && csv.contains(",14578.2"), "{csv}");
    let json = stage_costs(&found.explanations, OutputFormat::Json, true, WIDTH);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["counted"].as_array().map(Vec::len), Some(2), "{json}");
    let page = serde_json::to_string(&crate::page::tests::of(&found)).unwrap();
    assert!(page.contains("Instructions, beside time and memory") && page.contains("14578"), "{page}");
    let json = render(&found, OutputFormat::Json, WIDTH);
    let read = serde_json::from_str::<Findings>(&json).unwrap();
    assert_eq!(read, Findings { is_resumable: false, ..found });
}

#[test]
fn rows_of_comparisons_have_their_instructions() {
    let found = with_counts();
    let rows = CsvRows::read(&render(&found, OutputFormat::Csv, WIDTH));
    assert_eq!(rows.at(0, "baseline_instructions"), "12888.2");
    assert_eq!(rows.at(1, "candidate_instructions"), "14578.2");
    // Those of a stream say nothing of a round trip.
    let mut echo = found;
    echo.comparisons[0].question.metric = Metric::Rtt;
    let rows = CsvRows::read(&render(&echo, OutputFormat::Csv, WIDTH));
    assert_eq!(rows.at(0, "baseline_instructions"), "");
}

#[test]
fn pairs_without_a_count_say_why() {
    let text = render(&with_counts(), OutputFormat::Text, WIDTH);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "instructions of 8 pairs of cells cannot be counted (messages to several destinations)",
        "instructions of 2 pairs of cells were not counted: the emulated machine hangs",
        "instructions of 1 pair of cells were not counted; stacklab run --resume --out RECORD counts them",
    ] {
        assert!(flat.contains(part), "{part}: {text}");
    }
    assert_eq!(flat.matches("--resume").count(), 1, "{text}");
}
