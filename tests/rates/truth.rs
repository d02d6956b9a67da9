//! On a link of known rate, the program's figures agree with arithmetic, for every size and both families.

use crate::support;

use stacklab_model::{Family, Metric, RunRecord, Transport};
use std::collections::BTreeMap;
use support::others::allowed_on_any_machine;
use support::program::{Outcome, require_root};
use support::records::{figure, measure, warns};
use support::studies::TestStudy;

/// Goodput of Ethernet at 1 Gbit/s and MTU 1500 in Mbit/s, calculated by hand: payload, UDP over IPv4 and IPv6, TCP
/// with timestamps over IPv4 and IPv6. A payload of 1536 bytes takes two packets.
const LIMITS: [(u32, [f64; 4]); 9] = [
    (64, [492.31, 426.67, 415.58, 367.82]),
    (128, [659.79, 598.13, 587.16, 537.82]),
    (384, [853.33, 817.02, 810.13, 777.33]),
    (512, [885.81, 856.19, 850.50, 823.15]),
    (640, [906.52, 881.54, 876.71, 853.33]),
    (896, [931.39, 912.42, 908.72, 890.66]),
    (1152, [945.81, 930.53, 927.54, 912.84]),
    (1408, [955.22, 942.44, 939.92, 927.54]),
    (1536, [925.30, 895.10, 895.10, 874.72]),
];

/// Allowed deviation of a full link from the limit on a quiet machine.
const TOLERANCE: f64 = 0.01;
/// Allowed deviation of a run from the limit without a warning on a quiet machine. The sender uses its own window to
/// decide whether it filled the link, and packets in its queue separate that window from the receiver's.
const UNSAID: f64 = 0.02;
/// Sizes from here on are always compared with the limit at 1 Gbit/s: 216 thousand packets per second. Below, 128
/// bytes need 644 thousand and 64 bytes need 962 thousand. Two processors reach this if there is no other load; a run
/// that does not reach it says so.
const ALWAYS_HELD: u32 = 512;
/// Maximum number of measurements of a study. Other load on the machine can only slow a run down.
const ROUNDS: u32 = 3;
/// How far an arm may be below its limit for the report to call the link full.
const NOT_FULL: f64 = 0.1;
/// The largest share of runs compared with the limit that may miss it. Otherwise the best of several rounds would
/// hide an occasional fault.
const MAX_MISSED: f64 = 0.75;

fn limit(run: &RunRecord, gigabits: f64) -> f64 {
    let cell = &run.trial.cell;
    let (_, limits) = LIMITS.iter().find(|(size, _)| *size == cell.size).expect("a size of the table");
    let column = match (cell.transport, cell.family) {
        (Transport::Udp, Family::Ipv4) => 0,
        (Transport::Udp, Family::Ipv6) => 1,
        (Transport::Tcp, Family::Ipv4) => 2,
        (Transport::Tcp, Family::Ipv6) => 3,
    };
    limits[column] * gigabits
}

/// A study of floods over a link.
fn flood(rate: &str, transport: &str, sizes: &[u32], runs: u32, milliseconds: u32) -> String {
    TestStudy::new("A full link")
        .rate(rate)
        .offloads(false)
        .families()
        .transports(&[transport])
        .size_of("payload")
        .sizes(sizes)
        .stream(&["throughput"])
        .time(&format!("{milliseconds}ms"))
        .warmup("100ms")
        .interval("100ms")
        .schedule("sequential")
        .blocks(runs)
        .set("blocks.target", "2 %")
        .compare_families_within("2 %")
        .text()
}

/// Each cell's runs as shares of the limit. Fails if a run exceeds the limit, or is below it without a warning.
fn shares(runs: &[RunRecord], gigabits: f64) -> Cells {
    let mut cells = Cells::new();
    // Other load slows a run down. Nothing makes a link carry more.
    let unsaid = allowed_on_any_machine(UNSAID);
    for run in runs {
        let cell = &run.trial.cell;
        let share = figure(run, Metric::Throughput) / limit(run, gigabits);
        assert!(share <= 1.0 + TOLERANCE, "{}: {share:.4} of what the link carries", run.trial);
        if cell.transport == Transport::Udp {
            let lost = figure(run, Metric::Loss);
            let sent = share / (1.0 - lost);
            assert!(
                sent >= 1.0 - unsaid || warns(run, "below_link"),
                "{}: {share:.4} of what the link carries with {lost:.4} lost, and no warning",
                run.trial
            );
        }
        cells.entry((cell.size, cell.family)).or_default().push(share);
    }
    for ((size, family), shares) in &cells {
        println!("{size:>5} B {family}: {shares:.4?} of what the headers leave of {gigabits} Gbit/s");
    }
    cells
}

/// Runs by size and family, as shares of the limit.
type Cells = BTreeMap<(u32, Family), Vec<f64>>;

/// Measures a study of floods, and measures again, a few times at most, the sizes of cells that should be full but
/// are not. Returns the first study's output, all runs and all shares.
fn filled(
    (rate, gigabits): (&str, f64),
    transport: &str,
    sizes: &[u32],
    (runs, milliseconds): (u32, u32),
    held: impl Fn(u32) -> bool,
) -> (Outcome, Vec<RunRecord>, Cells) {
    let (outcome, mut all) = measure(&flood(rate, transport, sizes, runs, milliseconds));
    let mut cells = shares(&all, gigabits);
    assert_eq!(cells.len(), 2 * sizes.len());
    for _ in 1..ROUNDS {
        let mut again = sizes.to_vec();
        again.retain(|size| {
            held(*size) && cells.iter().any(|(cell, shares)| cell.0 == *size && !full(shares))
        });
        if again.is_empty() {
            break;
        }
        all.extend(measure(&flood(rate, transport, &again, runs, milliseconds)).1);
        cells = shares(&all, gigabits);
    }
    for ((size, family), shares) in &cells {
        let well = full(shares) || !held(*size);
        assert!(well, "{size} B over {family}: {shares:?} of what the link carries");
    }
    let to_be_full = cells.iter().filter(|((size, _), _)| held(*size)).flat_map(|(_, shares)| shares);
    let count = to_be_full.clone().count();
    let missed = to_be_full.filter(|share| !full(&[**share])).count();
    println!(
        "note: {missed} of {count} {transport} runs at {gigabits} Gbit/s miss the limit by more than {TOLERANCE}"
    );
    assert!(
        missed as f64 <= MAX_MISSED * count as f64,
        "{missed} of {count} runs miss the limit: {cells:.4?}"
    );
    (outcome, all, cells)
}

/// Whether a cell fills the link, by its fastest run: other load on the machine hardly ever makes one faster.
fn full(shares: &[f64]) -> bool {
    let least = 1.0 - allowed_on_any_machine(TOLERANCE);
    shares.iter().any(|share| *share >= least)
}

#[test]
fn udp_fills_20_mbit_and_headers_explain_the_rest() {
    require_root();
    let sizes = [64, 128, 512, 1408, 1536];
    // Slow enough for a machine of which others have most: 64 bytes need 19 thousand packets per second. What the token
    // bucket has saved while a sender waited for a processor is half a per cent of a second.
    let (outcome, _, cells) = filled(("20 Mbit/s", 0.02), "udp", &sizes, (3, 1000), |_| true);
    for size in sizes {
        // If every run filled the link, the report's means leave no part for the stacks. A run that missed it by some
        // part makes that part of the difference, in the worst case.
        let shares = Family::ALL.iter().flat_map(|family| &cells[&(size, *family)]);
        let missed = shares.map(|share| (share - 1.0).abs()).fold(0.0, f64::max);
        let most = TOLERANCE + 2.0 * missed;
        let [Some((explained, place)), Some((left, _))] =
            ["headers, %", "rest, %"].map(|column| reported(&outcome, size, column))
        else {
            // Of a link that was not full, the report says only that.
            assert!(missed > NOT_FULL, "{size} B misses the limit by {missed} at most, and {outcome}");
            continue;
        };
        let (_, limits) = LIMITS.iter().find(|(of, _)| *of == size).unwrap();
        let expected = 100.0 * (limits[1] / limits[0] - 1.0);
        println!("{size:>5} B: headers explain {explained} %, leaving {left} %");
        assert!(
            (explained - expected).abs() <= 0.6 * place,
            "{size} B: {explained} % explained, {expected} % expected"
        );
        assert!(left.abs() <= 100.0 * most, "{size} B: {left} % left to the stacks, of {most} at most");
    }
}

/// A figure of the report's table and its last decimal place, by the row's size and the column's title; `None` if a
/// note stands in its place.
fn reported(outcome: &Outcome, size: u32, column: &str) -> Option<(f64, f64)> {
    let mut lines = outcome.stdout.lines();
    let title =
        lines.find(|line| line.contains(column)).unwrap_or_else(|| panic!("no `{column}` in {outcome}"));
    // Columns of figures are right-aligned.
    let end = title[..title.find(column).unwrap() + column.len()].chars().count();
    let row = outcome.stdout.lines().find(|line| line.trim_start().starts_with(&format!("{size} B ")));
    let row = row.unwrap_or_else(|| panic!("no row for {size} B in {outcome}"));
    let upto: String = row.chars().take(end).collect();
    let figure = upto.split_whitespace().next_back().unwrap_or_default();
    if figure == "[1]" {
        return None;
    }
    let decimals = figure.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let value = figure.parse().unwrap_or_else(|_| panic!("`{figure}` stands under `{column}` in {outcome}"));
    Some((value, 0.1_f64.powi(decimals as i32)))
}

/// Slow enough for a machine of which others have most: a segment of each 128 bytes costs as much as one of 1408.
#[test]
fn tcp_fills_a_link_of_20_mbit() {
    require_root();
    let sizes = [128, 1408];
    filled(("20 Mbit/s", 0.02), "tcp", &sizes, (4, 1000), |_| true);
}

#[test]
fn udp_fills_1_gbit_or_says_where_it_does_not() {
    require_root();
    let sizes = [64, 128, 384, 512, 640, 896, 1152, 1408, 1536];
    let (_, runs, cells) = filled(("1 Gbit/s", 1.0), "udp", &sizes, (4, 200), |size| size >= ALWAYS_HELD);
    for ((size, family), shares) in &cells {
        if !full(shares) {
            let mut of_cell =
                runs.iter().filter(|run| run.trial.cell.size == *size && run.trial.cell.family == *family);
            // Either end may be too slow: a slow sender gives a warning, a slow receiver loses packets.
            let said = of_cell.any(|run| warns(run, "below_link") || figure(run, Metric::Loss) > TOLERANCE);
            assert!(said, "{size} B over {family}: {shares:?} of what the link carries, and nothing is said");
        }
    }
}
