//! Geneve over IPv6: either family in Ethernet frames (RFC 8926). The `ip` command is `ip link
//! add tunnel type geneve id 1 remote B dstport 6081`.

use super::geneve4::GENEVE;
use super::{Header, MechanismDef, Method, Remote, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "geneve6",
    doc: "either family in Geneve over IPv6 (RFC 8926)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv6, Header::Udp, Header::Geneve, Header::Ethernet],
        remote: Remote::Configured,
        device: GENEVE,
    }),
};
