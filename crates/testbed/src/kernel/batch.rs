//! Many requests of one kind to the kernel over netlink, hundreds in one call: a million entries of a table are made in
//! seconds.

use crate::kernel::genl::message::{Message, messages};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt,
    socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The length of `struct nlmsghdr`, and where it has the flags.
const HEADER: usize = 16;
const FLAGS: usize = 6;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
/// Makes a new entry, and fails if there is one already.
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;

/// The most bytes of one call, which the send buffer of some 200 kB takes.
const MAX_CALL: usize = 32 << 10;
/// The room for the kernel's answers, bytes.
const MAX_ANSWER: usize = 64 << 10;
/// How long the kernel may take for the requests of one call, seconds: other processes may hold its lock.
const TIMEOUT_SECONDS: i64 = 60;

/// A socket of the calling thread's namespace, and requests that wait to be sent.
#[derive(Debug)]
pub(crate) struct RequestBatch {
    socket: OwnedFd,
    /// Requests, one after the other.
    waiting: Vec<u8>,
    /// Where the last of them begins, and its flags.
    last: usize,
    last_flags: u16,
    /// The number of requests so far, and of the last one.
    sequence: u32,
}

impl RequestBatch {
    pub(crate) fn open(protocol: SockProtocol) -> io::Result<Self> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(TIMEOUT_SECONDS))?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        Ok(RequestBatch {
            socket,
            waiting: Vec::with_capacity(MAX_CALL),
            last: 0,
            last_flags: 0,
            sequence: 0,
        })
    }

    /// Asks for a new entry by a request of this type. Sends what waits if there is enough of it. An error may be that
    /// of an earlier request.
    pub(crate) fn create(&mut self, kind: u16, body: &[u8]) -> io::Result<()> {
        self.ask(kind, NLM_F_CREATE | NLM_F_EXCL, body)
    }

    /// Asks for the deletion of what the body names.
    pub(crate) fn delete(&mut self, kind: u16, body: &[u8]) -> io::Result<()> {
        self.ask(kind, 0, body)
    }

    fn ask(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        if self.waiting.len() + HEADER + body.len() > MAX_CALL {
            self.send()?;
        }
        self.sequence += 1;
        self.last = self.waiting.len();
        let length = (HEADER + body.len()) as u32;
        self.last_flags = NLM_F_REQUEST | flags;
        self.waiting.extend(length.to_ne_bytes());
        self.waiting.extend(kind.to_ne_bytes());
        self.waiting.extend(self.last_flags.to_ne_bytes());
        self.waiting.extend(self.sequence.to_ne_bytes());
        // The port: the kernel knows the socket's.
        self.waiting.extend([0; 4]);
        self.waiting.extend(body);
        self.waiting.resize(self.waiting.len().next_multiple_of(4), 0);
        Ok(())
    }

    /// Sends what still waits.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.send()
    }

    /// Sends what waits in one call, and waits until the kernel has done all of it. It answers each request that fails;
    /// of the others only the last one asks for an answer.
    fn send(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let place = self.last + FLAGS..self.last + FLAGS + 2;
        let flags = self.last_flags | NLM_F_ACK;
        self.waiting[place].copy_from_slice(&flags.to_ne_bytes());
        send(self.socket.as_raw_fd(), &self.waiting, MsgFlags::empty())?;
        self.waiting.clear();
        let mut room = vec![0; MAX_ANSWER];
        loop {
            let length = recv(self.socket.as_raw_fd(), &mut room, MsgFlags::empty())?;
            for message in messages(&room[..length]) {
                match message {
                    Some(Message::Answer { code: code @ ..0, .. }) => {
                        return Err(io::Error::from_raw_os_error(-code));
                    }
                    Some(Message::Answer { sequence, .. }) if sequence == self.sequence => return Ok(()),
                    Some(_) => {}
                    None => {
                        return Err(io::Error::new(io::ErrorKind::InvalidData, "malformed netlink message"));
                    }
                }
            }
        }
    }
}
