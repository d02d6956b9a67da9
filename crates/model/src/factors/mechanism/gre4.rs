//! GRE over IPv4: carries either family; the GRE header names the family (RFC 2784). The `ip` command is `ip tunnel
//! add tunnel mode gre local A remote B ttl 64`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "gre4",
    doc: "either family in GRE over IPv4 (RFC 2784)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv4, Header::Gre],
        remote: Remote::Configured,
        device: Device {
            ability: "gre",
            what_for: "either family in GRE over IPv4",
            remedy: "sudo modprobe ip_gre, or a kernel with CONFIG_NET_IPGRE",
            kind: "gre",
            modules: &["ip_gre"],
            intrusive: true,
            options: &["CONFIG_NET_IPGRE_DEMUX=y", "CONFIG_NET_IPGRE=y"],
            in_debian_uml: true,
            setup: Setup::Gre,
        },
    }),
};
