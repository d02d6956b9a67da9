//! What the wire answers in the place of the network: a TCP reset, and ICMP "destination unreachable".

use crate::network::packet::{Flags, Headers, Payload, TCP, TCP_HEADER};
use stacklab_model::Family;
use std::net::{IpAddr, SocketAddr};

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const HOP_LIMIT: u8 = 64;
/// An ICMPv6 error has no more than the minimum MTU (RFC 4443); an ICMP error has the header and 8 bytes (RFC 792).
const MAX_QUOTED_IPV6: usize = 1280 - 48;
const QUOTED_PAYLOAD_IPV4: usize = 8;

/// Why a destination cannot be reached, as ICMP says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreachable {
    /// No route (ICMPv6), network unreachable (ICMP).
    NoRoute,
    /// Administratively prohibited: a firewall that says so.
    Prohibited,
}

impl Unreachable {
    fn code(self, family: Family) -> u8 {
        match (family, self) {
            (_, Unreachable::NoRoute) => 0,
            (Family::Ipv4, Unreachable::Prohibited) => 13,
            (Family::Ipv6, Unreachable::Prohibited) => 1,
        }
    }
}

/// The packet that refuses a SYN, as a host without a listener sends it; `None` of other packets.
pub(crate) fn refuse(headers: &Headers) -> Option<Vec<u8>> {
    let Payload::Tcp { flags, sequence, .. } = headers.payload else { return None };
    if !flags.is_syn() {
        return None;
    }
    let acknowledged = sequence.wrapping_add(1);
    let segment = segment(headers.destination, headers.source, 0, acknowledged, Flags::REFUSAL);
    Some(packet(headers.destination.ip(), headers.source.ip(), TCP, &segment))
}

/// The ICMP error that answers a packet, sent with the address of its destination.
pub(crate) fn report_unreachable(original: &[u8], headers: &Headers, reason: Unreachable) -> Vec<u8> {
    let family = Family::of(headers.source.ip());
    let kind = match family {
        Family::Ipv4 => 3,
        Family::Ipv6 => 1,
    };
    let quoted = match family {
        Family::Ipv4 => headers.header + QUOTED_PAYLOAD_IPV4,
        Family::Ipv6 => MAX_QUOTED_IPV6,
    };
    let mut message = vec![kind, reason.code(family), 0, 0, 0, 0, 0, 0];
    message.extend(&original[..quoted.min(original.len())]);
    let router = headers.destination.ip();
    let client = headers.source.ip();
    let mut sum = Sum::default();
    // ICMP of IPv4 has no pseudo-header.
    if family == Family::Ipv6 {
        sum.add_pseudo_header(router, client, ICMPV6, message.len());
    }
    sum.add(&message);
    message[2..4].copy_from_slice(&sum.finish());
    packet(router, client, if family == Family::Ipv4 { ICMP } else { ICMPV6 }, &message)
}

/// A TCP segment without options or data.
pub(crate) fn segment(
    source: SocketAddr,
    destination: SocketAddr,
    sequence: u32,
    acknowledged: u32,
    flags: u8,
) -> Vec<u8> {
    let mut segment = Vec::with_capacity(TCP_HEADER);
    segment.extend(source.port().to_be_bytes());
    segment.extend(destination.port().to_be_bytes());
    segment.extend(sequence.to_be_bytes());
    segment.extend(acknowledged.to_be_bytes());
    // The length of the header in words, flags, window, checksum, urgent pointer.
    segment.extend([(TCP_HEADER as u8 / 4) << 4, flags, 0, 0, 0, 0, 0, 0]);
    let mut sum = Sum::default();
    sum.add_pseudo_header(source.ip(), destination.ip(), TCP, segment.len());
    sum.add(&segment);
    segment[16..18].copy_from_slice(&sum.finish());
    segment
}

/// An IP packet with this payload. Both addresses are of one family.
pub(crate) fn packet(source: IpAddr, destination: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16;
    let mut packet = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = [0_u8; 20];
            header[0] = 0x45;
            header[2..4].copy_from_slice(&(20 + length).to_be_bytes());
            header[8] = HOP_LIMIT;
            header[9] = protocol;
            header[12..16].copy_from_slice(&source.octets());
            header[16..20].copy_from_slice(&destination.octets());
            let mut sum = Sum::default();
            sum.add(&header);
            header[10..12].copy_from_slice(&sum.finish());
            header.to_vec()
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut header = [0_u8; 40];
            header[0] = 0x60;
            header[4..6].copy_from_slice(&length.to_be_bytes());
            header[6] = protocol;
            header[7] = HOP_LIMIT;
            header[8..24].copy_from_slice(&source.octets());
            header[24..40].copy_from_slice(&destination.octets());
            header.to_vec()
        }
        _ => unreachable!("both addresses are those of one packet"),
    };
    packet.extend(payload);
    packet
}

/// The Internet checksum (RFC 1071).
#[derive(Default)]
struct Sum(u32);

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(2) {
            self.0 += u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or(0));
        }
    }

    fn add_pseudo_header(&mut self, source: IpAddr, destination: IpAddr, protocol: u8, length: usize) {
        for address in [source, destination] {
            match address {
                IpAddr::V4(address) => self.add(&address.octets()),
                IpAddr::V6(address) => self.add(&address.octets()),
            }
        }
        self.0 += u32::from(protocol) + length as u32;
    }

    fn finish(self) -> [u8; 2] {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        (!(sum as u16)).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::packet::sample_syn;

    const ENDS: [[&str; 2]; 2] =
        [["192.0.2.1:40000", "198.51.100.1:80"], ["[2001:db8:1::1]:40000", "[2001:db8:2::1]:80"]];

    fn syn(ends: [&str; 2]) -> (Vec<u8>, Headers) {
        let packet = sample_syn(ends[0].parse().unwrap(), ends[1].parse().unwrap());
        let headers = Headers::parse(&packet).unwrap();
        (packet, headers)
    }

    /// Whether a checksum over these bytes, which contain it, is right.
    fn is_right(pseudo: Option<(IpAddr, IpAddr, u8)>, bytes: &[u8]) -> bool {
        let mut sum = Sum::default();
        if let Some((source, destination, protocol)) = pseudo {
            sum.add_pseudo_header(source, destination, protocol, bytes.len());
        }
        sum.add(bytes);
        sum.finish() == [0, 0]
    }

    #[test]
    fn a_checksum_is_that_of_rfc_1071() {
        let mut sum = Sum::default();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), (!0xddf2_u16).to_be_bytes());
    }

    #[test]
    fn a_refusal_acknowledges_the_syn() {
        for ends in ENDS {
            let (_, headers) = syn(ends);
            let refusal = refuse(&headers).unwrap();
            let answer = Headers::parse(&refusal).unwrap();
            assert_eq!((answer.source, answer.destination), (headers.destination, headers.source));
            let Payload::Tcp { flags, bytes, .. } = answer.payload else { panic!("{answer:?}") };
            assert!(flags.is_reset() && bytes == 0);
            let segment = &refusal[answer.header..];
            assert_eq!(segment[8..12], 8_u32.to_be_bytes(), "the SYN's number is 7");
            assert!(is_right(Some((answer.source.ip(), answer.destination.ip(), TCP)), segment));
            assert_eq!(refuse(&answer), None, "a reset is not answered");
        }
    }

    #[test]
    fn an_icmp_error_quotes_the_packet() {
        for (ends, prohibited) in ENDS.into_iter().zip([[3, 13], [1, 1]]) {
            let (original, headers) = syn(ends);
            let error = report_unreachable(&original, &headers, Unreachable::Prohibited);
            let message = &error[headers.header..];
            assert_eq!(message[..2], prohibited);
            assert_eq!(message[8..16], original[..8]);
            let pseudo = (headers.destination.ip(), headers.source.ip(), ICMPV6);
            let pseudo = headers.source.is_ipv6().then_some(pseudo);
            assert!(is_right(pseudo, message));
            let error = report_unreachable(&original, &headers, Unreachable::NoRoute);
            assert_eq!(error[headers.header + 1], 0);
        }
    }
}
