//! Readiness of many sockets (epoll).

use crate::sys::Interest;
use crate::sys::linux::socket::Socket;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

const AT_ONCE: usize = 256;

/// A set of sockets, identified by their index in the caller's list. A ready socket is returned once.
pub(crate) struct EpollSet {
    epoll: Epoll,
    events: Box<[EpollEvent; AT_ONCE]>,
    found: VecDeque<usize>,
    is_found: Box<[bool]>,
    /// How many are returned before the others are looked for: sockets that are returned again and again must not keep
    /// the others waiting.
    left: usize,
}

impl EpollSet {
    pub(crate) fn watch<'a>(sockets: impl Iterator<Item = &'a Socket>, what: Interest) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        // Writable is reported once, when there is room again (edge-triggered). Readable is reported as long as there
        // is data (level-triggered).
        let flags = match what {
            Interest::Readable => EpollFlags::EPOLLIN,
            Interest::Writable => EpollFlags::EPOLLOUT | EpollFlags::EPOLLET,
        };
        let mut count = 0;
        for (place, socket) in sockets.enumerate() {
            let Socket::Kernel(socket) = socket else { return Err(io::ErrorKind::Unsupported.into()) };
            epoll.add(socket, EpollEvent::new(flags, place as u64))?;
            count = place + 1;
        }
        // It never holds a socket twice, so it never grows.
        let mut found = VecDeque::with_capacity(count);
        if what == Interest::Writable {
            found.extend(0..count);
        }
        let is_found = vec![what == Interest::Writable; count].into();
        let left = found.len();
        Ok(EpollSet { epoll, events: Box::new([EpollEvent::empty(); AT_ONCE]), found, is_found, left })
    }

    /// The next ready socket, waiting at most `limit`; `None` on a timeout.
    pub(crate) fn next(&mut self, limit: Duration) -> io::Result<Option<usize>> {
        if self.found.is_empty() {
            self.look(limit)?;
        } else if self.left == 0 && self.found.len() < self.is_found.len() {
            self.look(Duration::ZERO)?;
        }
        self.left = self.left.saturating_sub(1);
        let next = self.found.pop_front();
        if let Some(place) = next {
            self.is_found[place] = false;
        }
        Ok(next)
    }

    fn look(&mut self, limit: Duration) -> io::Result<()> {
        let limit = EpollTimeout::try_from(limit).unwrap_or(EpollTimeout::MAX);
        let count = match self.epoll.wait(&mut self.events[..], limit) {
            Err(nix::errno::Errno::EINTR) => 0,
            count => count?,
        };
        for number in 0..count {
            self.again(self.events[number].data() as usize);
        }
        self.left = self.found.len();
        Ok(())
    }

    pub(crate) fn again(&mut self, place: usize) {
        if !std::mem::replace(&mut self.is_found[place], true) {
            self.found.push_back(place);
        }
    }

    pub(crate) fn forget(&mut self, socket: &Socket) -> io::Result<()> {
        let Socket::Kernel(socket) = socket else { return Err(io::ErrorKind::Unsupported.into()) };
        Ok(self.epoll.delete(socket)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::UdpSocket;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn sockets_are_found_by_what_they_are_ready_for() {
        let sockets: Vec<UdpSocket> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let to = sockets[2].local_addr().unwrap();
        sockets[0].send_to(&[1], to).unwrap();
        let sockets: Vec<Socket> = sockets.into_iter().map(Socket::from).collect();
        let mut reading = EpollSet::watch(sockets.iter(), Interest::Readable).unwrap();
        assert_eq!(reading.next(Duration::from_secs(5)).unwrap(), Some(2));
        reading.forget(&sockets[2]).unwrap();
        assert_eq!(reading.next(Duration::from_millis(1)).unwrap(), None);
        let mut writing = EpollSet::watch(sockets.iter(), Interest::Writable).unwrap();
        assert_eq!(writing.next(Duration::ZERO).unwrap(), Some(0));
        writing.again(0);
        assert_eq!(
            (1..4).map(|_| writing.next(Duration::ZERO).unwrap()).collect::<Vec<_>>(),
            [Some(1), Some(2), Some(0)]
        );
    }

    #[test]
    fn always_ready_socket_keeps_no_other_waiting() {
        let pairs: Vec<_> = (0..2).map(|_| UnixStream::pair().unwrap()).collect();
        let sockets: Vec<Socket> = pairs
            .iter()
            .map(|(here, _)| {
                here.set_nonblocking(true).unwrap();
                Socket::from(socket2::Socket::from(OwnedFd::from(here.try_clone().unwrap())))
            })
            .collect();
        let mut writing = EpollSet::watch(sockets.iter(), Interest::Writable).unwrap();
        assert_eq!(writing.next(Duration::ZERO).unwrap(), Some(0));
        // The first one is full until its peer reads.
        while (&pairs[0].0).write(&[0; 65536]).is_ok() {}
        for _ in 0..3 {
            assert_eq!(writing.next(Duration::ZERO).unwrap(), Some(1));
            writing.again(1);
        }
        pairs[0].1.set_nonblocking(true).unwrap();
        while (&pairs[0].1).read(&mut [0; 65536]).is_ok() {}
        let next: Vec<_> = (0..3)
            .map(|_| {
                let next = writing.next(Duration::ZERO).unwrap();
                next.into_iter().for_each(|place| writing.again(place));
                next
            })
            .collect();
        assert!(next.contains(&Some(0)), "{next:?}");
    }
}
