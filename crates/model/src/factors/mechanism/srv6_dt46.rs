//! SRv6 with one segment for both families (RFC 8986: H.Encaps, and End.DT46 at the other router), as providers offer
//! virtual networks: the packet that was inside is looked up in the customer's table. The `ip` commands are
//! `ip link add vrf type vrf table 46` and `ip -6 route add SID encap seg6local action End.DT46 vrftable 46 dev vrf`.

use super::{Device, Header, MechanismDef, Method, Remote, Setup, Tunnel};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "srv6-dt46",
    doc: "either family in IPv6 with one segment, and looked up in a table behind it (RFC 8986)",
    carries: Family::ALL,
    method: Method::Tunnel(Tunnel {
        headers: &[Header::Ipv6, Header::SegmentRouting(1)],
        remote: Remote::Configured,
        device: Device {
            ability: "srv6-dt46",
            what_for: "packets whose segment names a table of routes",
            remedy: "sudo modprobe vrf, or a kernel with CONFIG_IPV6_SEG6_LWTUNNEL and CONFIG_NET_VRF",
            kind: "vrf",
            modules: &["vrf"],
            intrusive: false,
            options: &[
                "CONFIG_LWTUNNEL=y",
                "CONFIG_IPV6_SEG6_LWTUNNEL=y",
                "CONFIG_IP_MULTIPLE_TABLES=y",
                "CONFIG_IPV6_MULTIPLE_TABLES=y",
                "CONFIG_NET_L3_MASTER_DEV=y",
                "CONFIG_NET_VRF=y",
            ],
            in_debian_uml: false,
            setup: Setup::SegmentsToTable,
        },
    }),
};
