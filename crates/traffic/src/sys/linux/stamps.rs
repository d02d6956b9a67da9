//! Packet timestamps (SO_TIMESTAMPING).

use super::super::posix::set_option;
use super::cmsg::{Stamps, parse_cmsg, stamp_ns};
use super::{request, wait_error_queue};
use crate::sys::cmsg::TxTimestamp;
use crate::sys::types::Nanos;
use crate::sys::unix::DONTWAIT;
use socket2::Socket;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

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

/// Receives available data of a stream; with `wait`, blocks up to the socket's timeout. Returns the number of bytes
/// and, if receive timestamps are on, the receive timestamp of their last packet, nanoseconds of the realtime clock.
pub(crate) fn receive_with_timestamp(
    socket: &Socket,
    room: &mut [u8],
    wait: bool,
) -> io::Result<(usize, Option<Nanos>)> {
    let mut control = [0_u64; 16];
    let mut vector = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    // SAFETY: `msghdr` is plain data, for which all zeros is valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (&raw mut vector, 1);
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; the header points to one vector over `room`
    // and to the control block of the stated length, which outlive the call.
    let received =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, if wait { 0 } else { DONTWAIT }) };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel wrote `msg_controllen` bytes of control messages to the block, which is still there.
    let meta = unsafe { parse_cmsg(&header) };
    Ok((received as usize, meta.software_rx_ns))
}

/// Turns transmit timestamps on ([`read_tx_timestamp`]), with sends numbered from 0: software timestamps, and
/// hardware timestamps if the interface is configured to take them. Does not change the interface's configuration.
pub(crate) fn enable_tx_timestamps(socket: &Socket) -> io::Result<()> {
    let by_kernel = libc::SOF_TIMESTAMPING_TX_SOFTWARE
        | libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    let by_interface = libc::SOF_TIMESTAMPING_TX_HARDWARE
        | libc::SOF_TIMESTAMPING_RX_HARDWARE
        | libc::SOF_TIMESTAMPING_RAW_HARDWARE
        | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
    let set = |flags: u32| set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as libc::c_int);
    // A stack that does not support all flags may support the first ones.
    set(by_kernel | by_interface).or_else(|_| set(by_kernel))
}

/// The next transmit timestamp, with the number of its send. With hardware timestamps, each send has two. Waits up to
/// a limit, then returns `WouldBlock`.
pub(crate) fn read_tx_timestamp(socket: &Socket, limit: Duration) -> io::Result<(u32, TxTimestamp)> {
    let stamp = try_read_tx_timestamp(socket);
    match stamp {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            wait_error_queue(socket, limit)?;
            try_read_tx_timestamp(socket)
        }
        stamp => stamp,
    }
}

fn try_read_tx_timestamp(socket: &Socket) -> io::Result<(u32, TxTimestamp)> {
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
    // SAFETY: the kernel wrote `msg_controllen` bytes of well-formed control messages to the block, and the CMSG
    // functions stay within them. The payloads of these types are three timestamps and an error of the IP layer; they
    // are read unaligned.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while let Some(control) = message.as_ref() {
            let data = libc::CMSG_DATA(control);
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                    let [software, _, hardware]: Stamps = data.cast::<Stamps>().read_unaligned();
                    time = stamp_ns(&hardware).map(TxTimestamp::Hardware);
                    time = time.or_else(|| stamp_ns(&software).map(TxTimestamp::Software));
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
        None => Err(io::Error::other("the kernel supports no transmit timestamps")),
    }
}

/// Whether an interface supports hardware timestamps in both directions (ETHTOOL_GET_TS_INFO).
pub(crate) fn has_hardware_timestamps(socket: &Socket, interface: &str) -> io::Result<bool> {
    let mut info = StampInfo { command: ETHTOOL_GET_TS_INFO, ..StampInfo::default() };
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    // SAFETY: the descriptor is open; SIOCETHTOOL reads the `ifreq` and, for this command, reads and writes the one
    // `ethtool_ts_info` that its data pointer points to; both outlive the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let both = libc::SOF_TIMESTAMPING_TX_HARDWARE | libc::SOF_TIMESTAMPING_RX_HARDWARE;
    Ok(info.stamps & both == both)
}
