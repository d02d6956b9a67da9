//! Explanations from a record and the samples that were taken while it was measured.

use crate::costs::{ArmSlice, stage_costs};
use crate::error::ExplainError;
use stacklab_model::{Cell, Explanation, Factor, HostReport, Probe, Profile, Role, SELF_ARMS, Slice, Why};
use stacklab_store::Record;
use std::collections::HashMap;

/// Why runs have slices that cannot be used.
const NO_CLOCK: &str = "its slices have no CPU time, which the cost per message needs";
/// Why an explanation may lack its costs.
const TOO_FEW: &str = "too few samples of both arms: sample for longer (--seconds; of a study, longer probes, and blocks.min of 8 or more)";

/// Why each pair of cells differs, by each probe that interleaves: from a record of runs during which was sampled.
pub fn explanations(
    record: &Record,
    profile: &Profile,
    factor: Factor,
    pairs: &[[Cell; 2]],
) -> Result<Vec<Explanation>, ExplainError> {
    let mut slices: HashMap<(Probe, Cell), Vec<ArmSlice>> = HashMap::new();
    for run in record.runs()?.iter().filter(|run| run.is_valid()) {
        let mut cell = run.trial.cell.clone();
        // An arm that is also measured against itself is that arm.
        if SELF_ARMS.contains(&cell.replica.as_str()) {
            cell.replica.clear();
        }
        slices
            .entry((run.trial.probe, cell))
            .or_default()
            .extend(slices_of(run.trial.block, &record.host_reports(&run.trial)?));
    }
    let mut all = Vec::new();
    for [baseline, candidate] in pairs {
        for probe in Probe::ALL.iter().copied().filter(|probe| probe.interleaves()) {
            let of = |cell: &Cell| slices.get(&(probe, cell.clone()));
            let [Some(a), Some(b)] = [baseline, candidate].map(of) else { continue };
            let reason = if a.is_empty() || b.is_empty() { NO_CLOCK } else { TOO_FEW };
            let (baseline, candidate) = (baseline.clone(), candidate.clone());
            let why = Why::Unknown(reason.to_owned());
            let mut explanation = Explanation { probe, factor, baseline, candidate, why, exact: None };
            let (context, arms) = (explanation.context(), explanation.arms());
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
    let of =
        |role| reports.iter().filter(move |report| report.role == role).flat_map(|report| &report.slices);
    let received: HashMap<u32, &Slice> = of(Role::Receiver).map(|slice| (slice.round, slice)).collect();
    let both = of(Role::Sender).filter_map(|sent| {
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
