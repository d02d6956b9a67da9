//! GUE over IPv6: either family in UDP with a header of four bytes (draft-ietf-intarea-gue). The `ip` commands are
//! `ip fou add port 6080 gue` and `ip link add tunnel type ip6tnl mode any local A remote B encap gue encap-dport
//! 6080`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "gue6",
    doc: "either family in UDP over IPv6 (GUE)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv6, Header::Udp, Header::Gue],
        remote: Remote::Configured,
        device: Device {
            ability: "gue6",
            what_for: "either family in UDP over IPv6",
            remedy: "sudo modprobe -a fou6 ip6_tunnel, or a kernel with CONFIG_NET_FOU_IP_TUNNELS",
            kind: "ip6tnl",
            modules: &["ip6_tunnel"],
            intrusive: true,
            options: &["CONFIG_IPV6_TUNNEL=y", "CONFIG_NET_FOU=y", "CONFIG_NET_FOU_IP_TUNNELS=y"],
            in_debian_uml: false,
            setup: Setup::Gue,
        },
    }),
};
