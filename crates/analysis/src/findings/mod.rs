//! The findings of a campaign.

pub(crate) mod campaign;
mod cautions;
mod floors;
mod overall;

use crate::comparison::hypothesis_tests::{adjust, tests};
use crate::comparison::many_arms::many_arms;
use crate::comparison::outlook::blocks_to_decide;
use crate::comparison::paired::Paired;
use crate::estimate::estimate;
use crate::findings::campaign::Campaign;
use crate::findings::cautions::cautions;
use crate::findings::floors::{floors, verdict_above};
use crate::findings::overall::overall;
use crate::records::unpaired::unpaired_sentence;
use crate::runs::Runs;
use crate::steady_state::steady_state;
use crate::{airtime, headers};
use stacklab_model::{
    Cell, CellEstimate, Comparison, Effect, Explained, Findings, Floor, HostFacts, LinkConfig, Metric,
    Question, RunRecord, RunStatus, StopReason, Topology, Verdict, Warning,
};
use std::collections::{BTreeMap, BTreeSet};

/// Level of tests: the share of false positives that is accepted.
const LEVEL: f64 = 0.05;

/// Why runs that were sampled give no verdict.
const SAMPLED: &str = "the processors were sampled while it was measured, which takes time";

/// Computes all findings of a campaign.
pub fn findings(campaign: &Campaign) -> Findings {
    let mut findings = measured(campaign);
    if campaign.is_sampled {
        for comparison in &mut findings.comparisons {
            comparison.verdict = Verdict::Nothing(SAMPLED.to_owned());
            comparison.more_blocks = None;
        }
        for overall in &mut findings.overall {
            overall.verdict = Verdict::Nothing(SAMPLED.to_owned());
            overall.answered = 0;
        }
    }
    findings
}

fn measured(campaign: &Campaign) -> Findings {
    let runs = Runs::new(campaign.runs);
    let cells = cells(campaign, &runs);
    let floors = floors(campaign.runs);
    let comparisons = comparisons(campaign, &runs, &floors);
    let many_arms = many_arms(campaign.questions, &runs);
    let steady_state = steady_state(campaign.runs, campaign.series);
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
        overall: overall(&comparisons, &floors),
        floors,
        comparisons,
        many_arms,
        warnings: warnings(campaign.runs),
        is_sampled: campaign.is_sampled,
        explanations: campaign.explanations.to_vec(),
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
    let verdict = verdict_above(question, effect.as_ref().map_err(String::as_str), floors);
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

/// The most that a testbed carries of a cell by the model of headers, or of airtime on Wi-Fi, in the metric's unit.
/// `None` for metrics that it does not limit, on a link without a rate, or for messages that it has not.
pub fn limit(cell: &Cell, metric: Metric, topology: &Topology, link_config: &LinkConfig) -> Option<f64> {
    match topology {
        Topology::Wifi(network) => airtime::limit(cell, metric, network),
        _ => headers::limit(cell, metric, link_config),
    }
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
mod tests;
