//! The three metrics of RFC 6349, section 4.

use stacklab_model::{Family, Rate, Transport, wire_size};

/// Ideal transfer time of a payload in full segments at a link's rate, seconds (section 4.1.1, with TCP timestamps,
/// which are used here).
pub(super) fn ideal_seconds(payload_bytes: f64, rate: Rate, family: Family, mtu: u32) -> f64 {
    let headers = family.header_bytes() + Transport::Tcp.header_bytes();
    let full = mtu.saturating_sub(headers).max(1);
    let wire = wire_size(family, Transport::Tcp, full, mtu).wire_bytes;
    payload_bytes / f64::from(full) * f64::from(wire) * 8.0 / rate.bits_per_second() as f64
}

/// Actual over ideal transfer time (section 4.1).
pub(super) fn transfer_time_ratio(actual_seconds: f64, ideal_seconds: f64) -> f64 {
    actual_seconds / ideal_seconds
}

/// Per cent of the sent bytes (including retransmissions) that were not retransmissions (section 4.2).
pub(super) fn tcp_efficiency(sent_bytes: u64, sent_again_bytes: u64) -> f64 {
    sent_bytes.saturating_sub(sent_again_bytes) as f64 * 100.0 / sent_bytes as f64
}

/// Per cent by which round trips exceeded the baseline (section 4.3). Both in the same unit.
pub(super) fn buffer_delay(mean: f64, baseline: f64) -> f64 {
    (mean - baseline) * 100.0 / baseline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_come_out() {
        // 4.1.2: about 8 s ideal, 12 s actual. 4.2.1: 100,000 bytes, 2,000 of them retransmitted. 4.3.1: 25 and 32
        // ms.
        assert_eq!(transfer_time_ratio(12.0, 8.0), 1.5);
        let efficiency = tcp_efficiency(102_000, 2_000);
        // The RFC truncates 98.039 to two decimals.
        assert_eq!((efficiency * 100.0).floor() / 100.0, 98.03);
        assert_eq!(buffer_delay(32.0, 25.0), 28.0);
    }

    #[test]
    fn the_ideal_is_what_full_segments_take_on_ethernet() {
        // 4.1.1: 8127 frames of 1538 bytes a second at 100 Mbit/s. The RFC's segments hold 1460 bytes; with
        // timestamps it is 1448, and 1428 over IPv6.
        for (family, full) in [(Family::Ipv4, 1448.0), (Family::Ipv6, 1428.0)] {
            let frames = 1.0 / ideal_seconds(full, Rate(100_000_000), family, 1500);
            assert_eq!(frames.floor(), 8127.0);
        }
        // 500 MB over 500 Mbit/s: the RFC says about 8 seconds.
        let ideal = ideal_seconds(5e8, Rate(500_000_000), Family::Ipv4, 1500);
        assert!((8.0..8.6).contains(&ideal), "{ideal}");
    }
}
