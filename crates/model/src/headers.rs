//! What the headers alone explain: bytes on an Ethernet wire per message.

use crate::{Family, Transport};
use serde::{Deserialize, Serialize};

/// Bytes of an Ethernet header, which a network interface's own counters include and the FCS they do not.
pub const ETHERNET_HEADER_BYTES: u32 = 14;
/// Bytes of the Ethernet header and frame check sequence.
const FRAMING_BYTES: u32 = ETHERNET_HEADER_BYTES + 4;
/// Bytes of preamble, start delimiter and gap between frames (IEEE 802.3).
const GAP_BYTES: u32 = 20;
/// The least an Ethernet frame can be, FCS included.
const MIN_FRAME_BYTES: u32 = 64;

/// One message on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireSize {
    /// Packets it takes.
    pub packets: u32,
    /// Bytes of all its IP packets together.
    pub ip_bytes: u32,
    /// Bytes of wire time: frames, preambles and gaps.
    pub wire_bytes: u32,
}

/// How one message of `payload` bytes travels on Ethernet with the given MTU: UDP by fragments where it does not
/// fit, TCP (with the timestamp option) by further segments.
pub fn wire_size(family: Family, transport: Transport, payload: u32, mtu: u32) -> WireSize {
    let ip = family.header_bytes();
    // Each packet repeats `repeated` bytes of header and takes up to `room` of the rest.
    let (first_only, repeated, room) = match transport {
        Transport::Tcp => {
            (0, ip + transport.header_bytes(), mtu.saturating_sub(ip + transport.header_bytes()))
        }
        Transport::Udp if ip + transport.header_bytes() + payload <= mtu => {
            (transport.header_bytes(), ip, payload + transport.header_bytes())
        }
        Transport::Udp => {
            let extra = family.fragment_header_bytes();
            (transport.header_bytes(), ip + extra, mtu.saturating_sub(ip + extra) / 8 * 8)
        }
    };
    let mut left = payload + first_only;
    let mut size = WireSize { packets: 0, ip_bytes: 0, wire_bytes: 0 };
    loop {
        let taken = left.min(room.max(8));
        size.packets += 1;
        size.ip_bytes += repeated + taken;
        size.wire_bytes += GAP_BYTES + (FRAMING_BYTES + repeated + taken).max(MIN_FRAME_BYTES);
        left -= taken;
        if left == 0 {
            return size;
        }
    }
}

/// Payload bytes of a UDP datagram in an Ethernet frame of `frame` bytes (header and FCS counted); `None` where the
/// headers alone do not fit.
pub fn payload_of_frame(family: Family, transport: Transport, frame: u32) -> Option<u32> {
    frame.checked_sub(FRAMING_BYTES + family.header_bytes() + transport.header_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goodput in Mbit/s on 1 Gbit/s Ethernet, MTU 1500.
    fn goodput(family: Family, transport: Transport, payload: u32) -> String {
        let wire = wire_size(family, transport, payload, 1500).wire_bytes;
        format!("{:.2}", 1000.0 * f64::from(payload) / f64::from(wire))
    }

    #[test]
    fn goodput_of_gigabit_ethernet_agrees_with_the_worked_table() {
        use Family::*;
        use Transport::*;
        let table = [
            (64, "492.31", "426.67", "415.58", "367.82"),
            (128, "659.79", "598.13", "587.16", "537.82"),
            (256, "795.03", "748.54", "739.88", "699.45"),
            (384, "853.33", "817.02", "810.13", "777.33"),
            (512, "885.81", "856.19", "850.50", "823.15"),
            (640, "906.52", "881.54", "876.71", "853.33"),
            (768, "920.86", "899.30", "895.10", "874.72"),
            (896, "931.39", "912.42", "908.72", "890.66"),
            (1024, "939.45", "922.52", "919.21", "903.00"),
            (1152, "945.81", "930.53", "927.54", "912.84"),
            (1280, "950.97", "937.04", "934.31", "920.86"),
            (1408, "955.22", "942.44", "939.92", "927.54"),
            (1536, "925.30", "895.10", "895.10", "874.72"),
        ];
        for (payload, udp4, udp6, tcp4, tcp6) in table {
            assert_eq!(goodput(Ipv4, Udp, payload), udp4, "udp ipv4 {payload}");
            assert_eq!(goodput(Ipv6, Udp, payload), udp6, "udp ipv6 {payload}");
            assert_eq!(goodput(Ipv4, Tcp, payload), tcp4, "tcp ipv4 {payload}");
            assert_eq!(goodput(Ipv6, Tcp, payload), tcp6, "tcp ipv6 {payload}");
        }
    }

    #[test]
    fn frame_rates_of_gigabit_ethernet_agree_with_rfc_2544() {
        for (frame, per_second) in [(64, 1_488_095), (1518, 81_274)] {
            let payload = payload_of_frame(Family::Ipv4, Transport::Udp, frame).unwrap();
            let wire = wire_size(Family::Ipv4, Transport::Udp, payload, 1500).wire_bytes;
            assert_eq!(1_000_000_000 / 8 / wire, per_second);
        }
    }

    #[test]
    fn a_frame_too_small_for_its_headers_has_no_payload() {
        assert_eq!(payload_of_frame(Family::Ipv6, Transport::Udp, 64), None);
        assert_eq!(payload_of_frame(Family::Ipv6, Transport::Udp, 84), Some(18));
    }
}
