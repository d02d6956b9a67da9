//! The cells in which a metric can have a figure.

use super::{TCP, UDP};
use crate::{Cell, Metric, Table, Transport};

impl Metric {
    pub fn applies_to(self, transport: Transport) -> bool {
        let other = match transport {
            Transport::Tcp => UDP,
            Transport::Udp => TCP,
        };
        !self.has(other) && self.probe().supports(transport)
    }

    /// The table whose entries it measures.
    pub fn table(self) -> Option<Table> {
        Table::ALL.iter().copied().find(|table| table.metric() == self)
    }

    /// Whether it can have a figure in a cell, which has the transport and the entries that it measures.
    pub fn is_of_cell(self, cell: &Cell) -> bool {
        self.applies_to(cell.transport)
            && self.probe().measures(cell)
            && self.table().is_none_or(|table| table.count_entries(cell) > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellSettings, Family, SizeOf, Tracking};

    fn cell_with(settings: CellSettings) -> Cell {
        Cell { settings: settings.into(), ..Cell::new(Family::Ipv6, Transport::Udp, SizeOf::Payload, 128) }
    }

    fn track(connections: u32) -> Cell {
        cell_with(CellSettings { conntrack: Some(Tracking::On(connections)), ..CellSettings::default() })
    }

    #[test]
    fn memory_of_entries_is_of_cells_that_have_some() {
        let plain = cell_with(CellSettings::default());
        let routes = cell_with(CellSettings { routes: Some(1000), ..CellSettings::default() });
        let spread = cell_with(CellSettings { destinations: Some(2), ..CellSettings::default() });
        for (metric, cell, expected) in [
            (Metric::MemoryPerRoute, &plain, false),
            (Metric::MemoryPerRoute, &routes, true),
            (Metric::MemoryPerConnection, &routes, false),
            (Metric::MemoryPerConnection, &track(0), false),
            (Metric::MemoryPerConnection, &track(5), true),
            (Metric::Throughput, &plain, true),
            (Metric::TcpSrtt, &routes, false),
            (Metric::Throughput, &spread, true),
            (Metric::Rtt, &spread, false),
        ] {
            assert_eq!(metric.is_of_cell(cell), expected, "{metric} in {cell:?}");
        }
    }
}
