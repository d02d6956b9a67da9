//! Serves a connection that a process cannot have itself: pipes carry its data to and from the process.

use crate::channel::{Channel, TAKE_LIMIT};
use std::io;
use std::net::Shutdown;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

/// Serves a connection by a process until either ends.
pub(crate) fn relay(channel: &Channel, mut command: Command) -> io::Result<()> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(mut requests), Some(mut answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the process has no pipes"));
    };
    let (mut from, mut to) = (channel, channel);
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
