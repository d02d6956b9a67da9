//! Links, addresses, routes and neighbours of the calling thread's network namespace, over netlink.

use crate::{Attempt, Fault};
use futures_util::TryStreamExt;
use nix::net::if_::if_nametoindex;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use rtnetlink::packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVrf, LinkAttribute, LinkMessage, State,
};
use rtnetlink::packet_route::neighbour::NeighbourFlags;
use rtnetlink::packet_route::route::{
    RouteAttribute, RouteLwEnCapType, RouteLwTunnelEncap, RouteMetric, RouteScope, RouteSeg6IpTunnel,
    RouteSeg6LocalTunnel, RouteType, Seg6Header, Seg6LocalAction, Seg6Mode,
};
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, RouteMessageBuilder};
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};
use std::{io, thread};
use tokio::runtime::{Builder, Runtime};

/// A netlink socket. It stays in the namespace of the thread that opened it, wherever it is used.
#[derive(Debug)]
pub struct Netlink {
    runtime: Runtime,
    handle: Handle,
}

impl Netlink {
    /// A socket in the calling thread's namespace.
    pub fn open() -> Result<Self, Fault> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.attempt("start the netlink runtime")?;
        let handle = runtime.block_on(async {
            let (connection, handle, _) = rtnetlink::new_connection().attempt("open a netlink socket")?;
            tokio::spawn(connection);
            Ok(handle)
        })?;
        Ok(Netlink { runtime, handle })
    }

    /// Runs `work` with it.
    pub fn run<T>(&self, work: impl AsyncFnOnce(Handle) -> Result<T, Fault>) -> Result<T, Fault> {
        self.runtime.block_on(work(self.handle.clone()))
    }
}

pub(crate) fn with_netlink<T>(work: impl AsyncFnOnce(Handle) -> Result<T, Fault>) -> Result<T, Fault> {
    Netlink::open()?.run(work)
}

/// The index of an interface of the calling thread's namespace.
pub fn index(name: &str) -> Result<u32, Fault> {
    if_nametoindex(name).attempt(format!("find interface {name}"))
}

pub(crate) async fn interface(netlink: &Handle, name: &str) -> Result<LinkMessage, Fault> {
    let mut found = netlink.link().get().match_name(name).execute();
    let link = found.try_next().await.attempt(format!("find interface {name}"))?;
    link.ok_or("it is not there").attempt(format!("find interface {name}"))
}

pub(crate) fn add_device(device: LinkMessage, what: &str) -> Result<(), Fault> {
    with_netlink(async |netlink| netlink.link().add(device).execute().await.attempt(format!("create {what}")))
}

/// Adds a device of a table (VRF): what arrives by it is looked up there.
pub(crate) fn add_table(name: &str, table: u32) -> Result<(), Fault> {
    let device = LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(InfoKind::Vrf);
    let device = device.name(name.to_owned()).set_info_data(InfoData::Vrf(vec![InfoVrf::TableId(table)]));
    add_device(device.up().build(), &format!("the device of table {table}"))
}

pub(crate) fn change(
    name: &str,
    attempted: &str,
    set: impl FnOnce(LinkMessageBuilder<LinkUnspec>) -> LinkMessageBuilder<LinkUnspec>,
) -> Result<(), Fault> {
    let changed = set(LinkUnspec::new_with_index(index(name)?)).build();
    with_netlink(async |netlink| {
        netlink.link().change(changed).execute().await.attempt(format!("{attempted} {name}"))
    })
}

pub(crate) fn counted_packets(link: &LinkMessage) -> Option<(u64, u64)> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Stats64(counters) => Some((counters.rx_packets, counters.tx_packets)),
        _ => None,
    })
}

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
    pub to: (IpAddr, u8),
    pub device: &'a str,
    /// The next hop, if the device has several neighbours.
    pub via: Option<IpAddr>,
    pub mtu: Option<u32>,
}

/// What a route does to packets besides sending them (RFC 8986).
#[derive(Debug, Clone)]
pub(crate) enum Encapsulation {
    /// Into IPv6 with a segment routing header of these segments, the first one first.
    PutIn(Vec<Ipv6Addr>),
    /// On to the next segment.
    PassOn,
    /// Out of it, and to this next hop.
    TakeOut(IpAddr),
    /// Out of it, and wherever this table leads, which a device is for ([`add_table`]).
    TakeOutToTable(u32),
}

impl Encapsulation {
    fn attributes(self) -> [RouteAttribute; 2] {
        let (kind, parts) = match self {
            Encapsulation::PutIn(segments) => {
                let mut header = Seg6Header::default();
                header.mode = Seg6Mode::Encap;
                header.segments = segments;
                (RouteLwEnCapType::Seg6, vec![RouteLwTunnelEncap::Seg6(RouteSeg6IpTunnel::Seg6(header))])
            }
            Encapsulation::PassOn => {
                let action = RouteSeg6LocalTunnel::Action(Seg6LocalAction::End);
                (RouteLwEnCapType::Seg6Local, vec![RouteLwTunnelEncap::Seg6Local(action)])
            }
            Encapsulation::TakeOut(client) => {
                let (action, next) = match client {
                    IpAddr::V4(client) => (Seg6LocalAction::EndDx4, RouteSeg6LocalTunnel::Nh4(client)),
                    IpAddr::V6(client) => (Seg6LocalAction::EndDx6, RouteSeg6LocalTunnel::Nh6(client)),
                };
                let parts = [RouteSeg6LocalTunnel::Action(action), next];
                (RouteLwEnCapType::Seg6Local, parts.map(RouteLwTunnelEncap::Seg6Local).into())
            }
            Encapsulation::TakeOutToTable(table) => {
                let action = RouteSeg6LocalTunnel::Action(Seg6LocalAction::EndDt46);
                let parts = [action, RouteSeg6LocalTunnel::VrfTable(table)];
                (RouteLwEnCapType::Seg6Local, parts.map(RouteLwTunnelEncap::Seg6Local).into())
            }
        };
        [RouteAttribute::EncapType(kind), RouteAttribute::Encap(parts)]
    }
}

impl Route<'_> {
    pub(crate) fn add(&self) -> Result<(), Fault> {
        self.add_message(Vec::new())
    }

    /// Adds it to this table, or to the main one.
    pub(crate) fn add_to_table(&self, table: Option<u32>) -> Result<(), Fault> {
        self.add_message(table.map(RouteAttribute::Table).into_iter().collect())
    }

    pub(crate) fn add_with(&self, encapsulation: Encapsulation) -> Result<(), Fault> {
        self.add_message(encapsulation.attributes().into())
    }

    /// Makes all addresses of the network the host's own.
    pub(crate) fn add_local(&self) -> Result<(), Fault> {
        let route = RouteMessageBuilder::<IpAddr>::new().kind(RouteType::Local).scope(RouteScope::Host);
        self.add_to(route, Vec::new())
    }

    fn add_message(&self, more: Vec<RouteAttribute>) -> Result<(), Fault> {
        self.add_to(RouteMessageBuilder::<IpAddr>::new(), more)
    }

    fn add_to(&self, route: RouteMessageBuilder<IpAddr>, more: Vec<RouteAttribute>) -> Result<(), Fault> {
        let (network, prefix) = self.to;
        let what = format!("route {network}/{prefix} to {}", self.device);
        let route = route.output_interface(index(self.device)?);
        let route = route.destination_prefix(network, prefix).and_then(|route| match self.via {
            Some(via) => route.gateway(via),
            None => Ok(route),
        });
        let mut route = route.attempt(&*what)?.build();
        route.attributes.extend(self.mtu.map(|mtu| RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)])));
        route.attributes.extend(more);
        with_netlink(async |netlink| netlink.route().add(route).execute().await.attempt(what))
    }
}

/// Adds a permanent neighbour entry: there is no ARP or neighbour discovery among the counted packets. It has the
/// router flag: without it the kernel soon forgets a path MTU that the neighbour reports (`rt6_age_exceptions`).
pub(crate) fn add_neighbour(device: &str, address: IpAddr, hardware: [u8; 6]) -> Result<(), Fault> {
    let index = index(device)?;
    with_netlink(async |netlink| {
        let add = netlink.neighbours().add(index, address).link_layer_address(&hardware);
        // A packet that came first may have entered it.
        let add = add.flags(NeighbourFlags::Router).replace();
        add.execute().await.attempt(format!("enter neighbour {address} on {device}"))
    })
}

/// Timeout for a device to appear after its kernel has booted.
const APPEARS: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Names the device with this hardware address, once it is there. Sets it down.
pub fn name_by_hardware(name: &str, hardware: [u8; 6]) -> Result<(), Fault> {
    let start = Instant::now();
    let before = loop {
        if let Some(found) = with_hardware(hardware)? {
            break found;
        }
        if start.elapsed() > APPEARS {
            return Err(io::Error::from(io::ErrorKind::NotFound))
                .attempt(format!("find the interface of {name}"));
        }
        thread::sleep(POLL_INTERVAL);
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

/// Gives a device no link-local address when it is set up: nothing then looks for duplicates of it or for routers.
pub(crate) fn without_link_local(device: &str) -> Result<(), Fault> {
    let mode = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
    let attribute = LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![mode])]);
    change(device, "leave out the link-local address of", |link| link.append_extra_attribute(attribute))
}

pub(crate) fn packets(device: &str) -> Result<(u64, u64), Fault> {
    let link = with_netlink(async |netlink| interface(&netlink, device).await)?;
    Ok(counted_packets(&link).unwrap_or_default())
}

/// How long an interface may take to become quiet: normally a fraction of a second; a loaded machine may take longer.
const TIMEOUT: Duration = Duration::from_secs(5);
const QUIET_POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The required silence, beyond the interval of multicast listener reports: when a link comes up, IPv6 sends a few of
/// them, at most an interval and a few kernel ticks (of up to 10 ms) apart.
const SILENCE: Duration = Duration::from_millis(50);

fn report_interval(name: &str) -> Duration {
    let path = format!("/proc/sys/net/ipv6/conf/{name}/mldv2_unsolicited_report_interval");
    let milliseconds = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
    // What a testbed sets.
    Duration::from_millis(milliseconds.unwrap_or(1))
}

/// Waits until the interface is up, these addresses are usable, and it sends nothing by itself any more.
pub fn wait_until_quiet(name: &str, addresses: &[IpAddr]) -> Result<(), Fault> {
    let silence = SILENCE + report_interval(name);
    with_netlink(async |netlink| {
        let start = Instant::now();
        let mut last_sent = (None, start);
        loop {
            let link = interface(&netlink, name).await?;
            let sent = counted_packets(&link).map(|(_, sent)| sent);
            if last_sent.0 != sent {
                last_sent = (sent, Instant::now());
            }
            let missing = match missing(&netlink, name, addresses, &link).await? {
                None if last_sent.1.elapsed() >= silence => return Ok(()),
                None => "it still sends packets by itself".to_owned(),
                Some(missing) => missing,
            };
            if start.elapsed() > TIMEOUT {
                let late = io::Error::new(io::ErrorKind::TimedOut, format!("{missing} after {TIMEOUT:?}"));
                return Err(late).attempt(format!("use {name}"));
            }
            tokio::time::sleep(QUIET_POLL_INTERVAL).await;
        }
    })
}

async fn missing(
    netlink: &Handle,
    name: &str,
    addresses: &[IpAddr],
    link: &LinkMessage,
) -> Result<Option<String>, Fault> {
    // A device that does not track its link's state (as in user-mode Linux) is usable as soon as it is set up.
    let up = [State::Up, State::Unknown].map(LinkAttribute::OperState);
    if !link.attributes.iter().any(|attribute| up.contains(attribute)) {
        return Ok(Some("it is not up".to_owned()));
    }
    let found = netlink.address().get().set_link_index_filter(link.header.index).execute();
    let found: Vec<_> = found.try_collect().await.attempt(format!("read the addresses of {name}"))?;
    for wanted in addresses {
        let wanted_address = AddressAttribute::Address(*wanted);
        if !found.iter().any(|message| message.attributes.contains(&wanted_address)) {
            return Ok(Some(format!("it has no address {wanted}")));
        }
    }
    Ok(found.iter().any(is_tentative).then(|| "an address of it is still tentative".to_owned()))
}

fn is_tentative(message: &AddressMessage) -> bool {
    message.attributes.iter().any(|attribute| match attribute {
        AddressAttribute::Flags(flags) => flags.contains(AddressFlags::Tentative),
        _ => false,
    })
}
