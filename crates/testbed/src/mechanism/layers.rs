//! The headers of a packet on the middle link, decoded from the packet itself.

use crate::mechanism::devices::{GENEVE_PORT, VXLAN_PORT};
use crate::mechanism::tunnels::WIREGUARD_PORT;
use crate::mechanism::udp_port::{GUE_PORT, choose_fou_port};
use stacklab_model::{Family, Header, Mechanism};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A header of a captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// An IP header with its addresses, source first.
    Ip(IpAddr, IpAddr),
    /// Another header that is known. What is inside WireGuard and ESP is encrypted.
    Known(Header),
    /// Another protocol, by its number.
    Other(u8),
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layer::Ip(from, to) => write!(f, "{} {from} > {to}", Family::of(*from)),
            Layer::Known(header) => {
                f.write_str(header.name())?;
                match header {
                    // Of a single one, the last, none is left.
                    Header::SegmentRouting(segments) if *segments > 1 => {
                        write!(f, " ({segments} segments, {} left)", segments - 1)
                    }
                    _ => Ok(()),
                }
            }
            Layer::Other(protocol) => write!(f, "protocol {protocol}"),
        }
    }
}

/// Decodes an Ethernet frame's headers, outermost first, as far as they are known.
pub fn layers(frame: &[u8]) -> Vec<Layer> {
    let mut layers = Vec::new();
    let Some(kind) = frame.get(12..14) else { return layers };
    let first = u16::from_be_bytes([kind[0], kind[1]]);
    of_ethertype(first, &frame[14..], &mut layers);
    layers
}

fn of_ethertype(kind: u16, packet: &[u8], into: &mut Vec<Layer>) {
    match kind {
        0x0800 => ipv4(packet, into),
        0x86dd => ipv6(packet, into),
        _ => {}
    }
}

fn ipv4(packet: &[u8], into: &mut Vec<Layer>) {
    if packet.len() < 20 || packet[0] >> 4 != 4 {
        return;
    }
    let length = usize::from(packet[0] & 15) * 4;
    // A header that is shorter than the shortest would contain itself.
    if length < 20 {
        return;
    }
    let address = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    into.push(Layer::Ip(address(12).into(), address(16).into()));
    inside(packet[9], packet.get(length..).unwrap_or_default(), into);
}

fn ipv6(packet: &[u8], into: &mut Vec<Layer>) {
    if packet.len() < 40 || packet[0] >> 4 != 6 {
        return;
    }
    into.push(Layer::Ip(read_v6(packet, 8).into(), read_v6(packet, 24).into()));
    inside(packet[6], &packet[40..], into);
}

fn read_v6(packet: &[u8], at: usize) -> Ipv6Addr {
    let octets: [u8; 16] = packet[at..at + 16].try_into().unwrap_or_default();
    Ipv6Addr::from(octets)
}

fn inside(protocol: u8, rest: &[u8], into: &mut Vec<Layer>) {
    match protocol {
        4 => ipv4(rest, into),
        41 => ipv6(rest, into),
        43 => inside_routing(rest, into),
        47 if rest.len() >= 4 => {
            into.push(Layer::Known(Header::Gre));
            of_ethertype(u16::from_be_bytes([rest[2], rest[3]]), &rest[4..], into);
        }
        50 => into.push(Layer::Known(Header::Esp)),
        17 => {
            into.push(Layer::Known(Header::Udp));
            let port = rest.get(2..4).map_or(0, |port| u16::from_be_bytes([port[0], port[1]]));
            inside_datagram(port, rest.get(8..).unwrap_or_default(), into);
        }
        other => into.push(Layer::Other(other)),
    }
}

/// A segment routing header, and what is inside. It is known on the way to its first segment, with nothing but
/// segments (RFC 8754, section 2).
fn inside_routing(rest: &[u8], into: &mut Vec<Layer>) {
    const SEGMENTS: u8 = 4;
    match rest {
        // The length is in units of eight bytes, without the first eight.
        [next, units, SEGMENTS, left, last, ..]
            if left == last && u16::from(*units) == (u16::from(*last) + 1) * 2 =>
        {
            into.push(Layer::Known(Header::SegmentRouting(last + 1)));
            let length = (usize::from(*units) + 1) * 8;
            inside(*next, rest.get(length..).unwrap_or_default(), into);
        }
        _ => into.push(Layer::Other(43)),
    }
}

const FOU_PORT_V4: u16 = choose_fou_port(Family::Ipv4);
const FOU_PORT_V6: u16 = choose_fou_port(Family::Ipv6);

/// The headers inside a datagram to a port of a tunnel.
fn inside_datagram(port: u16, payload: &[u8], into: &mut Vec<Layer>) {
    match port {
        // Type 4 is transport data.
        WIREGUARD_PORT if payload.first() == Some(&4) => into.push(Layer::Known(Header::WireGuard)),
        // The flag says that there is a network identifier.
        VXLAN_PORT if payload.first() == Some(&0x08) => {
            into.push(Layer::Known(Header::Vxlan));
            ethernet(payload.get(8..).unwrap_or_default(), into);
        }
        // Version 0 without options, and an Ethernet frame inside.
        GENEVE_PORT if payload.first() == Some(&0) && payload.get(2..4) == Some(&[0x65, 0x58]) => {
            into.push(Layer::Known(Header::Geneve));
            ethernet(payload.get(8..).unwrap_or_default(), into);
        }
        // Version 0 without options, and a packet inside.
        GUE_PORT if payload.first() == Some(&0) => {
            into.push(Layer::Known(Header::Gue));
            inside(payload.get(1).copied().unwrap_or_default(), payload.get(4..).unwrap_or_default(), into);
        }
        FOU_PORT_V4 => ipv4(payload, into),
        FOU_PORT_V6 => ipv6(payload, into),
        _ => {}
    }
}

fn ethernet(frame: &[u8], into: &mut Vec<Layer>) {
    if let Some([high, low]) = frame.get(12..14) {
        into.push(Layer::Known(Header::Ethernet));
        of_ethertype(u16::from_be_bytes([*high, *low]), &frame[14..], into);
    }
}

impl Layer {
    fn header(self) -> Option<Header> {
        match self {
            Layer::Ip(from, _) => Some(Header::ip(Family::of(from))),
            Layer::Known(header) => Some(header),
            Layer::Other(_) => None,
        }
    }
}

/// Whether these are the headers that a mechanism gives a datagram of a family from the near client.
pub(crate) fn are_of(mechanism: Mechanism, family: Family, layers: &[Layer]) -> bool {
    let found: Option<Vec<Header>> = layers.iter().map(|layer| layer.header()).collect();
    found.is_some() && found == mechanism.datagram_headers(family)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An Ethernet frame with UDP in IPv6 in IPv4.
    fn six_in_four() -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x45, 0, 0, 68, 0, 0, 0x40, 0, 64, 41, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
        frame.extend([0x60, 0, 0, 0, 0, 8, 17, 63]);
        frame.extend("2001:2:0:1::1".parse::<Ipv6Addr>().unwrap().octets());
        frame.extend("2001:2:0:2::1".parse::<Ipv6Addr>().unwrap().octets());
        frame.extend([0x12, 0x34, 0x56, 0x78, 0, 8, 0, 0]);
        frame
    }

    #[test]
    fn packet_headers_are_read_from_outside_to_inside() {
        let frame = six_in_four();
        let found: Vec<String> = layers(&frame).iter().map(Layer::to_string).collect();
        assert_eq!(found, ["ipv4 198.18.0.1 > 198.18.0.2", "ipv6 2001:2:0:1::1 > 2001:2:0:2::1", "udp"]);
        assert!(are_of(Mechanism::SixInFour, Family::Ipv6, &layers(&frame)));
        for other in [Mechanism::Native, Mechanism::Gre4, Mechanism::FourInSix, Mechanism::Nat64] {
            assert!(!are_of(other, Family::Ipv6, &layers(&frame)), "{other}");
        }
        for length in 0..frame.len() {
            // A truncated frame is not read beyond its end.
            let _ = layers(&frame[..length]);
        }
    }

    /// A frame of an Ethernet type with these headers in order.
    fn frame(kind: u16, headers: &[&[u8]]) -> Vec<u8> {
        [&[0; 12][..], &kind.to_be_bytes(), &headers.concat()].concat()
    }

    fn four(protocol: u8) -> Vec<u8> {
        vec![0x45, 0, 0, 99, 0, 0, 0, 0, 64, protocol, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]
    }

    fn six(protocol: u8) -> Vec<u8> {
        let from = Ipv6Addr::new(0x2001, 2, 0, 0xffff, 0, 0, 0, 1).octets();
        let to = Ipv6Addr::new(0x2001, 2, 0, 0xffff, 0, 0, 0, 2).octets();
        [&[0x60, 0, 0, 0, 0, 99, protocol, 64][..], &from, &to].concat()
    }

    fn gre(kind: u16) -> Vec<u8> {
        [&[0, 0][..], &kind.to_be_bytes()].concat()
    }

    #[test]
    fn each_mechanism_is_known_by_its_protocol_number() {
        let datagram = [0x12, 0x34, 0x56, 0x78, 0, 8, 0, 0];
        let [port_high, port_low] = WIREGUARD_PORT.to_be_bytes();
        let data = [0x12, 0x34, port_high, port_low, 0, 40, 0, 0, 4, 0, 0, 0];
        use Family::{Ipv4, Ipv6};
        let all = [
            (Mechanism::Gre4, Ipv4, frame(0x800, &[&four(47), &gre(0x800), &four(17), &datagram])),
            (Mechanism::Gre4, Ipv6, frame(0x800, &[&four(47), &gre(0x86dd), &six(17), &datagram])),
            (Mechanism::Gre6, Ipv4, frame(0x86dd, &[&six(47), &gre(0x800), &four(17), &datagram])),
            (Mechanism::FourInSix, Ipv4, frame(0x86dd, &[&six(4), &four(17), &datagram])),
            (Mechanism::WireGuard4, Ipv6, frame(0x800, &[&four(17), &data])),
            (Mechanism::WireGuard6, Ipv4, frame(0x86dd, &[&six(17), &data])),
            (Mechanism::Nat64, Ipv6, frame(0x86dd, &[&six(17), &datagram])),
        ];
        for (mechanism, family, frame) in &all {
            assert!(are_of(*mechanism, *family, &layers(frame)), "{mechanism} {:?}", layers(frame));
            for (other, ..) in all.iter().filter(|(other, ..)| other != mechanism) {
                assert!(!are_of(*other, *family, &layers(frame)), "{mechanism} is no {other}");
            }
        }
        // A handshake is also WireGuard, but carries no data.
        let handshake = frame(0x800, &[&four(17), &[&data[..8], &[1, 0, 0, 0]].concat()]);
        assert!(!are_of(Mechanism::WireGuard4, Ipv6, &layers(&handshake)));
    }

    /// The frame of a datagram on the link, according to a mechanism's definition.
    fn build_frame(headers: &[Header]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (place, header) in headers.iter().enumerate() {
            let next = headers.get(place + 1);
            let protocol = match next {
                Some(Header::Ipv4) => 4,
                Some(Header::Ipv6) => 41,
                Some(Header::Gre) => 47,
                Some(Header::Esp) => 50,
                Some(Header::SegmentRouting(_)) => 43,
                _ => 17,
            };
            let port = match next {
                Some(Header::WireGuard) => WIREGUARD_PORT,
                Some(Header::Vxlan) => VXLAN_PORT,
                Some(Header::Geneve) => GENEVE_PORT,
                Some(Header::Gue) => GUE_PORT,
                Some(Header::Ipv4) => FOU_PORT_V4,
                Some(Header::Ipv6) => FOU_PORT_V6,
                _ => 0x5678,
            };
            bytes.push(match header {
                Header::Ipv4 => four(protocol),
                Header::Ipv6 => six(protocol),
                Header::Gre => gre(choose_kind(next)),
                Header::Udp => [&[0x12, 0x34][..], &port.to_be_bytes(), &[0, 40, 0, 0]].concat(),
                Header::WireGuard => vec![4, 0, 0, 0],
                Header::Vxlan => vec![8, 0, 0, 0, 0, 0, 1, 0],
                Header::Geneve => vec![0, 0, 0x65, 0x58, 0, 0, 1, 0],
                Header::Gue => vec![0, protocol, 0, 0],
                Header::Esp => vec![0; 32],
                Header::SegmentRouting(segments) => list_segments(protocol, *segments),
                Header::Ethernet => [&[0; 12][..], &choose_kind(next).to_be_bytes()].concat(),
            });
        }
        frame(choose_kind(headers.first()), &bytes.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// A segment routing header before its first segment.
    fn list_segments(next: u8, segments: u8) -> Vec<u8> {
        let last = segments - 1;
        let header = [next, segments * 2, 4, last, last, 0, 0, 0];
        [&header[..], &vec![0; usize::from(segments) * 16]].concat()
    }

    /// The headers inside IPv6 where a datagram has this routing header.
    fn read_inside(routing: &[u8]) -> Vec<Layer> {
        let datagram = [0x12, 0x34, 0x56, 0x78, 0, 8, 0, 0];
        layers(&frame(0x86dd, &[&six(43), routing, &datagram]))[1..].to_vec()
    }

    #[test]
    fn segments_are_known_before_the_first_alone() {
        let mut routing = list_segments(17, 2);
        let known = [Layer::Known(Header::SegmentRouting(2)), Layer::Known(Header::Udp)];
        assert_eq!(read_inside(&routing), known);
        assert_eq!(known[0].to_string(), "segment routing (2 segments, 1 left)");
        routing[3] = 0;
        assert_eq!(read_inside(&routing), [Layer::Other(43)], "at the last segment");
        routing[3] = 1;
        routing[2] = 0;
        assert_eq!(read_inside(&routing), [Layer::Other(43)], "of another type");
    }

    /// The Ethernet type before a header.
    fn choose_kind(header: Option<&Header>) -> u16 {
        if header == Some(&Header::Ipv6) { 0x86dd } else { 0x800 }
    }

    #[test]
    fn every_mechanism_is_known_by_its_headers() {
        for mechanism in Mechanism::ALL {
            for family in Family::ALL {
                let Some(headers) = mechanism.datagram_headers(*family) else {
                    assert!(!are_of(
                        *mechanism,
                        *family,
                        &layers(&build_frame(&[Header::ip(*family), Header::Udp]))
                    ));
                    continue;
                };
                let found = layers(&build_frame(&headers));
                assert!(are_of(*mechanism, *family, &found), "{mechanism} {family}: {found:?}");
                let fewer = &found[..found.len() - 1];
                assert!(!are_of(*mechanism, *family, fewer), "{mechanism} {family}: {fewer:?}");
            }
        }
    }
}
