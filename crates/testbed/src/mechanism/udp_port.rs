//! The ports at which the kernel takes packets out of UDP (linux/fou.h): those of FOU, and that of GUE.

use crate::kernel::genl::message::attribute;
use crate::kernel::genl::socket::Socket;
use crate::{Attempt, Fault};
use stacklab_model::Family;

/// A port, with the attributes of a device that sends to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UdpPort {
    number: u16,
    scheme: Scheme,
    /// The protocol number of what it takes out; `None` if a header there has it.
    inside: Option<u8>,
}

/// What is between UDP and the packet, numbered alike in linux/fou.h and linux/if_tunnel.h.
#[derive(Debug, Clone, Copy)]
enum Scheme {
    Fou = 1,
    Gue = 2,
}

pub(crate) const GUE_PORT: u16 = 6080;
pub(crate) const GUE: UdpPort = UdpPort { number: GUE_PORT, scheme: Scheme::Gue, inside: None };

/// Command and attributes of linux/fou.h.
const ADD: u8 = 1;
const PORT: u16 = 1;
const FAMILY: u16 = 2;
const PROTOCOL: u16 = 3;
const TYPE: u16 = 4;
/// Attributes of linux/if_tunnel.h, and TUNNEL_ENCAP_FLAG_CSUM6: UDP over IPv6 has a checksum.
const ENCAP_TYPE: u16 = 15;
const ENCAP_FLAGS: u16 = 16;
const ENCAP_PORT: u16 = 18;
const CSUM6: u16 = 2;

impl UdpPort {
    /// The port of FOU for packets of a family.
    pub(super) fn of_fou(inside: Family) -> Self {
        UdpPort { number: choose_fou_port(inside), scheme: Scheme::Fou, inside: Some(number_family(inside)) }
    }

    /// Opens it. It must be there before a device that sends to one.
    pub(crate) fn open(self, outer: Family) -> Result<(), Fault> {
        let family = match outer {
            Family::Ipv4 => libc::AF_INET,
            Family::Ipv6 => libc::AF_INET6,
        };
        let mut lines = vec![
            attribute(PORT, &self.number.to_be_bytes()),
            attribute(FAMILY, &[family as u8]),
            attribute(TYPE, &[self.scheme as u8]),
        ];
        lines.extend(self.inside.map(|protocol| attribute(PROTOCOL, &[protocol])));
        let opened = Socket::open("fou").and_then(|mut socket| socket.ask(ADD, &lines.concat()));
        opened.map(drop).attempt(format!("open UDP port {} for a tunnel", self.number))
    }

    /// The source port differs by flow.
    pub(crate) fn write_attributes(self) -> Vec<Vec<u8>> {
        vec![
            attribute(ENCAP_TYPE, &(self.scheme as u16).to_ne_bytes()),
            attribute(ENCAP_FLAGS, &CSUM6.to_ne_bytes()),
            attribute(ENCAP_PORT, &self.number.to_be_bytes()),
        ]
    }
}

/// The port for packets of a family inside.
pub(crate) const fn choose_fou_port(inside: Family) -> u16 {
    match inside {
        Family::Ipv4 => 7774,
        Family::Ipv6 => 7776,
    }
}

/// The protocol number of packets inside.
pub(super) fn number_family(inside: Family) -> u8 {
    match inside {
        Family::Ipv4 => libc::IPPROTO_IPIP as u8,
        Family::Ipv6 => libc::IPPROTO_IPV6 as u8,
    }
}
