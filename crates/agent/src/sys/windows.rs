//! Windows: a socket cannot be standard input, so pipes carry the connection's data to and from the process.

use socket2::Socket;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::windows::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Polling interval for a connection: `accept` has no timeout.
const PAUSE: Duration = Duration::from_millis(20);
/// winbase.h
const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;

/// The next connection; `WouldBlock` after the limit.
pub fn accept(socket: &Socket, limit: Duration) -> io::Result<Socket> {
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
pub fn serve(stream: &TcpStream, mut command: Command) -> io::Result<()> {
    let (mut from, mut to) = (stream.try_clone()?, stream.try_clone()?);
    // The process does not receive Ctrl-C from the terminal: the listening agent does, and then closes the
    // connection.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).creation_flags(CREATE_NEW_PROCESS_GROUP);
    let mut child = command.spawn()?;
    let (Some(mut requests), Some(mut answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the process has no pipes"));
    };
    // When the connection ends, so does the input of the process, and then the process.
    let carrier = thread::spawn(move || io::copy(&mut from, &mut requests));
    // A coordinator that is gone takes no answers; the process detects this from its input.
    let _ = io::copy(&mut answers, &mut to);
    drop(answers);
    let ended = child.wait().map(drop);
    let _ = stream.shutdown(Shutdown::Both);
    let _ = carrier.join();
    ended
}
