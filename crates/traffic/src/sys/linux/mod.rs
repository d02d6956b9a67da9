//! Linux.

mod batch;
pub(crate) mod calls;
mod cgroup;
pub(crate) mod cpu;
mod epoll;
pub(crate) mod host;
mod messages;
mod of_socket;
pub(crate) mod options;
mod priority;
mod ready;
mod service;
mod socket;

pub(crate) use batch::{Batch, skips_bytes};
pub(crate) use calls::is_out_of_buffers;
pub use cgroup::{CpuLimit, cpu_limit};
pub(crate) use cpu::{
    CpuReader, RunDelay, allowed_processors, own_cpu_ns, pin_thread, processors_online, thread_cpu_ns,
    thread_cpu_parts, tick_ns,
};
pub use host::clock_error_ns;
pub(crate) use host::{bound_memory, peak_rss_kib, raise_file_limit};
pub(crate) use messages::{enable_icmp_errors, next_icmp_error};
pub(crate) use of_socket::*;
pub(crate) use options::{has_congestion_control, interface_indices, never_fragment};
pub(crate) use priority::RealtimePriority;
pub(crate) use ready::Ready;
pub use service::{Datagram, Service};
pub(crate) use socket::Socket;

use crate::sys::stack::{self, StackSocket};
use crate::sys::{Interest, Nanos, RealtimeOffset};
use nix::time::{ClockId, clock_gettime};
use stacklab_model::{HostFacts, SMOLTCP};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io;
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
    RealtimeOffset::of(now_ns(), read_realtime_ns(), now_ns())
}

fn read_realtime_ns() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).expect("every POSIX system has the realtime clock");
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
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

/// A socket of a stack has a negative number in place of a descriptor, which the kernel passes over.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct PollEntry(libc::pollfd);

const FIRST_OF_STACK: c_int = -2;

impl PollEntry {
    /// Polls a socket for this readiness. The socket must be open during each poll.
    pub(crate) fn new(socket: &Socket, what: Interest) -> Self {
        let events = match what {
            Interest::Readable => libc::POLLIN,
            Interest::Writable => libc::POLLOUT,
        };
        PollEntry(libc::pollfd { fd: number_of(socket), events, revents: 0 })
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.0.revents != 0
    }

    pub(crate) fn is_of(&self, socket: &Socket) -> bool {
        self.0.fd == number_of(socket)
    }

    /// The key of a stack's socket, and what it is polled for.
    fn of_stack(&self) -> Option<(usize, Interest)> {
        let key = usize::try_from(FIRST_OF_STACK - self.0.fd).ok()?;
        let what = if self.0.events == libc::POLLIN { Interest::Readable } else { Interest::Writable };
        Some((key, what))
    }
}

fn number_of(socket: &Socket) -> c_int {
    match socket {
        Socket::Kernel(socket) => socket.as_raw_fd(),
        Socket::Stack(socket) => FIRST_OF_STACK - socket.key() as c_int,
    }
}

/// Waits until one of the sockets is ready, or until the limit.
pub(crate) fn poll_sockets(entries: &mut [PollEntry], limit: Duration) -> io::Result<()> {
    match stack::own() {
        Some(stack) if entries.iter().any(|entry| entry.of_stack().is_some()) => {
            let sockets: Vec<_> = entries.iter().filter_map(PollEntry::of_stack).collect();
            let found = StackSocket::await_ready(stack, &sockets, limit)?;
            for (entry, is_ready) in entries.iter_mut().zip(found) {
                entry.0.revents = if is_ready { entry.0.events } else { 0 };
            }
            Ok(())
        }
        _ => poll_kernel(entries, limit),
    }
}

fn poll_kernel(entries: &mut [PollEntry], limit: Duration) -> io::Result<()> {
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

/// Properties of this host, with those of the stack that this process carries.
pub(crate) fn host() -> HostFacts {
    let facts = host::host();
    match stack::own() {
        Some(_) => HostFacts { os: format!("{SMOLTCP} on {}", facts.os), ..facts },
        None => facts,
    }
}

/// Counters of this host's network namespace, of its interface and of its control groups, or of the stack that this
/// process carries.
pub(crate) fn counters(interface: &str) -> BTreeMap<String, u64> {
    match stack::own() {
        Some(stack) => stack.counters(host::counters(&stack.config.interface)),
        None => host::counters(interface),
    }
}

/// Processors on which this process may use sockets at the same time. A stack moves one packet at a time, and its flows
/// share the link in turns.
pub(crate) fn processors_of_sockets() -> usize {
    if stack::own().is_some() { 1 } else { allowed_processors().count() }
}

/// Whether sockets are the kernel's, and not those of a stack in user space.
pub(crate) fn has_kernel_sockets() -> bool {
    stack::own().is_none()
}

/// Memory of TCP and UDP sockets together, bytes; `None` if the kernel does not report it, and of a stack.
pub(crate) fn socket_memory_bytes() -> Option<u64> {
    if stack::own().is_some() { None } else { host::socket_memory_bytes() }
}

/// The name of the interface that holds an address.
pub(crate) fn interface_of(address: SocketAddr) -> io::Result<Option<String>> {
    match stack::own() {
        Some(stack) if stack.holds(address.ip()) => Ok(Some(stack.config.interface.clone())),
        Some(_) => Ok(None),
        None => options::interface_of(address),
    }
}
