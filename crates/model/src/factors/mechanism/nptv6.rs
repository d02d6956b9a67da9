//! NPTv6: the near router exchanges the prefix of IPv6 source addresses and keeps the rest (RFC 6296). The nftables
//! rule is `snat ip6 prefix to`, which keeps state, where the RFC keeps none.

use super::{MechanismDef, Method, Nat};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "nptv6",
    doc: "IPv6 below another prefix at the near router (RFC 6296)",
    carries: &[Family::Ipv6],
    method: Method::Nat(Nat::Prefix),
};
