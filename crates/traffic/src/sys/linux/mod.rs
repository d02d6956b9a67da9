//! Linux.

mod batch;
mod cgroup;
pub(crate) mod cpu;
pub(crate) mod host;
mod messages;
mod options;
mod service;

pub(crate) use batch::{Batch, Ready, skips_bytes};
pub use cgroup::{CpuLimit, cpu_limit};
pub(crate) use cpu::{
    CpuReader, RunDelay, allowed_processors, own_cpu_ns, pin_thread, processors_online, thread_cpu_ns,
    thread_cpu_parts, tick_ns,
};
pub use host::clock_error_ns;
pub(crate) use host::{bound_memory, counters, host, peak_rss_kib, raise_file_limit, socket_memory_bytes};
pub(crate) use messages::{
    enable_icmp_errors, next_icmp_error, read_tx_timestamp, receive_with_timestamp, zerocopy_completion,
};
pub(crate) use options::*;
pub use service::{Datagram, Service};

use crate::sys::{Interest, Nanos, RECEIVE_TICK, RealtimeOffset, SEND_TICK};
use nix::time::{ClockId, clock_gettime};
use socket2::{SockAddr, Socket};
use std::ffi::c_int;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Shorter waits than this spin instead of sleeping, since a sleep ends tens of microseconds late.
pub(crate) const MIN_SLEEP_NS: Nanos = 120_000;
/// Flag of a send or receive that does not block.
pub(crate) const DONTWAIT: c_int = libc::MSG_DONTWAIT;
pub(crate) const SEND_PLAIN: c_int = libc::MSG_NOSIGNAL;
/// Flags of a send whose message gets a separate segment.
pub(crate) const SEND_EOR: c_int = libc::MSG_NOSIGNAL | libc::MSG_EOR;
/// Flags of a send that is followed at once by another one.
pub(crate) const SEND_MORE: c_int = libc::MSG_NOSIGNAL | libc::MSG_MORE;
pub(crate) const SEND_ZEROCOPY: c_int = libc::MSG_ZEROCOPY;
/// Whether one call can send or receive several messages.
pub(crate) const BATCHED_CALLS: bool = true;

/// The monotonic clock, which all namespaces of one machine share.
pub(crate) fn now_ns() -> Nanos {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every POSIX system has the monotonic clock");
    now.tv_sec() as Nanos * 1_000_000_000 + now.tv_nsec() as Nanos
}

/// Offset of the realtime clock from [`now_ns`] at this moment. Converts the kernel's packet timestamps to this clock.
pub(crate) fn realtime_offset() -> RealtimeOffset {
    let realtime = || {
        let now = clock_gettime(ClockId::CLOCK_REALTIME).expect("every POSIX system has the realtime clock");
        now.tv_sec() * 1_000_000_000 + now.tv_nsec()
    };
    RealtimeOffset::of(now_ns(), realtime(), now_ns())
}

/// Sleeps for this time, plus tens of microseconds.
pub(crate) fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// Lets this thread's sleeps end on time instead of up to 50 microseconds later.
pub(crate) fn precise_timers() {
    // A refusal only makes pacing less precise, which is measured and reported as pacing error.
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// Sets the timeouts of a trial's socket: [`RECEIVE_TICK`] and [`SEND_TICK`].
pub(crate) fn set_timeouts(socket: &Socket) -> io::Result<()> {
    socket.set_read_timeout(Some(RECEIVE_TICK))?;
    socket.set_write_timeout(Some(SEND_TICK))
}

/// Sends; blocks up to the socket's timeout, then returns `WouldBlock`.
pub(crate) fn send(socket: &Socket, message: &[u8], flags: c_int) -> io::Result<usize> {
    socket.send_with_flags(message, flags)
}

/// Sends as much as fits without blocking; `None` if nothing fits.
pub(crate) fn send_now(socket: &Socket, message: &[u8], flags: c_int) -> io::Result<Option<usize>> {
    match socket.send_with_flags(message, flags | DONTWAIT) {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        sent => sent.map(Some),
    }
}

/// Receives; `WouldBlock` after the socket's timeout.
pub(crate) fn receive(mut socket: &Socket, room: &mut [u8]) -> io::Result<usize> {
    socket.read(room)
}

/// Receives without blocking; `WouldBlock` without data.
pub(crate) fn receive_now(socket: &Socket, room: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel writes at most `room.len()`
    // bytes to `room`.
    let received = unsafe { libc::recv(socket.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), DONTWAIT) };
    if received < 0 { Err(io::Error::last_os_error()) } else { Ok(received as usize) }
}

/// Accepts a connection, with its peer's address as the socket has it; `WouldBlock` after the socket's timeout.
pub(crate) fn accept(socket: &Socket) -> io::Result<(Socket, Option<SocketAddr>)> {
    let (connection, peer) = socket.accept()?;
    Ok((connection, peer.as_socket()))
}

/// The source address of the next datagram, which stays in the queue; `WouldBlock` after the socket's timeout.
pub(crate) fn peek_sender(socket: &Socket) -> io::Result<SockAddr> {
    socket.peek_sender()
}

pub(crate) fn is_out_of_buffers(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct PollEntry(libc::pollfd);

impl PollEntry {
    /// Polls a socket for this readiness. The socket must be open during each poll.
    pub(crate) fn new(socket: &Socket, what: Interest) -> Self {
        let events = match what {
            Interest::Readable => libc::POLLIN,
            Interest::Writable => libc::POLLOUT,
        };
        PollEntry(libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 })
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.0.revents != 0
    }

    #[cfg(test)]
    pub(crate) fn is_of(&self, socket: &Socket) -> bool {
        self.0.fd == socket.as_raw_fd()
    }
}

/// Waits until one of the sockets is ready, or until the limit.
pub(crate) fn poll_sockets(entries: &mut [PollEntry], limit: Duration) -> io::Result<()> {
    let milliseconds = limit.as_millis().min(c_int::MAX as u128) as c_int;
    // SAFETY: `PollEntry` holds nothing but a `pollfd`, so that the slice is one of as many of these, which the kernel
    // reads and writes within the call.
    let found = unsafe { libc::poll(entries.as_mut_ptr().cast(), entries.len() as _, milliseconds) };
    if found >= 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}
