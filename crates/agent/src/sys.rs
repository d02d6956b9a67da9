//! System-specific parts of a listening agent: accepting a connection, passing it to a process, and a file for its
//! owner only.

pub(crate) use platform::{accept, others_may_read, own_file, serve};

use crate::channel::{Channel, TAKE_LIMIT};
use socket2::Socket;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::Shutdown;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// A connection is a file descriptor, passed directly to the process, unless it is inside a TLS session.
#[cfg(unix)]
mod platform {
    use super::*;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    use std::os::unix::process::CommandExt;

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
}

/// A socket cannot be standard input, so pipes carry every connection's data.
#[cfg(windows)]
mod platform {
    use super::*;
    use std::os::windows::process::CommandExt;
    use std::time::Instant;

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
}

/// Serves a connection by a process until either ends. Pipes carry the data.
fn relay(channel: &Channel, mut command: Command) -> io::Result<()> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(mut requests), Some(mut answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the process has no pipes"));
    };
    let mut from = channel.clone();
    let mut to = channel.clone();
    let (carrying, carried) = mpsc::channel::<()>();
    thread::scope(|scope| {
        // When the connection ends, so does the input of the process, and then the process.
        scope.spawn(move || io::copy(&mut from, &mut requests));
        scope.spawn(move || {
            // A coordinator that is gone takes no answers; the process detects this from its input.
            let _ = io::copy(&mut answers, &mut to).and_then(|_| to.finish());
            drop(carrying);
        });
        let ended = child.wait().map(drop);
        // The last answers may be on their way. A coordinator that does not take them does not hold the agent.
        let _ = carried.recv_timeout(TAKE_LIMIT);
        let _ = channel.stream().shutdown(Shutdown::Both);
        ended
    })
}
