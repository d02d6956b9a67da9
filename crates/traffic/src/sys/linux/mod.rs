//! Linux.

mod batch;
mod control;
pub(crate) mod counters;
pub(crate) mod cpu;
mod host;
mod options;
mod ready;
mod residency;
mod stamps;
mod unconnected;

pub(crate) use batch::{Batch, skips_bytes};
pub(crate) use control::{enable_icmp_errors, next_icmp_error, read_tx_timestamp, zerocopy_completion};
pub(crate) use counters::{counters, peak_rss_kib, socket_memory_bytes};
pub(crate) use cpu::{CpuReader, RunDelay, processors_online, tick_ns};
pub use host::clock_error_ns;
pub(crate) use host::host;
pub(crate) use options::*;
pub(crate) use ready::Ready;
pub(crate) use stamps::*;
pub use unconnected::Datagram;
pub(crate) use unconnected::Unconnected;

use crate::sys::unix::{number, option, set_option};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket};
use stacklab_model::{Family, Offloads, TcpInfo};
use std::ffi::c_int;
use std::io;
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

const ON: c_int = 1;
/// Whether one call can send or receive several messages.
pub(crate) const BATCHED_CALLS: bool = true;
/// Flags of a send whose message gets a separate segment (MSG_EOR).
pub(crate) const SEND_EOR: c_int = libc::MSG_NOSIGNAL | libc::MSG_EOR;
/// Flags of a send that is followed at once by another one (MSG_MORE).
pub(crate) const SEND_MORE: c_int = libc::MSG_NOSIGNAL | libc::MSG_MORE;
/// Flag of a zero-copy send (MSG_ZEROCOPY).
pub(crate) const SEND_ZEROCOPY: c_int = libc::MSG_ZEROCOPY;

/// Turns receive timestamps on (SO_TIMESTAMPNS: realtime clock, taken when the driver passes the packet to the
/// stack).
pub(crate) fn enable_rx_timestamps(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, ON)
}

/// Has receives tell the TTL, or hop limit, of each datagram of a family.
pub(crate) fn enable_rx_ttl(socket: &Socket, family: Family) -> io::Result<()> {
    match family {
        Family::Ipv4 => set_option(socket, libc::SOL_IP, libc::IP_RECVTTL, ON),
        Family::Ipv6 => set_option(socket, libc::SOL_IPV6, libc::IPV6_RECVHOPLIMIT, ON),
    }
}

/// Turns GSO on: one send leaves as datagrams of this many bytes (UDP_SEGMENT).
pub(crate) fn enable_gso(socket: &Socket, bytes: usize) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes as c_int)
}

pub(crate) fn enable_gro(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, ON)
}

/// Sets SO_RCVBUF, above net.core.rmem_max if permitted. Returns the resulting size, bytes.
pub(crate) fn set_receive_buffer(socket: &Socket, bytes: usize) -> io::Result<usize> {
    if set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes as c_int).is_err() {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.recv_buffer_size()
}

/// Turns zero-copy on: enables sends with [`SEND_ZEROCOPY`].
pub(crate) fn enable_zerocopy(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, ON)
}

pub(crate) fn wait_error_queue(socket: &Socket, limit: Duration) -> io::Result<()> {
    // poll always reports the error queue, even without requested events.
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::empty())];
    match poll(&mut fds, PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX)) {
        Err(nix::errno::Errno::EINTR) => Ok(()),
        polled => Ok(polled.map(drop)?),
    }
}

pub(crate) fn kind(socket: &Socket) -> io::Result<(Domain, Option<Protocol>)> {
    Ok((socket.domain()?, socket.protocol()?))
}

/// Lets this thread's sleeps end on time instead of up to 50 microseconds later.
pub(crate) fn precise_timers() {
    // A refusal only makes pacing less precise, which is measured and reported as pacing error.
    let _ = nix::sys::prctl::set_timerslack(1);
}

pub(crate) fn path_mtu(socket: &Socket, family: Family) -> io::Result<u32> {
    let (level, name) = match family {
        Family::Ipv4 => (libc::IPPROTO_IP, libc::IP_MTU),
        Family::Ipv6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    number(socket, level, name)
}

/// Packets that the kernel dropped at this socket because its buffer was full (SO_MEMINFO).
pub(crate) fn socket_drops(socket: &Socket) -> io::Result<u64> {
    const DROPS: usize = 8; // SK_MEMINFO_DROPS
    let mut value = MaybeUninit::<[u32; 9]>::zeroed();
    option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut value)?;
    // SAFETY: integers are valid whatever their bytes; they were zeroed and perhaps overwritten.
    Ok(u64::from(unsafe { value.assume_init() }[DROPS]))
}

/// TCP_INFO, and how many bytes of it the kernel filled.
fn read_tcp_info(socket: &Socket) -> io::Result<(libc::tcp_info, usize)> {
    let mut value = MaybeUninit::<libc::tcp_info>::zeroed();
    let filled = option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut value)?;
    // SAFETY: the structure holds only integers, valid whatever their bytes; it was zeroed and perhaps overwritten.
    Ok((unsafe { value.assume_init() }, filled))
}

/// TCP_INFO. Fields that the kernel did not fill, or left at zero where zero means "not supported", are `None`.
pub(crate) fn tcp_info(socket: &Socket) -> io::Result<TcpInfo> {
    let (info, filled) = read_tcp_info(socket)?;
    let kept = |end: usize, field: u64| (end <= filled).then_some(field);
    macro_rules! field {
        ($name:ident) => {
            kept(offset_of!(libc::tcp_info, $name) + size_of_val(&info.$name), info.$name.into())
        };
    }
    // A connection that has sent data has a segment count: zero segments with sent bytes means that the kernel does
    // not count segments.
    let counted = field!(tcpi_data_segs_out).filter(|segments| *segments > 0 || info.tcpi_bytes_acked <= 1);
    Ok(TcpInfo {
        snd_mss: field!(tcpi_snd_mss).filter(|mss| *mss > 0),
        rtt_us: field!(tcpi_rtt).filter(|rtt| *rtt > 0),
        snd_cwnd: field!(tcpi_snd_cwnd).filter(|window| *window > 0),
        total_retrans: counted.and(field!(tcpi_total_retrans)),
        data_segs_out: counted,
        data_segs_in: field!(tcpi_data_segs_in),
        bytes_sent: field!(tcpi_bytes_sent),
        bytes_retrans: field!(tcpi_bytes_retrans),
        // The maximum value means that the connection has no measurement.
        min_rtt_us: field!(tcpi_min_rtt).filter(|rtt| (1..u64::from(u32::MAX)).contains(rtt)),
        srtt_mean_us: None,
    })
}

/// Bytes that have arrived behind a lost segment, in total. Zero where the kernel does not count them (before 5.4).
pub(crate) fn out_of_order_bytes(socket: &Socket) -> u64 {
    let Ok((info, _)) = read_tcp_info(socket) else { return 0 };
    u64::from(info.tcpi_rcv_ooopack) * u64::from(info.tcpi_rcv_mss)
}

/// Whether a connection has sent data again and never had any acknowledged; not where the kernel does not count that.
pub(crate) fn is_unacknowledged(socket: &Socket) -> bool {
    let Ok((info, filled)) = read_tcp_info(socket) else { return false };
    let counts =
        filled >= offset_of!(libc::tcp_info, tcpi_data_segs_out) + size_of_val(&info.tcpi_data_segs_out);
    // The opening counts as a byte, and the header that follows it shows only that small packets arrive.
    let opened = 1 + u64::from(stacklab_model::HEADER_BYTES);
    counts && info.tcpi_data_segs_out > 0 && info.tcpi_total_retrans > 0 && info.tcpi_bytes_acked <= opened
}

/// An `ioctl` about an interface: `fill` completes its `ifreq`, which has the name.
///
/// # Safety
/// The command reads and writes one `ifreq`, and what `fill` lets that point to.
unsafe fn ask_interface(
    socket: &Socket,
    interface: &str,
    command: libc::c_ulong,
    fill: impl FnOnce(&mut libc::ifreq),
) -> io::Result<libc::ifreq> {
    // SAFETY: `ifreq` is plain data, for which all zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        let text = format!("no interface is called {interface}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    fill(&mut request);
    // SAFETY: the descriptor is open; the rest is as the caller promises.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), command as _, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(request) }
}

pub(crate) fn interface_mtu(socket: &Socket, interface: &str) -> io::Result<u32> {
    // SAFETY: SIOCGIFMTU fills one member of the union in the `ifreq`.
    unsafe {
        let answer = ask_interface(socket, interface, libc::SIOCGIFMTU, |_| {})?;
        Ok(answer.ifr_ifru.ifru_mtu as u32)
    }
}

/// Asks the driver of an interface (SIOCETHTOOL).
///
/// # Safety
/// The command that `value` begins with reads and writes a structure like `value`.
unsafe fn ethtool<T>(socket: &Socket, interface: &str, value: &mut T) -> io::Result<()> {
    let data = (&raw mut *value).cast();
    // SAFETY: as the caller promises.
    unsafe {
        ask_interface(socket, interface, libc::SIOCETHTOOL, |request| request.ifr_ifru.ifru_data = data)
    }
    .map(drop)
}

pub(crate) fn offloads(socket: &Socket, interface: &str) -> Offloads {
    const ETHTOOL_GTSO: u32 = 0x1e;
    const ETHTOOL_GGSO: u32 = 0x23;
    const ETHTOOL_GFLAGS: u32 = 0x25;
    const ETHTOOL_GGRO: u32 = 0x2b;
    const ETH_FLAG_LRO: u32 = 1 << 15;
    let ask = |command: u32| {
        // struct ethtool_value { __u32 cmd; __u32 data; }
        let mut value = [command, 0];
        // SAFETY: for these commands the kernel reads and writes one `ethtool_value`.
        unsafe { ethtool(socket, interface, &mut value) }.ok().map(|()| value[1])
    };
    Offloads {
        tso: ask(ETHTOOL_GTSO).map(|on| on != 0),
        gso: ask(ETHTOOL_GGSO).map(|on| on != 0),
        gro: ask(ETHTOOL_GGRO).map(|on| on != 0),
        lro: ask(ETHTOOL_GFLAGS).map(|flags| flags & ETH_FLAG_LRO != 0),
    }
}

/// Sent bytes that have not left this host (for TCP: not been acknowledged); `None` if the host does not report them.
pub(crate) fn unsent_bytes(socket: &Socket) -> io::Result<Option<u32>> {
    let mut bytes: c_int = 0;
    // SAFETY: the descriptor is open, and SIOCOUTQ (TIOCOUTQ) writes one integer, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 {
        return Ok(Some(bytes as u32));
    }
    match io::Error::last_os_error() {
        // gVisor's error for UDP.
        error if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(None),
        error => Err(error),
    }
}
