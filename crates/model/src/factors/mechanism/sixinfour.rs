//! 6in4: IPv6 in IPv4 between two routers that are configured with each other's address (RFC 4213). The `ip` command
//! is `ip tunnel add tunnel mode sit local A remote B ttl 64`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "6in4",
    doc: "IPv6 in IPv4 (RFC 4213)",
    carries: &[Family::Ipv6],
    method: Method::Tunnel(Tunnel { headers: &[Header::Ipv4], remote: Remote::Configured, device: SIT }),
};

/// 6to4 uses the same device.
pub(super) const SIT: Device = Device {
    ability: "sit",
    what_for: "6in4, 6to4 and 6rd",
    remedy: "sudo modprobe sit, or a kernel with CONFIG_IPV6_SIT",
    kind: "sit",
    modules: &["sit"],
    intrusive: true,
    options: &["CONFIG_IPV6_SIT=y"],
    in_debian_uml: true,
    setup: Setup::IpTunnel,
};
