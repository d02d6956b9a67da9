//! Windows: a socket cannot be standard input, so pipes carry every connection's data.

use crate::channel::Channel;
use crate::relay::relay;
use socket2::Socket;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Polling interval for a connection: `accept` has no timeout.
const PAUSE: Duration = Duration::from_millis(20);
/// winbase.h
const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;

/// The next connection; `WouldBlock` after the limit.
pub(crate) fn accept(socket: &Socket, limit: Duration) -> io::Result<Socket> {
    let deadline = Instant::now() + limit;
    socket.set_nonblocking(true)?;
    loop {
        match socket.accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {
                thread::sleep(PAUSE);
            }
            accepted => {
                let (connection, _) = accepted?;
                connection.set_nonblocking(false)?;
                return Ok(connection);
            }
        }
    }
}

/// Serves a connection in a separate process until it ends.
pub(crate) fn serve(channel: &Channel, mut command: Command) -> io::Result<()> {
    // The process does not receive Ctrl-C from the terminal: the listening agent does, and then closes the
    // connection.
    command.creation_flags(CREATE_NEW_PROCESS_GROUP);
    relay(channel, command)
}

/// How to open a file for its owner. Who may read it is what its folder says.
pub(crate) fn own_file() -> OpenOptions {
    OpenOptions::new()
}

/// Whether others than its owner may read a file: not known here.
pub(crate) fn others_may_read(_: &File) -> io::Result<bool> {
    Ok(false)
}
