//! What the stack hears of its neighbours. The hosts of a testbed know each other's hardware addresses from the
//! beginning, and smoltcp has no way to be given one: it hears them as if the neighbour had said them. By itself it
//! asks for one at a time, once a second, and forgets it after a minute.

use crate::sys::stack::StackConfig;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr,
    Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv6Packet, Ipv6Repr, NdiscNeighborFlags, NdiscRepr,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An interface: its hardware address and one of its addresses.
#[derive(Debug, Clone, Copy)]
struct InterfaceAddresses<A> {
    hardware: EthernetAddress,
    address: A,
}

/// The frames by which the neighbours of a host state their hardware address.
pub(super) fn announce_neighbours(config: &StackConfig) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for neighbour in &config.neighbours {
        let from =
            InterfaceAddresses { hardware: EthernetAddress(config.neighbour_hardware), address: *neighbour };
        for (own, _) in &config.addresses {
            frames.extend(announce(
                from,
                InterfaceAddresses { hardware: EthernetAddress(config.hardware), address: *own },
            ));
        }
    }
    frames
}

/// The frame by which a neighbour states its hardware address to an interface; `None` if they are of different
/// families.
fn announce(neighbour: InterfaceAddresses<IpAddr>, to: InterfaceAddresses<IpAddr>) -> Option<Vec<u8>> {
    match (neighbour.address, to.address) {
        (IpAddr::V4(from), IpAddr::V4(address)) => Some(arp_reply(
            InterfaceAddresses { hardware: neighbour.hardware, address: from },
            InterfaceAddresses { hardware: to.hardware, address },
        )),
        (IpAddr::V6(from), IpAddr::V6(address)) => Some(neighbour_advertisement(
            InterfaceAddresses { hardware: neighbour.hardware, address: from },
            InterfaceAddresses { hardware: to.hardware, address },
        )),
        _ => None,
    }
}

fn arp_reply(from: InterfaceAddresses<Ipv4Addr>, to: InterfaceAddresses<Ipv4Addr>) -> Vec<u8> {
    let reply = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Reply,
        source_hardware_addr: from.hardware,
        source_protocol_addr: from.address,
        target_hardware_addr: to.hardware,
        target_protocol_addr: to.address,
    };
    let header =
        EthernetRepr { src_addr: from.hardware, dst_addr: to.hardware, ethertype: EthernetProtocol::Arp };
    let mut bytes = vec![0; header.buffer_len() + reply.buffer_len()];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    header.emit(&mut frame);
    reply.emit(&mut ArpPacket::new_unchecked(frame.payload_mut()));
    bytes
}

fn neighbour_advertisement(from: InterfaceAddresses<Ipv6Addr>, to: InterfaceAddresses<Ipv6Addr>) -> Vec<u8> {
    /// Proof that no router has forwarded it (RFC 4861, section 7.1.2).
    const HOP_LIMIT: u8 = 255;
    let advertisement = Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert {
        flags: NdiscNeighborFlags::OVERRIDE,
        target_addr: from.address,
        lladdr: Some(from.hardware.into()),
    });
    let header = Ipv6Repr {
        src_addr: from.address,
        dst_addr: to.address,
        next_header: IpProtocol::Icmpv6,
        payload_len: advertisement.buffer_len(),
        hop_limit: HOP_LIMIT,
    };
    let ethernet =
        EthernetRepr { src_addr: from.hardware, dst_addr: to.hardware, ethertype: EthernetProtocol::Ipv6 };
    let mut bytes = vec![0; ethernet.buffer_len() + header.buffer_len() + advertisement.buffer_len()];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    ethernet.emit(&mut frame);
    let mut packet = Ipv6Packet::new_unchecked(frame.payload_mut());
    header.emit(&mut packet);
    advertisement.emit(
        &from.address,
        &to.address,
        &mut Icmpv6Packet::new_unchecked(packet.payload_mut()),
        &ChecksumCapabilities::default(),
    );
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(last: u8, address: &str) -> InterfaceAddresses<IpAddr> {
        InterfaceAddresses {
            hardware: EthernetAddress([2, 0, 0, 0, 0, last]),
            address: address.parse().unwrap(),
        }
    }

    #[test]
    fn announcements_are_frames_of_their_family() {
        let frame = announce(interface(2, "192.0.2.2"), interface(1, "192.0.2.1")).unwrap();
        assert_eq!(frame.len(), 14 + 28);
        // Ethernet's addresses and type, then operation 2 (reply) and the sender's addresses.
        assert_eq!(frame[..14], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 6]);
        assert_eq!(frame[20..32], [0, 2, 2, 0, 0, 0, 0, 2, 192, 0, 2, 2]);
        let frame = announce(interface(2, "2001:db8::2"), interface(1, "2001:db8::1")).unwrap();
        // The whole advertisement with its option, from a hop limit of 255.
        assert_eq!((frame.len(), frame[21], frame[54]), (14 + 40 + 32, 255, 136));
        assert_eq!(frame[80..86], [2, 0, 0, 0, 0, 2]);
        assert!(announce(interface(2, "192.0.2.2"), interface(1, "2001:db8::1")).is_none());
    }
}
