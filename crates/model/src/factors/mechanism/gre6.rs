//! GRE over IPv6: carries either family; the GRE header names the family (RFC 7676). The `ip` command is `ip -6
//! tunnel add tunnel mode ip6gre local A remote B encaplimit none hoplimit 64`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "gre6",
    doc: "either family in GRE over IPv6 (RFC 7676)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv6, Header::Gre],
        remote: Remote::Configured,
        device: Device {
            ability: "ip6gre",
            what_for: "either family in GRE over IPv6",
            remedy: "sudo modprobe ip6_gre, or a kernel with CONFIG_IPV6_GRE",
            kind: "ip6gre",
            modules: &["ip6_gre"],
            intrusive: true,
            options: &["CONFIG_NET_IPGRE_DEMUX=y", "CONFIG_IPV6_GRE=y"],
            in_debian_uml: true,
            setup: Setup::Gre,
        },
    }),
};
