//! Packet capture on an interface (packet(7)) into memory that the kernel shares. The kernel copies a frame there as
//! it passes. One that waits at a socket shares its bytes with the packet on its way instead, and the router that takes
//! it may have changed them: Linux advances a segment routing header in place.

use super::network::check_return;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Room for a frame with its description, for all of them, and how many the kernel allocates at once, bytes.
const FRAME: usize = 2048;
const FRAMES: usize = 256;
const BLOCK: usize = 1 << 16;

/// Captures every frame on an interface of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Capture {
    socket: OwnedFd,
    base: *mut u8,
    /// The frame that the kernel fills next.
    next: usize,
}

// SAFETY: the memory belongs to this value alone, and is the same for each thread.
unsafe impl Send for Capture {}

impl Capture {
    pub(crate) fn open(index: u32) -> io::Result<Self> {
        // SAFETY: socket takes numbers. With protocol 0 it gets nothing yet.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        check_return(socket)?;
        // SAFETY: the kernel has just given this number, and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        set_option(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
        let ring = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (FRAME * FRAMES / BLOCK) as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: FRAMES as u32,
        };
        set_option(&socket, libc::PACKET_RX_RING, &ring)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let fd = socket.as_raw_fd();
        // SAFETY: the kernel chooses the place, and nothing else is there.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), FRAME * FRAMES, access, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let capture = Capture { socket, base: base.cast(), next: 0 };
        capture.bind(index)?;
        Ok(capture)
    }

    fn bind(&self, index: u32) -> io::Result<()> {
        // SAFETY: `sockaddr_ll` is plain C data, for which all zeros is a valid value.
        let mut place: libc::sockaddr_ll = unsafe { zeroed() };
        place.sll_family = libc::AF_PACKET as u16;
        place.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        place.sll_ifindex = index as i32;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address is as long as said, and outlives the call.
        check_return(unsafe { libc::bind(self.socket.as_raw_fd(), (&raw const place).cast(), length) })
    }

    /// The next frame, as far as there is room for it; `None` if none comes in time.
    pub(crate) fn next(&mut self, patience: Duration) -> io::Result<Option<Vec<u8>>> {
        // SAFETY: it is inside the memory, which has room for whole frames.
        let frame = unsafe { self.base.add(self.next * FRAME) };
        let described = frame.cast::<libc::tpacket2_hdr>();
        // SAFETY: a frame begins with this structure, aligned, and the kernel writes its first field as an atomic.
        let status = unsafe { AtomicU32::from_ptr(&raw mut (*described).tp_status) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            self.wait(patience)?;
        }
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return Ok(None);
        }
        // SAFETY: the kernel writes to this frame again only after the store below.
        let copy = unsafe {
            let start = usize::from((*described).tp_mac).min(FRAME);
            let length = ((*described).tp_snaplen as usize).min(FRAME - start);
            std::slice::from_raw_parts(frame.add(start), length).to_vec()
        };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % FRAMES;
        Ok(Some(copy))
    }

    fn wait(&self, patience: Duration) -> io::Result<()> {
        let mut waiting = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: there is one such structure, which outlives the call.
        let ready = unsafe { libc::poll(&raw mut waiting, 1, patience.as_millis() as libc::c_int) };
        match check_return(ready) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            other => other,
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.cast(), FRAME * FRAMES) };
    }
}

fn set_option<T>(socket: &OwnedFd, name: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let place = std::ptr::from_ref(value).cast();
    // SAFETY: the value is as long as said, and outlives the call.
    check_return(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, name, place, length) })
}
