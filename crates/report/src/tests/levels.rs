//! The tables of many levels beside one baseline.

use crate::findings::levels::blocks;
use crate::page::tests::of as page_of;
use crate::rendering::document::Block;
use crate::rendering::format::OutputFormat;
use crate::tests::fixtures::{compare_families, estimate, findings};
use crate::{Width, render};
use stacklab_model::{Cell, CellEstimate, Comparison, Factor, Family, Findings, Metric, Transport, Verdict};

/// As study `nat`: two sizes and transports, and each mechanism carries one family.
const CARRIED: [(&str, Family); 3] =
    [("nat44", Family::Ipv4), ("nat66", Family::Ipv6), ("nptv6", Family::Ipv6)];

fn set_mechanism(cell: &Cell, family: Family, mechanism: &str) -> Cell {
    let mut cell = Cell { family, ..cell.clone() };
    cell.set(Factor::Mechanism, mechanism).unwrap();
    cell
}

fn compare(mechanism: &str, family: Family, transport: Transport, size: u32, metric: Metric) -> Comparison {
    let verdict = match (metric, mechanism) {
        (Metric::Rtt, _) => Verdict::Inconclusive,
        (_, "nptv6") => Verdict::Equivalent,
        _ => Verdict::Better("native".to_owned()),
    };
    let by = if metric == Metric::Throughput { 0.8 } else { 1.2 };
    // Each transport, family and metric has other figures.
    let of_transport = if transport == Transport::Tcp { 3.0 } else { 1.0 };
    let of_family = if family == Family::Ipv6 { 2.0 } else { 1.0 };
    let of_metric = if metric == Metric::Rtt { 5.0 } else { 1.0 };
    let native = f64::from(size) * of_transport * of_family * of_metric;
    let means = [(native, 1.0), (native * by, 1.0)];
    let mut row = compare_families(transport, size, metric, means, (by, 0.02), verdict);
    let question = &mut row.question;
    question.factor = Factor::Mechanism;
    question.candidate = set_mechanism(&question.baseline, family, mechanism);
    question.baseline = set_mechanism(&question.baseline, family, "native");
    row
}

fn compare_nat() -> Findings {
    let mut found = Findings { comparisons: Vec::new(), cells: Vec::new(), ..findings() };
    for (mechanism, family) in CARRIED {
        for transport in [Transport::Udp, Transport::Tcp] {
            for size in [128, 1408] {
                for metric in [Metric::Throughput, Metric::ReceiverCpuPerMessage, Metric::Rtt] {
                    found.comparisons.push(compare(mechanism, family, transport, size, metric));
                }
                let question = &found.comparisons.last().unwrap().question;
                let mtus = question.cells().map(|cell| CellEstimate {
                    cell: cell.clone(),
                    metric: Metric::PathMtu,
                    estimate: estimate(
                        if cell.level(Factor::Mechanism) == "nat66" { 1480.0 } else { 1500.0 },
                        0.0,
                    ),
                });
                found.cells.extend(mtus);
            }
        }
    }
    found
}

fn list_table_rows(found: &Findings) -> Vec<Vec<String>> {
    let blocks = blocks(found);
    let tables =
        blocks.iter().filter_map(|block| if let Block::Table(table) = block { Some(table) } else { None });
    tables.flat_map(|table| table.rows.clone()).collect()
}

#[test]
fn level_is_below_its_own_baseline() {
    let found = compare_nat();
    let rows = list_table_rows(&found);
    let labels: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    let of_one = ["native IPv4", "nat44 IPv4", "native IPv6", "nat66 IPv6", "nptv6 IPv6"];
    assert_eq!(labels, [of_one, of_one].concat());
    assert_eq!(rows[0][1..], ["4.224", "384", "1.920", "1500"]);
    assert_eq!(rows[2][1..], ["8.448", "768", "3.840", "1500"]);
    assert_eq!(rows[3][1..], ["6.758 worse 17.0 to 23.0 %", "922 worse 17.0 to 23.0 %", "4.608 ?", "1480"]);
    assert_eq!(rows[4][1], "6.758 =");
    // Over UDP.
    assert_eq!(rows[5][1..], ["1.408", "128", " 640", "1500"]);
}

#[test]
fn mechanisms_fit_a_screen_in_each_format() {
    let found = compare_nat();
    let text = render(&found, OutputFormat::Text, Width::of_terminal(120));
    let start = text.find("Each mechanism vs native, TCP").unwrap();
    let tables = &text[start..text.find("throughput, TCP: each mechanism").unwrap()];
    assert!(tables.lines().count() <= 40, "{tables}");
    let legend = tables.replace('\n', " ");
    assert!(legend.contains("throughput at 1408 B; receiver CPU per message, RTT at 128 B"), "{tables}");
    for format in [OutputFormat::Text, OutputFormat::Markdown, OutputFormat::Latex] {
        let document = render(&found, format, Width::of_terminal(120));
        assert!(document.contains("nat66 IPv6") && document.contains("6.758 worse 17.0"), "{document}");
    }
    assert_eq!(page_of(&found).levels, blocks(&found));
}

#[test]
fn two_levels_are_no_table() {
    let mut found = compare_nat();
    found.comparisons.retain(|one| one.question.candidate.level(Factor::Mechanism) != "nptv6");
    assert_eq!(blocks(&found), []);
}

#[test]
fn figures_beside_a_shared_baseline_fit_it() {
    let mut found = compare_nat();
    for one in &mut found.comparisons {
        // In other blocks than nat66.
        if one.question.candidate.level(Factor::Mechanism) == "nptv6" {
            one.fitted = one.fitted.map(|pair| pair.map(|figure| figure * 3.0));
        }
    }
    let rows = list_table_rows(&found);
    let throughput: Vec<&str> = rows[2..5].iter().map(|row| row[1].as_str()).collect();
    assert_eq!(throughput, ["16.896", "13.517 worse 17.0 to 23.0 %", "13.517 ="]);
}

#[test]
fn claim_within_the_margin_is_in_parentheses() {
    let mut found = compare_nat();
    for one in &mut found.comparisons {
        one.question.margin = 0.3;
    }
    let rows = list_table_rows(&found);
    assert_eq!([&rows[3][1], &rows[4][1]], ["6.758 (worse 17.0 to 23.0 %)", "6.758 ="]);
}

#[test]
fn sizes_are_no_levels_of_this_table() {
    let mut found = compare_nat();
    for (place, one) in found.comparisons.iter_mut().enumerate() {
        one.question.factor = Factor::Size;
        one.question.candidate = one.question.baseline.clone();
        one.question.candidate.size = 200 + place as u32;
    }
    assert_eq!(blocks(&found), []);
}

#[test]
fn other_metrics_have_a_column_where_levels_differ() {
    let mut found = compare_nat();
    let mut others = found.comparisons.clone();
    others.retain(|one| one.question.metric == Metric::Rtt);
    for one in &mut others {
        one.question.metric = Metric::ConnectTime;
    }
    found.comparisons.extend(others);
    assert_eq!(list_table_rows(&found)[0].len(), 5);
    let Block::Text(legend) = &blocks(&found)[1] else { panic!("no legend") };
    assert!(legend.ends_with("undecided with all: connect time"), "{legend}");
    found.comparisons.last_mut().unwrap().verdict = Verdict::Equivalent;
    assert_eq!(list_table_rows(&found)[0].len(), 6);
}

#[test]
fn undecided_search_has_a_column() {
    let mut found = compare_nat();
    found.comparisons.retain(|one| one.question.metric == Metric::Rtt);
    for one in &mut found.comparisons {
        one.question.metric = Metric::LoadAtLoss;
    }
    assert_eq!(list_table_rows(&found)[1][1..], ["2304 ?", "1500"]);
}
