//! The wire time of a cell's messages, and the message rate that a link carries.

use crate::factors::cell::Cell;
use crate::factors::family::SizeOf;
use crate::factors::family::Transport;
use crate::factors::mechanism::Mechanism;
use crate::network::headers::{WirePath, goodput, messages_per_second};
use crate::network::link_config::LinkConfig;
use crate::units::Rate;

/// The wire time of one message of a cell; TCP writes are spread over full segments.
#[derive(Debug, Clone, PartialEq)]
pub struct WireCost {
    /// Payload of a message, bytes.
    pub payload_bytes: f64,
    /// Its share of wire time, bytes.
    pub wire_bytes: f64,
    /// How `wire_bytes` was computed, in a few words.
    pub because: String,
}

impl WireCost {
    /// The wire cost of a cell's messages on a link.
    ///
    /// # Errors
    /// Why such a message is impossible.
    pub fn of(cell: &Cell, link_config: &LinkConfig) -> Result<Self, String> {
        let mtu = link_config.mtu_of(cell);
        let Cell { family, transport, size_of, size, .. } = *cell;
        let payload = cell.payload_bytes();
        if payload == 0 {
            return Err(format!("a frame of {size} bytes has no room for {family} payload"));
        }
        let mechanism = Mechanism::of(cell);
        let headers = family.header_bytes() + transport.header_bytes();
        let path = WirePath { mechanism, ..WirePath::plain(family, transport, mtu) };
        let most = mechanism
            .leaves(family, mtu)
            .ok_or_else(|| format!("{mechanism} does not carry {family}"))?
            .checked_sub(headers)
            .filter(|most| *most > 0)
            .ok_or_else(|| format!("an MTU of {mtu} bytes has no room for {family} payload"))?;
        // The kernel coalesces TCP writes, so the headers are spread over full segments for every write size.
        let joined = size_of == SizeOf::Write && transport == Transport::Tcp;
        // TCP_MAXSEG includes the options after the first 20 bytes of the TCP header.
        let mss = cell
            .settings
            .tuning
            .mss
            .map(|mss| mss.saturating_add(20).saturating_sub(transport.header_bytes()).max(1));
        let unit = if joined { mss.map_or(most, |mss| mss.min(most)) } else { payload };
        let wire = path.wire_size(unit).ok_or_else(|| format!("{mechanism} does not carry {family}"))?;
        let crossing =
            if mechanism == Mechanism::Native { String::new() } else { format!(" by {mechanism}") };
        let because = match (joined, wire.packets) {
            (true, _) => {
                format!("{family} {unit} B in {} B of wire (writes joined to full segments)", wire.wire_bytes)
            }
            (false, 1) => format!("{family} {unit} B in {} B of wire", wire.wire_bytes),
            (false, packets) => {
                format!("{family} {unit} B in {} B of wire ({packets} packets)", wire.wire_bytes)
            }
        };
        let because = format!("{because}{crossing}");
        let wire_per_byte = f64::from(wire.wire_bytes) / f64::from(unit);
        let payload_bytes = f64::from(payload);
        Ok(WireCost { payload_bytes, wire_bytes: payload_bytes * wire_per_byte, because })
    }

    /// Maximum messages per second on a link of this rate.
    pub fn messages_per_second(&self, rate: Rate) -> f64 {
        messages_per_second(rate, self.wire_bytes)
    }

    /// Maximum payload rate on a link of this rate, Mbit/s.
    pub fn goodput(&self, rate: Rate) -> f64 {
        goodput(rate, self.payload_bytes, self.wire_bytes)
    }
}
