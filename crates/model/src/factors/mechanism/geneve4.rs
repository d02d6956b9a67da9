//! Geneve over IPv4: either family in Ethernet frames (RFC 8926). The `ip` command is `ip link
//! add tunnel type geneve id 1 remote B dstport 6081`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "geneve4",
    doc: "either family in Geneve over IPv4 (RFC 8926)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv4, Header::Udp, Header::Geneve, Header::Ethernet],
        remote: Remote::Configured,
        device: GENEVE,
    }),
};

/// Geneve over IPv6 uses the same device.
pub(super) const GENEVE: Device = Device {
    ability: "geneve",
    what_for: "Ethernet frames in Geneve",
    remedy: "sudo modprobe geneve, or a kernel with CONFIG_GENEVE",
    kind: "geneve",
    modules: &["geneve"],
    intrusive: false,
    options: &["CONFIG_GENEVE=y"],
    in_debian_uml: false,
    setup: Setup::Geneve,
};
