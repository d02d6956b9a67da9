//! What the kernel knows of a socket and of interfaces, and socket options.

use crate::sys::SocketOption;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nameindex};
use nix::sys::socket::SockaddrStorage;
use socket2::Socket;
use stacklab_model::{Family, HEADER_BYTES, Offloads, ScopedAddr, SocketOptions, TcpInfo};
use std::ffi::c_int;
use std::io;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

const ON: c_int = 1;

/// Reads a fixed-size socket option. Returns how many bytes the kernel filled.
fn option<T>(socket: &Socket, level: c_int, name: c_int, value: &mut MaybeUninit<T>) -> io::Result<usize> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel writes at most `length`
    // bytes to `value`, which is that large.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length)
    };
    if result == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
}

fn number(socket: &Socket, level: c_int, name: c_int) -> io::Result<u32> {
    let mut value = MaybeUninit::<c_int>::zeroed();
    option(socket, level, name, &mut value)?;
    // SAFETY: an integer is valid whatever its bytes; it was zeroed and perhaps overwritten.
    let value = unsafe { value.assume_init() };
    u32::try_from(value).map_err(|_| io::Error::other(format!("the kernel said {value}")))
}

fn set_option<T>(socket: &Socket, level: c_int, name: c_int, value: T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel reads at most `length` bytes
    // of `value`.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

// linux/in6.h
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
    /// Expiry, linger, padding.
    others: [u16; 4],
}

impl FlowLabelRequest {
    fn new(destination: Ipv6Addr, label: u32, flags: u16) -> Self {
        let destination = destination.octets();
        let label = label.to_be();
        let others = [0; 4];
        FlowLabelRequest { destination, label, action: IPV6_FL_A_GET, share: IPV6_FL_S_ANY, flags, others }
    }
}

/// Sets an option, or fails if this kernel lacks it or this process may not.
pub(crate) fn set(socket: &Socket, option: SocketOption<'_>) -> io::Result<()> {
    let set = |level, name, value: c_int| set_option(socket, level, name, value);
    let set_label = |request| set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_FLOWLABEL_MGR, request);
    match option {
        SocketOption::SendBuffer(bytes) => set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes as c_int)
            .or_else(|_| socket.set_send_buffer_size(bytes)),
        SocketOption::ReceiveBuffer(bytes) => set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes as c_int)
            .or_else(|_| socket.set_recv_buffer_size(bytes)),
        SocketOption::WholeMessages(_) => Ok(()),
        SocketOption::Mss(bytes) => socket.set_tcp_mss(bytes),
        SocketOption::CongestionControl(name) => socket.set_tcp_congestion(name.as_bytes()),
        SocketOption::TrafficClass(Family::Ipv4, byte) => socket.set_tos_v4(byte.into()),
        SocketOption::TrafficClass(Family::Ipv6, byte) => socket.set_tclass_v6(byte.into()),
        SocketOption::BusyPoll(microseconds) => socket.set_busy_poll(microseconds),
        SocketOption::Device(interface) => socket.bind_device(Some(interface.as_bytes())),
        SocketOption::FlowLabel(destination, label) => {
            set_label(FlowLabelRequest::new(destination, label, IPV6_FL_F_CREATE))?;
            set(libc::IPPROTO_IPV6, libc::IPV6_FLOWINFO_SEND, ON)
        }
        SocketOption::ReflectFlowLabel => {
            set_label(FlowLabelRequest::new(Ipv6Addr::UNSPECIFIED, 0, IPV6_FL_F_REFLECT))
        }
        SocketOption::NoFlowLabel => set(libc::IPPROTO_IPV6, libc::IPV6_AUTOFLOWLABEL, 0),
        SocketOption::Pacing { bytes_per_second, waiting } => {
            socket.set_tcp_notsent_lowat(waiting as u32)?;
            set_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes_per_second)
        }
        SocketOption::RxTimestamps => set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, ON),
        SocketOption::TxTimestamps => {
            let by_kernel = libc::SOF_TIMESTAMPING_TX_SOFTWARE
                | libc::SOF_TIMESTAMPING_SOFTWARE
                | libc::SOF_TIMESTAMPING_OPT_ID
                | libc::SOF_TIMESTAMPING_OPT_TSONLY;
            let by_interface = libc::SOF_TIMESTAMPING_TX_HARDWARE
                | libc::SOF_TIMESTAMPING_RX_HARDWARE
                | libc::SOF_TIMESTAMPING_RAW_HARDWARE
                | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
            let set = |flags| set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as c_int);
            // A stack that does not support all flags may support the first ones.
            set(by_kernel | by_interface).or_else(|_| set(by_kernel))
        }
        SocketOption::RxTtl(Family::Ipv4) => set(libc::SOL_IP, libc::IP_RECVTTL, ON),
        SocketOption::RxTtl(Family::Ipv6) => set(libc::SOL_IPV6, libc::IPV6_RECVHOPLIMIT, ON),
        SocketOption::Gso(bytes) => set(libc::SOL_UDP, libc::UDP_SEGMENT, bytes as c_int),
        SocketOption::Gro => set(libc::SOL_UDP, libc::UDP_GRO, ON),
        SocketOption::Zerocopy => set(libc::SOL_SOCKET, libc::SO_ZEROCOPY, ON),
    }
}

/// The options that the kernel applies; of the buffers, what [`Socket`] reads on every system.
pub(crate) fn options(socket: &Socket, family: Family, is_tcp: bool) -> SocketOptions {
    let traffic_class = match family {
        Family::Ipv4 => socket.tos_v4(),
        Family::Ipv6 => socket.tclass_v6(),
    };
    SocketOptions {
        mss: if is_tcp { socket.tcp_mss().ok() } else { None },
        dscp: traffic_class.ok().map(|byte| (byte >> 2) as u8),
        flow_label: if family == Family::Ipv6 { flow_label(socket) } else { None },
        busy_poll_us: socket.busy_poll().ok(),
        max_pacing_rate: if is_tcp { pacing_rate(socket) } else { None },
        ..SocketOptions::default()
    }
}

/// The flow label of an IPv6 socket's packets: the requested one, or 0 for none; `None` if the kernel chooses.
fn flow_label(socket: &Socket) -> Option<u32> {
    let mut request = MaybeUninit::new(FlowLabelRequest::new(Ipv6Addr::UNSPECIFIED, 0, 0));
    let asked = option(socket, libc::IPPROTO_IPV6, libc::IPV6_FLOWLABEL_MGR, &mut request).ok().map(|_| {
        // SAFETY: it was initialised, and holds only integers, valid whatever the kernel wrote over them.
        u32::from_be(unsafe { request.assume_init() }.label)
    });
    match asked {
        Some(label) if label > 0 => Some(label),
        _ => number(socket, libc::IPPROTO_IPV6, libc::IPV6_AUTOFLOWLABEL).ok().filter(|chosen| *chosen == 0),
    }
}

/// SO_MAX_PACING_RATE, bytes per second, if set.
fn pacing_rate(socket: &Socket) -> Option<u64> {
    let mut value = MaybeUninit::<u64>::zeroed();
    let filled = option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &mut value).ok()?;
    // SAFETY: an integer is valid whatever its bytes; it was zeroed and perhaps overwritten.
    let rate = unsafe { value.assume_init() };
    let unlimited = if filled == size_of::<u64>() { u64::MAX } else { u64::from(u32::MAX) };
    (rate != unlimited).then_some(rate)
}

pub(crate) fn congestion_control(socket: &Socket) -> Option<String> {
    let name = socket.tcp_congestion().ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}

/// Whether a congestion control is there without a module of the kernel being loaded for it.
pub(crate) fn has_congestion_control(name: &str) -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .is_ok_and(|loaded| loaded.split_whitespace().any(|loaded| loaded == name))
}

/// Sends packets whole or not at all, whatever the kernel remembers of the path's MTU.
pub(crate) fn never_fragment(socket: &Socket, family: Family) -> io::Result<()> {
    let (level, name, how) = match family {
        Family::Ipv4 => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
        Family::Ipv6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE),
    };
    set_option(socket, level, name, how)
}

pub(crate) fn path_mtu(socket: &Socket, family: Family) -> io::Result<u32> {
    match family {
        Family::Ipv4 => number(socket, libc::IPPROTO_IP, libc::IP_MTU),
        Family::Ipv6 => number(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU),
    }
}

/// Packets that the kernel dropped at this socket because its buffer was full (SO_MEMINFO).
pub(crate) fn socket_drops(socket: &Socket) -> io::Result<u64> {
    let mut value = MaybeUninit::<[u32; 9]>::zeroed();
    option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut value)?;
    // SAFETY: integers are valid whatever their bytes; they were zeroed and perhaps overwritten.
    Ok(u64::from(unsafe { value.assume_init() }[libc::SK_MEMINFO_DROPS as usize]))
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
pub(crate) fn lacks_acknowledgement(socket: &Socket) -> bool {
    let Ok((info, filled)) = read_tcp_info(socket) else { return false };
    let counts =
        filled >= offset_of!(libc::tcp_info, tcpi_data_segs_out) + size_of_val(&info.tcpi_data_segs_out);
    // The opening counts as a byte, and the header that follows it shows only that small packets arrive.
    let opened = 1 + u64::from(HEADER_BYTES);
    counts && info.tcpi_data_segs_out > 0 && info.tcpi_total_retrans > 0 && info.tcpi_bytes_acked <= opened
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

/// Segments of a connection that were sent and are not acknowledged, where nothing waits unsent; `None` if something
/// does, or if the system does not count them.
pub(crate) fn unacknowledged_segments(socket: &Socket) -> io::Result<Option<u32>> {
    let (info, filled) = read_tcp_info(socket)?;
    let end = offset_of!(libc::tcp_info, tcpi_notsent_bytes) + size_of_val(&info.tcpi_notsent_bytes);
    // gVisor fills in zeros.
    let is_counted = end <= filled && info.tcpi_unacked > 0;
    Ok((is_counted && info.tcpi_notsent_bytes == 0).then_some(info.tcpi_unacked))
}

pub(super) fn socket_addr(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|v4| SocketAddrV4::from(*v4).into());
    v4.or_else(|| storage.as_sockaddr_in6().map(|v6| SocketAddrV6::from(*v6).into()))
}

/// The name of the interface that holds an address. A link-local one is held in its zone only. A loopback interface
/// holds all addresses of its networks, such as 127.0.0.2 (RFC 1122, section 3.2.1.3).
pub(crate) fn interface_of(address: SocketAddr) -> io::Result<Option<String>> {
    let address = ScopedAddr::from(address);
    let interfaces: Vec<InterfaceAddress> = getifaddrs()?.collect();
    let found = interfaces.iter().find(|entry| {
        let held = entry.address.as_ref().and_then(socket_addr);
        held.is_some_and(|held| ScopedAddr::from(held) == address)
    });
    let found = found.or_else(|| interfaces.iter().find(|entry| is_of_loopback(entry, address.ip())));
    Ok(found.map(|entry| entry.interface_name.clone()))
}

/// Whether an address is in the network of this address of a loopback interface.
fn is_of_loopback(entry: &InterfaceAddress, address: IpAddr) -> bool {
    let Some(held) = entry.address.as_ref().and_then(socket_addr) else { return false };
    let Some(mask) = entry.netmask.as_ref().and_then(socket_addr) else { return false };
    entry.flags.contains(InterfaceFlags::IFF_LOOPBACK) && shares_network(address, held.ip(), mask.ip())
}

fn shares_network(one: IpAddr, other: IpAddr, mask: IpAddr) -> bool {
    match (one, other, mask) {
        (IpAddr::V4(one), IpAddr::V4(other), IpAddr::V4(mask)) => {
            (one.to_bits() ^ other.to_bits()) & mask.to_bits() == 0
        }
        (IpAddr::V6(one), IpAddr::V6(other), IpAddr::V6(mask)) => {
            (one.to_bits() ^ other.to_bits()) & mask.to_bits() == 0
        }
        _ => false,
    }
}

pub(crate) fn interface_indices() -> io::Result<Vec<(u32, String)>> {
    let interfaces = if_nameindex()?;
    let mut all: Vec<(u32, String)> =
        interfaces.iter().map(|found| (found.index(), found.name().to_string_lossy().into_owned())).collect();
    all.sort();
    Ok(all)
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
unsafe fn ethtool<const WORDS: usize>(
    socket: &Socket,
    interface: &str,
    value: &mut [u32; WORDS],
) -> io::Result<()> {
    let data = (&raw mut *value).cast();
    // SAFETY: as the caller promises.
    unsafe {
        ask_interface(socket, interface, libc::SIOCETHTOOL, |request| request.ifr_ifru.ifru_data = data)
    }
    .map(drop)
}

pub(crate) fn offloads(socket: &Socket, interface: &str) -> Offloads {
    const ETH_FLAG_LRO: u32 = 1 << 15;
    Offloads {
        tso: ask_driver(socket, interface, Question::Tso).map(|on| on != 0),
        gso: ask_driver(socket, interface, Question::Gso).map(|on| on != 0),
        gro: ask_driver(socket, interface, Question::Gro).map(|on| on != 0),
        lro: ask_driver(socket, interface, Question::Flags).map(|flags| flags & ETH_FLAG_LRO != 0),
    }
}

/// Commands for which the kernel reads and writes one `ethtool_value` (linux/ethtool.h).
#[repr(u32)]
enum Question {
    Tso = 0x1e,
    Gso = 0x23,
    Flags = 0x25,
    Gro = 0x2b,
}

fn ask_driver(socket: &Socket, interface: &str, question: Question) -> Option<u32> {
    // struct ethtool_value { __u32 cmd; __u32 data; }
    let mut value = [question as u32, 0];
    // SAFETY: for these commands the kernel reads and writes one `ethtool_value`.
    unsafe { ethtool(socket, interface, &mut value) }.ok()?;
    Some(value[1])
}

/// Whether an interface supports hardware timestamps in both directions.
pub(crate) fn has_hardware_timestamps(socket: &Socket, interface: &str) -> io::Result<bool> {
    const ETHTOOL_GET_TS_INFO: u32 = 0x41;
    // struct ethtool_ts_info: eleven words, of which the first is the command, and the second says what is supported.
    let mut info = [0; 11];
    info[0] = ETHTOOL_GET_TS_INFO;
    // SAFETY: for this command the kernel reads and writes one `ethtool_ts_info`.
    unsafe { ethtool(socket, interface, &mut info)? };
    let both = libc::SOF_TIMESTAMPING_TX_HARDWARE | libc::SOF_TIMESTAMPING_RX_HARDWARE;
    Ok(info[1] & both == both)
}
