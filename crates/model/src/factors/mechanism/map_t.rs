//! MAP-T: as MAP-E, but translated to IPv6 and back in place of a tunnel. The customer's address on the link has the
//! shared address and its number at its end (RFC 7599).

use super::{MechanismDef, Method, PortSet};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "map-t",
    doc: "IPv4 translated to IPv6 and back behind a set of ports of a shared address (RFC 7599)",
    carries: &[Family::Ipv4],
    method: Method::Mapping(PortSet::Psid),
};
