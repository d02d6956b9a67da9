//! Reads control messages.

use crate::sys::cmsg::RecvMeta;
use crate::sys::types::Nanos;
use std::ffi::c_int;
use std::time::Duration;

/// `struct scm_timestamping`: software, unused, hardware; an absent timestamp is all zeros.
pub(super) type Stamps = [libc::timespec; 3];

/// A timestamp of `struct scm_timestamping`; `None` if absent.
pub(super) fn stamp_ns(time: &libc::timespec) -> Option<Nanos> {
    let ns = time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos;
    (ns > 0).then_some(ns)
}

/// Parses control messages.
///
/// # Safety
/// The header points to `msg_controllen` bytes of well-formed control messages that the kernel wrote.
pub(super) unsafe fn parse_cmsg(header: &libc::msghdr) -> RecvMeta {
    let mut meta = RecvMeta::default();
    // SAFETY: the CMSG functions stay within the control messages. Each payload is read unaligned and is as long as the
    // kernel defines it for its type.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(control) = message.as_ref() {
            let data = libc::CMSG_DATA(control);
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time: libc::timespec = data.cast::<libc::timespec>().read_unaligned();
                    let whole = Duration::from_secs(time.tv_sec as u64).as_nanos() as Nanos;
                    meta.software_rx_ns = Some(whole + time.tv_nsec as Nanos);
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                    let [_, _, hardware]: Stamps = data.cast::<Stamps>().read_unaligned();
                    meta.hardware_rx_ns = stamp_ns(&hardware);
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    meta.gro_segment_bytes = Some(data.cast::<c_int>().read_unaligned() as usize);
                }
                (libc::SOL_IP, libc::IP_TTL) | (libc::SOL_IPV6, libc::IPV6_HOPLIMIT) => {
                    meta.ttl = u8::try_from(data.cast::<c_int>().read_unaligned()).ok();
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(header, control);
        }
    }
    meta
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{MaybeUninit, size_of};

    /// No test interface has hardware timestamps: this is what the kernel would write for one that does.
    #[test]
    fn a_hardware_timestamp_is_read_beside_the_software_one() {
        #[repr(C)]
        struct Control {
            header: libc::cmsghdr,
            stamps: Stamps,
        }
        let at = |seconds, nanoseconds| libc::timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        let told = |stamps: Stamps| {
            let length = size_of::<Control>();
            let header = libc::cmsghdr {
                cmsg_len: length as _,
                cmsg_level: libc::SOL_SOCKET,
                cmsg_type: libc::SCM_TIMESTAMPING,
            };
            let mut control = Control { header, stamps };
            // SAFETY: `msghdr` is plain data, for which all zeros is valid.
            let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
            (message.msg_control, message.msg_controllen) = ((&raw mut control).cast(), length as _);
            // SAFETY: the header points to one control message of the stated length.
            unsafe { parse_cmsg(&message) }
        };
        let both = told([at(5, 6), at(0, 0), at(7, 8)]);
        assert_eq!(both.hardware_rx_ns, Some(7_000_000_008));
        assert_eq!(told([at(5, 6), at(0, 0), at(0, 0)]).hardware_rx_ns, None);
    }
}
