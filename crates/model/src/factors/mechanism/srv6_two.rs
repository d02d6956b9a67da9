//! SRv6 with two segments, both of the other router (RFC 8986): End, then End.DX4 or End.DX6. The `ip` command is
//! `ip route add NETWORK encap seg6 mode encap segs END,SID dev st1`.

use super::srv6::SEGMENTS;
use super::{Header, MechanismDef, Method, Remote, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "srv6-2",
    doc: "either family in IPv6 with two segments (RFC 8986)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv6, Header::SegmentRouting(2)],
        remote: Remote::Configured,
        device: SEGMENTS,
    }),
};
