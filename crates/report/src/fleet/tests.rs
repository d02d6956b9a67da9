use super::*;
use crate::page::{Outcome, fleet_verdicts};
use crate::tests::fixtures::{compare_families, findings};
use insta::assert_snapshot;
use stacklab_analysis::OverPairs;
use stacklab_model::{Comparison, Findings, FleetPair, Metric, PairAnswer, Transport};

/// The findings of a pair of hosts: throughput of two sizes by these ratios, and loss.
fn pair([small, large]: [f64; 2], loss: f64) -> Findings {
    let verdict = match loss {
        0.0 => Verdict::NoneSeen("none in 8 trials of each arm: at most 31 % of trials".into()),
        _ => Verdict::Inconclusive,
    };
    let means = [(0.0, 0.0), (loss, loss / 2.0)];
    let loss = compare_families(Transport::Udp, 128, Metric::Loss, means, (loss, loss / 2.0), verdict);
    Findings { comparisons: vec![throughput(128, small), throughput(1408, large), loss], ..findings() }
}

fn throughput(size: u32, ratio: f64) -> Comparison {
    let verdict = match ratio {
        ..0.98 => Verdict::Better("ipv4".into()),
        1.02.. => Verdict::Better("ipv6".into()),
        _ => Verdict::Equivalent,
    };
    let means = [(100.0, 1.0), (100.0 * ratio, 1.0)];
    compare_families(Transport::Udp, size, Metric::Throughput, means, (ratio, 0.01), verdict)
}

fn fleet(pairs: &[([f64; 2], f64)], has_ended: bool) -> FleetFindings {
    fleet_of(pairs.iter().map(|(ratios, loss)| pair(*ratios, *loss)).collect(), has_ended)
}

fn fleet_of(pairs: Vec<Findings>, has_ended: bool) -> FleetFindings {
    let of = pair([1.0, 1.0], 0.0);
    let questions = of.comparisons.into_iter().map(|of| of.question);
    let mut fleet = OverPairs::new(&of.title, questions.collect());
    for (number, findings) in pairs.into_iter().enumerate() {
        let Findings { blocks, valid_runs, comparisons, .. } = findings;
        let invalid_runs = findings.invalid_runs.iter().map(|(runs, _)| runs).sum();
        let name = format!("lab{number} -> far{number}");
        let pair = FleetPair { name, blocks, valid_runs, invalid_runs };
        let mut answers = Vec::new();
        for Comparison { verdict, effect, claimed_interval, .. } in comparisons {
            answers.push(PairAnswer { verdict, effect, claimed_interval });
        }
        fleet.add(pair, answers);
    }
    fleet.finish(has_ended)
}

fn text(found: &FleetFindings) -> String {
    let text = fleet_text(found, Width::of_terminal(80));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text
}

const FIVE: [([f64; 2], f64); 5] = [
    ([0.90, 0.97], 0.0),
    ([0.92, 0.99], 0.0),
    ([0.88, 1.04], 0.002),
    ([0.91, 0.95], 0.0),
    ([0.93, 1.01], 0.004),
];

#[test]
fn text_is_answer_table_and_matrix() {
    let mut lost = pair([0.9, 0.9], 0.0);
    for comparison in &mut lost.comparisons {
        comparison.verdict = Verdict::Nothing("ipv6: no run is valid".into());
        comparison.effect = None;
    }
    let eight = FIVE.iter().chain(&FIVE[..3]);
    let mut pairs: Vec<Findings> = eight.map(|(ratios, loss)| pair(*ratios, *loss)).collect();
    pairs.push(lost);
    assert_snapshot!("fleet", text(&fleet_of(pairs, true)));
}

#[test]
fn pairs_that_show_the_opposite_are_named() {
    let mut pairs = [FIVE; 5].concat();
    let none = answer(&fleet(&pairs, true));
    assert!(none.contains("No pair shows the opposite."), "{none}");
    pairs[3].0[0] = 1.05;
    let one = answer(&fleet(&pairs, true));
    assert!(one.ends_with("1 pair shows the opposite: lab3 -> far3."), "{one}");
    for pair in &mut pairs[..4] {
        pair.0[0] = 1.03;
    }
    let said = answer(&fleet(&pairs, true));
    let named = "4 pairs show the opposite: lab0 -> far0, lab1 -> far1, lab2 -> far2 and 1 more.";
    assert!(said.ends_with(named), "{said}");
}

#[test]
fn few_pairs_claim_the_typical_one() {
    let pairs = [&FIVE[..], &FIVE[..3]].concat();
    let found = text(&fleet(&pairs, true));
    assert!(found.contains("At the typical one of 8 pairs of hosts: "), "{found}");
    assert!(found.contains("IPv4 better at 8 of 8 pairs"), "{found}");
    // The other size has 5 of 8 pairs on one side: no claim, and no count.
    assert!(found.contains("inconclusive") && !found.contains("5 of 8 pairs"), "{found}");
    let pairs_of_mean = vec![FIVE[0]; MIN_PAIRS_OF_MEAN];
    let many = text(&fleet(&pairs_of_mean, true));
    assert!(many.contains(&format!("On average over {MIN_PAIRS_OF_MEAN} pairs of hosts")), "{many}");
    assert!(!many.contains(&format!("{MIN_PAIRS_OF_MEAN} of {MIN_PAIRS_OF_MEAN}")), "{many}");
    let six = text(&fleet(&pairs[..6], true));
    assert!(six.contains("Nothing is claimed over 6 pairs of hosts: that needs 7."), "{six}");
}

#[test]
fn too_few_pairs_or_a_running_campaign_claim_nothing() {
    assert_eq!(answer(&fleet(&[], true)), "No pair of hosts has findings yet.");
    let one = text(&fleet(&FIVE[..1], true));
    assert!(one.contains("Only one pair of hosts has findings") && one.contains("nothing [1]"), "{one}");
    assert!(one.contains("IPv4 10.0 %"), "the pair has its own verdicts: {one}");
    let running = text(&fleet(&FIVE, false));
    assert!(running.contains("The campaign has not ended: nothing is claimed over 5 pairs"), "{running}");
    assert!(!running.contains("than IPv4"), "{running}");
}

#[test]
fn many_pairs_are_listed_up_to_a_number() {
    let pairs = vec![FIVE[0]; 103];
    let many = text(&fleet(&pairs, true));
    assert!(many.contains("lab99 ->") && !many.contains("lab100 ->"), "{many}");
    assert!(many.replace('\n', " ").contains("the JSON report has 3 pairs more"), "{many}");
}

#[test]
fn the_page_has_the_signs_and_words_of_the_text() {
    let found = fleet(&FIVE, true);
    let text = text(&found);
    let names = ["lab2 -> far2", "new -> pair", "lab0 -> far0"];
    let (verdicts, cells) = fleet_verdicts(&found, &names);
    let flat = flatten(&text);
    for part in [&verdicts.answer, &verdicts.legend, &verdicts.columns.join(" ")] {
        assert!(flat.contains(&flatten(part)), "{part}: {text}");
    }
    for row in [0, 2] {
        let signs: Vec<&str> = cells[row].iter().map(|cell| cell.sign.as_str()).collect();
        assert!(flat.contains(&format!("{} {}", names[row], signs.join(" "))), "{signs:?}");
    }
    assert_eq!(cells[1], []);
    let first = &cells[0][0];
    assert_eq!((first.outcome, first.strength), (Outcome::Baseline, 3));
    assert!(first.words.starts_with("IPv4 better, difference -12.0 ["), "{}", first.words);
    assert!(cells[2][2].words.contains("at most 31 % of trials"), "{:?}", cells[2][2]);
}

/// The text without its line breaks.
fn flatten(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn json_is_read_back() {
    let found = fleet(&FIVE, true);
    let json = fleet_json(&found);
    assert!(json.starts_with("{\n  \"format\": 1,"), "{json}");
    assert_eq!(serde_json::from_str::<FleetFindings>(&json).unwrap(), found);
}
