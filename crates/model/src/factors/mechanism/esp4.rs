//! ESP in tunnel mode over IPv4: either family, encrypted with AES-GCM (RFC 4303, RFC 4106). The `ip` commands are
//! those of `ip xfrm`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "esp4",
    doc: "either family encrypted in ESP over IPv4 (RFC 4303)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv4, Header::Esp],
        remote: Remote::Configured,
        device: Device {
            ability: "esp4",
            what_for: "ESP in tunnel mode over IPv4",
            remedy: "sudo modprobe -a esp4 xfrm_user, or a kernel with CONFIG_INET_ESP and CONFIG_XFRM_USER",
            kind: "esp",
            modules: &["esp4"],
            intrusive: false,
            options: &["CONFIG_XFRM_USER=y", "CONFIG_INET_ESP=y", "CONFIG_CRYPTO_GCM=y"],
            in_debian_uml: false,
            setup: Setup::Esp,
        },
    }),
};
