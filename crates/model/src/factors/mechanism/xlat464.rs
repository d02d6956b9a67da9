//! 464XLAT: IPv4 translated to IPv6 at the near router, and back at the far one (RFC 6877).

use super::{MechanismDef, Method, Translation};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "464xlat",
    doc: "IPv4 translated to IPv6 and back (RFC 6877)",
    carries: &[Family::Ipv4],
    method: Method::Translation(Translation::Both),
};
