//! SRv6: either family in IPv6 with a segment routing header of one segment (RFC 8754, RFC 8986: H.Encaps, and End.DX4
//! or End.DX6 at the other router). The `ip` command is `ip route add NETWORK encap seg6 mode encap segs SID dev st1`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "srv6",
    doc: "either family in IPv6 with one segment (RFC 8986)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv6, Header::SegmentRouting(1)],
        remote: Remote::Configured,
        device: SEGMENTS,
    }),
};

pub(super) const SEGMENTS: Device = Device {
    ability: "srv6",
    what_for: "packets with a list of segments",
    remedy: "a kernel with CONFIG_IPV6_SEG6_LWTUNNEL",
    kind: "seg6",
    modules: &["seg6"],
    intrusive: false,
    options: &["CONFIG_LWTUNNEL=y", "CONFIG_IPV6_SEG6_LWTUNNEL=y"],
    in_debian_uml: false,
    setup: Setup::Segments,
};
