//! The study that is sampled: one that is made here, or a comparison of the user's.

use crate::{ARM_NS, ARMS, ExplainError, SLICE_NS, WARMUP_NS};
use stacklab_model::{Cell, ComparisonSpec, Factor, Family, Io, Mechanism};
use stacklab_study::Study;
use stacklab_study::builder::level;

/// The probes that can be named in place of a study.
pub const PROBES: [&str; 3] = ["udp", "tcp", "echo"];
/// The least number of trials of a study made here, and the shortest time of an arm in one: a few slices.
const LEAST_TRIALS: u64 = 8;
const LEAST_ARM_NS: u64 = 5 * SLICE_NS;

/// The text of a study of two levels of a factor, for one of [`PROBES`], with messages of `size` bytes. Family, I/O and
/// mechanism have default levels.
///
/// # Errors
/// When another factor has no levels.
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
        ([baseline, candidate], _) => [baseline.clone(), candidate.clone()],
        ([], Factor::Family) => [Family::Ipv4.to_string(), Family::Ipv6.to_string()],
        ([], Factor::Io) => [Io::Send.to_string(), Io::Sendmmsg.to_string()],
        ([], Factor::Mechanism) => [Mechanism::Native.to_string(), Mechanism::Nat64.to_string()],
        _ => {
            return Err(ExplainError::Study(format!(
                "--factor {factor} needs two levels: --levels A,B; or name a study that compares them instead of {name}"
            )));
        }
    };
    let levels = levels.map(|text| level(&text));
    let trials = time_ns.div_ceil(ARMS * ARM_NS).max(LEAST_TRIALS);
    let arm_ns = time_ns.div_ceil(ARMS * trials).max(LEAST_ARM_NS);
    // A translator carries one family.
    let family = if factor.is_of_testbeds() { Family::Ipv6 } else { Family::Ipv4 };
    let us = |ns: u64| format!("{}us", ns / 1000);
    let mut study = Study::builder(format!("CPU time of {name}"))
        .set("testbed.offloads", false)
        .level(Factor::Family, Some(family.name()))
        .level(Factor::Transport, Some(transport))
        .level(Factor::SizeOf, Some("payload"))
        .level(Factor::Size, Some(size))
        .levels(factor, levels.clone())
        .set(&format!("probe.{probe}.metrics"), vec![metric])
        .set(&format!("probe.{probe}.length.time"), us(arm_ns))
        .set(&format!("probe.{probe}.warmup"), us(WARMUP_NS))
        .set("blocks.min", trials as i64)
        .set("blocks.max", trials as i64)
        .set("blocks.schedule", "interleaved")
        .set("blocks.slice", us(SLICE_NS))
        .compare(factor, levels, None);
    if [Factor::Mechanism, Factor::RouterOs, Factor::Translator].contains(&factor) {
        study = study.set("testbed.topology", "routed");
    }
    Ok(study.text())
}

/// The factor to explain, and the cells that are compared by it.
///
/// # Errors
/// When the study has no such comparison.
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
    let has = |cell: &&Cell, level: &str| cell.level(*factor) == *level;
    let pairs = study.cells.iter().filter(|cell| has(cell, baseline)).filter_map(|cell| {
        let other = study
            .cells
            .iter()
            .filter(|other| has(other, candidate))
            .find(|other| other.same_but(cell, *factor))?;
        Some([cell.clone(), other.clone()])
    });
    Ok((*factor, pairs.collect()))
}
