//! veth pairs.

use crate::kernel::namespace::open_other;
use crate::kernel::netlink::add_device;
use crate::{Attempt, Fault};
use rtnetlink::packet_route::link::{InfoData, InfoVeth};
use rtnetlink::{LinkMessageBuilder, LinkUnspec, LinkVeth};
use std::os::fd::AsRawFd;

/// The minimum and maximum MTU: the minimum is required by IPv6 (RFC 8200), the maximum is the driver's.
pub(crate) const MTU_LIMITS: (u32, u32) = (1280, 65535);

/// Creates a pair. Both ends have this name. One end is in the calling thread's namespace, the other in the namespace
/// of process `other`, so neither end ever appears in the machine's namespace. The hardware addresses are for this
/// end and the other end, in this order.
pub fn create(name: &str, mtu: u32, other: u32, hardware: [[u8; 6]; 2]) -> Result<(), Fault> {
    let namespace = open_other(other).attempt("open the next host's namespace")?;
    fn end<T>(link: LinkMessageBuilder<T>, address: [u8; 6], mtu: u32) -> LinkMessageBuilder<T> {
        link.mtu(mtu).address(address.to_vec())
    }
    let far = end(LinkUnspec::new_with_name(name), hardware[1], mtu).setns_by_fd(namespace.as_raw_fd());
    let near = end(LinkVeth::new(name, name), hardware[0], mtu)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(far.build())));
    add_device(near.build(), &format!("the veth pair {name} with MTU {mtu}"))
}
