//! A socket of generic netlink.

use crate::kernel::genl::message::{
    CONTROLLER, FAMILY_ID, FAMILY_NAME, GET_FAMILY, GenlRequest, Message, find, messages, text, u16_at,
    u32_at, write,
};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, MultiHeaders, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvmmsg,
    send, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Datagrams that one call receives, and the room for each: the kernel makes none of more than two pages.
const DATAGRAMS: usize = 64;
const ROOM: usize = 8192;
/// The buffer of received datagrams in the kernel, bytes: some thousand frames.
const RECEIVE_BUFFER: usize = 16 << 20;
/// The most bytes of one send call. The kernel takes no more than the send buffer, of some 200 kB.
const MAX_SENT: usize = 64 << 10;
const TIMEOUT: Duration = Duration::from_secs(5);

/// A socket for requests to a family of generic netlink, in the namespace in which it was opened.
#[derive(Debug)]
pub struct Socket {
    /// The family's number.
    pub family: u16,
    socket: OwnedFd,
    sequence: u32,
    room: Vec<u8>,
    /// How often the kernel had to drop messages, because too many waited.
    pub overruns: u64,
}

impl Socket {
    /// Opens a socket for the family of this name.
    pub fn open(name: &str) -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkGeneric)?;
        // Needs a privilege. With the ordinary size, a flood loses frames sooner, which is counted.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER);
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        let room = vec![0; DATAGRAMS * ROOM];
        let mut socket = Socket { family: CONTROLLER, socket, sequence: 0, room, overruns: 0 };
        let answer =
            socket.ask(GET_FAMILY, &text(FAMILY_NAME, name)).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => io::Error::new(error.kind(), format!("this kernel has no {name}")),
                _ => error,
            })?;
        let number = answer.iter().find_map(|message| u16_at(find(message, FAMILY_ID)?, 0));
        socket.family = number.ok_or_else(|| io::Error::other(format!("{name} has no number")))?;
        Ok(socket)
    }

    /// Sends a request and waits for its answer, for five seconds. Returns the attributes of each message before the
    /// acknowledgement. Messages that the kernel sends by itself meanwhile are dropped.
    pub fn ask(&mut self, command: u8, attributes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.sequence += 1;
        let own = self.sequence;
        let mut out = Vec::new();
        write(
            &mut out,
            GenlRequest { family: self.family, command, sequence: own, acknowledge: true },
            attributes,
        );
        self.send(&out)?;
        let until = Instant::now() + TIMEOUT;
        let mut answers = Vec::new();
        let mut code = None;
        while code.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the kernel does not answer"));
            }
            wait(&[self.socket.as_fd()], Some(left))?;
            self.receive(|message| match message {
                Message::Answer { sequence, code: said } if sequence == own => code = Some(said),
                Message::Command { sequence, attributes, .. } if sequence == own => {
                    answers.push(attributes.to_vec());
                }
                _ => {}
            })?;
        }
        match code {
            Some(code @ ..0) => Err(io::Error::from_raw_os_error(-code)),
            _ => Ok(answers),
        }
    }

    /// Sends requests to the kernel that are written one after the other.
    pub fn send(&self, requests: &[u8]) -> io::Result<()> {
        let mut rest = requests;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(whole_messages(rest));
            send(self.socket.as_raw_fd(), now, MsgFlags::empty())?;
            rest = later;
        }
        Ok(())
    }

    /// Takes what has arrived, some datagrams at most, without waiting. Returns how many there were.
    pub fn receive(&mut self, mut each: impl FnMut(Message<'_>)) -> io::Result<usize> {
        let lengths = match self.fill() {
            Ok(lengths) => lengths,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(0),
            Err(Errno::ENOBUFS) => {
                self.overruns += 1;
                return Ok(0);
            }
            Err(error) => return Err(error.into()),
        };
        for (datagram, length) in self.room.chunks(ROOM).zip(&lengths) {
            for message in messages(&datagram[..*length]) {
                let Some(message) = message else {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "malformed netlink message"));
                };
                each(message);
            }
        }
        Ok(lengths.len())
    }

    fn fill(&mut self) -> nix::Result<Vec<usize>> {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            self.room.chunks_mut(ROOM).map(|room| [IoSliceMut::new(room)]).collect();
        let mut headers = MultiHeaders::<NetlinkAddr>::preallocate(DATAGRAMS, None);
        let flags = MsgFlags::MSG_DONTWAIT;
        let received = recvmmsg(self.socket.as_raw_fd(), &mut headers, slices.iter_mut(), flags, None)?;
        received
            .map(|datagram| match datagram.flags.contains(MsgFlags::MSG_TRUNC) {
                true => Err(Errno::EMSGSIZE),
                false => Ok(datagram.bytes),
            })
            .collect()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The length of the messages at the beginning that fit into one call: one at least.
fn whole_messages(bytes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(length) = u32_at(bytes, end) {
        let next = end + (length as usize).next_multiple_of(4).max(1);
        if end > 0 && next > MAX_SENT {
            break;
        }
        end = next.min(bytes.len());
    }
    end.max(1)
}

/// Waits, at most so long, until one of these can be read or has ended. Returns which of them.
pub fn wait<const N: usize>(files: &[BorrowedFd<'_>; N], at_most: Option<Duration>) -> io::Result<[bool; N]> {
    let mut polled = files.map(|file| PollFd::new(file, PollFlags::POLLIN));
    match ppoll(&mut polled, at_most.map(TimeSpec::from_duration), None) {
        Ok(_) => {}
        Err(Errno::EINTR) => return Ok([false; N]),
        Err(error) => return Err(error.into()),
    }
    Ok(polled.map(|file| file.any().unwrap_or(false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::genl::message::attribute;

    #[test]
    fn kernel_knows_its_controller_and_no_invented_family() {
        let mut socket = Socket::open("nlctrl").unwrap();
        assert_eq!(socket.family, CONTROLLER);
        assert_eq!(Socket::open("stacklab").unwrap_err().to_string(), "this kernel has no stacklab");
        // Each request has a separate answer.
        assert!(socket.ask(GET_FAMILY, &text(FAMILY_NAME, "stacklab")).is_err());
        assert_eq!(socket.ask(GET_FAMILY, &text(FAMILY_NAME, "nlctrl")).unwrap().len(), 1);
        assert_eq!(socket.overruns, 0);
    }

    #[test]
    fn many_requests_are_sent_in_calls_of_whole_messages() {
        let mut out = Vec::new();
        let request = GenlRequest { family: 30, command: 2, sequence: 0, acknowledge: false };
        for _ in 0..100 {
            write(&mut out, request, &attribute(3, &[0; 1501]));
        }
        let one = out.len() / 100;
        let end = whole_messages(&out);
        assert!(end.is_multiple_of(one) && end <= MAX_SENT && end + one > MAX_SENT, "{end}");
        assert_eq!(whole_messages(&out[..one]), one);
        assert!(whole_messages(&[0; 8]) > 0, "a length of zero does not hold it up");
    }
}
