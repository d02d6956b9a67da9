//! Addresses, routes, neighbours and devices of the calling thread's namespace.

use crate::kernel::netlink::{self, change, index, interface, with_netlink};
use crate::{Attempt, Fault};
use futures_util::TryStreamExt;
use rtnetlink::RouteMessageBuilder;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags};
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::packet_route::neighbour::NeighbourFlags;
use rtnetlink::packet_route::route::{RouteAttribute, RouteMetric};
use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Adds an address that is usable at once.
pub(crate) fn add_address(device: &str, address: IpAddr, prefix: u8) -> Result<(), Fault> {
    let index = index(device)?;
    with_netlink(async |netlink| {
        let mut add = netlink.address().add(index, address, prefix);
        if address.is_ipv6() {
            add.message_mut().attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        add.execute().await.attempt(format!("add {address}/{prefix} to {device}"))
    })
}

pub(crate) struct Route<'a> {
    /// The network. A prefix of length zero is the default route.
    pub to: (IpAddr, u8),
    pub device: &'a str,
    /// The next hop, if the device has several neighbours.
    pub via: Option<IpAddr>,
    /// The route's MTU, if it is less than the device's MTU.
    pub mtu: Option<u32>,
}

impl Route<'_> {
    pub(crate) fn add(&self) -> Result<(), Fault> {
        let (network, prefix) = self.to;
        let what = format!("route {network}/{prefix} to {}", self.device);
        let route = RouteMessageBuilder::<IpAddr>::new().output_interface(index(self.device)?);
        let route = route.destination_prefix(network, prefix).and_then(|route| match self.via {
            Some(via) => route.gateway(via),
            None => Ok(route),
        });
        let mut route = route.attempt(&*what)?.build();
        route.attributes.extend(self.mtu.map(|mtu| RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)])));
        with_netlink(async |netlink| netlink.route().add(route).execute().await.attempt(what))
    }
}

/// Adds a permanent neighbour entry, which causes no queries and never becomes stale: there is no ARP or neighbour
/// discovery among the counted packets. The entry has the router flag: without it the kernel soon forgets a path MTU
/// that the neighbour reports (`rt6_age_exceptions`).
pub(crate) fn add_neighbour(device: &str, address: IpAddr, hardware: [u8; 6]) -> Result<(), Fault> {
    let index = index(device)?;
    with_netlink(async |netlink| {
        let add = netlink.neighbours().add(index, address).link_layer_address(&hardware);
        let add = add.flags(NeighbourFlags::Router);
        add.execute().await.attempt(format!("enter neighbour {address} on {device}"))
    })
}

/// Timeout for a device to appear after its kernel has booted.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);

/// Names the device with this hardware address, once it is there. Sets it down.
pub fn name_by_hardware(name: &str, hardware: [u8; 6]) -> Result<(), Fault> {
    let start = Instant::now();
    let before = loop {
        if let Some(found) = with_hardware(hardware)? {
            break found;
        }
        if start.elapsed() > PATIENCE {
            return Err(io::Error::from(io::ErrorKind::NotFound))
                .attempt(format!("find the interface of {name}"));
        }
        thread::sleep(LOOK);
    };
    change(&before, "lower", |link| link.down())?;
    change(&before, &format!("give the name {name} to"), |link| link.name(name.to_owned()))
}

fn with_hardware(hardware: [u8; 6]) -> Result<Option<String>, Fault> {
    let wanted = LinkAttribute::Address(hardware.to_vec());
    let all = async |netlink: rtnetlink::Handle| {
        let links = netlink.link().get().execute().try_collect::<Vec<_>>().await;
        links.attempt("list the interfaces")
    };
    let found = with_netlink(all)?.into_iter().find(|link| link.attributes.contains(&wanted));
    Ok(found.and_then(|link| {
        link.attributes.into_iter().find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name),
            _ => None,
        })
    }))
}

/// Sets a device's MTU and sets the device up.
pub fn raise(device: &str, mtu: u32) -> Result<(), Fault> {
    change(device, &format!("set MTU {mtu} and raise"), |link| link.mtu(mtu).up())
}

pub(crate) fn packets(device: &str) -> Result<(u64, u64), Fault> {
    let link = with_netlink(async |netlink| interface(&netlink, device).await)?;
    Ok(netlink::packets(&link).unwrap_or_default())
}
