//! A campaign of programs whose comparisons ask for instructions: by request, beside time.

use crate::tests::fixtures::{compare_families, estimate, findings};
use crate::tests::rows::CsvRows;
use crate::{OutputFormat, WIDTH, render, stage_costs};
use insta::assert_snapshot;
use stacklab_model::{
    Cell, CellEstimate, Comparison, EndCounts, Explanation, Factor, Family, Findings, FunctionCount, Metric,
    Probe, ProgramCell, ProgramCounts, SizeOf, Transport, Uncounted, Verdict,
};

fn cells(family: Family) -> [Cell; 2] {
    ["http", "https"].map(|program| {
        let mut cell = Cell::new(family, Transport::Tcp, SizeOf::Payload, 0);
        cell.set(Factor::Program, program).unwrap();
        cell
    })
}

/// Rounds of 10 and 20 requests, which take so much each, and in the last round one more.
fn count_end(name: &str, each: u64) -> EndCounts {
    let rounds = vec![[1000, 1000 + 10 * each], [1000, 1000 + 10 * each + 20]];
    let instructions = 20 * each as i64 + 20;
    let function =
        FunctionCount { name: name.to_owned(), file: "/bin/x".to_owned(), offsets: None, instructions };
    EndCounts { rounds, functions: vec![function] }
}

fn count(family: Family, server: [u64; 2]) -> Explanation {
    let [baseline, candidate] = cells(family);
    let mut counted = Vec::new();
    for (cell, each) in [&baseline, &candidate].into_iter().zip(server) {
        counted.push(ProgramCell {
            program: cell.level(Factor::Program),
            family,
            label: cell.label(),
            client: count_end("ask", 500),
            server: count_end("answer", each),
        });
    }
    let counts = ProgramCounts {
        qemu: "7.2.22".to_owned(),
        cpu: "max".to_owned(),
        requests: [10, 20],
        cells: counted,
        pairs: vec![[0, 1]],
    };
    let pair = Explanation::of_cells(Probe::Program, Factor::Program, baseline, candidate);
    Explanation { programs: Some(Box::new(counts)), ..pair }
}

fn compare(family: Family, metric: Metric) -> Comparison {
    let means = [(100.0, 2.0), (230.0, 3.0)];
    let verdict = Verdict::Inconclusive;
    let mut found = compare_families(Transport::Tcp, 0, metric, means, (2.3, 0.05), verdict);
    found.question.factor = Factor::Program;
    [found.question.baseline, found.question.candidate] = cells(family);
    found
}

fn with_counts() -> Findings {
    Findings {
        comparisons: vec![
            compare(Family::Ipv4, Metric::CpuServer),
            compare(Family::Ipv6, Metric::CpuServer),
            compare(Family::Ipv6, Metric::CpuClient),
            compare(Family::Ipv6, Metric::Duration),
        ],
        explanations: vec![count(Family::Ipv4, [900, 2000]), count(Family::Ipv6, [950, 2100])],
        ..findings()
    }
}

#[test]
fn instructions_per_request_stand_beside_time() {
    let text = render(&with_counts(), OutputFormat::Text, WIDTH);
    let (_, table) = text.split_once("Instructions, beside time").unwrap();
    assert_snapshot!(
        "instructions_of_programs",
        table.split("\n\n").take(2).collect::<Vec<_>>().join("\n\n")
    );
    let stages = stage_costs(&with_counts().explanations, OutputFormat::Text, true, WIDTH);
    assert!(stages.contains("Server, by function") && stages.contains("answer"), "{stages}");
    assert!(stages.starts_with("Instructions per request, in user space\n"), "{stages}");
}

#[test]
fn counting_later_needs_the_study_of_programs() {
    let [cell, _] = cells(Family::Ipv4);
    let duration = CellEstimate { cell, metric: Metric::Duration, estimate: estimate(5.0, 1.0) };
    let missing = Findings {
        cells: vec![duration],
        record_name: Some("x.stacklab".to_owned()),
        is_resumable: true,
        uncounted: vec![Uncounted { pairs: 1, reason: None, failure: None }],
        ..findings()
    };
    let text = render(&missing, OutputFormat::Text, WIDTH);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let advice = "were not counted; stacklab run STUDY --resume --out x.stacklab, with the study's name and the record's";
    assert!(flat.contains(advice), "{text}");
}

#[test]
fn rows_have_the_instructions_of_their_end() {
    let rows = CsvRows::read(&render(&with_counts(), OutputFormat::Csv, WIDTH));
    for (row, [baseline, candidate]) in
        [["901", "2001"], ["951", "2101"], ["501", "501"], ["1452", "2602"]].into_iter().enumerate()
    {
        assert_eq!(rows.at(row, "baseline_instructions"), baseline, "{row}");
        assert_eq!(rows.at(row, "candidate_instructions"), candidate, "{row}");
    }
    let csv = stage_costs(&with_counts().explanations, OutputFormat::Csv, true, WIDTH);
    assert!(csv.contains("instructions,server,") && csv.contains("function instructions,answer,"), "{csv}");
}

#[test]
fn json_and_page_have_all_of_programs() {
    let found = with_counts();
    let json = render(&found, OutputFormat::Json, WIDTH);
    let explained = serde_json::to_string(&found.explanations).unwrap();
    assert!(!explained.contains("transport"), "a program has none: {explained}");
    let read = serde_json::from_str::<Findings>(&json).unwrap();
    assert_eq!(read.explanations, found.explanations);
    let json = stage_costs(&found.explanations, OutputFormat::Json, true, WIDTH);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["programs"].as_array().map(Vec::len), Some(2), "{json}");
    let page = serde_json::to_string(&crate::page::tests::of(&found)).unwrap();
    assert!(page.contains("server: answer") && page.contains("Instructions, beside time"), "{page}");
}
