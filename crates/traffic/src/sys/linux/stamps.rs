//! Packet timestamps (SO_TIMESTAMPING).

use super::control::{parse_cmsg, receive_message};
use super::ethtool;
use crate::sys::types::Nanos;
use crate::sys::unix::{DONTWAIT, set_option};
use socket2::Socket;
use std::io;

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
    let (received, header) = receive_message(socket, room, &mut control, if wait { 0 } else { DONTWAIT })?;
    // SAFETY: the kernel wrote `msg_controllen` bytes of control messages to the block, which is still there.
    Ok((received, unsafe { parse_cmsg(&header) }.software_rx_ns))
}

/// Turns transmit timestamps on (`read_tx_timestamp`), with sends numbered from 0: software timestamps, and
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

/// Whether an interface supports hardware timestamps in both directions (ETHTOOL_GET_TS_INFO).
pub(crate) fn has_hardware_timestamps(socket: &Socket, interface: &str) -> io::Result<bool> {
    let mut info = StampInfo { command: ETHTOOL_GET_TS_INFO, ..StampInfo::default() };
    // SAFETY: for this command the kernel reads and writes one `ethtool_ts_info`.
    unsafe { ethtool(socket, interface, &mut info)? };
    let both = libc::SOF_TIMESTAMPING_TX_HARDWARE | libc::SOF_TIMESTAMPING_RX_HARDWARE;
    Ok(info.stamps & both == both)
}
