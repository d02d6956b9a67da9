//! A reflector for peers of another protocol.

use crate::error::{Attempt, EngineError};
pub use crate::sys::{Datagram, clock_error_ns};
use crate::sys::{RECEIVE_TICK, Unconnected};
use std::io;
use std::net::SocketAddr;

const ROOM: usize = 65_536;

/// A socket that answers datagrams.
pub struct Service {
    socket: Unconnected,
    address: SocketAddr,
}

impl Service {
    /// Binds it to an address; answers leave with this TTL, or hop limit.
    pub fn bind(address: SocketAddr, ttl: u8) -> Result<Self, EngineError> {
        let bound = || -> io::Result<Service> {
            let socket = Unconnected::bind(address, ttl, RECEIVE_TICK)?;
            let address = socket.local_addr()?;
            Ok(Service { socket, address })
        };
        bound().attempt(|| format!("wait for datagrams on {address}"))
    }

    /// Where it is bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `is_over`. `answer` turns a datagram into its answer and gives the byte of traffic class for it,
    /// or `None` if it is not answered. What comes from the service's own port is not: two services would answer each
    /// other for ever.
    pub fn run(
        &mut self,
        is_over: impl Fn() -> bool,
        mut answer: impl FnMut(&mut [u8], &Datagram) -> Option<u8>,
    ) -> Result<(), EngineError> {
        let mut room = vec![0; ROOM];
        while !is_over() {
            let datagram = match self.socket.receive(&mut room) {
                Ok(datagram) => datagram,
                Err(error) if is_passing(error.kind()) => continue,
                Err(error) => return Err(error).attempt(|| format!("receive on {}", self.address)),
            };
            if datagram.peer.port() == self.address.port() {
                continue;
            }
            let message = &mut room[..datagram.len];
            if let Some(traffic_class) = answer(message, &datagram) {
                let _ = self.socket.answer(&datagram, traffic_class, message);
            }
        }
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
