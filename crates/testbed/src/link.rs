//! The veth pair: made with one end in each namespace, then addressed and raised from both.

use crate::address::{INTERFACE, address, hardware_address, peer};
use crate::error::{Attempt, Fault};
use crate::netlink::{interface, with_netlink};
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags};
use rtnetlink::packet_route::link::{InfoData, InfoVeth};
use rtnetlink::{LinkMessageBuilder, LinkUnspec, LinkVeth};
use stacklab_model::{Family, Role};
use std::fs::File;
use std::os::fd::AsRawFd;

/// Least and largest MTU: what IPv6 asks of every link (RFC 8200), and what the driver takes.
pub(crate) const MTU_LIMITS: (u32, u32) = (1280, 65535);

/// Makes the pair from the sender's namespace, which the calling thread is in. The far end is born in the namespace
/// of process `receiver`, so no end ever shows in the machine's own. The ends have these hardware addresses, sender
/// first.
pub(crate) fn connect(mtu: u32, receiver: u32, addresses: [[u8; 6]; 2]) -> Result<(), Fault> {
    let path = format!("/proc/{receiver}/ns/net");
    let namespace = File::open(&path).attempt(format!("open the receiver's namespace {path}"))?;
    fn end<T>(link: LinkMessageBuilder<T>, address: [u8; 6], mtu: u32) -> LinkMessageBuilder<T> {
        link.mtu(mtu).address(address.to_vec())
    }
    let far = end(LinkUnspec::new_with_name(INTERFACE), addresses[1], mtu).setns_by_fd(namespace.as_raw_fd());
    let near = end(LinkVeth::new(INTERFACE, INTERFACE), addresses[0], mtu)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(far.build())));
    with_netlink(async |netlink| {
        let made = netlink.link().add(near.build()).execute().await;
        made.attempt(format!("create the veth pair with MTU {mtu}"))
    })
}

/// Gives the end in the calling thread's namespace another MTU.
pub(crate) fn set_mtu(mtu: u32) -> Result<(), Fault> {
    with_netlink(async |netlink| {
        let index = interface(&netlink, INTERFACE).await?.header.index;
        let change = LinkUnspec::new_with_index(index).mtu(mtu).build();
        netlink.link().change(change).execute().await.attempt(format!("set the MTU of {INTERFACE} to {mtu}"))
    })
}

/// Gives the end in the calling thread's namespace its addresses and its neighbour, and raises it.
pub(crate) fn raise(role: Role) -> Result<(), Fault> {
    with_netlink(async |netlink| {
        let index = interface(&netlink, INTERFACE).await?.header.index;
        for family in Family::ALL {
            let (address, prefix) = address(*family, role);
            let mut add = netlink.address().add(index, address, prefix);
            add.message_mut().attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
            add.execute().await.attempt(format!("add {address}/{prefix} to {INTERFACE}"))?;
        }
        let up = LinkUnspec::new_with_index(index).up().build();
        netlink.link().change(up).execute().await.attempt(format!("raise {INTERFACE}"))?;
        // A permanent entry asks nothing and never goes stale: no ARP and no neighbour discovery among the counted
        // packets.
        for family in Family::ALL {
            let (address, _) = address(*family, peer(role));
            let add =
                netlink.neighbours().add(index, address).link_layer_address(&hardware_address(peer(role)));
            add.execute().await.attempt(format!("enter neighbour {address} on {INTERFACE}"))?;
        }
        Ok(())
    })
}
