//! WireGuard over IPv4: either family encrypted inside UDP.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "wireguard4",
    doc: "either family encrypted in UDP over IPv4",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv4, Header::Udp, Header::WireGuard],
        remote: Remote::Configured,
        device: WIREGUARD,
    }),
};

/// WireGuard over IPv6 uses the same device.
pub(super) const WIREGUARD: Device = Device {
    ability: "wireguard",
    what_for: "an encrypted tunnel",
    remedy: "sudo modprobe wireguard, or a kernel with CONFIG_WIREGUARD",
    kind: "wireguard",
    modules: &["wireguard"],
    intrusive: false,
    options: &["CONFIG_WIREGUARD=y"],
    in_debian_uml: false,
    setup: Setup::WireGuard,
};
