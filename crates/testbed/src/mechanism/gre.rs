//! GRE: either family behind a header that says which (RFC 2784), over IPv4 or over IPv6 (RFC 7676). `ip` says it as
//! `ip tunnel add tunnel mode gre local A remote B ttl 64` and
//! `ip -6 tunnel add tunnel mode ip6gre local A remote B encaplimit none hoplimit 64`.

use super::Router;
use crate::error::Fault;
use crate::link::addressing::TUNNEL;
use crate::link::interface::add_device;
use rtnetlink::packet_core::DefaultNla;
use rtnetlink::packet_route::link::{InfoData, InfoGre6};
use rtnetlink::{LinkGre, LinkGre6};

/// IFLA_GRE_FLAGS of linux/if_tunnel.h, and the flag that leaves the encapsulation limit out.
const FLAGS: u16 = 13;
const NO_ENCAPSULATION_LIMIT: u32 = 1;

pub(super) fn lay_over_ipv4(router: &Router) -> Result<(), Fault> {
    let (own, other) = (router.site.outer_v4(), router.site.other().outer_v4());
    let device = LinkGre::new(TUNNEL).local(own).remote(other).ttl(64).pmtudisc(true).build();
    add_device(device, &format!("the GRE tunnel from {own} to {other}"))?;
    router.raise_tunnel()?;
    router.route_into_tunnel()
}

pub(super) fn lay_over_ipv6(router: &Router) -> Result<(), Fault> {
    let (own, other) = (router.site.outer_v6(), router.site.other().outer_v6());
    let flags = InfoGre6::Other(DefaultNla::new(FLAGS, NO_ENCAPSULATION_LIMIT.to_ne_bytes().to_vec()));
    let options = vec![InfoGre6::Local(own), InfoGre6::Remote(other), InfoGre6::Ttl(64), flags];
    let device = LinkGre6::new(TUNNEL).set_info_data(InfoData::GreTun6(options)).build();
    add_device(device, &format!("the GRE tunnel from {own} to {other}"))?;
    router.raise_tunnel()?;
    router.route_into_tunnel()
}
