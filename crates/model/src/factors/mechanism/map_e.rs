//! MAP-E: as lw4o6, but the customer's number is in the middle bits of each of its ports, so that the far router needs
//! no table of customers (RFC 7597).

use super::fourinsix::TUNNEL;
use super::{MechanismDef, Method, PortSet, Sharing};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "map-e",
    doc: "IPv4 in IPv6 behind a set of ports of a shared address (RFC 7597)",
    carries: &[Family::Ipv4],
    method: Method::Softwire(TUNNEL, Sharing::AtNearRouter(PortSet::Psid)),
};
