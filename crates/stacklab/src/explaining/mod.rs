//! Why cells differ: what this kernel can explain, and explanations from a record and what was sampled meanwhile.

pub(crate) mod better;

use crate::failure::Failure;
use stacklab_analysis::{ArmSlice, stage_costs};
use stacklab_campaign::rig::placement::RoutedPlacement;
use stacklab_guests::Placement;
use stacklab_model::{
    Cell, Explanation, Factor, HostReport, Probe, Profile, Role, SELF_ARMS, SampleEvent, Slice, Systems,
    Topology, Why,
};
use stacklab_store::Record;
use stacklab_study::{Plan, Study};
use std::collections::HashMap;

/// Arms of a sampled trial: two, and one of them as two more.
pub(crate) const ARMS: u64 = 4;
/// An arm's traffic in a sampled trial, and its warm-up, nanoseconds. Sockets are a trial's own, and stages of alike
/// sockets differ a little: many short trials even that out.
pub(crate) const ARM_NS: u64 = 200_000_000;
pub(crate) const WARMUP_NS: u64 = 50_000_000;
/// A slice of an arm, nanoseconds.
pub(crate) const SLICE_NS: u64 = 4_000_000;

/// Kernels on which a software clock that samples can hang the machine.
const HANGING: [&str; 2] = ["6.16.", "6.17."];

/// Why arms that are measured one after the other are not explained.
const SEPARATE: &str = "its arms are not interleaved, and machines drift by more than stages differ: set blocks.schedule to \"interleaved\"";
/// Why arms that cannot take turns are not explained.
const APART: &str = "its arms are not interleaved, and machine drift exceeds the difference between stages: settings of a path (mtu, queue_length) and probes other than streams and echoes are measured one after the other";
/// Why runs have slices that cannot be used.
const NO_CLOCK: &str = "its slices have no CPU time, which the cost per message needs";
/// Why an explanation may lack its costs.
const TOO_FEW: &str = "too few samples of both arms: sample for longer (--seconds; of a study, longer probes, and blocks.min of 8 or more)";

/// Refuses what cannot be sampled, before anything is built.
///
/// # Errors
/// Why this kernel cannot explain the study of that name.
pub(crate) fn possible(study: &Study, name: &str, inside: &Placement) -> Result<(), Failure> {
    let refuse = |why: String| Err(Failure::Usage(format!("{name} cannot be explained: {why}")));
    if let Some(systems) = study.systems().iter().find(|systems| **systems != Systems::NAMESPACES) {
        return refuse(format!("with os = {systems} a host has a separate kernel, which is not sampled"));
    }
    let routed = RoutedPlacement::of(study, inside)?;
    if matches!(study.topology, Topology::Wifi(_)) || routed.is_some_and(|routed| routed.is_in_guest()) {
        return refuse("its testbed is inside a guest, whose kernel is not sampled".to_owned());
    }
    if study.slicing.is_none() {
        return refuse(SEPARATE.to_owned());
    }
    if !Plan::new(study, 1).interleaves_any() {
        return refuse(APART.to_owned());
    }
    can_sample().map(drop)
}

/// What is sampled here.
///
/// # Errors
/// Without the right to sample, or on a kernel that sampling can hang.
pub(crate) fn can_sample() -> Result<SampleEvent, Failure> {
    let event = stacklab_profile::check().map_err(|reason| Failure::NotSampled { reason })?;
    let release = kernel_release();
    match event {
        SampleEvent::CpuClock if HANGING.iter().any(|version| release.starts_with(version)) => {
            Err(Failure::Hangs { release })
        }
        event => Ok(event),
    }
}

/// The running kernel's version.
fn kernel_release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// Why each pair of cells differs, by each probe that interleaves: from a record of runs during which was sampled.
///
/// # Errors
/// When the record cannot be read.
pub(crate) fn explanations(
    record: &Record,
    profile: &Profile,
    factor: Factor,
    pairs: &[[Cell; 2]],
) -> Result<Vec<Explanation>, Failure> {
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
            let mut explanation =
                Explanation { probe, factor, baseline, candidate, why: Why::Unknown(reason.to_owned()) };
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
