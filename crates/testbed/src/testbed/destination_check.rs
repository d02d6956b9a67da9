//! Checks that datagrams to different destinations reach the receiver of a testbed, each with the address that it was
//! sent to.

use crate::path_ends::ends_of;
use crate::testbed::path_check::{CheckedPath, PORT, TIMEOUT, socket};
use crate::{AtHost, Attempt, Fault, TestbedError};
use nix::cmsg_space;
use nix::libc::{in_pktinfo, in6_pktinfo};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use stacklab_model::{Family, Mechanism, list_destinations};
use std::collections::BTreeSet;
use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Instant;

/// The most destinations that are tried, spread over all, and how many of them at once.
const MAX_TRIED: u32 = 1000;
const AT_ONCE: usize = 50;

/// Sends a datagram to each of up to [`MAX_TRIED`] destinations until all have arrived.
pub(crate) fn check_destinations(
    path: &CheckedPath<'_>,
    mechanism: Mechanism,
    family: Family,
    count: u32,
) -> Result<(), TestbedError> {
    let [from, _, _, at] = path.hosts;
    let ends = ends_of(path.customer, mechanism, family).expect("the family is carried");
    let sender = from.inside(|| socket(ends.sender, 0, None))?;
    let receiver = at.inside(|| open_receiver(family))?;
    let step = count.div_ceil(MAX_TRIED) as usize;
    let mut missing: BTreeSet<IpAddr> = list_destinations(family, count).into_iter().step_by(step).collect();
    let tried = missing.len();
    let mut progress = Instant::now();
    while let Some(first) = missing.first() {
        if progress.elapsed() > TIMEOUT {
            let left = missing.len();
            let seconds = TIMEOUT.as_secs();
            let reason =
                format!("{left} of {tried} had no datagram, {first} for one, and none came for {seconds} s");
            return Err::<(), _>(reason)
                .attempt(format!("reach {count} {family} destinations"))
                .at(at.node());
        }
        let some: Vec<IpAddr> = missing.iter().copied().take(AT_ONCE).collect();
        for address in &some {
            // What is refused is sent again.
            let _ = sender.send_to(&[], SocketAddr::new(*address, PORT));
        }
        while some.iter().any(|address| missing.contains(address)) {
            let Some(address) = receive_destination(&receiver) else { break };
            if missing.remove(&address) {
                progress = Instant::now();
            }
        }
    }
    Ok(())
}

/// A socket for datagrams to any address, which says which it was.
fn open_receiver(family: Family) -> Result<UdpSocket, Fault> {
    let socket = socket(family.unspecified_address(), PORT, None)?;
    let asked = match family {
        Family::Ipv4 => setsockopt(&socket, sockopt::Ipv4PacketInfo, &true),
        Family::Ipv6 => setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true),
    };
    asked.attempt("ask for the destination of datagrams")?;
    Ok(socket)
}

/// The destination of the next datagram; `None` if none comes for a moment.
fn receive_destination(socket: &UdpSocket) -> Option<IpAddr> {
    let mut room = [0; 64];
    let mut parts = [IoSliceMut::new(&mut room)];
    let mut control = cmsg_space!(in_pktinfo, in6_pktinfo);
    let received =
        recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty());
    for message in received.ok()?.cmsgs().ok()? {
        match message {
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                return Some(Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr)).into());
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                return Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
            }
            _ => {}
        }
    }
    None
}
