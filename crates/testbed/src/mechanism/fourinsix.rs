//! 4in6: IPv4 in IPv6 between two routers (RFC 2473). `ip` says it as
//! `ip -6 tunnel add tunnel mode ipip6 local A remote B encaplimit none`.

use super::Router;
use crate::error::Fault;
use crate::link::addressing::TUNNEL;
use crate::link::interface::add_device;
use rtnetlink::LinkIp6Tnl;
use rtnetlink::packet_route::IpProtocol;
use rtnetlink::packet_route::link::Ip6TunnelFlags;

pub(super) fn lay(router: &Router) -> Result<(), Fault> {
    let (own, other) = (router.site.outer_v6(), router.site.other().outer_v6());
    let device = LinkIp6Tnl::new(TUNNEL)
        .local(own)
        .remote(other)
        .ttl(64)
        .mode(IpProtocol::Ipip)
        .set_flag(Ip6TunnelFlags::IgnEncapLimit, true)
        .build();
    add_device(device, &format!("the tunnel from {own} to {other}"))?;
    router.raise_tunnel()?;
    router.route_into_tunnel()
}
