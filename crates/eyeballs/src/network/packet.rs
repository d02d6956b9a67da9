//! The headers of a packet, as far as the wire needs them. The packets are those of the user's command.

use stacklab_model::Family;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The numbers of protocols in IP headers.
pub(crate) const TCP: u8 = 6;
const UDP: u8 = 17;
/// Bytes of a TCP header without options.
pub(crate) const TCP_HEADER: usize = 20;
/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;

/// The flags of a TCP segment that the wire looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    pub(crate) const SYN: u8 = 0x02;
    const RST: u8 = 0x04;
    const ACK: u8 = 0x10;

    /// The first segment of a connection, or its repetition.
    pub(crate) fn is_syn(self) -> bool {
        self.0 & (Flags::SYN | Flags::ACK) == Flags::SYN
    }

    /// The answer to it.
    pub(crate) fn is_syn_ack(self) -> bool {
        self.0 & (Flags::SYN | Flags::ACK) == Flags::SYN | Flags::ACK
    }

    /// The end of a connection, or its refusal.
    pub(crate) fn is_reset(self) -> bool {
        self.0 & Flags::RST != 0
    }

    /// Those of a segment that refuses a connection.
    #[cfg(test)]
    pub(crate) fn make_refusal() -> Self {
        Flags(Flags::REFUSAL)
    }

    /// Of a segment that refuses a connection.
    pub(crate) const REFUSAL: u8 = Flags::RST | Flags::ACK;
}

/// What a packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payload {
    /// A TCP segment: its flags, sequence number and bytes of data.
    Tcp { flags: Flags, sequence: u32, bytes: usize },
    /// A UDP datagram with this many bytes of data.
    Udp { bytes: usize },
}

/// The headers of a TCP or UDP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Headers {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// Bytes of the IP header.
    pub header: usize,
    pub payload: Payload,
}

impl Headers {
    /// Reads the headers of an IP packet; `None` of another protocol, of an IPv6 packet with extension headers, or of
    /// one that is cut short.
    pub(crate) fn parse(packet: &[u8]) -> Option<Headers> {
        let ip = Ip::parse(packet)?;
        let transport = packet.get(ip.header..ip.total)?;
        let source_port = u16::from_be_bytes(transport.get(..2)?.try_into().ok()?);
        let destination_port = u16::from_be_bytes(transport.get(2..4)?.try_into().ok()?);
        let payload = match ip.protocol {
            TCP => {
                let fixed = transport.get(..TCP_HEADER)?;
                let header = usize::from(fixed[12] >> 4) * 4;
                Payload::Tcp {
                    flags: Flags(fixed[13]),
                    sequence: u32::from_be_bytes(fixed[4..8].try_into().ok()?),
                    bytes: transport.len().checked_sub(header)?,
                }
            }
            UDP => Payload::Udp { bytes: transport.len().checked_sub(UDP_HEADER)? },
            _ => return None,
        };
        Some(Headers {
            source: SocketAddr::new(ip.source, source_port),
            destination: SocketAddr::new(ip.destination, destination_port),
            header: ip.header,
            payload,
        })
    }
}

/// The family of an IP packet, by its version.
pub(crate) fn family_of(packet: &[u8]) -> Option<Family> {
    match packet.first()? >> 4 {
        4 => Some(Family::Ipv4),
        6 => Some(Family::Ipv6),
        _ => None,
    }
}

struct Ip {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    /// Bytes of the header, and of the whole packet.
    header: usize,
    total: usize,
}

impl Ip {
    fn parse(packet: &[u8]) -> Option<Ip> {
        match family_of(packet)? {
            Family::Ipv4 => {
                let fixed: &[u8; 20] = packet.first_chunk()?;
                let source: [u8; 4] = fixed[12..16].try_into().ok()?;
                let destination: [u8; 4] = fixed[16..20].try_into().ok()?;
                Some(Ip {
                    source: Ipv4Addr::from(source).into(),
                    destination: Ipv4Addr::from(destination).into(),
                    protocol: fixed[9],
                    header: usize::from(fixed[0] & 15) * 4,
                    total: u16::from_be_bytes([fixed[2], fixed[3]]).into(),
                })
            }
            Family::Ipv6 => {
                let fixed: &[u8; 40] = packet.first_chunk()?;
                let source: [u8; 16] = fixed[8..24].try_into().ok()?;
                let destination: [u8; 16] = fixed[24..40].try_into().ok()?;
                Some(Ip {
                    source: Ipv6Addr::from(source).into(),
                    destination: Ipv6Addr::from(destination).into(),
                    protocol: fixed[6],
                    header: fixed.len(),
                    total: fixed.len() + usize::from(u16::from_be_bytes([fixed[4], fixed[5]])),
                })
            }
        }
    }
}

/// A SYN of TCP without options, for tests.
#[cfg(test)]
pub(crate) fn sample_syn(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let segment = crate::network::answer::segment(source, destination, 7, 0, Flags::SYN);
    crate::network::answer::packet(source.ip(), destination.ip(), TCP, &segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_syn_of_each_family() {
        for [from, to] in
            [["192.0.2.1:40000", "198.51.100.1:80"], ["[2001:db8:1::1]:40000", "[2001:db8:2::1]:80"]]
        {
            let source: SocketAddr = from.parse().unwrap();
            let destination = to.parse().unwrap();
            let packet = sample_syn(source, destination);
            let headers = Headers::parse(&packet).unwrap();
            assert_eq!((headers.source, headers.destination), (source, destination));
            let Payload::Tcp { flags, sequence, bytes } = headers.payload else { panic!("{headers:?}") };
            assert!(flags.is_syn() && !flags.is_syn_ack() && !flags.is_reset());
            assert_eq!((sequence, bytes), (7, 0));
            assert_eq!(family_of(&packet), Some(Family::of(source.ip())));
            // A packet that is cut short anywhere has no headers.
            for length in 0..packet.len() {
                assert_eq!(Headers::parse(&packet[..length]), None, "{length}");
            }
        }
    }

    #[test]
    fn other_protocols_have_no_headers() {
        let mut packet = sample_syn("192.0.2.1:1".parse().unwrap(), "192.0.2.2:2".parse().unwrap());
        packet[9] = 1;
        assert_eq!(Headers::parse(&packet), None);
        assert_eq!(Headers::parse(&[0x50; 60]), None);
    }
}
