//! FOU over IPv4: either family in UDP, with nothing between. A port takes out one protocol, so each family has a port
//! and a device. The `ip` commands are `ip fou add port 7774 ipproto 4` and `ip link add tunnel type ipip local A
//! remote B encap fou encap-dport 7774`; for IPv6 `ip fou add port 7776 ipproto 41`, and the device is of type `sit`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "fou4",
    doc: "either family in UDP over IPv4, without another header (FOU)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv4, Header::Udp],
        remote: Remote::Configured,
        device: Device {
            ability: "fou4",
            what_for: "either family in UDP over IPv4, without another header",
            remedy: "sudo modprobe -a fou ipip sit, or a kernel with CONFIG_NET_FOU_IP_TUNNELS",
            kind: "ipip",
            modules: &["ipip", "sit"],
            intrusive: true,
            options: &[
                "CONFIG_NET_IPIP=y",
                "CONFIG_IPV6_SIT=y",
                "CONFIG_NET_FOU=y",
                "CONFIG_NET_FOU_IP_TUNNELS=y",
            ],
            in_debian_uml: false,
            setup: Setup::Fou,
        },
    }),
};
