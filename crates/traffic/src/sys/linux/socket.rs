//! The socket of a trial: this kernel's, or one of the stack that this process carries.

use crate::sys::SocketOption;
use crate::sys::linux::calls;
use crate::sys::stack::{self, StackSocket, lacks};
use socket2::{Domain, Protocol, SockAddr, Type};
use stacklab_model::{Family, Transport};
use std::ffi::c_int;
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

pub(crate) enum Socket {
    Kernel(socket2::Socket),
    Stack(Arc<StackSocket>),
}

/// How long a connection that is opened without a limit may take on a stack.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);

fn ip_address(address: &SockAddr) -> io::Result<SocketAddr> {
    address.as_socket().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

impl<T: Into<socket2::Socket>> From<T> for Socket {
    fn from(socket: T) -> Self {
        Socket::Kernel(socket.into())
    }
}

impl Read for &Socket {
    /// Receives; `WouldBlock` after the socket's timeout.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Kernel(socket) => calls::receive(socket, room),
            Socket::Stack(socket) => Ok(socket.receive(room, socket.read_timeout())?.min(room.len())),
        }
    }
}

impl Socket {
    /// A socket of the stack that this process carries, or of this kernel.
    pub(crate) fn new(domain: Domain, kind: Type, protocol: Option<Protocol>) -> io::Result<Self> {
        let Some(stack) = stack::own() else {
            return Ok(socket2::Socket::new(domain, kind, protocol)?.into());
        };
        let family = if domain == Domain::IPV4 { Family::Ipv4 } else { Family::Ipv6 };
        let transport = if kind == Type::STREAM { Transport::Tcp } else { Transport::Udp };
        Ok(Socket::Stack(Arc::new(StackSocket::new(stack, family, transport))))
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Socket::Kernel(socket) => Socket::Kernel(socket.try_clone()?),
            Socket::Stack(socket) => Socket::Stack(Arc::clone(socket)),
        })
    }

    pub(crate) fn bind(&self, address: &SockAddr) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.bind(address),
            Socket::Stack(socket) => socket.bind(ip_address(address)?),
        }
    }

    pub(crate) fn connect(&self, address: &SockAddr) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.connect(address),
            Socket::Stack(socket) => {
                socket.connect(ip_address(address)?, CONNECT_LIMIT.min(socket.write_timeout()))
            }
        }
    }

    pub(crate) fn connect_timeout(&self, address: &SockAddr, limit: Duration) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.connect_timeout(address, limit),
            Socket::Stack(socket) => socket.connect(ip_address(address)?, limit),
        }
    }

    pub(crate) fn listen(&self, backlog: c_int) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.listen(backlog),
            Socket::Stack(socket) => socket.listen(backlog.max(1) as usize),
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SockAddr> {
        match self {
            Socket::Kernel(socket) => socket.local_addr(),
            Socket::Stack(socket) => Ok(socket.local_addr()?.into()),
        }
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SockAddr> {
        match self {
            Socket::Kernel(socket) => socket.peer_addr(),
            Socket::Stack(socket) => Ok(socket.peer_addr()?.into()),
        }
    }

    pub(crate) fn protocol(&self) -> io::Result<Option<Protocol>> {
        match self {
            Socket::Kernel(socket) => socket.protocol(),
            Socket::Stack(socket) => Ok(Some(match socket.transport() {
                Transport::Tcp => Protocol::TCP,
                Transport::Udp => Protocol::UDP,
            })),
        }
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.shutdown(how),
            Socket::Stack(socket) => socket.shutdown(),
        }
    }

    pub(crate) fn send(&self, message: &[u8]) -> io::Result<usize> {
        self.send_with_flags(message, 0)
    }

    pub(crate) fn send_with_flags(&self, message: &[u8], flags: c_int) -> io::Result<usize> {
        match self {
            Socket::Kernel(socket) => socket.send_with_flags(message, flags),
            Socket::Stack(socket) => socket.send(message, flags, socket.write_timeout()),
        }
    }

    pub(crate) fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.set_read_timeout(limit),
            Socket::Stack(socket) => {
                socket.set_read_timeout(limit);
                Ok(())
            }
        }
    }

    pub(crate) fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.set_write_timeout(limit),
            Socket::Stack(socket) => {
                socket.set_write_timeout(limit);
                Ok(())
            }
        }
    }

    pub(crate) fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.set_linger(linger),
            Socket::Stack(socket) => {
                socket.set_linger(linger);
                Ok(())
            }
        }
    }

    /// A socket of a stack is of one family.
    pub(crate) fn set_only_v6(&self, only: bool) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.set_only_v6(only),
            Socket::Stack(_) if only => Ok(()),
            Socket::Stack(_) => Err(lacks("sockets of both families")),
        }
    }

    pub(crate) fn set_reuse_address(&self, reuse: bool) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.set_reuse_address(reuse),
            Socket::Stack(socket) if socket.transport() == Transport::Tcp || !reuse => Ok(()),
            Socket::Stack(_) => Err(lacks("ports that several sockets share")),
        }
    }

    pub(crate) fn set_tcp_nodelay(&self, nodelay: bool) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.set_tcp_nodelay(nodelay),
            Socket::Stack(socket) => {
                socket.set_nodelay(nodelay);
                Ok(())
            }
        }
    }

    pub(crate) fn tcp_nodelay(&self) -> io::Result<bool> {
        match self {
            Socket::Kernel(socket) => socket.tcp_nodelay(),
            Socket::Stack(socket) => Ok(socket.nodelay()),
        }
    }

    pub(crate) fn send_buffer_size(&self) -> io::Result<usize> {
        match self {
            Socket::Kernel(socket) => socket.send_buffer_size(),
            Socket::Stack(socket) => Ok(socket.buffers().0),
        }
    }

    pub(crate) fn recv_buffer_size(&self) -> io::Result<usize> {
        match self {
            Socket::Kernel(socket) => socket.recv_buffer_size(),
            Socket::Stack(socket) => Ok(socket.buffers().1),
        }
    }

    pub(crate) fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.set_send_buffer_size(bytes),
            Socket::Stack(socket) => socket.set(SocketOption::SendBuffer(bytes)),
        }
    }

    pub(crate) fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.set_recv_buffer_size(bytes),
            Socket::Stack(socket) => socket.set(SocketOption::ReceiveBuffer(bytes)),
        }
    }

    pub(crate) fn set_ttl_v4(&self, ttl: u32) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.set_ttl_v4(ttl),
            Socket::Stack(_) => Err(lacks("TTL to set")),
        }
    }

    pub(crate) fn set_unicast_hops_v6(&self, hops: u32) -> io::Result<()> {
        match self {
            Socket::Kernel(socket) => socket.set_unicast_hops_v6(hops),
            Socket::Stack(_) => Err(lacks("hop limit to set")),
        }
    }
}
