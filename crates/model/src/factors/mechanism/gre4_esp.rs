//! GRE over IPv4 in ESP in transport mode: what routers that also speak a routing protocol have between sites. ESP
//! encrypts the routers' own packets, and GRE carries either family (RFC 2784, RFC 4303). The `ip` commands are those
//! of `gre4`, and `ip xfrm`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "gre4-esp",
    doc: "either family in GRE over IPv4, encrypted in ESP in transport mode (RFC 4303)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv4, Header::Esp, Header::Gre],
        remote: Remote::Configured,
        device: Device {
            ability: "gre4-esp",
            what_for: "GRE in ESP in transport mode over IPv4",
            remedy: "sudo modprobe -a ip_gre esp4 xfrm_user, or a kernel with CONFIG_NET_IPGRE, CONFIG_INET_ESP and CONFIG_XFRM_USER",
            kind: "gre",
            modules: &["ip_gre", "esp4"],
            intrusive: true,
            options: &[
                "CONFIG_NET_IPGRE_DEMUX=y",
                "CONFIG_NET_IPGRE=y",
                "CONFIG_XFRM_USER=y",
                "CONFIG_INET_ESP=y",
                "CONFIG_CRYPTO_GCM=y",
            ],
            in_debian_uml: false,
            setup: Setup::GreInEsp,
        },
    }),
};
