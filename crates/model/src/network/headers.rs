//! The header model: bytes per message on an Ethernet wire.

use crate::factors::mechanism::{Carriage, ESP_BLOCK, ESP_TRAILER};
use crate::{Family, Mechanism, Transport};
use serde::{Deserialize, Serialize};

/// Bytes of an Ethernet header. An interface's own counters include the header, but not the FCS.
pub const ETHERNET_HEADER_BYTES: u32 = 14;
/// Bytes of the Ethernet header and frame check sequence.
const FRAMING_BYTES: u32 = ETHERNET_HEADER_BYTES + 4;
/// Bytes of preamble, start delimiter and interframe gap (IEEE 802.3).
const GAP_BYTES: u32 = 20;
const MIN_FRAME_BYTES: u32 = 64;

/// Minimum MTU of an IPv6 link (RFC 8200).
const MIN_IPV6_MTU: u32 = 1280;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireSize {
    pub packets: u32,
    /// Bytes of all its IP packets.
    pub ip_bytes: u32,
    /// Bytes of wire time: frames, preambles and gaps.
    pub wire_bytes: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WirePath {
    pub family: Family,
    pub transport: Transport,
    /// Largest IP packet of the link, bytes, tunnel headers included.
    pub mtu: u32,
    pub mechanism: Mechanism,
}

impl WirePath {
    pub fn plain(family: Family, transport: Transport, mtu: u32) -> Self {
        WirePath { family, transport, mtu, mechanism: Mechanism::Native }
    }

    /// The packets of one message of `payload` bytes. A larger UDP message is fragmented, a larger TCP message takes
    /// further segments. The sender knows the path MTU: inside a tunnel it cuts to the link's MTU minus the tunnel's
    /// headers, and each piece is encapsulated alone. `None` if the mechanism does not carry the family.
    pub fn wire_size(&self, payload: u32) -> Option<WireSize> {
        let family = self.family;
        let transport = self.transport.header_bytes();
        let ip = family.header_bytes();
        let mtu = self.mechanism.leaves(family, self.mtu)?;
        // Each packet repeats `repeated` header bytes and has up to `room` bytes for the rest.
        let (first_only, repeated, room) = match self.transport {
            Transport::Tcp => (0, ip + transport, mtu.saturating_sub(ip + transport)),
            Transport::Udp if ip + transport + payload <= mtu => (transport, ip, payload + transport),
            Transport::Udp => {
                let repeated = ip + family.fragment_header_bytes();
                (transport, repeated, mtu.saturating_sub(repeated) / 8 * 8)
            }
        };
        let cut = self.transport == Transport::Udp && room < payload + transport;
        let mut left = payload + first_only;
        let mut size = WireSize { packets: 0, ip_bytes: 0, wire_bytes: 0 };
        loop {
            let mut taken = left.min(room.max(8));
            left -= taken;
            while taken > 0 {
                let piece = if cut { taken.min(self.translated_piece()) } else { taken };
                let packet = self.carry(repeated + piece, cut, mtu)?;
                size.packets += 1;
                size.ip_bytes += packet;
                size.wire_bytes += GAP_BYTES + (FRAMING_BYTES + packet).max(MIN_FRAME_BYTES);
                taken -= piece;
            }
            if left == 0 {
                return Some(size);
            }
        }
    }

    /// A translator to IPv6 fragments packets that may be fragmented to 1280 bytes (RFC 7915, section 4).
    fn translated_piece(&self) -> u32 {
        match self.mechanism.carriage(self.family) {
            Some(Carriage::Plain(family)) if family != self.family => {
                (MIN_IPV6_MTU - family.header_bytes() - family.fragment_header_bytes()) / 8 * 8
            }
            _ => u32::MAX,
        }
    }

    fn carry(&self, packet: u32, fragment: bool, most: u32) -> Option<u32> {
        Some(match self.mechanism.carriage(self.family)? {
            Carriage::Plain(family) if fragment => {
                packet + count_fragment_headers(family) - count_fragment_headers(self.family)
            }
            Carriage::Plain(family) => packet + family.header_bytes() - self.family.header_bytes(),
            Carriage::Inside(bytes) => packet + bytes,
            Carriage::Sealed(bytes) => (packet + ESP_TRAILER).next_multiple_of(ESP_BLOCK) + bytes,
            Carriage::Filled(bytes, block) => packet.next_multiple_of(block).min(most.max(packet)) + bytes,
        })
    }
}

/// Bytes of the headers of a fragment.
fn count_fragment_headers(family: Family) -> u32 {
    family.header_bytes() + family.fragment_header_bytes()
}

/// [`WirePath::wire_size`] without a mechanism.
pub fn wire_size(family: Family, transport: Transport, payload: u32, mtu: u32) -> WireSize {
    let path = WirePath::plain(family, transport, mtu);
    path.wire_size(payload).expect("either family is carried where there is no mechanism")
}

/// Payload bytes of a UDP datagram in an Ethernet frame of `frame` bytes (header and FCS included); `None` if the
/// headers alone do not fit.
pub fn payload_of_frame(family: Family, transport: Transport, frame: u32) -> Option<u32> {
    frame.checked_sub(FRAMING_BYTES + family.header_bytes() + transport.header_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rate, WireCost};
    use Family::*;
    use Mechanism::*;
    use Transport::*;

    const GIGABIT: Rate = Rate(1_000_000_000);

    fn cost(payload: u32, wire: u32) -> WireCost {
        WireCost { payload_bytes: payload.into(), wire_bytes: wire.into(), because: String::new() }
    }

    fn path(family: Family, transport: Transport, mechanism: Mechanism) -> WirePath {
        WirePath { mechanism, ..WirePath::plain(family, transport, 1500) }
    }

    #[test]
    fn goodput_of_gigabit_ethernet_agrees_with_the_table() {
        let columns = [
            path(Ipv4, Udp, Mechanism::Native),
            path(Ipv6, Udp, Mechanism::Native),
            path(Ipv4, Tcp, Mechanism::Native),
            path(Ipv6, Tcp, Mechanism::Native),
            path(Ipv6, Udp, SixInFour),
            path(Ipv4, Udp, Gre4),
            path(Ipv6, Udp, Gre4),
            path(Ipv4, Udp, FourInSix),
        ];
        let table = [
            (64, ["492.31", "426.67", "415.58", "367.82", "376.47", "415.58", "367.82", "376.47"]),
            (128, ["659.79", "598.13", "587.16", "537.82", "547.01", "587.16", "537.82", "547.01"]),
            (256, ["795.03", "748.54", "739.88", "699.45", "707.18", "739.88", "699.45", "707.18"]),
            (384, ["853.33", "817.02", "810.13", "777.33", "783.67", "810.13", "777.33", "783.67"]),
            (512, ["885.81", "856.19", "850.50", "823.15", "828.48", "850.50", "823.15", "828.48"]),
            (640, ["906.52", "881.54", "876.71", "853.33", "857.91", "876.71", "853.33", "857.91"]),
            (768, ["920.86", "899.30", "895.10", "874.72", "878.72", "895.10", "874.72", "878.72"]),
            (896, ["931.39", "912.42", "908.72", "890.66", "894.21", "908.72", "890.66", "894.21"]),
            (1024, ["939.45", "922.52", "919.21", "903.00", "906.19", "919.21", "903.00", "906.19"]),
            (1152, ["945.81", "930.53", "927.54", "912.84", "915.74", "927.54", "912.84", "915.74"]),
            (1280, ["950.97", "937.04", "934.31", "920.86", "923.52", "934.31", "920.86", "923.52"]),
            (1408, ["955.22", "942.44", "939.92", "927.54", "929.99", "939.92", "927.54", "929.99"]),
            (1536, ["925.30", "895.10", "895.10", "874.72", "874.72", "899.30", "870.75", "882.76"]),
        ];
        for (payload, row) in table {
            for (path, expected) in columns.iter().zip(row) {
                let wire = path.wire_size(payload).unwrap().wire_bytes;
                let found = format!("{:.2}", cost(payload, wire).goodput(GIGABIT));
                assert_eq!(found, expected, "{payload} B, {path:?}");
            }
        }
    }

    #[test]
    fn mechanisms_of_one_kind_cost_the_same() {
        for payload in [64, 1408, 1536, 4000] {
            for transport in [Udp, Tcp] {
                let of = |family, mechanism| path(family, transport, mechanism).wire_size(payload).unwrap();
                for alike in [SixToFour, SixRd] {
                    assert_eq!(of(Ipv6, alike), of(Ipv6, SixInFour));
                }
                // A translated packet has the other family's header: 20 bytes more than IPv4, until it must be
                // fragmented.
                assert_eq!(of(Ipv6, Nat64), of(Ipv6, Mechanism::Native));
                assert_eq!(of(Ipv4, Siit), of(Ipv4, Xlat464));
                if transport == Tcp || payload < 1500 {
                    assert_eq!(of(Ipv4, Siit), of(Ipv6, Mechanism::Native));
                }
            }
        }
    }

    #[test]
    fn tunnels_over_ipv6_have_its_longer_header() {
        assert_eq!(count_ip_bytes(path(Ipv4, Udp, Gre6), 512), 512 + 28 + 44);
        assert_eq!(count_ip_bytes(path(Ipv6, Udp, Gre6), 512), 512 + 48 + 44);
        assert_eq!(count_ip_bytes(path(Ipv4, Udp, FourInSix), 512), 512 + 28 + 40);
        assert_eq!(count_ip_bytes(path(Ipv6, Udp, SixInFour), 512), 512 + 48 + 20);
    }

    fn count_ip_bytes(path: WirePath, payload: u32) -> u32 {
        path.wire_size(payload).unwrap().ip_bytes
    }

    #[test]
    fn the_smallest_frame_is_filled_up() {
        assert_eq!(wire_size(Ipv4, Udp, 1, 1500).wire_bytes, 20 + 64);
    }

    #[test]
    fn what_a_mechanism_does_not_carry_has_no_size() {
        assert_eq!(path(Ipv4, Udp, SixInFour).wire_size(64), Option::None);
        assert_eq!(path(Ipv6, Tcp, FourInSix).wire_size(64), Option::None);
        assert!(Gre4.carries(Ipv4) && Gre6.carries(Ipv6) && !SixRd.carries(Ipv4));
    }

    #[test]
    fn wireguard_pads_to_sixteen_bytes_within_its_mtu() {
        // 156 bytes of packet are padded to 160, plus 60 bytes of outer headers.
        for (payload, expected) in [(128, 160 + 60), (132, 160 + 60), (1440 - 28, 1500)] {
            assert_eq!(count_ip_bytes(path(Ipv4, Udp, WireGuard4), payload), expected);
        }
        let six = path(Ipv6, Udp, WireGuard6).wire_size(1420 - 48).unwrap();
        assert_eq!((six.packets, six.ip_bytes), (1, 1500));
    }

    #[test]
    fn translator_cuts_fragments_to_the_ipv6_minimum_mtu() {
        // 1544 bytes after the IPv4 header: fragments with 1456 and 88 bytes. The first is split again into 1232 and
        // 224.
        let size = path(Ipv4, Udp, Siit).wire_size(1536).unwrap();
        assert_eq!((size.packets, size.ip_bytes), (3, 1544 + 3 * 48));
        assert_eq!(path(Ipv4, Udp, MapTranslation).wire_size(1536), Some(size));
    }

    #[test]
    fn a_mechanism_leaves_what_its_headers_do_not_take() {
        for (mechanism, family, left) in [
            (Native, Ipv4, 1500),
            (SixInFour, Ipv6, 1480),
            (Gre4, Ipv4, 1476),
            (Gre6, Ipv6, 1456),
            (FourInSix, Ipv4, 1460),
            (Ipip, Ipv4, 1480),
            (Nat64, Ipv6, 1500),
            (Siit, Ipv4, 1480),
            (WireGuard4, Ipv6, 1440),
            (WireGuard6, Ipv4, 1420),
            (MapTranslation, Ipv4, 1480),
            (SrV6, Ipv4, 1436),
            (SrV6Two, Ipv6, 1420),
            (SrV6Table, Ipv4, 1436),
            (Gre6Esp, Ipv4, 1422),
        ] {
            assert_eq!(mechanism.leaves(family, 1500), Some(left), "{mechanism}");
        }
        assert_eq!(SixInFour.leaves(Ipv4, 1500), Option::None);
    }

    #[test]
    fn segments_of_a_long_message_fit_into_the_tunnel() {
        // 1500 - 20 - 72 = 1408 bytes in each: two full packets and a remainder of 184.
        let size = path(Ipv6, Tcp, SixInFour).wire_size(3000).unwrap();
        assert_eq!((size.packets, size.wire_bytes), (3, 2 * 1538 + 184 + 92 + 38));
    }

    /// Frames per second, for frames of `frame` bytes (header and FCS included) before the mechanism (RFC 8219,
    /// appendix A).
    fn frame_rate(path: WirePath, frame: u32) -> f64 {
        let carried = path
            .carry(frame - FRAMING_BYTES, false, path.mechanism.leaves(path.family, path.mtu).unwrap())
            .unwrap();
        let wire = GAP_BYTES + (FRAMING_BYTES + carried).max(MIN_FRAME_BYTES);
        cost(0, wire).messages_per_second(GIGABIT)
    }

    #[test]
    fn gigabit_frame_rates_agree_with_rfc_2544_and_8219() {
        let plain = path(Ipv4, Udp, Mechanism::Native);
        let tunnel = path(Ipv6, Udp, SixInFour);
        for (path, frame, per_second) in [
            (plain, 64, 1_488_095.0),
            (plain, 1518, 81_274.0),
            (tunnel, 64, 1_201_923.0),
            (tunnel, 1518, 80_231.0),
        ] {
            assert_eq!(frame_rate(path, frame).trunc(), per_second);
        }
    }

    #[test]
    fn a_frame_too_small_for_its_headers_has_no_payload() {
        assert_eq!(payload_of_frame(Ipv6, Udp, 64), Option::None);
        assert_eq!(payload_of_frame(Ipv6, Udp, 84), Some(18));
    }
}
