//! NAT64: IPv6 clients reach IPv4 servers, translated at the far router (RFC 6146).

use super::{MechanismDef, Method, Translation};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "nat64",
    doc: "IPv6 clients to IPv4 servers (RFC 6146)",
    carries: &[Family::Ipv6],
    method: Method::Translation(Translation::Far),
};
