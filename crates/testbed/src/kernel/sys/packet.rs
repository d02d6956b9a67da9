//! Packet capture on an interface (packet(7)).

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The maximum number of bytes that are kept of a frame.
const SNAP: usize = 2048;

/// Captures every frame on an interface of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Capture(OwnedFd);

impl Capture {
    /// Starts to capture on an interface, given its index.
    pub(crate) fn open(index: u32) -> io::Result<Self> {
        let every = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: socket takes numbers.
        let socket = unsafe {
            libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::c_int::from(every))
        };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given this number, and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        // SAFETY: `sockaddr_ll` is plain C data, for which all zeros is a valid value.
        let mut place: libc::sockaddr_ll = unsafe { zeroed() };
        place.sll_family = libc::AF_PACKET as u16;
        place.sll_protocol = every;
        place.sll_ifindex = index as i32;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address is as long as said, and outlives the call.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const place).cast(), length) };
        if bound < 0 { Err(io::Error::last_os_error()) } else { Ok(Capture(socket)) }
    }

    /// The next frame, or `None` after the timeout.
    pub(crate) fn next(&self, patience: Duration) -> io::Result<Option<Vec<u8>>> {
        let wait = libc::timeval {
            tv_sec: patience.as_secs() as libc::time_t,
            tv_usec: libc::suseconds_t::from(patience.subsec_micros().max(1)),
        };
        let length = size_of::<libc::timeval>() as libc::socklen_t;
        // SAFETY: the option is a `timeval` as long as said, which outlives the call.
        let set = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                (&raw const wait).cast(),
                length,
            )
        };
        if set < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut frame = vec![0; SNAP];
        // SAFETY: the buffer is as long as said, and outlives the call.
        let got = unsafe { libc::recv(self.0.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
        if got < 0 {
            let error = io::Error::last_os_error();
            let nothing = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            return if nothing { Ok(None) } else { Err(error) };
        }
        frame.truncate(got as usize);
        Ok(Some(frame))
    }
}
