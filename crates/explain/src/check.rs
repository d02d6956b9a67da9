//! What samples can explain on this machine.

use crate::error::ExplainError;
use crate::sampling::sampler::available;
use stacklab_campaign::rig::RoutedPlacement;
use stacklab_guests::Placement;
use stacklab_model::{SampleEvent, Systems, Topology};
use stacklab_study::{Plan, Study};

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
        return refuse(format!("with os = {systems} a host has a separate kernel, which is not sampled"));
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
            Err(ExplainError::Hangs { release })
        }
        event => Ok(event),
    }
}
