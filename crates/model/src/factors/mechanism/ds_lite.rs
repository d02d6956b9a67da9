//! DS-Lite: IPv4 in IPv6 to the far router, which is the NAT of all customers (AFTR, RFC 6333).

use super::fourinsix::TUNNEL;
use super::{MechanismDef, Method, Sharing};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "ds-lite",
    doc: "IPv4 in IPv6 to a NAT of the provider (RFC 6333)",
    carries: &[Family::Ipv4],
    method: Method::Softwire(TUNNEL, Sharing::AtFarRouter),
};
