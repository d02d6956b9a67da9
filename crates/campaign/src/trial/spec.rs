//! The specification of a cell's trial, as sent to both agents.

use crate::rig::Rig;
use crate::rig::affinity::CpuAffinity;
use stacklab_model::{
    Cell, Generator, Io, IoChoice, LinkConfig, Mechanism, Pacing, Probe, ProbeSpec, SplitMix64, System,
    Topology, Transport, Trial, TrialSpec,
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
    let mut spec = spec_without_rig(study, token(seed, trial), trial);
    let is_asked = matches!(cell.settings.io, Some(IoChoice::Path(_)));
    if spec.io == Io::Gso && !is_asked && !rig.ends.systems.0.iter().all(has_gso) {
        // A guest may report GSO but not support it.
        spec.io = Io::Sendmmsg;
    }
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

fn has_gso(system: &System) -> bool {
    matches!(system, System::Namespace | System::Localhost | System::Ssh(_))
}

/// The specification of a study's trial, as far as it does not depend on the rig.
pub fn spec_without_rig(study: &Study, token: u32, trial: &Trial) -> TrialSpec {
    let cell = &trial.cell;
    let mut probe = study.probe(trial.probe).expect("the plan holds only the study's probes").clone();
    let io = io(&study.link_config, cell, &probe);
    probe.pacing = pacing(&study.topology.joint_link(&study.link_config, cell), cell, &probe);
    if Generator::of(cell).is_other() {
        // What it counts, and what the interfaces count, is the whole test.
        probe.warmup_ns = 0;
    }
    let mut spec = TrialSpec::new(token, cell, probe);
    spec.io = io;
    spec
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

/// What a flood is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// To fill a path, whose rate is then measured.
    FillPath,
    /// To measure what each message costs in the stack.
    LoadStack,
}

/// The I/O mode where none is named. To fill a path, UDP uses GSO batches, which are segmented before the link; else
/// each message passes through the whole stack separately. Messages on a schedule and in a closed loop are sent one
/// per call.
pub fn choose_io(goal: Goal, probe: Probe, pacing: Pacing, transport: Transport) -> Io {
    match (probe, pacing, transport, goal) {
        (Probe::Stream | Probe::EchoUnderLoad, Pacing::Flood, Transport::Udp, Goal::FillPath) => Io::Gso,
        (Probe::Stream | Probe::EchoUnderLoad, Pacing::Flood, ..) => Io::Sendmmsg,
        _ => Io::Send,
    }
}

/// I/O mode of a trial: the study's choice, else the default. On a link of known rate the goal is to fill the link.
fn io(link_config: &LinkConfig, cell: &Cell, probe: &ProbeSpec) -> Io {
    if let Some(IoChoice::Path(io)) = cell.settings.io {
        return io;
    }
    let is_limited = link_config.rate.is_some() && !link_config.offloads && fits_a_packet(link_config, cell);
    let goal = if is_limited { Goal::FillPath } else { Goal::LoadStack };
    choose_io(goal, probe.probe, probe.pacing, cell.transport)
}

/// When a trial's messages are sent. Pacing at the link's rate becomes the schedule for that rate.
fn pacing(link_config: &LinkConfig, cell: &Cell, probe: &ProbeSpec) -> Pacing {
    match (probe.pacing, link_config.messages_per_second(cell)) {
        (Pacing::Link, Some(rate)) => Pacing::Schedule(rate),
        (pacing, _) => pacing,
    }
}

/// Whether each message takes one packet: a fragmented message cannot be part of a GSO batch. The packets of a GSO
/// batch may be fragmented on their way (Linux clears DF), and a translator to IPv6 then does so.
fn fits_a_packet(link_config: &LinkConfig, cell: &Cell) -> bool {
    if Mechanism::of(cell).translates() {
        return false;
    }
    let headers = cell.family.header_bytes() + cell.transport.header_bytes();
    let mtu = Mechanism::of(cell).leaves(cell.family, link_config.mtu_of(cell));
    mtu.is_some_and(|mtu| cell.payload_bytes() + headers <= mtu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{CellSettings, Family, Length, Rate, SizeOf};

    fn cell(settings: CellSettings) -> Cell {
        Cell { settings: settings.into(), ..Cell::new(Family::Ipv6, Transport::Udp, SizeOf::Payload, 1400) }
    }

    fn choose_io(choice: IoChoice) -> Cell {
        cell(CellSettings { io: Some(choice), ..CellSettings::default() })
    }

    #[test]
    fn io_path_is_as_asked_or_the_nearest_for_the_link() {
        let flood = ProbeSpec {
            probe: Probe::Stream,
            pacing: Pacing::Flood,
            length: Length::Packets(1),
            warmup_ns: 0,
            interval_ns: 1,
            metrics: Vec::new(),
        };
        let unshaped = LinkConfig { rate: None, mtu: 1500, offloads: false };
        let shaped = LinkConfig { rate: Some(Rate(1_000_000)), ..unshaped.clone() };
        let plain = CellSettings::default();
        assert_eq!(io(&shaped, &cell(plain.clone()), &flood), Io::Gso);
        assert_eq!(io(&shaped, &choose_io(IoChoice::Auto), &flood), Io::Gso);
        assert_eq!(io(&shaped, &choose_io(IoChoice::Path(Io::Send)), &flood), Io::Send);
        // 1400 bytes take two packets with an MTU of 1280.
        let narrow = cell(CellSettings { mtu: Some(1280), ..plain.clone() });
        assert_eq!(io(&shaped, &narrow, &flood), Io::Sendmmsg);
        assert_eq!(io(&unshaped, &cell(plain), &flood), Io::Sendmmsg);
    }
}
