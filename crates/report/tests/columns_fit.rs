//! The columns of a table agree with the difference beside them, in campaigns that are drawn from recorded trials.

use stacklab_analysis::{RecordedCampaign, findings};
use stacklab_model::{
    Cell, CpuScope, Factor, Family, LinkConfig, Metric, Probe, Question, RunRecord, SizeOf, SplitMix64,
    StopReason, StoppingRule, Topology, Transport, Trial, Until, Value,
};
use stacklab_report::{OutputFormat, WIDTH, render};

const CAMPAIGNS: usize = 1000;
const BLOCKS: u32 = 20;
/// The candidate's figure over the baseline's: as small as the noise, so that either sign is seen.
const RATIO: f64 = 1.01;

/// Trials of an arm against itself on two machines, of which some were disturbed.
const RECORDINGS: [(u32, &str); 2] = [
    (128, include_str!("../../../bench/simulation/recordings/shared.csv")),
    (1408, include_str!("../../../bench/simulation/recordings/busy.csv")),
];

/// A question with the figures of its recorded trials.
struct RecordedQuestion {
    question: Question,
    trials: Vec<[f64; 2]>,
}

/// One for each recording, probe and transport.
fn recorded() -> Vec<RecordedQuestion> {
    let mut all: Vec<RecordedQuestion> = Vec::new();
    for (size, text) in RECORDINGS {
        let mut rows = text.lines().filter(|line| !line.starts_with('#')).skip(1).map(row);
        while let (Some((probe, transport, one)), Some((.., other))) = (rows.next(), rows.next()) {
            let question = question(probe, transport, size);
            match all.last_mut().filter(|known| known.question == question) {
                Some(known) => known.trials.push([one, other]),
                None => all.push(RecordedQuestion { question, trials: vec![[one, other]] }),
            }
        }
    }
    all
}

/// The figure of an arm in a trial: the median of its slices.
fn row(line: &str) -> (Probe, Transport, f64) {
    let fields: Vec<&str> = line.split(',').collect();
    let [probe, transport, _, _, slices] = fields[..] else { panic!("a row has five fields") };
    let mut slices: Vec<f64> =
        slices.split(' ').map(|slice| slice.parse().unwrap()).filter(|slice| *slice > 0.0).collect();
    slices.sort_by(f64::total_cmp);
    (probe.parse().unwrap(), transport.parse().unwrap(), slices[slices.len() / 2])
}

fn question(probe: Probe, transport: Transport, size: u32) -> Question {
    Question {
        factor: Factor::Family,
        metric: if probe == Probe::Echo { Metric::Rtt } else { Metric::Throughput },
        baseline: Cell::new(Family::Ipv4, transport, SizeOf::Payload, size),
        candidate: Cell::new(Family::Ipv6, transport, SizeOf::Payload, size),
        margin: 0.01,
    }
}

fn run(block: u32, cell: &Cell, metric: Metric, figure: f64) -> RunRecord {
    let trial = Trial { block, position: 0, cell: cell.clone(), probe: metric.probe() };
    RunRecord::with_value(trial, metric, Value::Measured(figure))
}

/// Draws the runs of a campaign: whole trials with replacement, and which arm is the candidate.
fn draw(recorded: &[RecordedQuestion], random: &mut SplitMix64) -> Vec<RunRecord> {
    let mut runs = Vec::new();
    for RecordedQuestion { question, trials } in recorded {
        for block in 0..BLOCKS {
            let drawn = random.next_u64();
            let mut arms = trials[(drawn >> 1) as usize % trials.len()];
            if drawn & 1 == 1 {
                arms.reverse();
            }
            runs.push(run(block, &question.baseline, question.metric, arms[0]));
            runs.push(run(block, &question.candidate, question.metric, arms[1] * RATIO));
        }
    }
    runs
}

/// A figure, and the words behind its interval: `9.1 ± 0.1 ..`, or `9.1 [0, 26] ..`.
fn read_arm<'w>(words: &'w [&'w str]) -> Option<(f64, &'w [&'w str])> {
    let figure = words.first()?.parse().ok()?;
    let behind = match *words.get(1)? {
        "±" => 3,
        begin if begin.starts_with('[') => 2 + words[1..].iter().position(|word| word.ends_with(']'))?,
        _ => return None,
    };
    Some((figure, words.get(behind..)?))
}

/// The printed figures of both arms and their difference, of each row: `128 B  9.1 ± 0.1  9.0 ± 0.1  -1.1 [-1.3, ..`.
fn read_printed_figures(report: &str) -> Vec<[f64; 3]> {
    let mut rows = Vec::new();
    for line in report.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        rows.extend((0..words.len()).find_map(|place| {
            let (baseline, behind) = read_arm(&words[place..])?;
            let (candidate, behind) = read_arm(behind)?;
            Some([baseline, candidate, behind.first()?.parse().ok()?])
        }));
    }
    rows
}

#[test]
fn columns_never_contradict_the_difference() {
    let recorded = recorded();
    let questions: Vec<Question> = recorded.iter().map(|one| one.question.clone()).collect();
    let mut random = SplitMix64(1);
    let mut contradictions = Vec::new();
    let mut higher = 0;
    let mut lower = 0;
    for campaign in 0..CAMPAIGNS {
        let runs = draw(&recorded, &mut random);
        let found = findings(&RecordedCampaign {
            title: "drawn trials",
            version: "0.1.0",
            started_unix_ns: 1,
            seed: 1,
            link_config: &LinkConfig { rate: None, mtu: 1500, offloads: false },
            topology: &Topology::Link,
            testbed_description: "a link",
            hosts: &[],
            cpu_scope: CpuScope::Shared,
            cells: &[],
            probes: &[],
            rule: &StoppingRule { min: 2, max: 200, until: Until::Verdict, target: 0.01, budget_ns: None },
            questions: &questions,
            stop_reasons: &[StopReason::Cap; 8],
            settled: &[],
            runs: &runs,
            throttled_us: 0,
            is_sampled: false,
            is_resumable: true,
            explanations: &[],
            uncounted: &[],
        });
        let rows = read_printed_figures(&render(&found, OutputFormat::Text, WIDTH));
        assert_eq!(rows.len(), questions.len());
        for [baseline, candidate, difference] in rows {
            higher += usize::from(difference > 0.0);
            lower += usize::from(difference < 0.0);
            if (candidate - baseline) * difference < 0.0 {
                contradictions.push((campaign, baseline, candidate, difference));
            }
        }
    }
    // Either sign was often printed.
    assert!(higher > 1000 && lower > 100, "{higher} and {lower}");
    let some = &contradictions[..contradictions.len().min(5)];
    assert!(contradictions.is_empty(), "{} rows of {}: {some:?}", contradictions.len(), higher + lower);
}
