//! Portable socket properties.

use socket2::{Domain, Protocol, Socket};
use std::ffi::c_int;
use std::io;

pub(crate) fn set_receive_buffer(socket: &Socket, bytes: usize) -> io::Result<usize> {
    socket.set_recv_buffer_size(bytes)?;
    socket.recv_buffer_size()
}

pub(crate) fn set_send_buffer(socket: &Socket, bytes: usize) -> io::Result<()> {
    socket.set_send_buffer_size(bytes)
}

pub(crate) fn kind(socket: &Socket) -> io::Result<(Domain, Option<Protocol>)> {
    Ok((Domain::from(c_int::from(socket.local_addr()?.family())), socket.protocol()?))
}
