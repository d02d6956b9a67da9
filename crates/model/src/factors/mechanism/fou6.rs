//! FOU over IPv6: either family in UDP, with nothing between. As over IPv4 ([`super::fou4`]), with two devices of type
//! `ip6tnl`. The kernel has one such device between two addresses, so IPv6 inside is between a second pair.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "fou6",
    doc: "either family in UDP over IPv6, without another header (FOU)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv6, Header::Udp],
        remote: Remote::Configured,
        device: Device {
            ability: "fou6",
            what_for: "either family in UDP over IPv6, without another header",
            remedy: "sudo modprobe -a fou6 ip6_tunnel, or a kernel with CONFIG_NET_FOU_IP_TUNNELS",
            kind: "ip6tnl",
            modules: &["ip6_tunnel"],
            intrusive: true,
            options: &["CONFIG_IPV6_TUNNEL=y", "CONFIG_NET_FOU=y", "CONFIG_NET_FOU_IP_TUNNELS=y"],
            in_debian_uml: false,
            setup: Setup::Fou,
        },
    }),
};
