//! Who is at the other end of the holder's socket.

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::geteuid;
use std::io;
use std::os::unix::net::UnixStream;

/// Checks that it is a process of this user (SO_PEERCRED), whoever may reach the socket's path.
///
/// # Errors
/// It is another user's.
pub(super) fn expect_own(stream: &UnixStream) -> io::Result<()> {
    let (peer, own) = (getsockopt(stream, PeerCredentials)?.uid(), geteuid().as_raw());
    if peer == own {
        return Ok(());
    }
    let reason = format!("the other end of the testbed's socket is user {peer}'s, and not user {own}'s");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}
