//! GUE over IPv4: either family in UDP with a header of four bytes (draft-ietf-intarea-gue). The `ip` commands are
//! `ip fou add port 6080 gue` and `ip link add tunnel type sit mode any local A remote B encap gue encap-dport 6080`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "gue4",
    doc: "either family in UDP over IPv4 (GUE)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv4, Header::Udp, Header::Gue],
        remote: Remote::Configured,
        device: Device {
            ability: "gue4",
            what_for: "either family in UDP over IPv4",
            remedy: "sudo modprobe -a fou sit, or a kernel with CONFIG_NET_FOU_IP_TUNNELS",
            kind: "sit",
            modules: &["sit"],
            intrusive: true,
            options: &["CONFIG_IPV6_SIT=y", "CONFIG_NET_FOU=y", "CONFIG_NET_FOU_IP_TUNNELS=y"],
            in_debian_uml: false,
            setup: Setup::Gue,
        },
    }),
};
