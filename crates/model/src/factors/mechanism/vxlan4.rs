//! VXLAN over IPv4: either family in Ethernet frames (RFC 7348). The `ip` command is `ip link
//! add tunnel type vxlan id 1 local A remote B dstport 4789`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "vxlan4",
    doc: "either family in VXLAN over IPv4 (RFC 7348)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv4, Header::Udp, Header::Vxlan, Header::Ethernet],
        remote: Remote::Configured,
        device: VXLAN,
    }),
};

/// VXLAN over IPv6 uses the same device.
pub(super) const VXLAN: Device = Device {
    ability: "vxlan",
    what_for: "Ethernet frames in VXLAN",
    remedy: "sudo modprobe vxlan, or a kernel with CONFIG_VXLAN",
    kind: "vxlan",
    modules: &["vxlan"],
    intrusive: false,
    options: &["CONFIG_VXLAN=y"],
    in_debian_uml: false,
    setup: Setup::Vxlan,
};
