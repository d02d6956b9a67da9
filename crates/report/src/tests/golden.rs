//! Complete reports, as the user reads them, and the properties that all of them have.

use super::searched::{with_bounds, with_frame_losses, with_losses, with_losses_of_arms_alone};
use crate::tests::fixtures::{cell, compare_families, explanations, findings, without_comparisons};
use crate::{OutputFormat, WIDTH, Width, brief, compact, figure, figures, render, stage_costs};
use insta::assert_snapshot;
use stacklab_model::{
    Comparison, Explained, Factor, Family, Findings, LimitedBy, Metric, SizeOf, StopReason, Transport,
    Verdict, Why,
};

fn text(findings: &Findings) -> String {
    render(findings, OutputFormat::Text, WIDTH)
}

fn with(comparisons: Vec<Comparison>) -> Findings {
    Findings { comparisons, cells: vec![], warnings: vec![], invalid_runs: vec![], ..findings() }
}

/// ipv4 better at 128 bytes, by 8.4 %.
fn throughput(transport: Transport, size: u32) -> Comparison {
    let means = [(57.31, 0.05), (52.48, 0.04)];
    compare_families(
        transport,
        size,
        Metric::Throughput,
        means,
        (0.9157, 0.0004),
        Verdict::Better("ipv4".into()),
    )
}

#[test]
fn text_begins_with_the_answer_and_the_verdicts() {
    assert_snapshot!("text", text(&findings()));
}

#[test]
fn text_without_comparisons_shows_every_cell() {
    assert_snapshot!("text_without_comparisons", text(&without_comparisons()));
}

#[test]
fn markdown_says_the_same_in_pipe_tables() {
    assert_snapshot!("markdown", render(&findings(), OutputFormat::Markdown, WIDTH));
}

#[test]
fn explanations_have_a_table_a_sentence_and_health() {
    let explained = Findings { explanations: explanations(), ..with(vec![]) };
    assert_snapshot!("explained", text(&explained));
    let json = render(&explained, OutputFormat::Json, WIDTH);
    assert_eq!(serde_json::from_str::<Findings>(&json).unwrap(), explained);
    assert_snapshot!("stages_csv", stage_costs(&explanations(), OutputFormat::Csv, true, WIDTH));
}

#[test]
fn bounds_are_a_table_with_percentiles_of_runs() {
    let found = with_bounds();
    let text = text(&found);
    let table = text.split("Throughput and delays by RFC 8219").nth(1).unwrap();
    assert_snapshot!("rfc8219", table.split("Loss by load").next().unwrap());
    let json = render(&found, OutputFormat::Json, WIDTH);
    assert_eq!(serde_json::from_str::<Findings>(&json).unwrap(), found);
    let page = serde_json::to_string(&crate::page::tests::of(&found)).unwrap();
    assert!(page.contains("Throughput and delays by RFC 8219") && page.contains("9615"), "{page}");
}

#[test]
fn frame_losses_are_a_table_by_load() {
    let found = with_frame_losses();
    let text = text(&found);
    let table = text.split("Frame loss rate").nth(1).unwrap().split("Summary").next().unwrap();
    assert_snapshot!("frame_loss", table);
    let json = render(&found, OutputFormat::Json, WIDTH);
    assert_eq!(serde_json::from_str::<Findings>(&json).unwrap(), found);
    let page = serde_json::to_string(&crate::page::tests::of(&found)).unwrap();
    assert!(page.contains("Frame loss rate") && page.contains("15.00 [13.50, 18.00] (20)"), "{page}");
}

#[test]
fn arms_alone_have_tables_of_their_loads() {
    let text = text(&with_losses_of_arms_alone());
    for part in ["Frame loss rate, IPv4 UDP 64 B", "Frame loss rate, IPv6 UDP 64 B", " 8500 ", " 10000 "] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains("Frame loss rate\n"), "{text}");
}

#[test]
fn slices_of_a_search_are_a_table_and_a_figure() {
    let found = with_losses();
    let text = text(&found);
    let table = text.split("Loss by load").nth(1).unwrap().split("Summary").next().unwrap();
    assert_snapshot!("loss_by_load", format!("Loss by load{table}"));
    let json = render(&found, OutputFormat::Json, WIDTH);
    assert_eq!(serde_json::from_str::<Findings>(&json).unwrap(), found);
    let page = crate::page::tests::of(&found);
    let names: Vec<String> = figures(&page).into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"loss-by-load-udp-64-b".to_owned()), "{names:?}");
    let svg = figure(&page, "loss-by-load-udp-64-b", OutputFormat::Svg).unwrap();
    let svg = String::from_utf8(svg).unwrap();
    for text in ["lost or late, %", "load, message/s", ">IPv4<", ">IPv6<", ">882<", ">1050<"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    assert!(!svg.contains("NaN"), "{svg}");
}

#[test]
fn csv_is_one_row_per_comparison() {
    assert_snapshot!("csv", render(&findings(), OutputFormat::Csv, WIDTH));
}

#[test]
fn json_is_the_findings_with_a_version() {
    assert_snapshot!("json", render(&findings(), OutputFormat::Json, WIDTH));
}

#[test]
fn json_reads_back_as_the_findings() {
    let text = render(&findings(), OutputFormat::Json, WIDTH);
    assert!(text.starts_with("{\n  \"format\": 1,\n  \"title\": "), "{text}");
    assert_eq!(serde_json::from_str::<Findings>(&text).unwrap(), findings());
}

#[test]
fn other_factors_have_their_own_rows_and_columns() {
    let mut replica = throughput(Transport::Udp, 128);
    replica.question.factor = Factor::Replica;
    replica.question.candidate = replica.question.baseline.clone();
    replica.question.baseline.replica = "a".into();
    replica.question.candidate.replica = "b".into();
    replica.verdict = Verdict::Equivalent;
    let mut transport = throughput(Transport::Tcp, 512);
    transport.question.factor = Factor::Transport;
    transport.question.candidate = cell(Transport::Udp, Family::Ipv4, 512);
    transport.verdict = Verdict::Better("tcp".into());
    let mut size = throughput(Transport::Udp, 64);
    size.question.factor = Factor::Size;
    size.question.candidate = cell(Transport::Udp, Family::Ipv4, 1408);
    size.verdict = Verdict::Better("64".into());
    let mut size_of = throughput(Transport::Tcp, 512);
    size_of.question.factor = Factor::SizeOf;
    size_of.question.candidate.family = Family::Ipv4;
    size_of.question.candidate.size_of = SizeOf::Write;
    size_of.verdict = Verdict::Inconclusive;
    assert_snapshot!("factors", text(&with(vec![replica, transport, size, size_of])));
}

#[test]
fn headers_explain_nothing_without_a_link_rate() {
    let because = "no rate limit on the link: header sizes cannot explain the difference in throughput";
    let mut comparison = throughput(Transport::Tcp, 128);
    comparison.explained =
        Some(Explained { by: LimitedBy::Headers, ratio: None, residual: None, because: because.into() });
    let text = text(&with(vec![comparison]));
    assert!(text.contains(&format!("- {because}")), "{text}");
    assert!(!text.contains("headers, %"), "a column without a figure: {text}");
}

#[test]
fn what_was_cut_short_is_said_plainly() {
    let mut rows = [StopReason::Cap, StopReason::Budget, StopReason::Unfinished]
        .map(|stop_reason| Comparison { stop_reason, ..throughput(Transport::Tcp, 128) });
    for (row, size) in rows.iter_mut().zip([64, 128, 256]) {
        row.question.baseline.size = size;
        row.question.candidate.size = size;
    }
    let text = text(&with(rows.to_vec()));
    for said in ["1 of 3 comparisons stopped at the most blocks", "time allowed was used up", "(unfinished)"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn many_levels_are_rows_of_one_table() {
    let worse = Verdict::Better("native".into());
    let mut rows = Vec::new();
    for mechanism in ["6in4", "gre4", "nat64", "siit"] {
        for transport in [Transport::Tcp, Transport::Udp] {
            let second = if mechanism == "siit" { Verdict::Inconclusive } else { worse.clone() };
            rows.push(compare_with_native(mechanism, transport, 128, worse.clone()));
            rows.push(compare_with_native(mechanism, transport, 1408, second));
        }
    }
    assert_snapshot!("many_levels", text(&with(rows)));
}

fn compare_with_native(mechanism: &str, transport: Transport, size: u32, verdict: Verdict) -> Comparison {
    let mut row = throughput(transport, size);
    let question = &mut row.question;
    question.factor = Factor::Mechanism;
    question.candidate = question.baseline.clone();
    question.baseline.set(Factor::Mechanism, "native").unwrap();
    question.candidate.set(Factor::Mechanism, mechanism).unwrap();
    row.verdict = verdict;
    row
}

#[test]
fn a_wide_matrix_leaves_out_the_magnitudes() {
    let sizes = (1..=13).map(|i| throughput(Transport::Tcp, 100 * i));
    let text = text(&with(sizes.collect()));
    let matrix = text.split("Verdicts\n").nth(1).unwrap();
    assert!(matrix.starts_with("the better arm, in parentheses where"), "{matrix}");
    assert!(matrix.lines().all(|line| line.chars().count() <= WIDTH.prose), "{matrix}");
    assert!(text.contains("IPv4 better at all 13 sizes (by 8.4 to 8.5 %)"), "{text}");
}

#[test]
fn every_line_of_text_is_within_the_width() {
    for line in text(&findings()).lines() {
        assert!(line.chars().count() <= WIDTH.prose, "{line}");
    }
    let narrow = render(&findings(), OutputFormat::Text, Width::of_terminal(60));
    for line in narrow.split("\nNotes\n").nth(1).expect("technical notes are last").lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

#[test]
fn text_fits_every_terminal() {
    for columns in [60, 80, 100, 120, 200] {
        let width = Width::of_terminal(columns);
        for text in [render(&findings(), OutputFormat::Text, width), brief(&findings(), width)] {
            let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
            // Below 80 columns a table may need more: its first and one other column.
            let allowed = columns.max(80).min(if widest.contains("─") { columns.max(80) } else { 110 });
            assert!(widest.chars().count() <= allowed, "{columns}: {widest}");
        }
    }
}

#[test]
fn compact_is_a_row_for_each_metric() {
    let rows = findings().comparisons.into_iter().filter(|one| one.question.baseline.size == 128);
    assert_snapshot!("compact", compact(&with(rows.collect()), Width::of_terminal(100)));
}

#[test]
fn brief_is_the_answer_within_a_screen() {
    let text = brief(&findings(), Width::of_terminal(100));
    assert_snapshot!("brief", text);
    assert!(text.lines().count() <= 40, "{text}");
    // Without comparisons the figures are the answer.
    let cells = brief(&without_comparisons(), Width::of_terminal(100));
    assert!(cells.contains("median") && !cells.contains("Verdicts"), "{cells}");
}

#[test]
fn the_order_of_the_comparisons_does_not_matter() {
    let mut shuffled = findings();
    shuffled.comparisons.reverse();
    shuffled.cells.reverse();
    assert_eq!(text(&shuffled), text(&findings()));
}

#[test]
fn a_campaign_of_nothing_is_reported_without_figures() {
    let mut empty = with(vec![]);
    empty.hosts.clear();
    empty.valid_runs = 0;
    empty.blocks = 0;
    for format in OutputFormat::DOCUMENTS {
        let report = render(&empty, format, WIDTH);
        assert!(!report.contains("NaN") && !report.contains("inf"), "{report}");
    }
}

#[test]
fn csv_texts_are_no_formulas_unless_raw() {
    let mut findings = with(vec![throughput(Transport::Tcp, 128)]);
    findings.comparisons[0].question.factor = Factor::Replica;
    findings.comparisons[0].question.baseline.replica = "=1+x".into();
    let mut explained = explanations();
    let Why::Costs(costs) = &mut explained[0].why else { panic!("it has costs") };
    costs.stages[0].name = "=1+x".to_owned();
    for text in [
        render(&findings, OutputFormat::Csv, WIDTH),
        stage_costs(&explained, OutputFormat::Csv, false, WIDTH),
    ] {
        assert!(text.contains("'=1+x") && !text.contains(",=1+x"), "{text}");
    }
    let raw = OutputFormat::RawCsv;
    for text in [render(&findings, raw, WIDTH), stage_costs(&explained, raw, false, WIDTH)] {
        assert!(text.contains(",=1+x"), "{text}");
    }
}

#[test]
fn names_cannot_break_a_table_or_drive_the_terminal() {
    let mut findings = with(vec![throughput(Transport::Tcp, 128)]);
    findings.title = "a\u{1b}[2Jb\n# c ![i](http://e.example) <img>".into();
    findings.comparisons[0].question.factor = Factor::Replica;
    findings.comparisons[0].question.baseline.replica = "x|y".into();
    assert!(!text(&findings).contains('\u{1b}'));
    let markdown = render(&findings, OutputFormat::Markdown, WIDTH);
    let title = "# a [2Jb # c \\![i\\](http\\://e.example) &lt;img>\n";
    assert!(markdown.starts_with(title) && markdown.contains("x\\|y"), "{markdown}");
}
