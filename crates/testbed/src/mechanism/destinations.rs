//! Many destinations of one stream: the receiver has all addresses that routes of a table can lead to, and what a
//! router forwards there takes the route of each one's network.

use crate::kernel::netlink::Route;
use crate::{CustomerId, Fault, INTERFACE, Router, Site};
use stacklab_model::{Family, Mechanism, Prefix, Tables};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const LOOPBACK: &str = "lo";

/// Adds the router's route to all destinations. A near router has none if there is one for each in its table: what
/// arrives has then taken those.
pub(crate) fn route(router: &Router) -> Result<(), Fault> {
    let Tables { routes, destinations, .. } = router.tables;
    let has_their_own = router.site == Site::Near && routes >= destinations;
    if destinations == 1 || has_their_own {
        return Ok(());
    }
    for family in Family::ALL {
        let device = match router.site {
            Site::Near => router.middle(),
            Site::Far => INTERFACE,
        };
        // Where the far router has further neighbours, each destination is one of them.
        let is_on_link = router.site == Site::Far && router.tables.neighbours > 0;
        let via = if is_on_link { None } else { Some(find_next_hop(router, *family)) };
        Route { to: (family.unspecified_address(), 0), device, via, mtu: None }.add()?;
    }
    Ok(())
}

/// The host to which a router forwards what goes to one of several destinations.
pub(crate) fn find_next_hop(router: &Router, family: Family) -> IpAddr {
    match router.site {
        Site::Near => router.other_outer(family),
        Site::Far => router.site.client_address(router.customer, router.mechanism, family),
    }
}

/// Gives the receiver, in its namespace, all addresses outside the networks of testbeds.
pub(crate) fn take_all_addresses(mechanism: Mechanism) -> Result<(), Fault> {
    for family in Family::ALL {
        let own = Prefix::of_testbeds(*family);
        let via = Some(Site::Far.gateway(CustomerId::FIRST, mechanism, *family));
        Route { to: (own.address, own.length), device: INTERFACE, via, mtu: None }.add()?;
        for to in list_all_networks(*family) {
            Route { to, device: LOOPBACK, via: None, mtu: None }.add_local()?;
        }
    }
    Ok(())
}

/// The networks of all destinations. Together they are more specific than a default route, which stays.
fn list_all_networks(family: Family) -> Vec<(IpAddr, u8)> {
    match family {
        Family::Ipv4 => [0, 128].map(|first| (Ipv4Addr::new(first, 0, 0, 0).into(), 1)).into(),
        Family::Ipv6 => vec![(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0).into(), 3)],
    }
}
