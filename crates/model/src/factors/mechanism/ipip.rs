//! IPIP: IPv4 in IPv4 between two routers (RFC 2003), protocol 4. The `ip` command is `ip tunnel add tunnel mode ipip
//! local A remote B ttl 64`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "ipip",
    doc: "IPv4 in IPv4 (RFC 2003)",
    carries: &[Family::Ipv4],
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv4],
        remote: Remote::Configured,
        device: Device {
            ability: "ipip",
            what_for: "IPv4 in IPv4",
            remedy: "sudo modprobe ipip, or a kernel with CONFIG_NET_IPIP",
            kind: "ipip",
            modules: &["ipip"],
            intrusive: true,
            options: &["CONFIG_NET_IPIP=y"],
            in_debian_uml: true,
            setup: Setup::IpTunnel,
        },
    }),
};
