//! VXLAN over IPv6: either family in Ethernet frames (RFC 7348). The `ip` command is `ip link
//! add tunnel type vxlan id 1 local A remote B dstport 4789`.

use super::vxlan4::VXLAN;
use super::{Header, MechanismDef, Method, Remote, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "vxlan6",
    doc: "either family in VXLAN over IPv6 (RFC 7348)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv6, Header::Udp, Header::Vxlan, Header::Ethernet],
        remote: Remote::Configured,
        device: VXLAN,
    }),
};
