//! Messages with control messages, and those of a socket's error queue.

use crate::sys::{DONTWAIT, Nanos, RecvMeta, TxTimestamp, ZerocopyCompletion};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};
use socket2::Socket;
use stacklab_model::Family;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// `struct scm_timestamping`: software, unused, hardware; an absent timestamp is all zeros.
type Stamps = [libc::timespec; 3];

/// A timestamp of `struct scm_timestamping`; `None` if absent.
fn stamp_ns(time: &libc::timespec) -> Option<Nanos> {
    let ns = time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos;
    (ns > 0).then_some(ns)
}

fn receive_message(
    socket: &Socket,
    room: &mut [u8],
    control: &mut [u64],
    flags: c_int,
) -> io::Result<(usize, libc::msghdr)> {
    let mut vector = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    // SAFETY: `msghdr` is plain data, for which all zeros is valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (&raw mut vector, 1);
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(control) as _;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; the header points to one vector over `room`
    // and to the control block of the stated length, which outlive the call.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    if received < 0 { Err(io::Error::last_os_error()) } else { Ok((received as usize, header)) }
}

/// Calls `read` with level, type and payload of each control message.
///
/// # Safety
/// The header points to `msg_controllen` bytes of well-formed control messages that the kernel wrote, and `read` takes
/// no more of a payload than the kernel defines for its type.
unsafe fn each_control(header: &libc::msghdr, mut read: impl FnMut(c_int, c_int, *const u8)) {
    // SAFETY: the CMSG functions stay within the control messages.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(control) = message.as_ref() {
            read(control.cmsg_level, control.cmsg_type, libc::CMSG_DATA(control));
            message = libc::CMSG_NXTHDR(header, control);
        }
    }
}

/// Parses the control messages of a packet.
///
/// # Safety
/// The header points to `msg_controllen` bytes of well-formed control messages that the kernel wrote.
pub(super) unsafe fn parse_cmsg(header: &libc::msghdr) -> RecvMeta {
    let mut meta = RecvMeta::default();
    // SAFETY: as the caller promises. Each payload is read unaligned and is as long as the kernel defines it for its
    // type.
    unsafe {
        each_control(header, |level, kind, data| match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                meta.software_rx_ns = stamp_ns(&data.cast::<libc::timespec>().read_unaligned());
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                meta.hardware_rx_ns = stamp_ns(&data.cast::<Stamps>().read_unaligned()[2]);
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                meta.gro_segment_bytes = Some(data.cast::<c_int>().read_unaligned() as usize);
            }
            (libc::SOL_IP, libc::IP_TTL) | (libc::SOL_IPV6, libc::IPV6_HOPLIMIT) => {
                meta.ttl = u8::try_from(data.cast::<c_int>().read_unaligned()).ok();
            }
            _ => {}
        });
    }
    meta
}

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

/// A message of a socket's error queue.
struct Queued {
    pub error: Option<libc::sock_extended_err>,
    pub stamp: Option<TxTimestamp>,
    pub len: usize,
}

/// The next message of a socket's error queue, with its packet; `None` without one.
fn next_queued_message(socket: &Socket, room: &mut [u8]) -> io::Result<Option<Queued>> {
    let mut control = [0_u64; 32];
    let (len, header) = match receive_message(socket, room, &mut control, libc::MSG_ERRQUEUE | DONTWAIT) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        received => received?,
    };
    let mut queued = Queued { error: None, stamp: None, len };
    // SAFETY: the kernel wrote `msg_controllen` bytes of well-formed control messages to the block. The payloads of
    // these types are three timestamps and an error of the IP layer; they are read unaligned.
    unsafe {
        each_control(&header, |level, kind, data| match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                let [software, _, hardware] = data.cast::<Stamps>().read_unaligned();
                let by_interface = stamp_ns(&hardware).map(TxTimestamp::Hardware);
                queued.stamp = by_interface.or_else(|| stamp_ns(&software).map(TxTimestamp::Software));
            }
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                queued.error = Some(data.cast::<libc::sock_extended_err>().read_unaligned());
            }
            _ => {}
        });
    }
    Ok(Some(queued))
}

/// Has the kernel queue each ICMP error (`IP_RECVERR`), also those that it would otherwise drop, such as an expired
/// TTL.
pub(crate) fn enable_icmp_errors(socket: &Socket, family: Family) -> io::Result<()> {
    match family {
        Family::Ipv4 => setsockopt(socket, sockopt::Ipv4RecvErr, &true)?,
        Family::Ipv6 => setsockopt(socket, sockopt::Ipv6RecvErr, &true)?,
    }
    Ok(())
}

/// An error about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IcmpError {
    /// Its ICMP type; `None` if this host refused the packet.
    pub kind: Option<u8>,
    pub code: u8,
    /// Bytes of the refused packet, from its ICMP header on, that are in the room.
    pub len: usize,
}

/// The next queued error, with the refused packet; `None` if none is queued.
pub(crate) fn next_icmp_error(socket: &Socket, room: &mut [u8]) -> io::Result<Option<IcmpError>> {
    let Some(Queued { error, len, .. }) = next_queued_message(socket, room)? else { return Ok(None) };
    Ok(Some(error.map_or(IcmpError { kind: None, code: 0, len: 0 }, |error| {
        let is_icmp = matches!(error.ee_origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6);
        IcmpError { kind: is_icmp.then_some(error.ee_type), code: error.ee_code, len }
    })))
}

/// The next message of a socket's error queue, without its packet; `None` if none comes within the limit.
fn await_queued_message(socket: &Socket, limit: Duration) -> io::Result<Option<Queued>> {
    if let Some(queued) = next_queued_message(socket, &mut [])? {
        return Ok(Some(queued));
    }
    // poll always reports the error queue, even without requested events.
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::empty())];
    match poll(&mut fds, PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX)) {
        Err(nix::errno::Errno::EINTR) => Ok(None),
        polled => polled.map_err(io::Error::from).and_then(|_| next_queued_message(socket, &mut [])),
    }
}

/// The next transmit timestamp, with the number of its send. With hardware timestamps, each send has two. Waits up to
/// a limit, then returns `WouldBlock`.
pub(crate) fn read_tx_timestamp(socket: &Socket, limit: Duration) -> io::Result<(u32, TxTimestamp)> {
    let queued = await_queued_message(socket, limit)?.ok_or(io::ErrorKind::WouldBlock)?;
    let found = queued.error.map(|error| error.ee_data).zip(queued.stamp);
    found.ok_or_else(|| io::Error::other("the kernel supports no transmit timestamps"))
}

/// linux/errqueue.h
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;

/// Sends whose memory the kernel no longer uses; `None` without any within the limit.
pub(crate) fn zerocopy_completion(
    socket: &Socket,
    limit: Duration,
) -> io::Result<Option<ZerocopyCompletion>> {
    let Some(error) = await_queued_message(socket, limit)?.and_then(|queued| queued.error) else {
        return Ok(None);
    };
    if error.ee_origin != SO_EE_ORIGIN_ZEROCOPY {
        return Err(io::Error::from_raw_os_error(error.ee_errno as c_int));
    }
    let sends = u64::from(error.ee_data.wrapping_sub(error.ee_info)) + 1;
    Ok(Some(ZerocopyCompletion { sends, copied: error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED != 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{MaybeUninit, size_of};

    /// No test interface has hardware timestamps: this is what the kernel would write for one that does.
    #[test]
    fn hardware_timestamp_is_read_beside_the_software_one() {
        let nothing = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let software = libc::timespec { tv_sec: 5, tv_nsec: 6 };
        let hardware = libc::timespec { tv_sec: 7, tv_nsec: 8 };
        assert_eq!(parse_stamps([software, nothing, hardware]).hardware_rx_ns, Some(7_000_000_008));
        assert_eq!(parse_stamps([software, nothing, nothing]).hardware_rx_ns, None);
    }

    #[repr(C)]
    struct StampsMessage {
        header: libc::cmsghdr,
        stamps: Stamps,
    }

    fn parse_stamps(stamps: Stamps) -> RecvMeta {
        let length = size_of::<StampsMessage>();
        let header = libc::cmsghdr {
            cmsg_len: length as _,
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SCM_TIMESTAMPING,
        };
        let mut control = StampsMessage { header, stamps };
        // SAFETY: `msghdr` is plain data, for which all zeros is valid.
        let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        (message.msg_control, message.msg_controllen) = ((&raw mut control).cast(), length as _);
        // SAFETY: the header points to one control message of the stated length.
        unsafe { parse_cmsg(&message) }
    }
}
