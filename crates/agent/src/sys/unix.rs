//! Unix: a connection is a file like others.

use socket2::Socket;
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The next connection; `WouldBlock` where none came for so long.
pub fn accept(socket: &Socket, limit: Duration) -> io::Result<Socket> {
    socket.set_read_timeout(Some(limit))?;
    socket.accept().map(|(connection, _)| connection)
}

/// Has a process of its own serve a connection to its end.
pub fn serve(stream: &TcpStream, mut command: Command) -> io::Result<()> {
    let end = || stream.try_clone().map(|stream| Stdio::from(OwnedFd::from(stream)));
    // An interrupt from the terminal is for the agent that listens, which then ends the connection.
    let mut child = command.stdin(end()?).stdout(end()?).process_group(0).spawn()?;
    child.wait().map(drop)
}
