//! What sockets tell of themselves by any system's own means.

use socket2::{Domain, Protocol, Socket};
use std::ffi::c_int;
use std::io;

/// Room for what arrived and was not read yet. Gives what the kernel made of it, bytes.
pub fn set_receive_buffer(socket: &Socket, bytes: usize) -> io::Result<usize> {
    socket.set_recv_buffer_size(bytes)?;
    socket.recv_buffer_size()
}

/// Room for what waits to leave, bytes.
pub fn set_send_buffer(socket: &Socket, bytes: usize) -> io::Result<()> {
    socket.set_send_buffer_size(bytes)
}

/// The domain and protocol of a socket: the domain is the own address's.
pub fn kind(socket: &Socket) -> io::Result<(Domain, Option<Protocol>)> {
    Ok((Domain::from(c_int::from(socket.local_addr()?.family())), socket.protocol()?))
}
