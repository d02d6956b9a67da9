//! Windows: a socket is no standard input, so that what the connection brings is carried to the process by pipes.

use socket2::Socket;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::windows::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks for a connection: `accept` knows no timeout.
const PAUSE: Duration = Duration::from_millis(20);
/// winbase.h
const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;

/// The next connection; `WouldBlock` where none came for so long.
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

/// Has a process of its own serve a connection to its end.
pub fn serve(stream: &TcpStream, mut command: Command) -> io::Result<()> {
    let (mut from, mut to) = (stream.try_clone()?, stream.try_clone()?);
    // An interrupt from the terminal is for the agent that listens, which then ends the connection.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).creation_flags(CREATE_NEW_PROCESS_GROUP);
    let mut child = command.spawn()?;
    let (Some(mut requests), Some(mut answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the process has no pipes"));
    };
    // When the connection ends its input does, and so the process.
    let carrier = thread::spawn(move || io::copy(&mut from, &mut requests));
    // A coordinator that is gone takes no answers; the process learns it from its input.
    let _ = io::copy(&mut answers, &mut to);
    drop(answers);
    let ended = child.wait().map(drop);
    let _ = stream.shutdown(Shutdown::Both);
    let _ = carrier.join();
    ended
}
