//! The specification of a cell's trial, as both agents get it.

use crate::trial::settings::{self, Pinning};
use stacklab_model::{
    Cell, CpuScope, Factor, Io, LinkConfig, Probe, ProbeSpec, System, Systems, Trial, TrialSpec,
};
use stacklab_study::Study;

/// How long both ends of a closed loop poll before they sleep, where they have processors of their own. Waking a
/// sleeping processor takes several times as long as the stack under test, and now more, now less.
const POLL_NS: u64 = 1_000_000;

/// The specification of a study's trial between hosts of these systems, as if their clocks were one.
pub fn spec(
    study: &Study,
    seed: u64,
    trial: &Trial,
    systems: &Systems,
    cpu_scope: CpuScope,
    pinning: Pinning,
) -> TrialSpec {
    let cell = &trial.cell;
    let mut probe = study.probe(trial.probe).expect("the plan holds only the study's probes").clone();
    let message_bytes = TrialSpec::message_bytes(cell.family, cell.transport, cell.framing, cell.size)
        .expect("a checked study's sizes hold their headers");
    let io = io(systems, &study.link_config, cell, &probe);
    probe.pacing = settings::pacing(&study.link_config, cell, &probe);
    TrialSpec {
        token: token(seed, trial),
        family: cell.family,
        transport: cell.transport,
        framing: cell.framing,
        message_bytes,
        cpu_scope,
        poll_ns: if trial.probe == Probe::Echo && pinning.divided { POLL_NS } else { 0 },
        io,
        // Only streams have several; other probes have one message or connection under way.
        flows: if trial.probe.streams() { settings::level(cell, Factor::Flows).unwrap_or(1) } else { 1 },
        tuning: settings::tuning(cell),
        clock_offset_ns: 0,
        probe,
    }
}

/// How messages get into the kernel where the study does not say: a guest's may support GSO in name only.
fn io(systems: &Systems, link_config: &LinkConfig, cell: &Cell, probe: &ProbeSpec) -> Io {
    let own = |system: &System| matches!(system, System::Namespace | System::Here | System::Ssh(_));
    let said = cell.settings.get(&Factor::Io).is_some_and(|level| level != "auto");
    match settings::io(link_config, cell, probe) {
        Io::Segment if !said && !systems.0.iter().all(own) => Io::Batch,
        io => io,
    }
}

/// A number that differs from those of the trials before and after.
fn token(seed: u64, trial: &Trial) -> u32 {
    (seed as u32)
        ^ trial.block.wrapping_mul(0x9e37_79b1).wrapping_add(trial.position.wrapping_mul(0x85eb_ca6b))
}
