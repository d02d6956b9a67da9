//! 6to4: IPv6 in IPv4, the far router's IPv4 address being in the IPv6 destination, 2002:V4ADDR::/48 (RFC 3056). `ip` says it
//! as `ip tunnel add tunnel mode sit local A remote any ttl 64` and a route to 2002::/16.

use super::Router;
use crate::error::Fault;
use crate::link::addressing::TUNNEL;
use crate::link::interface::{Route, add_device};
use rtnetlink::LinkSit;
use std::net::Ipv6Addr;

/// The prefix of all 6to4 addresses.
const PREFIX: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);

pub(super) fn lay(router: &Router) -> Result<(), Fault> {
    let own = router.site.outer_v4();
    add_device(LinkSit::new(TUNNEL).local(own).ttl(64).build(), &format!("the 6to4 device of {own}"))?;
    router.raise_tunnel()?;
    Route { to: (PREFIX.0.into(), PREFIX.1), device: TUNNEL, via: None, mtu: None }.add()
}
