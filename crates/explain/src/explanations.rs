//! Explanations from a record and the samples that were taken while it was measured; and `run --explain`, which samples
//! the processors, in separate runs, to explain why arms of a campaign are better.
//!
//! For `run --explain`, each pair of cells is measured anew, in a record that is not kept: sampled runs give no
//! verdicts, and the campaign's runs were not sampled.

use crate::costs::{ArmSlice, stage_costs};
use crate::sampling::profile::Profile;
use crate::study::{SEPARATE, check_study};
use crate::{ARM_NS, ARMS, ExplainError, SLICE_NS, Sampler, Timing, WARMUP_NS};
use stacklab_analysis::findings;
use stacklab_campaign::measure;
use stacklab_campaign::progress::Progress;
use stacklab_campaign::record::Recorded;
use stacklab_campaign::rig::{Rigs, RoutedPlacement, TrialHosts};
use stacklab_campaign::runs::with_reports;
use stacklab_campaign::sources::new_seed;
use stacklab_guests::Placement;
use stacklab_model::{
    ArmSchedule, Cell, Comparison, ComparisonSpec, CpuScope, Explanation, Factor, Findings, HostReport,
    Length, Metric, Probe, ProbeSpec, Question, Role, RunRecord, SELF_ARMS, Slice, StoppingRule, Transport,
    Trial, Verdict, Why, say,
};
use stacklab_store::{Campaign, Record};
use stacklab_study::{Plan, Study};
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const NO_CLOCK: &str = "its slices have no CPU time, which the cost per message needs";
const TOO_FEW: &str = "too few samples of both arms: sample for longer (--seconds; of a study, longer probes, and blocks.min of 8 or more)";

/// Why each pair of cells differs, by each probe that interleaves: from a record of runs during which was sampled.
pub fn explanations(
    record: &Record,
    profile: &Profile,
    factor: Factor,
    pairs: &[[Cell; 2]],
) -> Result<Vec<Explanation>, ExplainError> {
    let mut slices: HashMap<(Probe, Cell), Vec<ArmSlice>> = HashMap::new();
    for run in record.runs()?.into_iter().filter(RunRecord::is_valid) {
        let run = with_reports(record, run)?;
        if !run.is_valid() {
            continue;
        }
        let mut cell = run.trial.cell.clone();
        // An arm that is also measured against itself is that arm.
        if SELF_ARMS.contains(&cell.replica.as_str()) {
            cell.replica.clear();
        }
        let of_cell = slices.entry((run.trial.probe, cell)).or_default();
        of_cell.extend(slices_of(run.trial.block, &run.host_reports));
    }
    let mut all = Vec::new();
    for [baseline, candidate] in pairs {
        for probe in Probe::ALL.iter().copied().filter(|probe| probe.interleaves()) {
            let Some(a) = slices.get(&(probe, baseline.clone())) else { continue };
            let Some(b) = slices.get(&(probe, candidate.clone())) else { continue };
            let reason = if a.is_empty() || b.is_empty() { NO_CLOCK } else { TOO_FEW };
            let baseline = baseline.clone();
            let candidate = candidate.clone();
            let why = Why::Unknown(reason.to_owned());
            let mut explanation =
                Explanation { why, ..Explanation::of_cells(probe, factor, baseline, candidate) };
            let context = explanation.context();
            let arms = explanation.arms();
            if let Some(costs) = stage_costs(profile, [a, b], context, arms) {
                explanation.why = Why::Costs(Box::new(costs));
            }
            all.push(explanation);
        }
    }
    Ok(all)
}

/// The slices of a run, with the CPU time of the hosts that count it. A block has one trial of a pair by each probe.
fn slices_of(block: u32, reports: &[HostReport]) -> Vec<ArmSlice> {
    let received: HashMap<u32, &Slice> =
        list_slices(reports, Role::Receiver).map(|slice| (slice.round, slice)).collect();
    let both = list_slices(reports, Role::Sender).filter_map(|sent| {
        let received = received.get(&sent.round);
        Some(ArmSlice {
            trial: block,
            from_ns: sent.first_ns,
            to_ns: sent.last_ns.max(received.map_or(0, |slice| slice.last_ns)),
            messages: sent.messages,
            cpu_ns: sent.cpu_ns? + received.map_or(Some(0), |slice| slice.cpu_ns)?,
            // The receiver of an echo counts no slices.
            is_whole: received.is_some(),
        })
    });
    both.collect()
}

fn list_slices(reports: &[HostReport], role: Role) -> impl Iterator<Item = &Slice> {
    reports.iter().filter(move |report| report.role == role).flat_map(|report| &report.slices)
}

/// Metrics of what a message costs, and of rates and times that follow from it.
const METRICS: [Metric; 7] = [
    Metric::ReceiverCpuPerMessage,
    Metric::SenderCpuPerMessage,
    Metric::Throughput,
    Metric::MessageRate,
    Metric::Rtt,
    Metric::RttMean,
    Metric::RttInterface,
];
/// How long a pair is sampled: its arms' traffic, each also against itself.
const PAIR: Duration = Duration::from_secs(8);
/// What a pair takes beside it: its testbed and the warm-up of its trials.
const AROUND: Duration = Duration::from_secs(4);
const PERIOD_NS: u64 = 200_000;

/// Explains each `better` verdict on cost or rate that is not explained yet, as long as the time lasts, and keeps each
/// explanation in the record; or the reason why there is none.
pub fn explain_verdicts(
    record: &mut Record,
    inside: &Placement,
    budget: Duration,
    interrupted: &'static AtomicBool,
) -> Result<(), ExplainError> {
    let recorded = Recorded::read(record)?;
    let study = &recorded.study;
    let Findings { comparisons, explanations, .. } = findings(&recorded.campaign());
    let wanted = choose_pairs(&comparisons, &explanations, &study.probes);
    if wanted.is_empty() {
        say!(
            "stacklab: why: nothing to explain: no comparison of cost or rate found an arm better, or each is explained"
        );
    }
    let end = Instant::now() + budget;
    for (number, pair) in wanted.iter().enumerate() {
        say!("stacklab: why: {} of {}, {}", number + 1, wanted.len(), pair.context());
        let is_over = end.saturating_duration_since(Instant::now()) < PAIR + AROUND;
        let all_s = (wanted.len() as u32 * (PAIR + AROUND)).as_secs();
        let why = part_of(study, pair)
            .and_then(|part| check_study(&part, &recorded.request.study_name, inside).map(|()| part))
            .and_then(|part| match is_over {
                true => Ok(Why::Unknown(format!("the time for it was over; --explain={all_s}s is enough"))),
                false => sample_part(&part, pair, inside, interrupted),
            });
        let why = match why {
            Err(ExplainError::Campaign(error)) if error.is_interruption() => return Err(error.into()),
            Err(reason) => Why::Unknown(reason.to_string()),
            Ok(why) => why,
        };
        record.put_explanations(&[Explanation { why, ..pair.clone() }])?;
    }
    Ok(())
}

fn pair(probe: Probe, Question { factor, baseline, candidate, .. }: &Question) -> Explanation {
    let baseline = baseline.clone();
    let candidate = candidate.clone();
    let why = Why::Unknown(String::new());
    Explanation { why, ..Explanation::of_cells(probe, *factor, baseline, candidate) }
}

/// The pairs that differ by a `better` verdict and are not explained: one of each factor, levels, probe and transport,
/// then another one of each, those that differ most first.
fn choose_pairs(comparisons: &[Comparison], known: &[Explanation], probes: &[ProbeSpec]) -> Vec<Explanation> {
    let mut better: Vec<&Comparison> = comparisons
        .iter()
        .filter(|one| matches!(one.verdict, Verdict::Better(_)) && METRICS.contains(&one.question.metric))
        .collect();
    better.sort_by(|a, b| measure_effect(b).total_cmp(&measure_effect(a)));
    type PairGroup = (Factor, String, String, Probe, Transport);
    let mut groups: Vec<(PairGroup, Vec<Explanation>)> = Vec::new();
    for Comparison { question, .. } in better {
        // A paced stream may have taken what a stream takes, too.
        let took = probes.iter().find(|probe| probe.metrics.contains(&question.metric));
        let pair = pair(took.map_or(question.metric.probe(), |probe| probe.probe), question);
        let [baseline, candidate] = pair.arms();
        let group = (pair.factor, baseline, candidate, pair.probe, pair.baseline.transport);
        if has_explanation(&pair, known) {
            continue;
        }
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, pairs)) if pairs.contains(&pair) => {}
            Some((_, pairs)) => pairs.push(pair),
            None => groups.push((group, vec![pair])),
        }
    }
    let most = groups.iter().map(|(_, pairs)| pairs.len()).max().unwrap_or(0);
    let mut wanted = Vec::new();
    for place in 0..most {
        for (_, pairs) in &groups {
            wanted.extend(pairs.get(place).cloned());
        }
    }
    wanted
}

fn has_explanation(pair: &Explanation, known: &[Explanation]) -> bool {
    known.iter().any(|known| known.costs().is_some() && known.is_of_same_cells(pair))
}

fn measure_effect(comparison: &Comparison) -> f64 {
    comparison.effect.as_ref().map_or(0.0, |effect| effect.estimate.ln().abs())
}

/// The part of a study that measures a pair, in slices.
fn part_of(study: &Study, pair: &Explanation) -> Result<Study, ExplainError> {
    if study.schedule.is_alone() {
        return Err(ExplainError::Study(SEPARATE.to_owned()));
    }
    let probe = study.probes.iter().find(|probe| probe.probe == pair.probe);
    let probe = probe.ok_or_else(|| ExplainError::Study(format!("the study has no probe {}", pair.probe)))?;
    let blocks = (PAIR.as_nanos() as u64).div_ceil(ARMS * ARM_NS) as u32;
    Ok(Study {
        cells: vec![pair.baseline.clone(), pair.candidate.clone()],
        probes: vec![ProbeSpec { length: Length::Time(ARM_NS), warmup_ns: WARMUP_NS, ..probe.clone() }],
        schedule: ArmSchedule::TokenPassing(Some(SLICE_NS)),
        rule: StoppingRule { min: blocks, max: blocks, budget_ns: None, ..study.rule.clone() },
        comparisons: vec![ComparisonSpec {
            factor: pair.factor,
            baseline: pair.baseline.level(pair.factor),
            candidate: pair.candidate.level(pair.factor),
            metrics: probe.metrics.clone(),
            margin: study.comparisons.first().map_or(0.01, |comparison| comparison.margin),
            instructions: false,
        }],
        ..study.clone()
    })
}

/// Measures the part while the processors are sampled.
fn sample_part(
    part: &Study,
    pair: &Explanation,
    inside: &Placement,
    interrupted: &'static AtomicBool,
) -> Result<Why, ExplainError> {
    let folder = tempfile::tempdir().map_err(ExplainError::Folder)?;
    let seed = new_seed();
    let plan = Plan::new(part, seed);
    let mut rigs = Rigs::build(part, seed, Vec::new(), RoutedPlacement::of(part, inside)?, interrupted)?;
    let campaign = Campaign {
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        created_unix_ns: 0,
        study_name: String::new(),
        study_text: String::new(),
        scale: None,
        settings: Vec::new(),
        seed,
        testbed_description: String::new(),
        cpu_scope: CpuScope::Threads,
        sample_period_ns: Some(PERIOD_NS),
    };
    let mut runs = Record::create(&folder.path().join("why.stacklab"), &campaign)?;
    let sampler = Sampler::start(Timing { period_ns: PERIOD_NS, is_fixed: false, seed })?;
    let measured = measure(
        part,
        &plan,
        |arms: &[Trial], earlier: &[RunRecord]| rigs.run(part, &plan, arms, earlier),
        &mut runs,
        Progress::new(false),
    );
    let profile = sampler.finish()?;
    measured?;
    let cells = [pair.baseline.clone(), pair.candidate.clone()];
    let found = explanations(&runs, &profile, pair.factor, &[cells])?;
    let why = found.into_iter().find(|explanation| explanation.probe == pair.probe).map(|found| found.why);
    Ok(why.unwrap_or_else(|| Why::Unknown("no run of both arms was valid while it was sampled".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_campaign::sources::StudySource;
    use stacklab_model::{Cell, Effect, Estimate, Family, Interval, Scale, SizeOf, StopReason};
    use std::path::Path;

    fn quickstart() -> Study {
        StudySource::read(Some(Path::new("quickstart"))).unwrap().check(None, &[]).unwrap()
    }

    /// A comparison of families: the metric, transport, size, ratio, and whether ipv4 is better.
    fn compare(metric: Metric, transport: Transport, size: u32, ratio: f64, is_better: bool) -> Comparison {
        let cell = |family| Cell::new(family, transport, SizeOf::Payload, size);
        let interval = Interval { low: ratio, high: ratio };
        Comparison {
            question: Question {
                factor: Factor::Family,
                metric,
                baseline: cell(Family::Ipv4),
                candidate: cell(Family::Ipv6),
                margin: 0.01,
            },
            baseline_estimate: Estimate::default(),
            candidate_estimate: Estimate::default(),
            effect: Some(Effect {
                scale: Scale::Ratio,
                pairs: 9,
                estimate: ratio,
                error: 0.001,
                degrees_of_freedom: 8.0,
                interval90: interval,
                interval95: interval,
            }),
            fitted: None,
            tests: None,
            explained: None,
            verdict: if is_better { Verdict::Better("ipv4".to_owned()) } else { Verdict::Inconclusive },
            claimed_interval: None,
            stop_reason: StopReason::Decided,
            more_blocks: None,
            unpaired: None,
            is_bound_wide: false,
            remarks: Vec::new(),
        }
    }

    #[test]
    fn largest_difference_of_each_kind_comes_first() {
        use Metric::{Loss, ReceiverCpuPerMessage, Rtt, Throughput};
        use Transport::{Tcp, Udp};
        let comparisons = [
            compare(Throughput, Udp, 128, 0.95, true),
            compare(ReceiverCpuPerMessage, Udp, 128, 1.05, true),
            compare(Throughput, Udp, 512, 0.90, true),
            compare(Throughput, Tcp, 128, 0.98, true),
            compare(Throughput, Tcp, 512, 0.80, false),
            compare(Rtt, Udp, 128, 1.01, true),
            compare(Loss, Udp, 1408, 1.5, true),
        ];
        let mut found = choose_pairs(&comparisons, &[], &quickstart().probes);
        let texts: Vec<String> = found
            .iter()
            .map(|pair| format!("{} {} {}", pair.probe, pair.baseline.transport, pair.baseline.size))
            .collect();
        assert_eq!(texts, ["stream udp 512", "stream tcp 128", "echo udp 128", "stream udp 128"]);
        // One that had no time is wanted again.
        let known = found.remove(0);
        assert_eq!(choose_pairs(&comparisons, &[known], &quickstart().probes).len(), 4);
    }

    #[test]
    fn a_part_measures_its_pair_in_slices_or_says_why_not() {
        let study = quickstart();
        let [baseline, candidate] = [Family::Ipv4, Family::Ipv6].map(|family| {
            let mut cells = study.cells.iter();
            cells.find(|cell| cell.family == family && cell.transport == Transport::Tcp).unwrap().clone()
        });
        let why = Why::Unknown(String::new());
        let pair = Explanation {
            probe: Probe::Stream,
            factor: Factor::Family,
            baseline,
            candidate,
            why,
            exact: None,
            programs: None,
        };
        let part = part_of(&study, &pair).unwrap();
        let plan = Plan::new(&part, 1);
        assert!(plan.interleaves(|_| true) == Some(true), "{:?}", plan.block(0));
        assert!(plan.block(0).iter().all(|trial| trial.probe == Probe::Stream));
        let separate = Study { schedule: ArmSchedule::Alone, ..study.clone() };
        assert!(part_of(&separate, &pair).unwrap_err().to_string().contains("blocks.schedule"));
        let none = Explanation { probe: Probe::Paced, ..pair };
        assert!(
            part_of(&Study { probes: vec![], ..study }, &none).unwrap_err().to_string().contains("no probe")
        );
    }
}
