//! The findings of a campaign.

mod frame_loss;
mod loss_by_load;
pub(crate) mod overall;
mod rfc8219;
mod same_arm;

use crate::comparison::evidence::{Evidence, blocks_to_decide};
use crate::comparison::family::{Conclusion, Ending, conclude};
use crate::comparison::remarks::list_remarks;
use crate::findings::frame_loss::collect_frame_losses;
use crate::findings::loss_by_load::collect_loss;
use crate::findings::overall::overall;
use crate::findings::rfc8219::describe_bounds;
use crate::findings::same_arm::{arm_order, carry_over, same_arm};
use crate::rate_limit::RateLimit;
use crate::records::unpaired::{compare_arms, unpaired_sentence};
use crate::runs::{Runs, estimate};
use stacklab_model::{
    Cell, CellEstimate, Comparison, CpuScope, Explanation, Findings, HostFacts, LinkConfig, ProbeSpec,
    Question, RunRecord, RunStatus, SpentTime, StopReason, StoppingRule, Topology, Uncounted, Until, Verdict,
    Warning,
};
use std::collections::{BTreeMap, BTreeSet};

/// A campaign, as read from its record.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "what its name and its type say has no comment")]
pub struct RecordedCampaign<'a> {
    pub title: &'a str,
    pub version: &'a str,
    pub started_unix_ns: u64,
    pub seed: u64,
    pub link_config: &'a LinkConfig,
    pub topology: &'a Topology,
    pub testbed_description: &'a str,
    pub hosts: &'a [(String, HostFacts)],
    pub cpu_scope: CpuScope,
    pub cells: &'a [Cell],
    pub probes: &'a [ProbeSpec],
    pub rule: &'a StoppingRule,
    pub questions: &'a [Question],
    /// Of each question; those beyond the end of the list are unfinished.
    pub stop_reasons: &'a [StopReason],
    /// The verdict of each question that was settled while measuring; those beyond the end of the list are open.
    pub settled: &'a [Option<Verdict>],
    pub runs: &'a [RunRecord],
    /// Microseconds for which CPU quotas kept the hosts from running in these runs.
    pub throttled_us: u64,
    /// Whether the processors were sampled while they were measured.
    pub is_sampled: bool,
    /// Whether `stacklab run --resume` can continue it.
    pub is_resumable: bool,
    pub explanations: &'a [Explanation],
    /// What its comparisons ask for and does not have, of instructions.
    pub uncounted: &'a [Uncounted],
}

const SAMPLED: &str = "the processors were sampled while it was measured, which takes time";

/// Computes all findings of a campaign.
pub fn findings(campaign: &RecordedCampaign) -> Findings {
    let mut findings = collect_findings(campaign);
    if campaign.is_sampled {
        for comparison in &mut findings.comparisons {
            comparison.verdict = Verdict::Nothing(SAMPLED.to_owned());
            comparison.claimed_interval = None;
            comparison.more_blocks = None;
        }
        for overall in &mut findings.overall {
            overall.verdict = Verdict::Nothing(SAMPLED.to_owned());
            overall.claimed_range = None;
            overall.answered = 0;
        }
    }
    findings
}

fn collect_findings(campaign: &RecordedCampaign) -> Findings {
    let runs = Runs::new(campaign.runs);
    let cells = cells(campaign, &runs);
    let comparisons = comparisons(campaign, &runs);
    let blocks: BTreeSet<u32> = campaign.runs.iter().map(|run| run.trial.block).collect();
    Findings {
        title: campaign.title.to_owned(),
        record_name: None,
        is_resumable: campaign.is_resumable,
        version: campaign.version.to_owned(),
        started_unix_ns: campaign.started_unix_ns,
        seed: campaign.seed,
        blocks: blocks.len() as u32,
        measured_ns: spent_ns(campaign.runs),
        valid_runs: campaign.runs.iter().filter(|run| run.is_valid()).count(),
        invalid_runs: invalid_runs(campaign.runs),
        testbed_description: campaign.testbed_description.to_owned(),
        hosts: campaign.hosts.iter().map(|(name, facts)| host_sentence(name, facts)).collect(),
        instruments: campaign
            .hosts
            .iter()
            .filter_map(|(name, facts)| Some(format!("{name}: {}", facts.noise.as_ref()?)))
            .collect(),
        constraints: list_constraints(campaign),
        cpu_scope: campaign.cpu_scope,
        cells,
        overall: overall(comparisons.iter().map(From::from)),
        same_arm: same_arm(campaign.runs),
        arm_order: arm_order(campaign.runs, campaign.questions),
        carry_over: carry_over(campaign.runs),
        loss_by_load: collect_loss(campaign.cells, campaign.runs),
        frame_loss: collect_frame_losses(campaign.cells, campaign.runs),
        rfc8219: describe_bounds(campaign.cells, campaign.probes, campaign.runs),
        comparisons,
        warnings: count_warnings(campaign.runs.iter()),
        is_sampled: campaign.is_sampled,
        explanations: campaign.explanations.to_vec(),
        uncounted: campaign.uncounted.to_vec(),
    }
}

fn spent_ns(runs: &[RunRecord]) -> u64 {
    let mut spent = SpentTime::default();
    spent.add_all(runs);
    spent.ns()
}

/// Every cell with every metric of its transport.
fn cells(campaign: &RecordedCampaign, runs: &Runs) -> Vec<CellEstimate> {
    let mut estimates = Vec::new();
    for cell in campaign.cells {
        let metrics = campaign.probes.iter().flat_map(|probe| &probe.metrics).copied();
        estimates.extend(metrics.filter(|metric| metric.is_of_cell(cell)).map(|metric| CellEstimate {
            cell: cell.clone(),
            metric,
            estimate: estimate(runs.of(cell, metric), metric),
        }));
    }
    estimates
}

fn comparisons(campaign: &RecordedCampaign, runs: &Runs) -> Vec<Comparison> {
    let mut evidence = Vec::new();
    for question in campaign.questions {
        evidence.push(Evidence::of(question, runs).with_at_least(campaign.rule.min as usize));
    }
    let reasons: Vec<StopReason> = (0..evidence.len())
        .map(|number| campaign.stop_reasons.get(number).copied().unwrap_or(StopReason::Unfinished))
        .collect();
    // What is open is tested once, at the end: a campaign that was interrupted has not ended.
    let ending = match campaign.rule.until {
        _ if reasons.contains(&StopReason::Unfinished) => Ending::Unfinished,
        Until::Verdict => Ending::Planned,
        Until::Precise => Ending::Precise,
    };
    let conclusions = conclude(campaign.settled, campaign.questions, &mut evidence, ending);
    let all = campaign.questions.iter().zip(evidence).zip(conclusions).zip(reasons);
    all.map(|(((question, found), conclusion), reason)| {
        compare(question, found, conclusion, reason, campaign, runs)
    })
    .collect()
}

fn compare(
    question: &Question,
    evidence: Evidence,
    Conclusion { verdict, claimed_interval }: Conclusion,
    stop_reason: StopReason,
    campaign: &RecordedCampaign,
    runs: &Runs,
) -> Comparison {
    let arms = question.cells().map(|cell| runs.of(cell, question.metric));
    let [baseline_estimate, candidate_estimate] = arms.map(|runs| estimate(runs, question.metric));
    let unpaired = match (&verdict, &evidence.paired) {
        (Verdict::Nothing(_), Err(_)) => compare_arms(question, arms),
        _ => None,
    };
    let verdict = match (verdict, &unpaired) {
        (Verdict::Nothing(reason), Some(found)) => {
            let runs = [baseline_estimate.n, candidate_estimate.n];
            Verdict::Nothing(format!("{reason}; {}", unpaired_sentence(question, found, runs)))
        }
        (verdict, _) => verdict,
    };
    let is_bound_wide = matches!(verdict, Verdict::NoneSeen(_)) && !evidence.may_claim;
    let effect = evidence.paired.as_ref().ok();
    let effect = effect.map(|paired| paired.effect().clip_to_possible(question.metric));
    let fitted = evidence.paired.as_ref().ok().map(|paired| paired.arms());
    let means = fitted.map_or([baseline_estimate.mean, candidate_estimate.mean], |fitted| fitted.map(Some));
    let limit = RateLimit::of(campaign.topology, campaign.link_config);
    let open = effect.as_ref().filter(|_| verdict == Verdict::Inconclusive);
    let remarks = match &evidence.paired {
        Ok(paired) => list_remarks(
            question,
            paired,
            &verdict,
            is_bound_wide,
            stop_reason,
            campaign.rule.min as usize,
            campaign.questions.len(),
        ),
        Err(_) => Vec::new(),
    };
    Comparison {
        question: question.clone(),
        more_blocks: open.and_then(|effect| {
            blocks_to_decide(question, effect, campaign.questions.len(), campaign.rule.min as usize)
        }),
        tests: evidence.tests,
        explained: limit.explain(question, effect.as_ref(), means),
        verdict,
        is_bound_wide,
        claimed_interval,
        effect,
        unpaired,
        fitted,
        baseline_estimate,
        candidate_estimate,
        stop_reason,
        remarks,
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
pub fn count_warnings<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> Vec<(usize, Warning)> {
    let said = commonest_first(runs.flat_map(|run| run.warnings.iter().collect::<BTreeSet<_>>()));
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

/// What the hosts could not have: processors beyond a quota, and settings.
fn list_constraints(campaign: &RecordedCampaign) -> Vec<String> {
    let mut sentences = Vec::new();
    for (name, facts) in campaign.hosts {
        if let Some(quota) = facts.cpu_quota {
            let held_back = quota.describe(facts.cores, campaign.throttled_us);
            sentences
                .push(format!("{name}: {held_back} while measuring; raise its quota for narrower intervals"));
        }
        if !facts.kept_settings.is_empty() {
            sentences.push(format!(
                "{name}: settings that could not be made in this container: {}; the kernel's defaults were kept",
                facts.kept_settings.join(", ")
            ));
        }
    }
    sentences
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
