//! The study that is sampled: one that is made here, or a comparison of the user's; and what samples can explain on
//! this machine.

use crate::sampling::available;
use crate::{ARM_NS, ARMS, ExplainError, SLICE_NS, WARMUP_NS};
use stacklab_campaign::rig::RoutedPlacement;
use stacklab_guests::Placement;
use stacklab_model::{Cell, ComparisonSpec, Factor, Family, Io, Mechanism, SampleEvent, Systems, Topology};
use stacklab_study::builder::level;
use stacklab_study::{Plan, Study};

/// The probes that can be named in place of a study.
pub const PROBES: [&str; 3] = ["udp", "tcp", "echo"];
/// The least number of trials of a study made here, and the shortest time of an arm in one: a few slices.
const MIN_TRIALS: u64 = 8;
const MIN_ARM_NS: u64 = 5 * SLICE_NS;

/// The text of a study of two levels of a factor, for one of [`PROBES`], with messages of `size` bytes. Family, I/O and
/// mechanism have default levels.
pub fn sampled_study(
    name: &str,
    factor: Option<Factor>,
    levels: &[String],
    size: u32,
    time_ns: u64,
) -> Result<String, ExplainError> {
    let (probe, transport, metric) = match name {
        "echo" => ("echo", "udp", "rtt"),
        transport => ("stream", transport, "throughput"),
    };
    let factor = factor.unwrap_or(Factor::Family);
    let levels = match (levels, factor) {
        ([baseline, candidate], _) => [baseline.as_str(), candidate],
        ([], Factor::Family) => [Family::Ipv4.name(), Family::Ipv6.name()],
        ([], Factor::Io) => [Io::Send.name(), Io::Sendmmsg.name()],
        ([], Factor::Mechanism) => [Mechanism::Native.name(), Mechanism::Nat64.name()],
        _ => {
            return Err(ExplainError::Study(format!(
                "--factor {factor} needs two levels: --levels A,B; or name a study that compares them instead of {name}"
            )));
        }
    };
    let levels = levels.map(level);
    let trials = time_ns.div_ceil(ARMS * ARM_NS).max(MIN_TRIALS);
    let arm_ns = time_ns.div_ceil(ARMS * trials).max(MIN_ARM_NS);
    // A translator carries one family.
    let family = if factor.is_of_testbeds() { Family::Ipv6 } else { Family::Ipv4 };
    let mut study = Study::builder(format!("CPU time of {name}"))
        .set("testbed.offloads", false)
        .level(Factor::Family, Some(family.name()))
        .level(Factor::Transport, Some(transport))
        .level(Factor::SizeOf, Some("payload"))
        .level(Factor::Size, Some(size))
        .levels(factor, levels.clone())
        .set(&format!("probe.{probe}.metrics"), vec![metric])
        .set(&format!("probe.{probe}.length.time"), print_us(arm_ns))
        .set(&format!("probe.{probe}.warmup"), print_us(WARMUP_NS))
        .set("blocks.min", trials as i64)
        .set("blocks.max", trials as i64)
        .set("blocks.schedule", "interleaved")
        .set("blocks.slice", print_us(SLICE_NS))
        .compare(factor, levels, None);
    if factor.is_of_routers() {
        study = study.set("testbed.topology", "routed");
    }
    Ok(study.text())
}

fn print_us(ns: u64) -> String {
    format!("{}us", ns / 1000)
}

/// The factor to explain, and the cells that are compared by it.
pub fn compared_cells(
    study: &Study,
    asked: Option<Factor>,
) -> Result<(Factor, Vec<[Cell; 2]>), ExplainError> {
    let compared =
        study.comparisons.iter().find(|comparison| asked.is_none_or(|factor| comparison.factor == factor));
    let Some(ComparisonSpec { factor, baseline, candidate, .. }) = compared else {
        let what = asked.map_or_else(String::new, |factor| format!(" of {factor}"));
        return Err(ExplainError::Study(format!(
            "the study has no [[comparison]]{what}: add one, with baseline and candidate"
        )));
    };
    let mut candidates = study.cells.clone();
    candidates.retain(|cell| cell.level(*factor) == *candidate);
    let mut pairs = Vec::new();
    for cell in study.cells.iter().filter(|cell| cell.level(*factor) == *baseline) {
        if let Some(other) = candidates.iter().find(|other| other.same_but(cell, *factor)) {
            pairs.push([cell.clone(), other.clone()]);
        }
    }
    Ok((*factor, pairs))
}

/// Kernels on which a software clock that samples can hang the machine.
const HANGING: [&str; 2] = ["6.16.", "6.17."];

/// Why arms that are measured one after the other are not explained.
pub(crate) const SEPARATE: &str = "its arms are not interleaved, and machines drift by more than stages differ: set blocks.schedule to \"interleaved\"";
/// Why arms that cannot take turns are not explained.
const APART: &str = "its arms are not interleaved, and machine drift exceeds the difference between stages: settings of a path (mtu, queue_length) and probes other than streams and echoes are measured one after the other";

/// Refuses what cannot be sampled, before anything is built.
pub fn check_study(study: &Study, name: &str, inside: &Placement) -> Result<(), ExplainError> {
    let refuse = |why: String| Err(ExplainError::Study(format!("{name} cannot be explained: {why}")));
    if let Some(systems) = study.systems().iter().find(|systems| **systems != Systems::NAMESPACES) {
        return refuse(format!(
            "with os = {systems} a host has another stack than this kernel's, which is not sampled"
        ));
    }
    let routed = RoutedPlacement::of(study, inside)?;
    if matches!(study.topology, Topology::Wifi(_)) || routed.is_some_and(|routed| routed.is_in_guest()) {
        return refuse("its testbed is inside a guest, whose kernel is not sampled".to_owned());
    }
    if study.schedule.is_alone() {
        return refuse(SEPARATE.to_owned());
    }
    if !Plan::new(study, 1).interleaves_any() {
        return refuse(APART.to_owned());
    }
    check_sampling().map(drop)
}

/// What is sampled here.
pub fn check_sampling() -> Result<SampleEvent, ExplainError> {
    let event = available()?;
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    match event {
        SampleEvent::CpuClock if HANGING.iter().any(|version| release.starts_with(version)) => {
            Err(ExplainError::Sampling(format!(
                "sample the CPUs: sampling by the software clock can hang Linux {release}; use a kernel before 6.16 or from 6.18 on"
            )))
        }
        event => Ok(event),
    }
}
