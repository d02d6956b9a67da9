//! 6rd: as 6to4, under the provider's own prefix (RFC 5969): here 2001:2::/48, and the last 16 bits of the router's IPv4
//! address. It needs a kernel with CONFIG_IPV6_SIT_6RD. `ip` says it as `ip tunnel add tunnel mode sit local A ttl 64` and
//! `ip tunnel 6rd dev tunnel 6rd-prefix 2001:2::/48 6rd-relay_prefix 198.18.0.0/16`.

use super::Router;
use crate::error::Fault;
use crate::link::addressing::{SIXRD, SIXRD_RELAY, TUNNEL};
use crate::link::interface::{Route, add_device};
use rtnetlink::LinkSit;

pub(super) fn lay(router: &Router) -> Result<(), Fault> {
    let own = router.site.outer_v4();
    let device = LinkSit::new(TUNNEL)
        .local(own)
        .ttl(64)
        .ipv6_rd_prefix(SIXRD.0)
        .ipv6_rd_prefixlen(SIXRD.1.into())
        .ipv6_rd_relay_prefix(SIXRD_RELAY.0)
        .ipv6_rd_relay_prefixlen(SIXRD_RELAY.1.into())
        .build();
    add_device(device, &format!("the 6rd device of {own}"))?;
    router.raise_tunnel()?;
    Route { to: (SIXRD.0.into(), SIXRD.1), device: TUNNEL, via: None, mtu: None }.add()
}
