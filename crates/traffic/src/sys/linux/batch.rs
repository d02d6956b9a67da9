//! Several messages per call (sendmmsg, recvmmsg), on memory that a type owns.

use super::messages::parse_cmsg;
use crate::sys::linux::socket::Socket;
use crate::sys::stack::StackSocket;
use crate::sys::{DONTWAIT, RecvMeta};
use nix::sys::socket::{SockaddrLike, SockaddrStorage};
use socket2::{Domain, Type};
use std::ffi::c_int;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::time::Duration;

/// Space for the control messages of one datagram: a receive timestamp (software and hardware, if sends are
/// timestamped too) and the GRO segment size.
const CONTROL_WORDS: usize = 16;

/// Whether sendmmsg sends further messages after one that it sent partly, as gVisor does; Linux stops there. On a
/// stream the missing bytes could not be sent any more. A message without bytes always has room, so it shows the
/// difference.
pub(crate) fn skips_bytes() -> bool {
    static SKIPS: OnceLock<bool> = OnceLock::new();
    *SKIPS.get_or_init(|| {
        let Ok((socket, _peer)) = socket2::Socket::pair(Domain::UNIX, Type::STREAM, None) else {
            return false;
        };
        let _ = socket.set_send_buffer_size(PROBE_BUFFER);
        let socket = Socket::from(socket);
        let mut probe = Batch::new(2, PROBE_MESSAGE);
        probe.vectors[1].iov_len = 0;
        matches!(probe.send(&socket, 0, 2, libc::MSG_NOSIGNAL | DONTWAIT), Ok((2, _)))
    })
}

const PROBE_BUFFER: usize = 16 << 10;
/// More than any socket holds after that.
const PROBE_MESSAGE: usize = 1 << 20;

/// Contiguous message buffers, with the headers that the calls need.
pub(crate) struct Batch {
    room: Box<[u8]>,
    each: usize,
    headers: Box<[libc::mmsghdr]>,
    // The headers point into these.
    vectors: Box<[libc::iovec]>,
    controls: Box<[[u64; CONTROL_WORDS]]>,
    /// Where each message came from, or goes to, if that is kept; empty otherwise.
    addresses: Box<[libc::sockaddr_storage]>,
    /// Whether the first message is received by a separate call, because the stack does not support MSG_WAITFORONE.
    waits_singly: bool,
}

impl Batch {
    pub(crate) fn new(count: usize, each: usize) -> Self {
        let mut room = vec![0; count * each].into_boxed_slice();
        let mut controls = vec![[0; CONTROL_WORDS]; count].into_boxed_slice();
        let mut vectors: Box<[libc::iovec]> = room
            .chunks_exact_mut(each)
            .map(|slot| libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: each })
            .collect();
        let headers = vectors.iter_mut().zip(&mut controls).map(|(vector, control)| {
            // SAFETY: `mmsghdr` is plain data, for which all zeros is valid.
            let mut header: libc::mmsghdr = unsafe { MaybeUninit::zeroed().assume_init() };
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
            header
        });
        let headers = headers.collect();
        let addresses = Box::default();
        Batch { headers, room, each, vectors, controls, addresses, waits_singly: false }
    }

    /// Keeps the address from which each message comes, or to which it goes.
    pub(crate) fn keep_addresses(&mut self) {
        // SAFETY: `sockaddr_storage` is plain data, for which all zeros is valid.
        let nowhere: libc::sockaddr_storage = unsafe { MaybeUninit::zeroed().assume_init() };
        self.addresses = vec![nowhere; self.headers.len()].into();
        for (header, address) in self.headers.iter_mut().zip(&mut self.addresses) {
            header.msg_hdr.msg_name = (&raw mut *address).cast();
        }
    }

    /// Has the message in this place go to an address, though the socket be connected to another one. Addresses are
    /// kept.
    pub(crate) fn set_destination(&mut self, place: usize, to: SocketAddr) {
        let to = SockaddrStorage::from(to);
        let length = to.len();
        // SAFETY: both are as long as the largest address, and do not overlap.
        unsafe {
            let storage = (&raw mut self.addresses[place]).cast::<u8>();
            storage.copy_from_nonoverlapping(to.as_ptr().cast(), length as usize);
        }
        self.headers[place].msg_hdr.msg_namelen = length;
    }

    /// Where a received message came from, if that is kept.
    pub(crate) fn source(&self, place: usize) -> Option<SocketAddr> {
        let source = self.addresses.get(place)?;
        let length = self.headers[place].msg_hdr.msg_namelen;
        let source = &raw const *source;
        // SAFETY: the kernel wrote an address of this length, or none, to the storage, which was zeroed before.
        let source = unsafe { SockaddrStorage::from_raw(source.cast(), Some(length)) }?;
        if let Some(source) = source.as_sockaddr_in() {
            return Some(SocketAddrV4::from(*source).into());
        }
        Some(SocketAddrV6::from(*source.as_sockaddr_in6()?).into())
    }

    pub(crate) fn count(&self) -> usize {
        self.headers.len()
    }

    pub(crate) fn slot(&mut self, place: usize) -> &mut [u8] {
        &mut self.room[place * self.each..][..self.each]
    }

    pub(crate) fn slots(&self, from: usize, to: usize) -> &[u8] {
        &self.room[from * self.each..to * self.each]
    }

    /// Sends the messages `from..to`, one datagram or write each. Returns how many were accepted, and how many bytes
    /// of the last one.
    pub(crate) fn send(
        &mut self,
        socket: &Socket,
        from: usize,
        to: usize,
        flags: c_int,
    ) -> io::Result<(usize, usize)> {
        let socket = match socket {
            Socket::Kernel(socket) => socket,
            Socket::Stack(socket) => return self.send_singly(socket, from, to, flags),
        };
        let headers = &mut self.headers[from..to];
        for header in headers.iter_mut() {
            header.msg_hdr.msg_controllen = 0;
        }
        // SAFETY: the descriptor is open for as long as `socket` is borrowed; each header points to one vector over
        // its own part of `room`, all of which this value owns, on the heap, and no control data.
        let sent = unsafe {
            libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), headers.len() as _, flags as _)
        };
        match sent {
            ..0 => Err(io::Error::last_os_error()),
            0 => Ok((0, 0)),
            sent => Ok((sent as usize, headers[sent as usize - 1].msg_len as usize)),
        }
    }

    /// Receives available messages, up to the capacity. With `wait`, the first receive blocks up to the socket's
    /// timeout. Returns the number of messages.
    pub(crate) fn receive(&mut self, socket: &Socket, wait: bool) -> io::Result<usize> {
        let socket = match socket {
            Socket::Kernel(socket) => socket,
            Socket::Stack(socket) => return self.receive_singly(socket, wait),
        };
        for header in &mut self.headers {
            header.msg_hdr.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
            if !self.addresses.is_empty() {
                header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            }
        }
        let flags = libc::MSG_TRUNC | if wait { 0 } else { DONTWAIT };
        if self.headers.len() > 1 && !self.waits_singly {
            match receive_several(socket, &mut self.headers, flags | libc::MSG_WAITFORONE) {
                // gVisor returns EINVAL for a flag that it does not know.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => self.waits_singly = true,
                received => return received,
            }
        }
        let [first, others @ ..] = &mut *self.headers else { return Ok(0) };
        // SAFETY: as for `receive_several`.
        let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut first.msg_hdr, flags) };
        if received < 0 {
            return Err(io::Error::last_os_error());
        }
        first.msg_len = received as u32;
        if others.is_empty() {
            return Ok(1);
        }
        // Receives whatever else has arrived by now. Nothing more is not an error; a real error is returned by the
        // next call.
        Ok(1 + receive_several(socket, others, flags | libc::MSG_DONTWAIT).unwrap_or(0))
    }

    /// As [`Batch::send`], over a stack, which has no call for several messages.
    fn send_singly(
        &self,
        socket: &StackSocket,
        from: usize,
        to: usize,
        flags: c_int,
    ) -> io::Result<(usize, usize)> {
        let mut limit = if flags & DONTWAIT == 0 { socket.write_timeout() } else { Duration::ZERO };
        for place in from..to {
            match socket.send(self.slots(place, place + 1), flags, limit) {
                Ok(bytes) if bytes < self.each => return Ok((place - from + 1, bytes)),
                Ok(_) => limit = Duration::ZERO,
                Err(_) if place > from => return Ok((place - from, self.each)),
                Err(error) => return Err(error),
            }
        }
        Ok((to - from, self.each))
    }

    /// As [`Batch::receive`], over a stack.
    fn receive_singly(&mut self, socket: &StackSocket, wait: bool) -> io::Result<usize> {
        let mut limit = if wait { socket.read_timeout() } else { Duration::ZERO };
        for place in 0..self.count() {
            match socket.receive(self.slot(place), limit) {
                Ok(length) => {
                    let header = &mut self.headers[place];
                    header.msg_len = length as u32;
                    header.msg_hdr.msg_controllen = 0;
                    limit = Duration::ZERO;
                }
                Err(_) if place > 0 => return Ok(place),
                Err(error) => return Err(error),
            }
        }
        Ok(self.count())
    }

    /// Length of a received message, including bytes beyond its buffer.
    pub(crate) fn length(&self, place: usize) -> usize {
        self.headers[place].msg_len as usize
    }

    pub(crate) fn recv_meta(&self, place: usize) -> RecvMeta {
        let header = &self.headers[place].msg_hdr;
        debug_assert!(header.msg_controllen <= size_of_val(&self.controls[place]) as _);
        // SAFETY: the kernel wrote `msg_controllen` bytes of control messages to the block that the header points to.
        unsafe { parse_cmsg(header) }
    }
}

fn receive_several(
    socket: &socket2::Socket,
    headers: &mut [libc::mmsghdr],
    flags: c_int,
) -> io::Result<usize> {
    let count = headers.len() as _;
    let none = std::ptr::null_mut();
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; each header points to one vector over its own
    // part of a batch's room and to its own control block of the stated length, all of which the batch owns, on the
    // heap.
    let received =
        unsafe { libc::recvmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, flags as _, none) };
    if received < 0 { Err(io::Error::last_os_error()) } else { Ok(received as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{self, SocketOption};
    use std::net::UdpSocket;

    fn pair() -> (Socket, Socket) {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        (sender.into(), receiver.into())
    }

    #[test]
    fn linux_stops_at_a_partly_sent_message() {
        assert!(!skips_bytes());
    }

    #[test]
    fn messages_of_one_call_have_their_own_arrival_times() {
        let (sender, receiver) = pair();
        sys::set(&receiver, SocketOption::RxTimestamps).unwrap();
        let mut out = Batch::new(4, 100);
        for place in 0..4 {
            out.slot(place).fill(place as u8);
        }
        assert_eq!(out.send(&sender, 1, 4, sys::SEND_PLAIN).unwrap(), (3, 100));
        let mut back = Batch::new(8, 150);
        let before = sys::realtime_offset().offset_ns;
        assert_eq!(back.receive(&receiver, true).unwrap(), 3);
        for place in 0..3 {
            assert_eq!(back.length(place), 100);
            assert!(back.slot(place)[..100].iter().all(|byte| *byte == place as u8 + 1));
            let arrived = back.recv_meta(place).software_rx_ns.unwrap();
            let since = sys::now_ns() as i64 - (arrived as i64 - before);
            assert!((0..1_000_000_000).contains(&since), "arrived {since} ns ago");
        }
        let nothing = back.receive(&receiver, false).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn one_call_leaves_as_several_datagrams() {
        let (sender, receiver) = pair();
        sys::set(&sender, SocketOption::Gso(100)).unwrap();
        let mut out = Batch::new(5, 100);
        for place in 0..5 {
            out.slot(place).fill(place as u8);
        }
        assert_eq!(sender.send(out.slots(0, 5)).unwrap(), 500);
        let mut back = Batch::new(8, 600);
        let mut lengths = Vec::new();
        while lengths.iter().sum::<usize>() < 500 {
            let count = back.receive(&receiver, true).unwrap();
            lengths.extend((0..count).map(|place| back.length(place)));
        }
        assert_eq!(lengths, [100; 5]);
    }

    #[test]
    fn messages_of_one_call_have_their_own_destinations() {
        let (sender, receiver) = pair();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut out = Batch::new(3, 100);
        out.keep_addresses();
        for place in 0..3 {
            out.slot(place).fill(place as u8);
            out.set_destination(place, other.local_addr().unwrap());
        }
        let connected = sender.peer_addr().unwrap().as_socket().unwrap();
        out.set_destination(1, connected);
        assert_eq!(out.send(&sender, 0, 3, sys::SEND_PLAIN).unwrap(), (3, 100));
        let mut room = [0; 200];
        for expected in [0, 2] {
            assert_eq!((other.recv(&mut room).unwrap(), room[0]), (100, expected));
        }
        let mut back = Batch::new(8, 100);
        assert_eq!((back.receive(&receiver, true).unwrap(), back.slot(0)[0]), (1, 1));
    }

    #[test]
    fn a_message_too_long_for_its_room_shows_its_length() {
        let (sender, receiver) = pair();
        sender.send(&[1; 64]).unwrap();
        let mut back = Batch::new(1, 33);
        assert_eq!(back.receive(&receiver, true).unwrap(), 1);
        assert_eq!(back.length(0), 64);
    }
}
