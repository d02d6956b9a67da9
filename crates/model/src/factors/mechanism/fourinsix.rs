//! 4in6: IPv4 in IPv6 between two routers (RFC 2473). The `ip` command is `ip -6 tunnel add tunnel mode ipip6 local A
//! remote B encaplimit none`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "4in6",
    doc: "IPv4 in IPv6 (RFC 2473)",
    carries: &[Family::Ipv4],
    method: Method::Tunnel(TUNNEL),
};

/// Softwires have the same tunnel.
pub(super) const TUNNEL: Tunnel = Tunnel {
    headers: &[Header::Ipv6],
    remote: Remote::Configured,
    device: Device {
        ability: "ip6tnl",
        what_for: "IPv4 in IPv6",
        remedy: "sudo modprobe ip6_tunnel, or a kernel with CONFIG_IPV6_TUNNEL",
        kind: "ip6tnl",
        modules: &["ip6_tunnel"],
        intrusive: true,
        options: &["CONFIG_IPV6_TUNNEL=y"],
        in_debian_uml: true,
        setup: Setup::IpTunnel,
    },
};
