//! Unix: a connection is a file descriptor, passed directly to the process, unless it is inside a TLS session.

use crate::channel::Channel;
use crate::relay::relay;
use socket2::Socket;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The next connection; `WouldBlock` after the limit.
pub(crate) fn accept(socket: &Socket, limit: Duration) -> io::Result<Socket> {
    socket.set_read_timeout(Some(limit))?;
    socket.accept().map(|(connection, _)| connection)
}

/// Serves a connection in a separate process until it ends.
pub(crate) fn serve(channel: &Channel, mut command: Command) -> io::Result<()> {
    // The process does not receive Ctrl-C from the terminal: the listening agent does, and then closes the
    // connection.
    command.process_group(0);
    if channel.is_secure() {
        return relay(channel, command);
    }
    let end = || channel.stream().try_clone().map(|stream| Stdio::from(OwnedFd::from(stream)));
    let mut child = command.stdin(end()?).stdout(end()?).spawn()?;
    child.wait().map(drop)
}

/// How to open a file that only its owner may read, if it is made.
pub(crate) fn own_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Whether others than its owner may read or write a file.
pub(crate) fn others_may_read(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.mode() & 0o077 != 0)
}
