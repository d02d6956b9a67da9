//! ESP in tunnel mode over IPv6: either family, encrypted with AES-GCM (RFC 4303, RFC 4106). The `ip` commands are
//! those of `ip xfrm`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "esp6",
    doc: "either family encrypted in ESP over IPv6 (RFC 4303)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv6, Header::Esp],
        remote: Remote::Configured,
        device: Device {
            ability: "esp6",
            what_for: "ESP in tunnel mode over IPv6",
            remedy: "sudo modprobe -a esp6 xfrm_user, or a kernel with CONFIG_INET6_ESP and CONFIG_XFRM_USER",
            kind: "esp",
            modules: &["esp6"],
            intrusive: false,
            options: &["CONFIG_XFRM_USER=y", "CONFIG_INET6_ESP=y", "CONFIG_CRYPTO_GCM=y"],
            in_debian_uml: false,
            setup: Setup::Esp,
        },
    }),
};
