//! What sockets and interfaces have beyond the standard library and netlink: the path MTU of a connected socket,
//! features of an interface (linux/ethtool.h; no netlink form on older kernels), and TUN and TAP devices.

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, setsockopt, socket, sockopt,
};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

/// A datagram socket at an address, and at an interface alone if one is named.
pub(crate) fn bind_at_device(own: SocketAddr, device: Option<&str>) -> io::Result<UdpSocket> {
    let Some(device) = device else { return UdpSocket::bind(own) };
    let family = if own.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::BindToDevice, &OsString::from(device))?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(own))?;
    Ok(UdpSocket::from(socket))
}

/// Sets how a socket treats packets that exceed the path MTU: `IP_PMTUDISC_DO` refuses them, and does not fragment;
/// `IP_PMTUDISC_PROBE` sends those up to the interface's MTU unfragmented, regardless of the known path MTU.
pub(crate) fn set_discovery(socket: &UdpSocket, value: libc::c_int) -> io::Result<()> {
    let (level, name) = option(socket, libc::IP_MTU_DISCOVER, libc::IPV6_MTU_DISCOVER)?;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option is an integer as long as said, which outlives the call.
    check_return(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length)
    })
}

/// The kernel's current path MTU to the peer, bytes.
pub(crate) fn path_mtu(socket: &UdpSocket) -> io::Result<u32> {
    let (level, name) = option(socket, libc::IP_MTU, libc::IPV6_MTU)?;
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    let place = (&raw mut value).cast();
    let room = &raw mut length;
    // SAFETY: there is room for an integer as long as said, which outlives the call.
    check_return(unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, place, room) })?;
    Ok(value as u32)
}

fn option(socket: &UdpSocket, ipv4: i32, ipv6: i32) -> io::Result<(i32, i32)> {
    let six = socket.local_addr()?.is_ipv6();
    Ok(if six { (libc::IPPROTO_IPV6, ipv6) } else { (libc::IPPROTO_IP, ipv4) })
}

pub(super) fn check_return(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const GET_STRINGS: u32 = 0x1b;
const GET_SET_INFO: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
/// The string set that holds the names of features.
const FEATURE_NAMES: u32 = 4;
/// The number of words in one name (32 bytes, zero-terminated).
const NAME_WORDS: usize = 8;

/// The features of an interface in the calling thread's namespace, in the kernel's order and by its names, for example
/// `tx-tcp-segmentation`; and whether they are on.
pub(crate) fn features(interface: &str) -> io::Result<Vec<(String, bool)>> {
    let count = feature_count(interface)?;

    // struct ethtool_gstrings: cmd, string_set, len, data
    let mut names = vec![0; 3 + count * NAME_WORDS];
    names[..3].copy_from_slice(&[GET_STRINGS, FEATURE_NAMES, count as u32]);
    call(interface, &mut names)?;

    // struct ethtool_gfeatures: cmd, size, then per block of 32: available, requested, active, never_changed
    let blocks = count.div_ceil(32);
    let mut states = vec![0; 2 + blocks * 4];
    states[..2].copy_from_slice(&[GET_FEATURES, blocks as u32]);
    call(interface, &mut states)?;

    let mut found = Vec::with_capacity(count);
    for (n, name) in names[3..].chunks_exact(NAME_WORDS).enumerate() {
        let active = states[2 + n / 32 * 4 + 2];
        let is_on = active & (1 << (n % 32)) != 0;
        found.push((text(name), is_on));
    }
    Ok(found)
}

/// Requests that features be switched off, by their positions in the list of `count` features. Features that the
/// kernel cannot switch stay unchanged without an error: read them again.
pub(crate) fn switch_off(interface: &str, places: &[usize], count: usize) -> io::Result<()> {
    switch(interface, places, count, false)
}

/// As [`switch_off`], on.
pub(crate) fn switch_on(interface: &str, places: &[usize], count: usize) -> io::Result<()> {
    switch(interface, places, count, true)
}

fn switch(interface: &str, places: &[usize], count: usize, on: bool) -> io::Result<()> {
    // struct ethtool_sfeatures: cmd, size, then per block of 32: valid, requested
    let blocks = count.div_ceil(32);
    let mut request = vec![0; 2 + blocks * 2];
    request[..2].copy_from_slice(&[SET_FEATURES, blocks as u32]);
    for place in places {
        let bit = 1 << (place % 32);
        request[2 + place / 32 * 2] |= bit;
        if on {
            request[3 + place / 32 * 2] |= bit;
        }
    }
    call(interface, &mut request)
}

fn feature_count(interface: &str) -> io::Result<usize> {
    // struct ethtool_sset_info: cmd, reserved, a 64-bit mask of string sets, then one count per set in the mask
    let mut info = [GET_SET_INFO, 0, 0, 0, 0];
    let mask = 1_u64 << FEATURE_NAMES;
    for (word, bytes) in info[2..4].iter_mut().zip(mask.to_ne_bytes().chunks_exact(4)) {
        *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    call(interface, &mut info)?;
    if info[2..4] == [0, 0] {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel does not name its features"));
    }
    Ok(info[4] as usize)
}

fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Makes one ethtool call. The request begins with its command and must have room for all that the command writes.
fn call(interface: &str, request: &mut [u32]) -> io::Result<()> {
    if interface.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the interface's name is too long"));
    }
    // Any socket works: it only selects the namespace.
    let socket = UnixDatagram::unbound()?;
    // SAFETY: `ifreq` is plain C data (bytes, numbers, a pointer), for which all zeros is a valid value.
    let mut header: libc::ifreq = unsafe { zeroed() };
    for (to, from) in header.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    header.ifr_ifru.ifru_data = request.as_mut_ptr().cast();
    // SAFETY: the name is zero-terminated (shorter than the zeroed array). `ifru_data` points to `request`, which
    // outlives the call, is aligned for the words that the kernel's structures are made of, and is as long as its
    // command writes: GET_SET_INFO one count for the one set asked for; GET_STRINGS as many names as GET_SET_INFO
    // has just counted, a constant of the running kernel; GET_FEATURES no more blocks than its size field says;
    // SET_FEATURES only reads.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut header) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const PATH: &str = "/dev/net/tun";

/// The file of TUN and TAP devices cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{PATH}: {0}")]
pub(crate) struct NoTun(io::Error);

impl NoTun {
    /// What makes it usable.
    pub(crate) fn remedy(&self) -> &'static str {
        match self.0.kind() {
            io::ErrorKind::PermissionDenied => {
                "sudo chmod 666 /dev/net/tun (its mode on most systems), or run as root (sudo); a container needs \
                 --device /dev/net/tun"
            }
            _ => "sudo modprobe tun, or a kernel with CONFIG_TUN; a container needs --device /dev/net/tun",
        }
    }
}

/// Opens the file of TUN and TAP devices, without making one.
pub(crate) fn open_tun() -> Result<File, NoTun> {
    OpenOptions::new().read(true).write(true).open(PATH).map_err(NoTun)
}

/// Creates a TUN device in the calling thread's namespace. It vanishes when the file is closed.
pub(crate) fn create_tun() -> io::Result<File> {
    create("", libc::IFF_TUN)
}

/// The same with a name.
pub(crate) fn create_named_tun(name: &str) -> io::Result<File> {
    create(name, libc::IFF_TUN)
}

/// Creates a device of this kind (`IFF_TUN`, `IFF_TAP`) and name, which exists as long as the thread's namespace.
pub(crate) fn create_lasting(name: &str, kind: libc::c_int) -> io::Result<()> {
    let file = create(name, kind)?;
    // SAFETY: TUNSETPERSIST takes a number.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETPERSIST as _, 1) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn create(name: &str, kind: libc::c_int) -> io::Result<File> {
    let file = open_tun().map_err(|error| io::Error::new(error.0.kind(), error))?;
    // SAFETY: `ifreq` is plain C data (bytes, numbers, a pointer), for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    // Its last byte stays zero.
    for (place, byte) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which outlives the call.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}
