//! SRv6: routes put packets into IPv6 with the other router's segments, send packets on at the own ones but the last,
//! and take them out there (RFC 8986).

use crate::addressing::Site;
use crate::kernel::netlink::{Encapsulation, Route, add_table, raise};
use crate::kernel::sysctl;
use crate::{Fault, INTERFACE, MIDDLE, Router};
use stacklab_model::Family;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The table of the client's networks, and its device.
const TABLE: u32 = 46;
const TABLE_DEVICE: &str = "table";

pub(crate) fn build(router: &Router, count: u8) -> Result<(), Fault> {
    let site = router.site;
    let other = site.other();
    accept_segments(MIDDLE)?;
    if count > 1 {
        pass_on(site.passing_segment(), MIDDLE)?;
    }
    for family in Family::ALL {
        let client = site.client_address(router.customer, router.mechanism, *family);
        take_out(site.segment(*family), client, INTERFACE)?;
    }
    reach_segments(router)?;
    for family in Family::ALL {
        put_in(router.other_network(*family), list_segments(other, *family, count), MIDDLE)?;
    }
    Ok(())
}

/// One segment for both families, whose packets are looked up in a table with the client's networks.
pub(crate) fn build_with_table(router: &Router) -> Result<(), Fault> {
    let site = router.site;
    accept_segments(MIDDLE)?;
    take_out_to_table(site.segment_of_table())?;
    reach_segments(router)?;
    for family in Family::ALL {
        let to = site.network(router.customer, router.mechanism, *family);
        Route { to, device: INTERFACE, via: None, mtu: None }.add_to_table(Some(TABLE))?;
        put_in(router.other_network(*family), vec![site.other().segment_of_table()], MIDDLE)?;
    }
    Ok(())
}

fn reach_segments(router: &Router) -> Result<(), Fault> {
    let (network, prefix) = router.site.other().segments();
    let via = Some(router.other_outer(Family::Ipv6));
    Route { to: (network.into(), prefix), device: MIDDLE, via, mtu: None }.add()
}

/// The segments of packets of a family to a site, all of them its router's. At the last one they are taken out.
fn list_segments(to: Site, family: Family, count: u8) -> Vec<Ipv6Addr> {
    let mut segments = vec![to.passing_segment(); usize::from(count) - 1];
    segments.push(to.segment(family));
    segments
}

impl Site {
    /// The network of its router's segments, and the length of its prefix.
    fn segments(self) -> (Ipv6Addr, u8) {
        (Ipv6Addr::new(0x2001, 2, 0, 0xf0 + u16::from(self.number()), 0, 0, 0, 0), 64)
    }

    /// The segment at which its router takes packets of a family out, for its client.
    fn segment(self, family: Family) -> Ipv6Addr {
        let last = match family {
            Family::Ipv4 => 0xd4,
            Family::Ipv6 => 0xd6,
        };
        Ipv6Addr::from(u128::from(self.segments().0) | last)
    }

    /// The segment at which its router takes packets of both families out.
    fn segment_of_table(self) -> Ipv6Addr {
        Ipv6Addr::from(u128::from(self.segments().0) | 0xd46)
    }

    /// The segment at which its router sends packets on to their next one, which may be its own too.
    fn passing_segment(self) -> Ipv6Addr {
        Ipv6Addr::from(u128::from(self.segments().0) | 0xe)
    }
}

/// The kernel drops packets with segments unless both settings allow them.
fn accept_segments(device: &str) -> Result<(), Fault> {
    sysctl::write("ipv6/conf/all/seg6_enabled", "1")?;
    sysctl::write(&format!("ipv6/conf/{device}/seg6_enabled"), "1")
}

fn put_in(to: (IpAddr, u8), segments: Vec<Ipv6Addr>, device: &str) -> Result<(), Fault> {
    Route { to, device, via: None, mtu: None }.add_with(Encapsulation::PutIn(segments))
}

fn pass_on(segment: Ipv6Addr, device: &str) -> Result<(), Fault> {
    Route { to: (segment.into(), 128), device, via: None, mtu: None }.add_with(Encapsulation::PassOn)
}

fn take_out(segment: Ipv6Addr, client: IpAddr, device: &str) -> Result<(), Fault> {
    let route = Route { to: (segment.into(), 128), device, via: None, mtu: None };
    route.add_with(Encapsulation::TakeOut(client))
}

/// Adds the table, by its device, and the segment whose packets are looked up there. The kernel takes such a segment
/// only where no table has two devices.
fn take_out_to_table(segment: Ipv6Addr) -> Result<(), Fault> {
    add_table(TABLE_DEVICE, TABLE)?;
    sysctl::write("vrf/strict_mode", "1")?;
    let route = Route { to: (segment.into(), 128), device: TABLE_DEVICE, via: None, mtu: None };
    route.add_with(Encapsulation::TakeOutToTable(TABLE))
}

/// Whether this kernel has such routes, in a temporary namespace with a link.
pub(crate) fn try_routes() -> Result<(), Fault> {
    raise(INTERFACE, 1500)?;
    let there = Site::Far;
    let client: IpAddr = Ipv4Addr::new(192, 0, 2, 2).into();
    put_in((client, 32), list_segments(there, Family::Ipv4, 2), INTERFACE)?;
    pass_on(there.passing_segment(), INTERFACE)?;
    take_out(there.segment(Family::Ipv4), client, INTERFACE)
}

/// Whether this kernel has tables that a segment can lead to, in a temporary namespace.
pub(crate) fn try_table() -> Result<(), Fault> {
    take_out_to_table(Site::Far.segment_of_table())
}
