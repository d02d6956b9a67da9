//! The wire time of a cell's messages, and the message rate that a link carries.

use crate::{Cell, LinkConfig, Mechanism, Rate, WirePath};
use serde::{Deserialize, Serialize};

/// The wire time of one message of a cell; TCP writes are spread over full segments.
#[derive(Debug, Clone, PartialEq)]
pub struct WireCost {
    pub payload_bytes: f64,
    /// Its share of wire time, bytes.
    pub wire_bytes: f64,
    pub because: String,
}

impl WireCost {
    pub fn of(cell: &Cell, link_config: &LinkConfig) -> Result<Self, String> {
        let mtu = link_config.mtu_of(cell);
        let Cell { family, transport, size, .. } = *cell;
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
        let (unit, joined) = cell.wire_unit(most);
        let wire = path.wire_size(unit).ok_or_else(|| format!("{mechanism} does not carry {family}"))?;
        let crossing =
            if mechanism == Mechanism::Native { String::new() } else { format!(" by {mechanism}") };
        let how = match (joined, wire.packets) {
            (true, _) => " (writes joined to full segments)".to_owned(),
            (false, 1) => String::new(),
            (false, packets) => format!(" ({packets} packets)"),
        };
        let because = format!("{family} {unit} B in {} B of wire{how}{crossing}", wire.wire_bytes);
        let wire_per_byte = f64::from(wire.wire_bytes) / f64::from(unit);
        let payload_bytes = f64::from(payload);
        Ok(WireCost { payload_bytes, wire_bytes: payload_bytes * wire_per_byte, because })
    }

    pub fn messages_per_second(&self, rate: Rate) -> f64 {
        rate.bits_per_second() as f64 / 8.0 / self.wire_bytes
    }

    pub fn goodput(&self, rate: Rate) -> f64 {
        rate.bits_per_second() as f64 / 1e6 * self.payload_bytes / self.wire_bytes
    }
}

/// What the token bucket of a link lets through, in messages of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkBucket {
    pub messages_per_second: f64,
    /// Messages beyond this rate that it lets through after a pause.
    pub burst: f64,
}

impl LinkBucket {
    /// The bucket of a link with a burst of this many bytes; `None` without a rate, or if no such message is possible.
    pub fn of(cell: &Cell, link_config: &LinkConfig, burst_bytes: u64) -> Option<Self> {
        let rate = link_config.rate?;
        let cost = WireCost::of(cell, link_config).ok()?;
        let burst = burst_bytes as f64 / cost.wire_bytes;
        Some(LinkBucket { messages_per_second: cost.messages_per_second(rate), burst })
    }

    /// Messages per second without the burst, where these arrived in this many seconds after a pause. What exceeds the
    /// link's rate is the burst's, as far as it reaches; a rate below the link's is the sender's own.
    pub fn find_sustained_rate(self, messages: f64, seconds: f64) -> f64 {
        let without = (messages - self.burst) / seconds;
        (messages / seconds).min(self.messages_per_second.max(without))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, SizeOf, Transport};

    #[test]
    fn excess_over_link_rate_is_left_out_up_to_the_burst() {
        let bucket = LinkBucket { messages_per_second: 1000.0, burst: 10.0 };
        let rates =
            [150.0, 200.0, 205.0, 210.0, 230.0].map(|messages| bucket.find_sustained_rate(messages, 0.2));
        assert_eq!(rates, [750.0, 1000.0, 1000.0, 1000.0, 1100.0]);
    }

    #[test]
    fn a_bucket_counts_bytes_on_the_wire() {
        let link_config = LinkConfig { rate: Some(Rate(100_000_000)), mtu: 1500, offloads: false };
        for (family, transport, size_of, rate, most) in [
            // 20 and 40 bytes of IP, 8 of UDP and 38 of the frame.
            (Family::Ipv4, Transport::Udp, SizeOf::Payload, 8480.0, 11.0),
            (Family::Ipv6, Transport::Udp, SizeOf::Payload, 8367.0, 10.0),
            // 1448 of 1538 bytes of a full segment are payload.
            (Family::Ipv4, Transport::Tcp, SizeOf::Write, 8358.0, 10.0),
        ] {
            let cell = Cell::new(family, transport, size_of, 1408);
            let bucket = LinkBucket::of(&cell, &link_config, 16_384).unwrap();
            assert_eq!((bucket.messages_per_second.round(), bucket.burst.floor()), (rate, most));
        }
        let unlimited = LinkConfig { rate: None, ..link_config };
        let cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 1408);
        assert_eq!(LinkBucket::of(&cell, &unlimited, 16_384), None);
    }
}
