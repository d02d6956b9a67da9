//! WireGuard over IPv6: either family encrypted inside UDP.

use super::wireguard4::WIREGUARD;
use super::{Header, MechanismDef, Method, Remote, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "wireguard6",
    doc: "either family encrypted in UDP over IPv6",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv6, Header::Udp, Header::WireGuard],
        remote: Remote::Configured,
        device: WIREGUARD,
    }),
};
