//! The configuration of a testbed's links.

use crate::factors::cell::Cell;
use crate::factors::mechanism::Mechanism;
use crate::network::headers::{WirePath, messages_per_second};
use crate::units::Rate;
use serde::{Deserialize, Serialize};

/// The configuration of every link between hosts. Every link has addresses of both families.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkConfig {
    /// Rate of the link in each direction, Ethernet overhead included; `None` is without a limit.
    pub rate: Option<Rate>,
    /// Largest IP packet of the link, bytes.
    pub mtu: u32,
    /// Whether segmentation and receive offloads stay on. If they are off, a packet in the kernel is a packet on the
    /// wire.
    pub offloads: bool,
}

impl LinkConfig {
    /// Largest IP packet of the link in a cell, bytes. The cell's own value applies if the study varies it.
    pub fn mtu_of(&self, cell: &Cell) -> u32 {
        cell.settings.mtu.unwrap_or(self.mtu)
    }

    /// Messages per second of a cell that the link carries, one message per packet. Headers are those of the path
    /// segment with the longest headers. `None` without a rate, or if the mechanism does not carry the family.
    pub fn messages_per_second(&self, cell: &Cell) -> Option<f64> {
        let rate = self.rate?;
        let payload = cell.payload_bytes();
        let plain = WirePath::plain(cell.family, cell.transport, self.mtu_of(cell));
        let crossing = WirePath { mechanism: Mechanism::of(cell), ..plain };
        let most = plain.wire_size(payload)?.wire_bytes.max(crossing.wire_size(payload)?.wire_bytes);
        Some(messages_per_second(rate, most.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factors::family::{Family, SizeOf, Transport};

    #[test]
    fn the_headers_on_the_fullest_part_of_a_link_say_how_many_messages_it_carries() {
        let link_config = LinkConfig { rate: Some(Rate(100_000_000)), mtu: 1500, offloads: false };
        let cell = |mechanism| {
            let mut cell = Cell::new(Family::Ipv6, Transport::Udp, SizeOf::Payload, 1400);
            cell.settings.mechanism = Some(mechanism);
            cell
        };
        // IPv6 40, UDP 8, and 38 for the frame: preamble, header, check sequence, gap.
        assert_eq!(link_config.messages_per_second(&cell(Mechanism::Native)), Some(12_500_000.0 / 1486.0));
        assert_eq!(link_config.messages_per_second(&cell(Mechanism::SixInFour)), Some(12_500_000.0 / 1506.0));
        // A packet that a translator makes smaller was larger before.
        assert_eq!(link_config.messages_per_second(&cell(Mechanism::Nat64)), Some(12_500_000.0 / 1486.0));
        assert_eq!(
            LinkConfig { rate: None, ..link_config }.messages_per_second(&cell(Mechanism::Native)),
            None
        );
    }
}
