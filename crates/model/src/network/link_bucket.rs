//! The token bucket that limits a link's rate, in messages of a cell.

use crate::factors::cell::Cell;
use crate::network::link_config::LinkConfig;
use crate::network::wire_cost::WireCost;
use serde::{Deserialize, Serialize};

/// What the token bucket of a link lets through, in messages of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkBucket {
    /// Messages per second by the link's rate and the headers.
    pub messages_per_second: f64,
    /// Messages beyond this rate that it lets through after a pause.
    pub burst: f64,
}

impl LinkBucket {
    /// The bucket of a link with a burst of this many bytes; `None` without a rate, or if no such message is possible.
    pub fn of(cell: &Cell, link_config: &LinkConfig, burst_bytes: u64) -> Option<Self> {
        let (rate, cost) = (link_config.rate?, WireCost::of(cell, link_config).ok()?);
        let burst = burst_bytes as f64 / cost.wire_bytes;
        Some(LinkBucket { messages_per_second: cost.messages_per_second(rate), burst })
    }

    /// Messages per second without the burst, where these arrived in this many seconds after a pause.
    ///
    /// What exceeds the link's rate is the burst's, as far as the burst reaches: a link that carries more than the
    /// headers say is seen. A rate below the link's is the sender's own, and is left alone.
    pub fn sustained(self, messages: f64, seconds: f64) -> f64 {
        let without = (messages - self.burst) / seconds;
        (messages / seconds).min(self.messages_per_second.max(without))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, Rate, SizeOf, Transport};

    #[test]
    fn only_the_excess_over_the_links_rate_is_left_out_and_no_more_than_the_burst() {
        let bucket = LinkBucket { messages_per_second: 1000.0, burst: 10.0 };
        let rates = [150.0, 200.0, 205.0, 210.0, 230.0].map(|messages| bucket.sustained(messages, 0.2));
        assert_eq!(rates, [750.0, 1000.0, 1000.0, 1000.0, 1100.0]);
    }

    #[test]
    fn a_bucket_counts_bytes_on_the_wire() {
        let link_config = LinkConfig { rate: Some(Rate(100_000_000)), mtu: 1500, offloads: false };
        let of = |family, transport, size_of| {
            let cell = Cell::new(family, transport, size_of, 1408);
            let LinkBucket { messages_per_second, burst } = LinkBucket::of(&cell, &link_config, 16_384)?;
            Some((messages_per_second.round(), burst.floor()))
        };
        // 20 and 40 bytes of IP, 8 of UDP and 38 of the frame.
        assert_eq!(of(Family::Ipv4, Transport::Udp, SizeOf::Payload), Some((8480.0, 11.0)));
        assert_eq!(of(Family::Ipv6, Transport::Udp, SizeOf::Payload), Some((8367.0, 10.0)));
        // 1448 of 1538 bytes of a full segment are payload.
        assert_eq!(of(Family::Ipv4, Transport::Tcp, SizeOf::Write), Some((8358.0, 10.0)));
        let unlimited = LinkConfig { rate: None, ..link_config };
        let cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 1408);
        assert_eq!(LinkBucket::of(&cell, &unlimited, 16_384), None);
    }
}
