//! A datagram socket without a peer, which answers whoever asks: a reflector for peers of another protocol.

use super::options::socket_addr;
use crate::host::now_unix_ns;
use crate::sys::{Nanos, RECEIVE_TICK};
use crate::{Attempt, EngineError};
use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

const ROOM: usize = 65_536;

/// A datagram as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Bytes, as many as there was room for.
    pub len: usize,
    /// Who sent it.
    pub peer: SocketAddr,
    /// The kernel's timestamp, nanoseconds of the realtime clock; without one, when the receive returned.
    pub unix_ns: Nanos,
    /// TTL, or hop limit; 0 if it is not known.
    pub ttl: u8,
    /// Code point and ECN bits.
    pub traffic_class: u8,
    to: Option<To>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Ipv4(libc::in_pktinfo),
    Ipv6(libc::in6_pktinfo),
}

/// A socket that answers datagrams.
pub struct Service {
    socket: Socket,
    address: SocketAddr,
    control: Vec<u8>,
}

impl Service {
    /// Binds it to an address of one family only; answers leave with this TTL, or hop limit.
    pub fn bind(address: SocketAddr, ttl: u8) -> Result<Self, EngineError> {
        Service::open(address, ttl).attempt(|| format!("wait for datagrams on {address}"))
    }

    fn open(address: SocketAddr, ttl: u8) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_read_timeout(Some(RECEIVE_TICK))?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
            socket.set_unicast_hops_v6(ttl.into())?;
            socket.set_recv_hoplimit_v6(true)?;
            socket.set_recv_tclass_v6(true)?;
            setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
        } else {
            socket.set_ttl_v4(ttl.into())?;
            setsockopt(&socket, sockopt::Ipv4RecvTtl, &true)?;
            socket.set_recv_tos_v4(true)?;
            setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
        }
        socket.bind(&address.into())?;
        let address = socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no IP address"))?;
        let control = cmsg_space!(libc::timespec, libc::c_int, libc::c_int, libc::in6_pktinfo);
        Ok(Service { socket, address, control })
    }

    /// Where it is bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `is_over`. `answer` makes a datagram its answer and gives the traffic class, or `None` where it is
    /// not answered. The service's own port gets no answer: two services would answer each other for ever.
    pub fn run(
        &mut self,
        is_over: impl Fn() -> bool,
        mut answer: impl FnMut(&mut [u8], &Datagram) -> Option<u8>,
    ) -> Result<(), EngineError> {
        let mut room = vec![0; ROOM];
        while !is_over() {
            let datagram = match self.receive(&mut room) {
                Ok(datagram) => datagram,
                Err(error) if is_passing(error.kind()) => continue,
                Err(error) => return Err(error).attempt(|| format!("receive on {}", self.address)),
            };
            if datagram.peer.port() == self.address.port() {
                continue;
            }
            let message = &mut room[..datagram.len];
            if let Some(traffic_class) = answer(message, &datagram) {
                let _ = self.answer(&datagram, traffic_class, message);
            }
        }
        Ok(())
    }

    fn receive(&mut self, room: &mut [u8]) -> io::Result<Datagram> {
        let mut slices = [IoSliceMut::new(room)];
        let fd = self.socket.as_raw_fd();
        let got = recvmsg::<SockaddrStorage>(fd, &mut slices, Some(&mut self.control), MsgFlags::empty())?;
        let peer = got.address.as_ref().and_then(socket_addr);
        let peer = peer.ok_or_else(|| io::Error::other("a datagram without a sender"))?;
        let mut datagram = Datagram { len: got.bytes, peer, unix_ns: 0, ttl: 0, traffic_class: 0, to: None };
        for control in got.cmsgs()? {
            match control {
                ControlMessageOwned::ScmTimestampns(time) => {
                    datagram.unix_ns = time.tv_sec() as Nanos * 1_000_000_000 + time.tv_nsec() as Nanos;
                }
                ControlMessageOwned::Ipv4Ttl(ttl) | ControlMessageOwned::Ipv6HopLimit(ttl) => {
                    datagram.ttl = ttl as u8;
                }
                ControlMessageOwned::Ipv4Tos(byte) => datagram.traffic_class = byte,
                ControlMessageOwned::Ipv6TClass(byte) => datagram.traffic_class = byte as u8,
                ControlMessageOwned::Ipv4PacketInfo(to) => datagram.to = Some(To::Ipv4(to)),
                ControlMessageOwned::Ipv6PacketInfo(to) => datagram.to = Some(To::Ipv6(to)),
                _ => {}
            }
        }
        if datagram.unix_ns == 0 {
            datagram.unix_ns = now_unix_ns();
        }
        Ok(datagram)
    }

    /// Answers a datagram from the address that it was sent to, with this byte of traffic class.
    fn answer(&self, to: &Datagram, traffic_class: u8, message: &[u8]) -> io::Result<()> {
        let class = i32::from(traffic_class);
        let own;
        let control = match (&to.to, to.peer) {
            (Some(To::Ipv4(info)), _) => {
                own = libc::in_pktinfo { ipi_spec_dst: info.ipi_addr, ..*info };
                vec![ControlMessage::Ipv4PacketInfo(&own), ControlMessage::Ipv4Tos(&traffic_class)]
            }
            (Some(To::Ipv6(info)), _) => {
                vec![ControlMessage::Ipv6PacketInfo(info), ControlMessage::Ipv6TClass(&class)]
            }
            (None, SocketAddr::V6(_)) => vec![ControlMessage::Ipv6TClass(&class)],
            (None, SocketAddr::V4(_)) => Vec::new(),
        };
        let fd = self.socket.as_raw_fd();
        let peer = SockaddrStorage::from(to.peer);
        sendmsg(fd, &[IoSlice::new(message)], &control, MsgFlags::MSG_NOSIGNAL, Some(&peer))?;
        Ok(())
    }
}

/// Nothing came, a signal did, or an ICMP error of an earlier answer.
fn is_passing(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::*;
    matches!(
        kind,
        WouldBlock | TimedOut | Interrupted | ConnectionRefused | HostUnreachable | NetworkUnreachable
    )
}
