//! Socket options that a trial may set, and their read-back.

use crate::sys::unix::{number, option, set_option};
use socket2::Socket;
use stacklab_model::Family;
use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::net::Ipv6Addr;

// linux/in6.h; libc does not define all of them.
const IPV6_FLOWLABEL_MGR: c_int = 32;
const IPV6_FLOWINFO_SEND: c_int = 33;
const IPV6_AUTOFLOWLABEL: c_int = 70;
const IPV6_FL_A_GET: u8 = 0;
const IPV6_FL_F_CREATE: u16 = 1;
const IPV6_FL_F_REFLECT: u16 = 4;
const IPV6_FL_S_ANY: u8 = 255;

/// `struct in6_flowlabel_req`.
#[repr(C)]
struct FlowLabelRequest {
    destination: [u8; 16],
    /// Network byte order.
    label: u32,
    action: u8,
    share: u8,
    flags: u16,
    expires: u16,
    linger: u16,
    padding: u32,
}

impl FlowLabelRequest {
    fn new(destination: Ipv6Addr, label: u32, flags: u16) -> Self {
        FlowLabelRequest {
            destination: destination.octets(),
            label: label.to_be(),
            action: IPV6_FL_A_GET,
            share: IPV6_FL_S_ANY,
            flags,
            expires: 0,
            linger: 0,
            padding: 0,
        }
    }

    fn ask(self, socket: &Socket) -> io::Result<()> {
        set_option(socket, libc::IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, self)
    }
}

/// Sets SO_SNDBUF, bytes, above net.core.wmem_max if permitted.
pub(crate) fn set_send_buffer(socket: &Socket, bytes: usize) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes as c_int)
        .or_else(|_| socket.set_send_buffer_size(bytes))
}

/// The value for no limit (`~0UL`).
const NO_PACING: u64 = u64::MAX;

/// Paces a TCP socket at this many bytes of payload per second, and limits the data queued in the socket to this many
/// bytes.
pub(crate) fn set_pacing_rate(socket: &Socket, bytes_per_second: u64, waiting: usize) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, waiting as c_int)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes_per_second)
}

/// SO_MAX_PACING_RATE, bytes per second, if set.
pub(crate) fn pacing_rate(socket: &Socket) -> Option<u64> {
    let mut value = MaybeUninit::<u64>::zeroed();
    let filled = option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &mut value).ok()?;
    // SAFETY: an integer is valid whatever its bytes; it was zeroed and perhaps overwritten.
    let rate = unsafe { value.assume_init() };
    let none = if filled == size_of::<u64>() { NO_PACING } else { u64::from(u32::MAX) };
    (rate != none).then_some(rate)
}

pub(crate) fn busy_poll_us(socket: &Socket) -> io::Result<u32> {
    number(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL)
}

/// Sets SO_BUSY_POLL; raising it above the default requires CAP_NET_ADMIN.
pub(crate) fn set_busy_poll_us(socket: &Socket, microseconds: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, microseconds as c_int)
}

/// Leases a flow label (not 0) for packets to a destination, which is required before connecting with it.
pub(crate) fn lease_flow_label(socket: &Socket, destination: Ipv6Addr, label: u32) -> io::Result<()> {
    FlowLabelRequest::new(destination, label, IPV6_FL_F_CREATE).ask(socket)?;
    set_option(socket, libc::IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1 as c_int)
}

/// Reflects the flow label of incoming connections (IPV6_FL_F_REFLECT).
pub(crate) fn reflect_flow_label(socket: &Socket) -> io::Result<()> {
    FlowLabelRequest::new(Ipv6Addr::UNSPECIFIED, 0, IPV6_FL_F_REFLECT).ask(socket)
}

/// Turns automatic flow labels off (IPV6_AUTOFLOWLABEL).
pub(crate) fn no_flow_label(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0 as c_int)
}

/// The flow label of an IPv6 socket's packets: the requested one, or 0 for none; `None` if the kernel chooses.
pub(crate) fn flow_label(socket: &Socket) -> Option<u32> {
    let mut request = MaybeUninit::new(FlowLabelRequest::new(Ipv6Addr::UNSPECIFIED, 0, 0));
    let asked = option(socket, libc::IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &mut request).ok().map(|_| {
        // SAFETY: it was initialised, and holds only integers, valid whatever the kernel wrote over them.
        u32::from_be(unsafe { request.assume_init() }.label)
    });
    match asked {
        Some(label) if label > 0 => Some(label),
        _ => number(socket, libc::IPPROTO_IPV6, IPV6_AUTOFLOWLABEL).ok().filter(|automatic| *automatic == 0),
    }
}

/// Sends packets whole or not at all, whatever the kernel remembers of the path's MTU.
pub(crate) fn never_fragment(socket: &Socket, family: Family) -> io::Result<()> {
    let (level, name, how) = match family {
        Family::Ipv4 => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
        Family::Ipv6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE),
    };
    set_option(socket, level, name, how)
}
