//! GRE over IPv6 in ESP in transport mode, as `gre4-esp` over IPv4 (RFC 7676, RFC 4303). The `ip` commands are those of
//! `gre6`, and `ip xfrm`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "gre6-esp",
    doc: "either family in GRE over IPv6, encrypted in ESP in transport mode (RFC 4303)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv6, Header::Esp, Header::Gre],
        remote: Remote::Configured,
        device: Device {
            ability: "gre6-esp",
            what_for: "GRE in ESP in transport mode over IPv6",
            remedy: "sudo modprobe -a ip6_gre esp6 xfrm_user, or a kernel with CONFIG_IPV6_GRE, CONFIG_INET6_ESP and CONFIG_XFRM_USER",
            kind: "ip6gre",
            modules: &["ip6_gre", "esp6"],
            intrusive: true,
            options: &[
                "CONFIG_NET_IPGRE_DEMUX=y",
                "CONFIG_IPV6_GRE=y",
                "CONFIG_XFRM_USER=y",
                "CONFIG_INET6_ESP=y",
                "CONFIG_CRYPTO_GCM=y",
            ],
            in_debian_uml: false,
            setup: Setup::GreInEsp,
        },
    }),
};
