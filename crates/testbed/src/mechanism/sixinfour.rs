//! 6in4: IPv6 in IPv4 between two routers that know each other's address (RFC 4213). `ip` says it as
//! `ip tunnel add tunnel mode sit local A remote B ttl 64`.

use super::Router;
use crate::error::Fault;
use crate::link::addressing::TUNNEL;
use crate::link::interface::add_device;
use rtnetlink::LinkSit;

pub(super) fn lay(router: &Router) -> Result<(), Fault> {
    let (own, other) = (router.site.outer_v4(), router.site.other().outer_v4());
    let device = LinkSit::new(TUNNEL).local(own).remote(other).ttl(64).build();
    add_device(device, &format!("the configured tunnel from {own} to {other}"))?;
    router.raise_tunnel()?;
    router.route_into_tunnel()
}
