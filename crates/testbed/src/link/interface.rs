//! Addresses, routes, neighbours and devices of the calling thread's namespace.

use crate::error::{Attempt, Fault};
use crate::kernel::netlink::{self, interface, with_netlink};
use futures_util::TryStreamExt;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags};
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};
use rtnetlink::packet_route::neighbour::NeighbourFlags;
use rtnetlink::packet_route::route::{RouteAttribute, RouteMetric};
use rtnetlink::{LinkUnspec, RouteMessageBuilder};
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Adds an address that is usable at once.
pub(crate) fn add_address(device: &str, address: IpAddr, prefix: u8) -> Result<(), Fault> {
    with_netlink(async |netlink| {
        let index = interface(&netlink, device).await?.header.index;
        let mut add = netlink.address().add(index, address, prefix);
        if address.is_ipv6() {
            add.message_mut().attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        add.execute().await.attempt(format!("add {address}/{prefix} to {device}"))
    })
}

/// A route to a network.
pub(crate) struct Route<'a> {
    /// The network. A prefix of length zero is the default route.
    pub to: (IpAddr, u8),
    /// The device.
    pub device: &'a str,
    /// The next hop, if the device has several neighbours.
    pub via: Option<IpAddr>,
    /// The route's MTU, if it is less than the device's MTU.
    pub mtu: Option<u32>,
}

impl Route<'_> {
    /// Adds the route to the kernel.
    pub(crate) fn add(&self) -> Result<(), Fault> {
        let (network, prefix) = self.to;
        let what = || format!("route {network}/{prefix} to {}", self.device);
        with_netlink(async |netlink| {
            let index = interface(&netlink, self.device).await?.header.index;
            let mut route = RouteMessageBuilder::<IpAddr>::new().output_interface(index);
            route = route
                .destination_prefix(network, prefix)
                .map_err(|e| io::Error::other(e.to_string()))
                .attempt(what())?;
            if let Some(via) = self.via {
                route = route.gateway(via).map_err(|e| io::Error::other(e.to_string())).attempt(what())?;
            }
            let mut route = route.build();
            if let Some(mtu) = self.mtu {
                route.attributes.push(RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)]));
            }
            netlink.route().add(route).execute().await.attempt(what())
        })
    }
}

/// Adds a permanent neighbour entry, which causes no queries and never becomes stale: there is no ARP or neighbour
/// discovery among the counted packets. The entry has the router flag: without it the kernel soon forgets a path MTU
/// that the neighbour reports (`rt6_age_exceptions`).
pub(crate) fn add_neighbour(device: &str, address: IpAddr, hardware: [u8; 6]) -> Result<(), Fault> {
    with_netlink(async |netlink| {
        let index = interface(&netlink, device).await?.header.index;
        let add = netlink.neighbours().add(index, address).link_layer_address(&hardware);
        let add = add.flags(NeighbourFlags::Router);
        add.execute().await.attempt(format!("enter neighbour {address} on {device}"))
    })
}

/// Creates a device.
pub(crate) fn add_device(device: LinkMessage, what: &str) -> Result<(), Fault> {
    with_netlink(async |netlink| netlink.link().add(device).execute().await.attempt(format!("create {what}")))
}

/// Timeout for a device to appear after its kernel has booted.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);

/// Names the device with this hardware address, once it is there. Sets it down.
pub fn name_by_hardware(name: &str, hardware: [u8; 6]) -> Result<(), Fault> {
    let wanted = LinkAttribute::Address(hardware.to_vec());
    with_netlink(async |netlink| {
        let start = Instant::now();
        let index = loop {
            let all: Vec<_> =
                netlink.link().get().execute().try_collect().await.attempt("list the interfaces")?;
            if let Some(link) = all.into_iter().find(|link| link.attributes.contains(&wanted)) {
                break link.header.index;
            }
            if start.elapsed() > PATIENCE {
                return Err(io::Error::from(io::ErrorKind::NotFound))
                    .attempt(format!("find the interface of {name}"));
            }
            tokio::time::sleep(LOOK).await;
        };
        let down = LinkUnspec::new_with_index(index).down().build();
        netlink.link().change(down).execute().await.attempt(format!("lower the interface of {name}"))?;
        let named = LinkUnspec::new_with_index(index).name(name.to_owned()).build();
        netlink.link().change(named).execute().await.attempt(format!("name it {name}"))
    })
}

/// Sets a device's MTU and sets the device up.
pub fn raise(device: &str, mtu: u32) -> Result<(), Fault> {
    with_netlink(async |netlink| {
        let index = interface(&netlink, device).await?.header.index;
        let up = LinkUnspec::new_with_index(index).mtu(mtu).up().build();
        netlink.link().change(up).execute().await.attempt(format!("raise {device} with MTU {mtu}"))
    })
}

/// Sets a device's MTU.
pub(crate) fn set_mtu(device: &str, mtu: u32) -> Result<(), Fault> {
    with_netlink(async |netlink| {
        let index = interface(&netlink, device).await?.header.index;
        let change = LinkUnspec::new_with_index(index).mtu(mtu).build();
        netlink.link().change(change).execute().await.attempt(format!("set the MTU of {device} to {mtu}"))
    })
}

/// Packets that a device has received and sent.
pub(crate) fn packets(device: &str) -> Result<(u64, u64), Fault> {
    let link = with_netlink(async |netlink| interface(&netlink, device).await)?;
    Ok(netlink::packets(&link).unwrap_or_default())
}
