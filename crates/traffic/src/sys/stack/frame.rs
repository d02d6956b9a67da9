//! What an Ethernet frame carries, as far as it is counted.

use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, Ipv6Packet, TcpOption, TcpPacket, TcpSeqNumber,
    UdpPacket,
};
use stacklab_model::Family;
use std::net::IpAddr;

/// A packet of IP in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet {
    pub family: Family,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub carries: Carried,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carried {
    Tcp(Segment),
    Udp {
        destination: u16,
    },
    /// ICMP, or what is broken.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub source: u16,
    pub destination: u16,
    pub sequence: TcpSeqNumber,
    pub payload: usize,
    /// The byte that its sender expects next.
    pub expected: TcpSeqNumber,
    pub window: u16,
    /// By how many bits its sender's windows are shifted; `None` but in the first segment of a connection.
    pub window_shift: Option<u8>,
}

/// Reads a frame; `None` if it holds no packet of IP, such as one of ARP.
pub(super) fn read_frame(frame: &[u8]) -> Option<Packet> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    match frame.ethertype() {
        EthernetProtocol::Ipv4 => {
            let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
            let carries = read_payload(packet.next_header(), packet.payload());
            let source = packet.src_addr().into();
            Some(Packet { family: Family::Ipv4, source, destination: packet.dst_addr().into(), carries })
        }
        EthernetProtocol::Ipv6 => {
            let packet = Ipv6Packet::new_checked(frame.payload()).ok()?;
            let carries = read_payload(packet.next_header(), packet.payload());
            let source = packet.src_addr().into();
            Some(Packet { family: Family::Ipv6, source, destination: packet.dst_addr().into(), carries })
        }
        _ => None,
    }
}

fn read_payload(protocol: IpProtocol, payload: &[u8]) -> Carried {
    match protocol {
        IpProtocol::Tcp => TcpPacket::new_checked(payload).map_or(Carried::Other, |segment| {
            Carried::Tcp(Segment {
                source: segment.src_port(),
                destination: segment.dst_port(),
                sequence: segment.seq_number(),
                payload: segment.payload().len(),
                expected: segment.ack_number(),
                window: segment.window_len(),
                window_shift: segment.syn().then(|| read_window_shift(segment.options())),
            })
        }),
        IpProtocol::Udp => UdpPacket::new_checked(payload)
            .map_or(Carried::Other, |datagram| Carried::Udp { destination: datagram.dst_port() }),
        _ => Carried::Other,
    }
}

/// The window scale of a first segment's options; 0 without one (RFC 7323, section 2).
fn read_window_shift(mut options: &[u8]) -> u8 {
    while !options.is_empty() {
        match TcpOption::parse(options) {
            Ok((_, TcpOption::WindowScale(shift))) => return shift.min(14),
            Ok((_, TcpOption::EndOfList)) | Err(_) => break,
            Ok((rest, _)) => options = rest,
        }
    }
    0
}
