//! lw4o6: IPv4 in IPv6 from a near router that is a NAT with a range of ports of a shared address. The far router keeps
//! no state (RFC 7596).

use super::fourinsix::TUNNEL;
use super::{MechanismDef, Method, PortSet, Sharing};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "lw4o6",
    doc: "IPv4 in IPv6 behind a range of ports of a shared address (RFC 7596)",
    carries: &[Family::Ipv4],
    method: Method::Softwire(TUNNEL, Sharing::AtNearRouter(PortSet::Range)),
};
