//! ICMP errors about what a socket sent, from its error queue.

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use socket2::Socket;
use stacklab_model::Family;
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;

/// Has the kernel queue each error (`IP_RECVERR`), also those that it would otherwise drop, such as an expired TTL.
pub(crate) fn enable_icmp_errors(socket: &Socket, family: Family) -> io::Result<()> {
    match family {
        Family::Ipv4 => setsockopt(socket, sockopt::Ipv4RecvErr, &true)?,
        Family::Ipv6 => setsockopt(socket, sockopt::Ipv6RecvErr, &true)?,
    }
    Ok(())
}

/// An error about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IcmpError {
    /// Its ICMP type; `None` if this host refused the packet.
    pub kind: Option<u8>,
    /// Its ICMP code.
    pub code: u8,
    /// Bytes of the refused packet, from its ICMP header on, that are in the room.
    pub len: usize,
}

/// The next queued error, with the refused packet; `None` if none is queued.
pub(crate) fn next_icmp_error(socket: &Socket, room: &mut [u8]) -> io::Result<Option<IcmpError>> {
    let mut control = cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6, libc::timespec);
    let mut slices = [IoSliceMut::new(room)];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let got = match recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut slices, Some(&mut control), flags) {
        Err(nix::errno::Errno::EAGAIN) => return Ok(None),
        got => got?,
    };
    for message in got.cmsgs()? {
        if let ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) =
            message
        {
            let is_icmp = matches!(error.ee_origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6);
            let kind = is_icmp.then_some(error.ee_type);
            return Ok(Some(IcmpError { kind, code: error.ee_code, len: got.bytes }));
        }
    }
    Ok(Some(IcmpError { kind: None, code: 0, len: 0 }))
}
