//! 6to4: IPv6 in IPv4. The IPv6 destination, 2002:V4ADDR::/48, contains the far router's IPv4 address (RFC 3056). The
//! `ip` command is `ip tunnel add tunnel mode sit local A remote any ttl 64`, with a route to 2002::/16.

use super::sixinfour::SIT;
use super::{Header, MechanismDef, Method, Remote, Tunnel};
use crate::Family;
use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "6to4",
    doc: "IPv6 in IPv4, the far end in the destination under 2002::/16 (RFC 3056)",
    carries: &[Family::Ipv6],
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv4],
        remote: Remote::InDestination {
            prefix: (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
            common: (Ipv4Addr::UNSPECIFIED, 0),
        },
        device: SIT,
    }),
};
