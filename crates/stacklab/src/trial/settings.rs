//! A cell's settings as what agents and testbed are told.

use stacklab_model::{
    Cell, CpuScope, Factor, Io, LinkConfig, Mechanism, Pacing, Probe, ProbeSpec, Transport, TrialSpec, Tuning,
};
use std::str::FromStr;

/// Which processors the hosts of a trial run on, and whether these do their receive work too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pinning {
    /// Each host has its own half; else any.
    pub divided: bool,
    /// Receive work is done by the receiving host's processors.
    pub steered: bool,
}

impl Pinning {
    /// Of a probe in a cell. What a study does not say is as good as the testbed can: `divides` and `steers` say
    /// whether it would, where the link is to be filled.
    pub fn of(cell: &Cell, probe: Probe, divides: bool, steers: bool) -> Self {
        match cell.settings.get(&Factor::Pinning).map(String::as_str) {
            Some("steered") => Pinning { divided: true, steered: true },
            Some("halves") => Pinning { divided: true, steered: false },
            Some(_) => Pinning { divided: false, steered: false },
            None => Pinning { divided: divides, steered: steers && probe == Probe::Stream },
        }
    }
}

/// Whose CPU the CPU figures of a cell's runs are, where the testbed steers streams unless told otherwise.
pub fn cpu_scope(cell: &Cell, steers: bool) -> CpuScope {
    let own = Pinning::of(cell, Probe::Stream, true, steers).steered;
    if own { CpuScope::Processors } else { CpuScope::Shared }
}

/// What the sockets of a cell are told beside.
pub fn tuning(cell: &Cell) -> Tuning {
    Tuning {
        send_buffer: level(cell, Factor::SendBuffer),
        receive_buffer: level(cell, Factor::ReceiveBuffer),
        mss: level(cell, Factor::Mss),
        nodelay: level(cell, Factor::Nodelay),
        congestion_control: level(cell, Factor::CongestionControl),
        dscp: level(cell, Factor::Dscp),
        flow_label: level(cell, Factor::FlowLabel),
        busy_poll_us: level(cell, Factor::BusyPoll),
        kernel_pacing: level(cell, Factor::KernelPacing),
    }
}

/// The cell's level of a setting, where it has one.
pub fn level<T: FromStr>(cell: &Cell, factor: Factor) -> Option<T> {
    let level = cell.settings.get(&factor)?;
    Some(level.parse().ok().expect("a checked study's levels are of their kind"))
}

/// How a trial's messages get into the kernel: as the study says, else chosen. On a link of known rate the link is to
/// be filled, and a train of datagrams is cut before the link; else the stack is measured, and each message goes
/// through all of it.
pub fn io(link_config: &LinkConfig, cell: &Cell, probe: &ProbeSpec) -> Io {
    if let Some(level) = cell.settings.get(&Factor::Io).filter(|level| *level != "auto") {
        return level.parse().expect("a checked study's levels are of their kind");
    }
    match (probe.probe, probe.pacing, cell.transport) {
        (Probe::Stream | Probe::EchoLoaded, Pacing::Flood, Transport::Udp)
            if link_config.rate.is_some() && !link_config.offloads && fits_a_packet(link_config, cell) =>
        {
            Io::Segment
        }
        (Probe::Stream | Probe::EchoLoaded, Pacing::Flood, _) => Io::Batch,
        _ => Io::Plain,
    }
}

/// When a trial's messages leave: where the study says at the link's rate, by the schedule that this comes to.
pub fn pacing(link_config: &LinkConfig, cell: &Cell, probe: &ProbeSpec) -> Pacing {
    match (probe.pacing, link_config.messages_per_second(cell)) {
        (Pacing::Link, Some(rate)) => Pacing::Schedule(rate),
        (pacing, _) => pacing,
    }
}

/// Whether each message takes one packet; one that takes several cannot be part of a train. The packets of a train may be cut
/// on their way (Linux leaves DF out), which a translator to IPv6 then does.
fn fits_a_packet(link_config: &LinkConfig, cell: &Cell) -> bool {
    if Mechanism::of(cell).translates() {
        return false;
    }
    let headers = cell.family.header_bytes() + cell.transport.header_bytes();
    TrialSpec::message_bytes(cell.family, cell.transport, cell.framing, cell.size)
        .zip(Mechanism::of(cell).leaves(cell.family, link_config.mtu_of(cell)))
        .is_some_and(|(bytes, mtu)| bytes + headers <= mtu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{Family, Framing, Length, Rate};

    fn cell(settings: &[(Factor, &str)]) -> Cell {
        Cell {
            transport: Transport::Udp,
            framing: Framing::Segment,
            size: 1400,
            family: Family::Ipv6,
            replica: String::new(),
            settings: settings.iter().map(|(factor, level)| (*factor, (*level).to_owned())).collect(),
        }
    }

    #[test]
    fn a_setting_reaches_its_option() {
        let all = cell(&[
            (Factor::SendBuffer, "4096"),
            (Factor::ReceiveBuffer, "8192"),
            (Factor::Mss, "1200"),
            (Factor::Nodelay, "false"),
            (Factor::CongestionControl, "reno"),
            (Factor::Dscp, "46"),
            (Factor::FlowLabel, "7"),
            (Factor::BusyPoll, "50"),
            (Factor::KernelPacing, "true"),
        ]);
        let expected = Tuning {
            send_buffer: Some(4096),
            receive_buffer: Some(8192),
            mss: Some(1200),
            nodelay: Some(false),
            congestion_control: Some("reno".into()),
            dscp: Some(46),
            flow_label: Some(7),
            busy_poll_us: Some(50),
            kernel_pacing: Some(true),
        };
        assert_eq!(tuning(&all), expected);
        assert!(tuning(&cell(&[])).is_default());
    }

    #[test]
    fn the_io_path_is_the_studys_and_else_the_nearest_that_the_link_calls_for() {
        let flood = ProbeSpec {
            probe: Probe::Stream,
            pacing: Pacing::Flood,
            length: Length::Packets(1),
            warmup_ns: 0,
            interval_ns: 1,
            metrics: Vec::new(),
        };
        let link_config = |rate| LinkConfig { rate, mtu: 1500, offloads: false };
        let shaped = link_config(Some(Rate(1_000_000)));
        assert_eq!(io(&shaped, &cell(&[]), &flood), Io::Segment);
        assert_eq!(io(&shaped, &cell(&[(Factor::Io, "auto")]), &flood), Io::Segment);
        assert_eq!(io(&shaped, &cell(&[(Factor::Io, "plain")]), &flood), Io::Plain);
        // 1400 bytes take two packets of 1280.
        assert_eq!(io(&shaped, &cell(&[(Factor::Mtu, "1280")]), &flood), Io::Batch);
        assert_eq!(io(&link_config(None), &cell(&[]), &flood), Io::Batch);
    }

    #[test]
    fn pinning_is_the_studys_and_else_what_the_testbed_can() {
        let of = |level: Option<&str>, probe, steers| {
            let settings: Vec<_> = level.map(|level| (Factor::Pinning, level)).into_iter().collect();
            let Pinning { divided, steered } = Pinning::of(&cell(&settings), probe, true, steers);
            (divided, steered)
        };
        assert_eq!(of(None, Probe::Stream, true), (true, true));
        assert_eq!(of(None, Probe::Echo, true), (true, false));
        assert_eq!(of(Some("halves"), Probe::Stream, true), (true, false));
        assert_eq!(of(Some("steered"), Probe::Echo, false), (true, true));
        assert_eq!(of(Some("none"), Probe::Stream, true), (false, false));
    }
}
