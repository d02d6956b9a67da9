//! Converts a cell's settings for agents and testbed.

use stacklab_model::{
    Cell, CpuScope, Direction, Io, IoChoice, LinkConfig, Mechanism, Pacing, Pinning, Probe, ProbeSpec,
    Transport,
};

/// Which receive work of streams a testbed steers by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Steers {
    /// None: it cannot.
    None,
    Senders,
    Both,
}

/// The processors that the hosts of a trial run on, and whether these also do the receive work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuAffinity {
    /// Each host uses its own half of the processors; otherwise any.
    pub divided: bool,
    /// Whether a host's receive work runs on its own processors: the sender of the testbed first.
    pub steered: [bool; 2],
}

impl CpuAffinity {
    /// The affinity of a probe in a cell. Unset values take the best that the testbed supports: `divides` and
    /// `steers` are what it can do. A stream over a link of known rate, which is to be filled, has the receive work of
    /// both hosts on their own processors. Any other TCP stream has its sender's there, which are its
    /// acknowledgements: data that they let go would else leave from the receiver's processor, and overtake what the
    /// sender's processor sends.
    pub(crate) fn of(cell: &Cell, probe: Probe, divides: bool, steers: Steers) -> Self {
        let unset = || match (probe, steers) {
            (Probe::Stream | Probe::Paced, Steers::Both) => [true; 2],
            (Probe::Stream | Probe::Paced, Steers::Senders) if cell.transport == Transport::Tcp => {
                [0, 1].map(|host| Direction::of(cell).senders().contains(&host))
            }
            _ => [false; 2],
        };
        match cell.settings.pinning {
            Some(Pinning::Steered) => CpuAffinity { divided: true, steered: [true; 2] },
            Some(Pinning::Halves) => CpuAffinity { divided: true, steered: [false; 2] },
            Some(Pinning::None) => CpuAffinity { divided: false, steered: [false; 2] },
            None => CpuAffinity { divided: divides, steered: unset() },
        }
    }

    /// Whether each host's CPUs do all of its work, and only its.
    pub(crate) fn separates(&self) -> bool {
        self.steered == [true; 2]
    }
}

/// Whose CPU time the CPU figures of a cell's runs cover; `steers` is the testbed's default for streams.
pub(crate) fn cpu_scope(cell: &Cell, steers: Steers) -> CpuScope {
    let own = CpuAffinity::of(cell, Probe::Stream, true, steers).separates();
    if own { CpuScope::Processors } else { CpuScope::Shared }
}

/// I/O mode of a trial: the study's choice, else the default. On a link of known rate the goal is to fill the link,
/// so UDP uses GSO batches, which are segmented before the link. Otherwise the goal is to measure the stack, so each
/// message passes through the whole stack separately.
pub(crate) fn io(link_config: &LinkConfig, cell: &Cell, probe: &ProbeSpec) -> Io {
    if let Some(IoChoice::Path(io)) = cell.settings.io {
        return io;
    }
    match (probe.probe, probe.pacing, cell.transport) {
        (Probe::Stream | Probe::EchoUnderLoad, Pacing::Flood, Transport::Udp)
            if link_config.rate.is_some() && !link_config.offloads && fits_a_packet(link_config, cell) =>
        {
            Io::Gso
        }
        (Probe::Stream | Probe::EchoUnderLoad, Pacing::Flood, _) => Io::Sendmmsg,
        _ => Io::Send,
    }
}

/// When a trial's messages are sent. Pacing at the link's rate becomes the schedule for that rate.
pub(crate) fn pacing(link_config: &LinkConfig, cell: &Cell, probe: &ProbeSpec) -> Pacing {
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
        Cell { settings, ..Cell::new(Family::Ipv6, Transport::Udp, SizeOf::Payload, 1400) }
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
        let plain = CellSettings::default();
        let asked = |choice| cell(CellSettings { io: Some(choice), ..plain.clone() });
        assert_eq!(io(&shaped, &cell(plain.clone()), &flood), Io::Gso);
        assert_eq!(io(&shaped, &asked(IoChoice::Auto), &flood), Io::Gso);
        assert_eq!(io(&shaped, &asked(IoChoice::Path(Io::Send)), &flood), Io::Send);
        // 1400 bytes take two packets with an MTU of 1280.
        let narrow = cell(CellSettings { mtu: Some(1280), ..plain.clone() });
        assert_eq!(io(&shaped, &narrow, &flood), Io::Sendmmsg);
        assert_eq!(io(&link_config(None), &cell(plain), &flood), Io::Sendmmsg);
    }

    #[test]
    fn pinning_is_the_studys_and_else_what_the_testbed_can() {
        let in_cell = |cell: &Cell, probe, steers| {
            let CpuAffinity { divided, steered } = CpuAffinity::of(cell, probe, true, steers);
            (divided, steered)
        };
        let of = |pinning, probe, steers| {
            in_cell(&cell(CellSettings { pinning, ..CellSettings::default() }), probe, steers)
        };
        let (none, all) = ([false; 2], [true; 2]);
        assert_eq!(of(None, Probe::Stream, Steers::Both), (true, all));
        assert_eq!(of(None, Probe::Echo, Steers::Both), (true, none));
        assert_eq!(of(Some(Pinning::Halves), Probe::Stream, Steers::Both), (true, none));
        assert_eq!(of(Some(Pinning::Steered), Probe::Echo, Steers::None), (true, all));
        assert_eq!(of(Some(Pinning::None), Probe::Stream, Steers::Both), (false, none));
        // Datagrams have no acknowledgements.
        assert_eq!(of(None, Probe::Stream, Steers::Senders), (true, none));
        let mut tcp = Cell { transport: Transport::Tcp, ..cell(CellSettings::default()) };
        assert_eq!(in_cell(&tcp, Probe::Stream, Steers::None), (true, none));
        for (direction, steered) in
            [(Direction::Forward, [true, false]), (Direction::Reverse, [false, true]), (Direction::Both, all)]
        {
            tcp.settings.direction = Some(direction);
            assert_eq!(in_cell(&tcp, Probe::Stream, Steers::Senders), (true, steered));
        }
    }
}
