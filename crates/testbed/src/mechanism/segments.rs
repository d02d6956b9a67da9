//! SRv6: routes put packets into IPv6 with the other router's segment, and take packets out at the own ones (RFC 8986).

use crate::addressing::Site;
use crate::kernel::netlink::{Encapsulation, Route, raise};
use crate::kernel::sysctl;
use crate::{Fault, INTERFACE, MIDDLE, Router};
use stacklab_model::Family;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) fn build(router: &Router) -> Result<(), Fault> {
    let site = router.site;
    let other = site.other();
    accept_segments(MIDDLE)?;
    for family in Family::ALL {
        let client = site.client_address(router.mechanism, *family);
        take_out(site.segment(*family), client, INTERFACE)?;
    }
    let (network, prefix) = other.segments();
    let via = Some(other.outer(Family::Ipv6));
    Route { to: (network.into(), prefix), device: MIDDLE, via, mtu: None }.add()?;
    for family in Family::ALL {
        put_in(other.network(router.mechanism, *family), other.segment(*family), MIDDLE)?;
    }
    Ok(())
}

/// The kernel drops packets with segments unless both settings allow them.
fn accept_segments(device: &str) -> Result<(), Fault> {
    sysctl::write("ipv6/conf/all/seg6_enabled", "1")?;
    sysctl::write(&format!("ipv6/conf/{device}/seg6_enabled"), "1")
}

fn put_in(to: (IpAddr, u8), segment: Ipv6Addr, device: &str) -> Result<(), Fault> {
    Route { to, device, via: None, mtu: None }.add_with(Encapsulation::PutIn(segment))
}

fn take_out(segment: Ipv6Addr, client: IpAddr, device: &str) -> Result<(), Fault> {
    let route = Route { to: (segment.into(), 128), device, via: None, mtu: None };
    route.add_with(Encapsulation::TakeOut(client))
}

/// Whether this kernel has such routes, in a temporary namespace with a link.
pub(crate) fn try_routes() -> Result<(), Fault> {
    raise(INTERFACE, 1500)?;
    let there = Site::Far;
    let client: IpAddr = Ipv4Addr::new(192, 0, 2, 2).into();
    put_in((client, 32), there.segment(Family::Ipv4), INTERFACE)?;
    take_out(there.segment(Family::Ipv4), client, INTERFACE)
}
