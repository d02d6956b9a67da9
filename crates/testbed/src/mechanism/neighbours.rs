//! Further neighbours of the far router, on the link to its client: an ARP table and a neighbour cache of IPv6 in
//! which the next hop of each packet is looked up. They are permanent, so the kernel neither asks for them nor drops
//! them, and its limits (`gc_thresh1` to `gc_thresh3`), which are one for the whole machine, do not count them.
//!
//! Their addresses are those of many destinations: a datagram to one of these has its own neighbour then. A dump of the
//! table proves that they are there.

use crate::addressing::customer_hardware_address;
use crate::kernel::batch::RequestBatch;
use crate::kernel::genl::message::attribute;
use crate::kernel::memory::MemoryWatch;
use crate::kernel::netlink::{index, with_netlink};
use crate::mechanism::routes::octets;
use crate::{Attempt, Fault, INTERFACE, Router, Site};
use futures_util::TryStreamExt;
use nix::sys::socket::SockProtocol;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::neighbour::NeighbourState;
use stacklab_model::{Family, Table, list_destinations};
use std::net::IpAddr;

/// The request for a new neighbour (`RTM_NEWNEIGH`), its attributes (linux/neighbour.h), and the state of one that
/// lasts.
const NEW_NEIGHBOUR: u16 = 28;
const DESTINATION: u16 = 1;
const LINK_ADDRESS: u16 = 2;
const PERMANENT: u16 = 0x80;

/// Adds the router's further neighbours, all with the hardware address of its client. The kernel must list as many
/// more.
pub(crate) fn build(router: &Router, memory: &mut MemoryWatch) -> Result<(), Fault> {
    let neighbours = router.tables.neighbours;
    if neighbours == 0 || router.site == Site::Near {
        return Ok(());
    }
    let mut before = Vec::new();
    for family in Family::ALL {
        before.push(count_neighbours(*family)?);
    }
    let hardware = customer_hardware_address(router.customer, router.site.client(), INTERFACE);
    memory.add_to_both(Table::Neighbours, neighbours, |family, numbers| {
        let addresses = list_destinations(family, neighbours);
        let numbers = numbers.start as usize..numbers.end as usize;
        add_neighbours(&addresses[numbers], hardware).attempt(format!("add {neighbours} {family} neighbours"))
    })?;
    for (family, before) in Family::ALL.iter().zip(before) {
        check_count(before, count_neighbours(*family)?, neighbours)
            .attempt(format!("add {neighbours} {family} neighbours"))?;
    }
    Ok(())
}

fn check_count(before: usize, after: usize, asked: u32) -> Result<(), String> {
    let added = after.saturating_sub(before);
    if added == asked as usize { Ok(()) } else { Err(format!("the kernel lists {added} of them")) }
}

fn add_neighbours(addresses: &[IpAddr], hardware: [u8; 6]) -> Result<(), Fault> {
    let device = index(INTERFACE)?;
    let mut batch = RequestBatch::open(SockProtocol::NetlinkRoute).attempt("open a netlink socket")?;
    for address in addresses {
        let neighbour = write_neighbour(*address, hardware, device);
        batch.create(NEW_NEIGHBOUR, &neighbour).attempt(format!("add a neighbour before {address}"))?;
    }
    batch.finish().attempt("add the last neighbours")
}

/// The body of the request for a neighbour.
fn write_neighbour(address: IpAddr, hardware: [u8; 6], device: u32) -> Vec<u8> {
    let family = match address {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    };
    // Family and padding, then `struct ndmsg` from its device on: state, no flags, no type.
    let mut body = vec![family as u8, 0, 0, 0];
    body.extend(device.to_ne_bytes());
    body.extend(PERMANENT.to_ne_bytes());
    body.extend([0, 0]);
    body.extend(attribute(DESTINATION, &octets(address)));
    body.extend(attribute(LINK_ADDRESS, &hardware));
    body
}

/// The permanent neighbours of a family on the link to the client, as the kernel lists them.
pub(crate) fn count_neighbours(family: Family) -> Result<usize, Fault> {
    let device = index(INTERFACE)?;
    let version = match family {
        Family::Ipv4 => AddressFamily::Inet,
        Family::Ipv6 => AddressFamily::Inet6,
    };
    with_netlink(async |netlink| {
        let mut listed = netlink.neighbours().get().set_address_family(version).execute();
        let mut count = 0;
        while let Some(neighbour) = listed.try_next().await.attempt(format!("list {family} neighbours"))? {
            let is_here = neighbour.header.ifindex == device;
            if is_here && neighbour.header.state == NeighbourState::Permanent {
                count += 1;
            }
        }
        Ok(count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_neighbour_is_what_the_kernel_reads() {
        let address = Ipv4Addr::new(1, 2, 3, 4).into();
        let body = write_neighbour(address, [2, 0, 0, 0, 0, 9], 7);
        // As strace shows it of `ip neigh add 1.2.3.4 lladdr 02:00:00:00:00:09 dev st0 nud permanent`.
        let head = b"\x02\0\0\0\x07\0\0\0\x80\0\0\0";
        let rest = b"\x08\0\x01\0\x01\x02\x03\x04\x0a\0\x02\0\x02\0\0\0\0\x09\0\0";
        assert_eq!(body, [&head[..], rest].concat(), "on a little-endian machine");
    }

    #[test]
    fn refuses_a_count_that_is_not_what_was_asked() {
        check_count(2, 1002, 1000).unwrap();
        for after in [0, 1001, 1003] {
            assert!(check_count(2, after, 1000).unwrap_err().starts_with("the kernel lists "), "{after}");
        }
    }
}
