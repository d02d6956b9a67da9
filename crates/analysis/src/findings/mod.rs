//! The findings of a campaign.

pub(crate) mod campaign;
mod cautions;
mod floors;
mod overall;

use crate::comparison::hypothesis_tests::{adjust, tests};
use crate::comparison::many_arms::many_arms;
use crate::comparison::outlook::blocks_to_decide;
use crate::comparison::paired::Paired;
use crate::comparison::verdict::verdict;
use crate::estimate::estimate;
use crate::findings::campaign::Campaign;
use crate::findings::cautions::cautions;
use crate::findings::floors::floors;
use crate::findings::overall::overall;
use crate::records::unpaired::unpaired_sentence;
use crate::runs::Runs;
use crate::steady_state::steady_state;
use crate::{airtime, headers};
use stacklab_model::{
    CellEstimate, Comparison, Effect, Explained, Findings, Floor, HostFacts, Question, RunRecord, RunStatus,
    StopReason, Topology, Verdict, Warning,
};
use std::collections::{BTreeMap, BTreeSet};

/// Level of tests: the share of false positives that is accepted.
const LEVEL: f64 = 0.05;

/// Computes all findings of a campaign.
pub fn findings(campaign: &Campaign) -> Findings {
    let runs = Runs::new(campaign.runs);
    let cells = cells(campaign, &runs);
    let floors = floors(campaign.runs);
    let comparisons = comparisons(campaign, &runs, &floors);
    let many_arms = many_arms(campaign.questions, &runs);
    let steady_state = steady_state(campaign.runs);
    let blocks: BTreeSet<u32> = campaign.runs.iter().map(|run| run.trial.block).collect();
    Findings {
        title: campaign.title.to_owned(),
        version: campaign.version.to_owned(),
        started_unix_ns: campaign.started_unix_ns,
        seed: campaign.seed,
        blocks: blocks.len() as u32,
        valid_runs: campaign.runs.iter().filter(|run| run.is_valid()).count(),
        invalid_runs: invalid_runs(campaign.runs),
        testbed_description: campaign.testbed_description.to_owned(),
        hosts: campaign.hosts.iter().map(|(name, facts)| host_sentence(name, facts)).collect(),
        instruments: campaign
            .hosts
            .iter()
            .filter_map(|(name, facts)| Some(format!("{name}: {}", facts.noise.as_ref()?)))
            .collect(),
        cpu_scope: campaign.cpu_scope,
        cautions: cautions(&cells, &comparisons, &many_arms, &steady_state),
        steady_state,
        cells,
        overall: overall(&comparisons),
        floors,
        comparisons,
        many_arms,
        warnings: warnings(campaign.runs),
    }
}

/// Every cell with every metric that is meaningful over its transport.
fn cells(campaign: &Campaign, runs: &Runs) -> Vec<CellEstimate> {
    let mut estimates = Vec::new();
    for cell in campaign.cells {
        let metrics = campaign.probes.iter().flat_map(|probe| &probe.metrics).copied();
        estimates.extend(metrics.filter(|metric| metric.applies_to(cell.transport)).map(|metric| {
            CellEstimate { cell: cell.clone(), metric, estimate: estimate(runs.of(cell, metric), metric) }
        }));
    }
    estimates
}

fn comparisons(campaign: &Campaign, runs: &Runs, floors: &[Floor]) -> Vec<Comparison> {
    let stop_reason = campaign.stop_reasons.iter().copied().chain(std::iter::repeat(StopReason::Unfinished));
    let mut comparisons: Vec<Comparison> = campaign
        .questions
        .iter()
        .zip(stop_reason)
        .map(|(question, stop_reason)| compare(question, stop_reason, campaign, runs, floors))
        .collect();
    adjust(&mut comparisons);
    for comparison in &mut comparisons {
        let by_chance = comparison.tests.as_ref().is_some_and(|tests| tests.adjusted_p >= LEVEL);
        if by_chance && matches!(comparison.verdict, Verdict::Better(_)) {
            comparison.verdict = Verdict::Inconclusive;
        }
    }
    comparisons
}

fn compare(
    question: &Question,
    stop_reason: StopReason,
    campaign: &Campaign,
    runs: &Runs,
    floors: &[Floor],
) -> Comparison {
    let of = |cell| estimate(runs.of(cell, question.metric), question.metric);
    let (baseline_estimate, candidate_estimate) = (of(&question.baseline), of(&question.candidate));
    let paired = Paired::new(question, runs);
    let tests = paired.as_ref().ok().and_then(|paired| tests(question, paired, runs, campaign.seed));
    let effect = paired.map(|paired| paired.effect()).map_err(|reason| {
        let unpaired = unpaired_sentence(
            question,
            [&question.baseline, &question.candidate].map(|cell| runs.of(cell, question.metric)),
        );
        unpaired.map_or(reason.clone(), |unpaired| format!("{reason}; {unpaired}"))
    });
    let means = [baseline_estimate.mean, candidate_estimate.mean];
    let verdict = match verdict(question, effect.as_ref().map_err(String::as_str)) {
        // A difference that an arm has from itself is no arm's.
        Verdict::Better(_) if effect.as_ref().is_ok_and(|effect| hidden(question, effect, floors)) => {
            Verdict::Inconclusive
        }
        verdict => verdict,
    };
    let open = effect.as_ref().ok().filter(|_| verdict == Verdict::Inconclusive);
    Comparison {
        question: question.clone(),
        more_blocks: open.and_then(|effect| blocks_to_decide(question, effect)),
        tests,
        explained: explained(question, effect.as_ref().ok(), means, campaign),
        verdict,
        effect: effect.ok(),
        baseline_estimate,
        candidate_estimate,
        stop_reason,
    }
}

/// What headers explain of a difference, or airtime on Wi-Fi.
fn explained(
    question: &Question,
    effect: Option<&Effect>,
    means: [Option<f64>; 2],
    campaign: &Campaign,
) -> Option<Explained> {
    match campaign.topology {
        Topology::Wifi(network) => airtime::explain(question, effect, means, network),
        _ => headers::explain(question, effect, means, campaign.link_config),
    }
}

/// Whether an effect is smaller than what the method adds to it.
fn hidden(question: &Question, effect: &Effect, floors: &[Floor]) -> bool {
    let transports = [question.baseline.transport, question.candidate.transport];
    floors
        .iter()
        .filter(|floor| floor.metric == question.metric && transports.contains(&floor.transport))
        .any(|floor| floor.hides(effect))
}

/// Invalid runs by reason, the commonest first. A run with several reasons counts once, under all of them together.
fn invalid_runs(runs: &[RunRecord]) -> Vec<(usize, String)> {
    commonest_first(runs.iter().filter_map(|run| match &run.status {
        RunStatus::Valid => None,
        RunStatus::Invalid(reasons) if reasons.is_empty() => Some("no reason recorded".to_owned()),
        RunStatus::Invalid(reasons) => Some(reasons.join("; ")),
    }))
}

/// Every warning with the number of runs that have it, the most frequent first.
fn warnings(runs: &[RunRecord]) -> Vec<(usize, Warning)> {
    let said = commonest_first(runs.iter().flat_map(|run| run.warnings.iter().collect::<BTreeSet<_>>()));
    said.into_iter().map(|(count, warning)| (count, warning.clone())).collect()
}

fn commonest_first<T: Ord>(items: impl Iterator<Item = T>) -> Vec<(usize, T)> {
    let mut counts = BTreeMap::new();
    for item in items {
        *counts.entry(item).or_insert(0) += 1;
    }
    let mut counted: Vec<(usize, T)> = counts.into_iter().map(|(item, count)| (count, item)).collect();
    // The sort is stable: equal counts stay in the order of their items.
    counted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    counted
}

fn host_sentence(name: &str, facts: &HostFacts) -> String {
    let cores = if facts.cores == 1 { "1 core".to_owned() } else { format!("{} cores", facts.cores) };
    let gib = facts.memory_kib as f64 / f64::from(1 << 20);
    let mut sentence = format!(
        "{name}: {} {} {}, {}, {cores}, {gib:.1} GiB",
        facts.os, facts.kernel, facts.machine, facts.cpu_model
    );
    if let Some(governor) = &facts.governor {
        sentence += &format!(", governor {governor}");
    }
    if let Some(clock) = &facts.clock_source {
        sentence += &format!(", clock {clock}");
    }
    if facts.virtualised {
        sentence += ", virtualised";
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{campaign, cell, invalid, link_config, question, run, run_with, warned};
    use stacklab_model::{
        Cell, Estimate, Family, Length, LinkConfig, Metric, Pacing, Probe, ProbeSpec, Rate, Transport, Value,
        Verdict,
    };

    fn probe(probe: Probe, metrics: &[Metric]) -> ProbeSpec {
        ProbeSpec {
            probe,
            pacing: Pacing::Flood,
            length: Length::Packets(1),
            warmup_ns: 0,
            interval_ns: 1,
            metrics: metrics.to_vec(),
        }
    }

    fn of(link_config: &LinkConfig, cells: &[Cell], questions: &[Question], runs: &[RunRecord]) -> Findings {
        findings(&Campaign {
            cells,
            probes: &[
                probe(Probe::Stream, &[Metric::Throughput, Metric::Loss]),
                probe(Probe::Connect, &[Metric::ConnectTime]),
            ],
            stop_reasons: &[StopReason::Decided],
            ..campaign(link_config, questions, runs)
        })
    }

    #[test]
    fn a_campaign_becomes_its_findings() {
        let (four, six) = (cell(Family::Ipv4, 128), cell(Family::Ipv6, 128));
        let link_config = link_config(Some(Rate(1_000_000_000)));
        let mut runs = Vec::new();
        for block in 0..4 {
            runs.push(run(block, &six, Metric::Throughput, 590.0 + f64::from(block)));
            runs.push(run(block, &four, Metric::Throughput, 650.0 + f64::from(block)));
        }
        runs.push(invalid(run(6, &six, Metric::Throughput, 1.0), "family is ipv4"));
        let questions = [question(Metric::Throughput, 0.02), question(Metric::Loss, 0.001)];
        let found = of(&link_config, &[four, six], &questions, &runs);

        assert_eq!((found.blocks, found.valid_runs), (5, 8));
        assert_eq!(found.invalid_runs, [(1, "family is ipv4".to_owned())]);
        // UDP cells: no connection metrics.
        assert_eq!(
            found.cells.iter().map(|cell| (cell.metric, cell.estimate.n)).collect::<Vec<_>>(),
            [(Metric::Throughput, 4), (Metric::Loss, 0), (Metric::Throughput, 4), (Metric::Loss, 0)]
        );
        let [throughput, loss] = &found.comparisons[..] else { panic!("two questions, two answers") };
        assert_eq!(throughput.verdict, Verdict::Better("ipv4".into()));
        assert_eq!(throughput.stop_reason, StopReason::Decided);
        assert_eq!(throughput.effect.as_ref().unwrap().pairs, 4);
        assert_eq!(throughput.baseline_estimate.mean, Some(651.5));
        let explained = throughput.explained.as_ref().unwrap();
        assert!((explained.ratio.unwrap() - 194.0 / 214.0).abs() < 1e-9);
        assert!((explained.left.unwrap() - 1.0).abs() < 0.01);
        assert_eq!(loss.verdict, Verdict::Nothing("ipv4: not recorded".into()));
        assert_eq!((loss.stop_reason, &loss.explained), (StopReason::Unfinished, &None));
    }

    #[test]
    fn a_tcp_cell_has_connection_metrics() {
        let tcp = Cell { transport: Transport::Tcp, ..cell(Family::Ipv6, 128) };
        let found = of(
            &link_config(None),
            std::slice::from_ref(&tcp),
            &[],
            &[run(0, &tcp, Metric::ConnectTime, 0.2)],
        );
        let times: Vec<&Estimate> =
            found.cells.iter().filter(|c| c.metric == Metric::ConnectTime).map(|c| &c.estimate).collect();
        assert_eq!(times.len(), 1);
        assert_eq!(times[0].mean, Some(0.2));
    }

    #[test]
    fn a_campaign_without_runs_finds_nothing_and_says_so() {
        let cells = [cell(Family::Ipv4, 128), cell(Family::Ipv6, 128)];
        let found = of(&link_config(None), &cells, &[question(Metric::Throughput, 0.02)], &[]);
        assert_eq!((found.blocks, found.valid_runs), (0, 0));
        assert_eq!(found.comparisons[0].verdict, Verdict::Nothing("ipv4: not measured".into()));
        assert_eq!(found.comparisons[0].explained.as_ref().unwrap().ratio, None);
    }

    #[test]
    fn invalid_runs_and_warnings_are_counted_once_each_commonest_first() {
        let cell = cell(Family::Ipv4, 128);
        let run = |block| run_with(block, &cell, Metric::Loss, Value::Measured(0.0));
        let runs = [
            invalid(warned(run(0), &["tick", "tick"]), "b"),
            invalid(warned(run(1), &["load", "tick"]), "a"),
            invalid(run(2), "b"),
        ];
        let found = of(&link_config(None), &[], &[], &runs);
        assert_eq!(found.invalid_runs, [(2, "b".to_owned()), (1, "a".to_owned())]);
        let said: Vec<_> = found.warnings.iter().map(|(n, w)| (*n, w.code.as_str())).collect();
        assert_eq!(said, [(2, "tick"), (1, "load")]);
    }

    #[test]
    fn the_order_of_the_runs_does_not_matter() {
        let cells = [cell(Family::Ipv4, 128), cell(Family::Ipv6, 128)];
        let mut runs: Vec<RunRecord> = (0..20)
            .map(|i| run(i / 2, &cells[i as usize % 2], Metric::Throughput, 100.0 + f64::from(i) * 0.37))
            .collect();
        let questions = [question(Metric::Throughput, 0.02)];
        let before = of(&link_config(None), &cells, &questions, &runs);
        runs.reverse();
        assert_eq!(of(&link_config(None), &cells, &questions, &runs), before);
    }

    #[test]
    fn a_host_is_told_in_a_sentence() {
        let facts = HostFacts {
            agent_version: "0.1.0".into(),
            os: "Linux".into(),
            kernel: "6.12.0".into(),
            machine: "x86_64".into(),
            cpu_model: "Example 9000".into(),
            cores: 2,
            memory_kib: 4 << 20,
            governor: None,
            clock_source: Some("tsc".into()),
            boot_id: None,
            time_namespace: None,
            virtualised: true,
            abilities: BTreeMap::new(),
            noise: None,
        };
        assert_eq!(
            host_sentence("left", &facts),
            "left: Linux 6.12.0 x86_64, Example 9000, 2 cores, 4.0 GiB, clock tsc, virtualised"
        );
    }

    #[test]
    fn every_question_of_a_large_campaign_is_answered() {
        let cells: Vec<Cell> =
            (0..100).flat_map(|i| [Family::Ipv4, Family::Ipv6].map(|family| cell(family, 100 + i))).collect();
        let runs: Vec<RunRecord> = (0..50)
            .flat_map(|block| cells.iter().map(move |cell| run(block, cell, Metric::Throughput, 100.0)))
            .collect();
        let questions: Vec<Question> = cells
            .chunks(2)
            .map(|pair| Question {
                baseline: pair[0].clone(),
                candidate: pair[1].clone(),
                ..question(Metric::Throughput, 0.02)
            })
            .collect();
        let found = of(&link_config(None), &cells, &questions, &runs);
        assert_eq!(found.comparisons.len(), questions.len());
        assert!(found.comparisons.iter().all(|c| c.verdict == Verdict::Equivalent));
    }
}
