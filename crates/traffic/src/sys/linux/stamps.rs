//! Times that the kernel or an interface gives to packets, beyond those of arrival.

use super::super::posix::set_option;
use super::super::{Left, NOW, Nanos};
use super::batch::told_beside;
use super::{await_error_queue, request};
use socket2::Socket;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// `struct sock_txtime`.
#[repr(C)]
struct SendTimes {
    clock: libc::clockid_t,
    flags: u32,
}

/// `struct scm_timestamping`: by software, unused, by hardware; all zeros where there is none.
pub(super) type Stamps = [libc::timespec; 3];

/// `struct ethtool_ts_info`.
#[repr(C)]
#[derive(Default)]
struct StampInfo {
    command: u32,
    stamps: u32,
    clock: i32,
    send_types: u32,
    send_reserved: [u32; 3],
    receive_filters: u32,
    receive_reserved: [u32; 3],
}

const ETHTOOL_GET_TS_INFO: u32 = 0x41;

/// Lets a socket's datagrams be given a time to leave at (SO_TXTIME), on the monotonic clock.
pub fn allow_send_times(socket: &Socket) -> io::Result<()> {
    let times = SendTimes { clock: libc::CLOCK_MONOTONIC, flags: 0 };
    let length = size_of::<SendTimes>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel reads `length` bytes of `times`,
    // a structure of integers without gaps.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TXTIME,
            (&raw const times).cast(),
            length,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives what there is of a stream; waits for it as the socket does, or not at all. Gives how many bytes came, and when the
/// last packet of them arrived, nanoseconds of the realtime clock, where the socket was told to say.
pub fn receive_stamped(socket: &Socket, room: &mut [u8], wait: bool) -> io::Result<(usize, Option<Nanos>)> {
    let mut control = [0_u64; 16];
    let mut vector = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    // SAFETY: `msghdr` is plain data, for which all zeros is valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (&raw mut vector, 1);
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; the header points to one vector over `room` and to the
    // control block of the stated length, which outlive the call.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, if wait { 0 } else { NOW }) };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel wrote `msg_controllen` bytes of control messages to the block, which is still there.
    let beside = unsafe { told_beside(&header) };
    Ok((received as usize, beside.arrived_realtime_ns))
}

/// Has the kernel say when it handed each packet to the interface ([`send_stamp`]), counting sends from 0; and when the
/// interface itself says that a packet left or arrived, where it is set to stamp them, which is left as it is.
pub fn stamp_sends(socket: &Socket) -> io::Result<()> {
    let by_kernel = libc::SOF_TIMESTAMPING_TX_SOFTWARE
        | libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    let by_interface = libc::SOF_TIMESTAMPING_TX_HARDWARE
        | libc::SOF_TIMESTAMPING_RX_HARDWARE
        | libc::SOF_TIMESTAMPING_RAW_HARDWARE
        | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
    let set = |flags: u32| set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as libc::c_int);
    // A stack that does not know all of them may know the first.
    set(by_kernel | by_interface).or_else(|_| set(by_kernel))
}

/// A time of `struct scm_timestamping`; `None` where it is none.
pub(super) fn stamp_ns(time: &libc::timespec) -> Option<Nanos> {
    let ns = time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos;
    (ns > 0).then_some(ns)
}

/// Of the earliest send that was not told of before, its number and when its packet left; where the interface stamps packets
/// too, of each send twice. Waits for it so long at most, and is then `WouldBlock`.
pub fn send_stamp(socket: &Socket, limit: Duration) -> io::Result<(u32, Left)> {
    let stamp = next_stamp(socket);
    match stamp {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            await_error_queue(socket, limit)?;
            next_stamp(socket)
        }
        stamp => stamp,
    }
}

fn next_stamp(socket: &Socket) -> io::Result<(u32, Left)> {
    let mut control = [0_u64; 32];
    // SAFETY: `msghdr` is plain data, for which all zeros is valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; the header has no data vectors and points to
    // the control block of the stated length, which outlives the call.
    if unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut number, mut time) = (None, None);
    // SAFETY: the kernel wrote `msg_controllen` bytes of well-formed control messages to the block, and the CMSG functions
    // stay within them. The payloads of these types are three times, and an error of the IP layer; they are read unaligned.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while let Some(control) = message.as_ref() {
            let data = libc::CMSG_DATA(control);
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                    let [software, _, hardware]: Stamps = data.cast::<Stamps>().read_unaligned();
                    time = stamp_ns(&hardware).map(Left::Interface);
                    time = time.or_else(|| stamp_ns(&software).map(Left::Kernel));
                }
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                    number = Some(data.cast::<libc::sock_extended_err>().read_unaligned().ee_data);
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(&raw const header, control);
        }
    }
    match number.zip(time) {
        Some(stamp) => Ok(stamp),
        None => Err(io::Error::other("the kernel stamps no sends")),
    }
}

/// Whether an interface stamps packets itself, both ways (ETHTOOL_GET_TS_INFO).
pub fn stamps_in_hardware(socket: &Socket, interface: &str) -> io::Result<bool> {
    let mut info = StampInfo { command: ETHTOOL_GET_TS_INFO, ..StampInfo::default() };
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    // SAFETY: the descriptor is open; SIOCETHTOOL reads the `ifreq` and, for this command, reads and writes one
    // `ethtool_ts_info` behind its data pointer; both outlive the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let both = libc::SOF_TIMESTAMPING_TX_HARDWARE | libc::SOF_TIMESTAMPING_RX_HARDWARE;
    Ok(info.stamps & both == both)
}
