//! NAT66: IPv6 hosts share the near router's address, as IPv4 hosts do with NAT44. The nftables rule is `masquerade`.

use super::{MechanismDef, Method, Nat};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "nat66",
    doc: "IPv6 behind one address of the near router",
    carries: &[Family::Ipv6],
    method: Method::Nat(Nat::Masquerade),
};
