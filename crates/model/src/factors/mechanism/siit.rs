//! SIIT: IPv4 clients reach IPv6 servers, translated at the near router, packet by packet (RFC 7915, RFC 7755).

use super::{MechanismDef, Method, Translation};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "siit",
    doc: "IPv4 clients to IPv6 servers (RFC 7915, RFC 7755)",
    carries: &[Family::Ipv4],
    method: Method::Translation(Translation::Near),
};
