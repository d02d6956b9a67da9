//! Unix: a connection is a file descriptor, passed directly to the process.

use socket2::Socket;
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The next connection; `WouldBlock` after the limit.
pub fn accept(socket: &Socket, limit: Duration) -> io::Result<Socket> {
    socket.set_read_timeout(Some(limit))?;
    socket.accept().map(|(connection, _)| connection)
}

/// Serves a connection in a separate process until it ends.
pub fn serve(stream: &TcpStream, mut command: Command) -> io::Result<()> {
    let end = || stream.try_clone().map(|stream| Stdio::from(OwnedFd::from(stream)));
    // The process does not receive Ctrl-C from the terminal: the listening agent does, and then closes the
    // connection.
    let mut child = command.stdin(end()?).stdout(end()?).process_group(0).spawn()?;
    child.wait().map(drop)
}
