//! 6rd: like 6to4, but under the provider's own prefix (RFC 5969). Here the prefix is 2001:2::/48, followed by the
//! last 16 bits of the router's IPv4 address. It needs a kernel with CONFIG_IPV6_SIT_6RD. The `ip` commands are `ip
//! tunnel add tunnel mode sit local A ttl 64` and `ip tunnel 6rd dev tunnel 6rd-prefix 2001:2::/48 6rd-relay_prefix
//! 198.18.0.0/16`.

use super::sixinfour::SIT;
use super::{Device, Header, MechanismDef, Method, Remote, Tunnel};
use crate::Family;
use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "6rd",
    doc: "IPv6 in IPv4, the far end in the destination under a provider's prefix (RFC 5969)",
    carries: &[Family::Ipv6],
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv4],
        remote: Remote::InDestination {
            prefix: (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48),
            common: (Ipv4Addr::new(198, 18, 0, 0), 16),
        },
        device: Device {
            ability: "sit 6rd",
            what_for: "6rd",
            remedy: "a kernel with CONFIG_IPV6_SIT_6RD, as Debian's are",
            options: &["CONFIG_IPV6_SIT=y", "CONFIG_IPV6_SIT_6RD=y"],
            in_debian_uml: false,
            ..SIT
        },
    }),
};
