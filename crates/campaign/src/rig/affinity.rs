//! The processors that the hosts of a trial run on, and whose CPU time their figures cover.

use stacklab_model::{Cell, CpuScope, Direction, Pinning, Probe, Transport};

/// Which receive work of streams a testbed steers by default.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Steers {
    /// None: it cannot.
    #[default]
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
        match cell.settings.pinning {
            Some(Pinning::Steered) => CpuAffinity { divided: true, steered: [true; 2] },
            Some(Pinning::Halves) => CpuAffinity { divided: true, steered: [false; 2] },
            Some(Pinning::None) => CpuAffinity { divided: false, steered: [false; 2] },
            None => CpuAffinity { divided: divides, steered: steer_by_default(cell, probe, steers) },
        }
    }
}

fn steer_by_default(cell: &Cell, probe: Probe, steers: Steers) -> [bool; 2] {
    match (probe, steers) {
        (Probe::Stream | Probe::Paced | Probe::Search, Steers::Both) => [true; 2],
        (Probe::Stream | Probe::Paced | Probe::Search, Steers::Senders)
            if cell.transport == Transport::Tcp =>
        {
            [0, 1].map(|host| Direction::of(cell).senders().contains(&host))
        }
        _ => [false; 2],
    }
}

/// Whose CPU time the CPU figures of a cell's runs cover; `steers` is the testbed's default for streams.
pub(crate) fn cpu_scope(cell: &Cell, steers: Steers) -> CpuScope {
    // Whether each host's CPUs do all of its work, and only its.
    let separates = CpuAffinity::of(cell, Probe::Stream, true, steers).steered == [true; 2];
    if separates { CpuScope::Processors } else { CpuScope::Shared }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{CellSettings, Family, SizeOf};

    fn cell(settings: CellSettings) -> Cell {
        Cell { settings: settings.into(), ..Cell::new(Family::Ipv6, Transport::Udp, SizeOf::Payload, 1400) }
    }

    fn pin_cell(cell: &Cell, probe: Probe, steers: Steers) -> (bool, [bool; 2]) {
        let CpuAffinity { divided, steered } = CpuAffinity::of(cell, probe, true, steers);
        (divided, steered)
    }

    fn pin(pinning: Option<Pinning>, probe: Probe, steers: Steers) -> (bool, [bool; 2]) {
        pin_cell(&cell(CellSettings { pinning, ..CellSettings::default() }), probe, steers)
    }

    #[test]
    fn pinning_is_as_asked_or_what_the_testbed_can() {
        let none = [false; 2];
        let all = [true; 2];
        assert_eq!(pin(None, Probe::Stream, Steers::Both), (true, all));
        assert_eq!(pin(None, Probe::Echo, Steers::Both), (true, none));
        assert_eq!(pin(Some(Pinning::Halves), Probe::Stream, Steers::Both), (true, none));
        assert_eq!(pin(Some(Pinning::Steered), Probe::Echo, Steers::None), (true, all));
        assert_eq!(pin(Some(Pinning::None), Probe::Stream, Steers::Both), (false, none));
        // Datagrams have no acknowledgements.
        assert_eq!(pin(None, Probe::Stream, Steers::Senders), (true, none));
        let mut tcp = Cell { transport: Transport::Tcp, ..cell(CellSettings::default()) };
        assert_eq!(pin_cell(&tcp, Probe::Stream, Steers::None), (true, none));
        for (direction, steered) in
            [(Direction::Forward, [true, false]), (Direction::Reverse, [false, true]), (Direction::Both, all)]
        {
            tcp.settings.direction = Some(direction);
            assert_eq!(pin_cell(&tcp, Probe::Stream, Steers::Senders), (true, steered));
        }
    }
}
