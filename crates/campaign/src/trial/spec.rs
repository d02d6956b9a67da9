//! The specification of a cell's trial, as sent to both agents.

use crate::rig::Rig;
use crate::trial::settings::{self, CpuAffinity};
use stacklab_model::{
    Cell, Generator, Io, IoChoice, LinkConfig, Probe, ProbeSpec, SplitMix64, System, Systems, Topology,
    Transport, Trial, TrialSpec,
};
use stacklab_study::Study;

/// How long both ends of a closed loop poll before they sleep, if they have separate processors. Waking a sleeping
/// processor takes several times as long as the stack under test, and varies.
const POLL_NS: u64 = 1_000_000;

/// SO_SNDBUF of UDP over Wi-Fi, bytes as asked: with more, a flood has more frames under way than the queue of a radio
/// has places, and loses the rest there.
const WIFI_SEND_BUFFER: u32 = 32_768;

/// The specification of a study's trial on a rig, with a clock offset of zero.
pub(super) fn spec(study: &Study, seed: u64, trial: &Trial, rig: &Rig, affinity: CpuAffinity) -> TrialSpec {
    let cell = &trial.cell;
    let mut probe = study.probe(trial.probe).expect("the plan holds only the study's probes").clone();
    let io = io(&rig.ends.systems, &study.link_config, cell, &probe);
    probe.pacing = settings::pacing(&study.link_config, cell, &probe);
    if Generator::of(cell).is_other() {
        // What it counts, and what the interfaces count, is the whole test.
        probe.warmup_ns = 0;
    }
    let mut spec = TrialSpec::new(token(seed, trial), cell, probe);
    spec.io = io;
    spec.cpu_scope = rig.cpu_scope(cell);
    // A machine may have another congestion control than the one that Linux comes with, and some pace by what they
    // learn in the first moments of a connection.
    let is_open = !study.schedule.is_alone() && cell.transport == Transport::Tcp && rig.is.cubic;
    if is_open && spec.tuning.congestion_control.is_none() {
        spec.tuning.congestion_control = Some("cubic".to_owned());
    }
    if matches!(study.topology, Topology::Wifi(_)) && cell.transport == Transport::Udp {
        spec.tuning.send_buffer = spec.tuning.send_buffer.or(Some(WIFI_SEND_BUFFER));
    }
    spec.poll_ns = if trial.probe == Probe::Echo && affinity.divided { POLL_NS } else { 0 };
    spec
}

/// Default I/O mode: a guest may report GSO but not support it.
fn io(systems: &Systems, link_config: &LinkConfig, cell: &Cell, probe: &ProbeSpec) -> Io {
    let own = |system: &System| matches!(system, System::Namespace | System::Localhost | System::Ssh(_));
    let said = matches!(cell.settings.io, Some(IoChoice::Path(_)));
    match settings::io(link_config, cell, probe) {
        Io::Gso if !said && !systems.0.iter().all(own) => Io::Sendmmsg,
        io => io,
    }
}

/// The seed of a trial's path, below 2^53: that of the campaign, the block and the position.
pub(super) fn trial_seed(seed: u64, trial: &Trial) -> u64 {
    let number = u64::from(trial.block) << 32 | u64::from(trial.position);
    SplitMix64::mix(SplitMix64::mix(seed) ^ number) >> 11
}

/// A token that differs from those of the trials before and after.
fn token(seed: u64, trial: &Trial) -> u32 {
    (seed as u32)
        ^ trial.block.wrapping_mul(0x9e37_79b1).wrapping_add(trial.position.wrapping_mul(0x85eb_ca6b))
}
