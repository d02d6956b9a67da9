//! NAT44: IPv4 hosts share the near router's address (RFC 3022). The nftables rule is `masquerade`.

use super::{MechanismDef, Method, Nat};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "nat44",
    doc: "IPv4 behind one address of the near router (RFC 3022)",
    carries: &[Family::Ipv4],
    method: Method::Nat(Nat::Masquerade),
};
