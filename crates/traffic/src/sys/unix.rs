//! POSIX calls.

use crate::sys::types::{Nanos, RealtimeOffset};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nameindex;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::socket::SockaddrStorage;
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use socket2::{SockAddr, Socket};
use stacklab_model::{Family, ScopedAddr};
use std::ffi::c_int;
use std::io::{self, Read};
use std::mem::{MaybeUninit, size_of};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Shorter waits than this spin instead of sleeping, since a sleep ends tens of microseconds late.
pub(crate) const LEAST_SLEEP_NS: Nanos = 120_000;
/// Flag of a send or receive that does not block.
pub(crate) const DONTWAIT: c_int = libc::MSG_DONTWAIT;
pub(crate) const SEND_PLAIN: c_int = libc::MSG_NOSIGNAL;

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

/// Sets the timeouts of a trial's socket: [`RECEIVE_TICK`](crate::sys::types::RECEIVE_TICK) and
/// [`SEND_TICK`](crate::sys::types::SEND_TICK).
pub(crate) fn set_timeouts(socket: &Socket) -> io::Result<()> {
    socket.set_read_timeout(Some(crate::sys::types::RECEIVE_TICK))?;
    socket.set_write_timeout(Some(crate::sys::types::SEND_TICK))
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

/// Accepts a connection, with its peer's address; `WouldBlock` after the socket's timeout.
pub(crate) fn accept(socket: &Socket) -> io::Result<(Socket, Option<SocketAddr>)> {
    let (connection, peer) = socket.accept()?;
    Ok((connection, peer.as_socket()))
}

/// Sleeps for this time, plus tens of microseconds.
pub(crate) fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// The source address of the next datagram, which stays in the queue; `WouldBlock` after the socket's timeout.
pub(crate) fn peek_sender(socket: &Socket) -> io::Result<SockAddr> {
    socket.peek_sender()
}

pub(crate) fn is_out_of_buffers(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Maximum number of files that a trial opens in addition to its sockets; up to 64 are processors' idle states.
const OTHER_FILES: u64 = 128;

/// Raises the limit on open files for this many sockets. The error says what to do.
pub(crate) fn raise_file_limit(sockets: u64) -> io::Result<()> {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
    let needed = open + sockets + OTHER_FILES;
    let (now, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if i128::from(now) >= i128::from(needed) {
        return Ok(());
    }
    // Above the hard limit, only a process that may raise that limit too succeeds.
    setrlimit(Resource::RLIMIT_NOFILE, most.max(needed as _), most.max(needed as _))
        .or_else(|_| setrlimit(Resource::RLIMIT_NOFILE, most, most))?;
    let (now, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if i128::from(now) >= i128::from(needed) {
        return Ok(());
    }
    let text = format!(
        "it needs {needed} open files, and this process may have {now}: start the agent after `ulimit -n {needed}`, or use fewer flows"
    );
    Err(io::Error::new(io::ErrorKind::QuotaExceeded, text))
}

pub(crate) fn pin_thread(processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// The processors that this thread may use, without allocating.
pub(crate) fn allowed_processors() -> impl Iterator<Item = usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(move |cpu| allowed.is_set(*cpu).unwrap_or(false))
}

pub(crate) fn own_cpu_ns() -> (u64, u64) {
    getrusage(UsageWho::RUSAGE_SELF).map_or((0, 0), |usage| {
        let ns = |time: nix::sys::time::TimeVal| time.num_microseconds() as u64 * 1000;
        (ns(usage.user_time()), ns(usage.system_time()))
    })
}

/// Limits the memory that this process can write to, bytes. Not its address space, of which each thread reserves much.
pub(crate) fn bound_memory(bytes: u64) -> io::Result<()> {
    Ok(setrlimit(Resource::RLIMIT_DATA, bytes as _, bytes as _)?)
}

/// Whether a congestion control is there without a module of the kernel being loaded for it.
pub(crate) fn has_congestion_control(name: &str) -> bool {
    match std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control") {
        Ok(loaded) => loaded.split_whitespace().any(|loaded| loaded == name),
        Err(_) => false,
    }
}

pub(crate) fn thread_cpu_ns() -> Option<Nanos> {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
    Some(used.tv_sec() as Nanos * 1_000_000_000 + used.tv_nsec() as Nanos)
}

/// This thread's user and kernel time so far, nanoseconds. Linux divides by what its ticks found running.
pub(crate) fn thread_cpu_parts() -> Option<(Nanos, Nanos)> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    let ns = |time: nix::sys::time::TimeVal| time.num_microseconds() as Nanos * 1000;
    Some((ns(usage.user_time()), ns(usage.system_time())))
}

/// The name of the interface that holds an address. A link-local one is held in its zone only.
pub(crate) fn interface_of(address: SocketAddr) -> io::Result<Option<String>> {
    let address = ScopedAddr::from(address);
    let holds = |storage: &SockaddrStorage| {
        let v4 = storage.as_sockaddr_in().map(|found| SocketAddrV4::from(*found).into());
        let found = v4.or_else(|| storage.as_sockaddr_in6().map(|found| SocketAddrV6::from(*found).into()));
        found.map(|found: SocketAddr| ScopedAddr::from(found)) == Some(address.clone())
    };
    let found = getifaddrs()?.find(|entry| entry.address.as_ref().is_some_and(holds));
    Ok(found.map(|entry| entry.interface_name))
}

pub(crate) fn interfaces() -> io::Result<Vec<String>> {
    let mut names: Vec<String> = getifaddrs()?.map(|interface| interface.interface_name).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

pub(crate) fn interface_indices() -> io::Result<Vec<(u32, String)>> {
    let interfaces = if_nameindex()?;
    let mut all: Vec<(u32, String)> =
        interfaces.iter().map(|found| (found.index(), found.name().to_string_lossy().into_owned())).collect();
    all.sort();
    Ok(all)
}

pub(crate) fn congestion_control(socket: &Socket) -> Option<String> {
    let name = socket.tcp_congestion().ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}

pub(crate) fn set_congestion_control(socket: &Socket, name: &str) -> io::Result<()> {
    socket.set_tcp_congestion(name.as_bytes())
}

#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct PollEntry(libc::pollfd);

impl PollEntry {
    /// Polls a socket for this readiness. The socket must be open during each poll.
    pub(crate) fn new(socket: &Socket, what: crate::sys::types::Interest) -> Self {
        let events = match what {
            crate::sys::types::Interest::Readable => libc::POLLIN,
            crate::sys::types::Interest::Writable => libc::POLLOUT,
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
    match found {
        ..0 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        },
        _ => Ok(()),
    }
}

/// Reads a fixed-size socket option. Returns how many bytes the kernel filled.
pub(super) fn option<T>(
    socket: &Socket,
    level: c_int,
    name: c_int,
    value: &mut MaybeUninit<T>,
) -> io::Result<usize> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel writes at most `length`
    // bytes to `value`, which is that large.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length)
    };
    if result == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
}

pub(super) fn number(socket: &Socket, level: c_int, name: c_int) -> io::Result<u32> {
    let mut value = MaybeUninit::<c_int>::zeroed();
    option(socket, level, name, &mut value)?;
    // SAFETY: an integer is valid whatever its bytes; it was zeroed and perhaps overwritten.
    let value = unsafe { value.assume_init() };
    u32::try_from(value).map_err(|_| io::Error::other(format!("the kernel said {value}")))
}

pub(super) fn set_option<T>(socket: &Socket, level: c_int, name: c_int, value: T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel reads at most `length` bytes
    // of `value`.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The maximum segment size: the requested one before the connection, then the sending MSS without TCP options.
pub(crate) fn mss(socket: &Socket) -> io::Result<u32> {
    number(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG)
}

/// Limits the maximum segment size of a future connection, in both directions.
pub(crate) fn set_mss(socket: &Socket, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes as c_int)
}

/// The traffic class (DSCP and ECN) of sent packets.
pub(crate) fn traffic_class(socket: &Socket, family: Family) -> io::Result<u32> {
    let (level, name) = traffic_class_option(family);
    number(socket, level, name)
}

pub(crate) fn set_traffic_class(socket: &Socket, family: Family, byte: u8) -> io::Result<()> {
    let (level, name) = traffic_class_option(family);
    set_option(socket, level, name, c_int::from(byte))
}

fn traffic_class_option(family: Family) -> (c_int, c_int) {
    match family {
        Family::Ipv4 => (libc::IPPROTO_IP, libc::IP_TOS),
        Family::Ipv6 => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    }
}
