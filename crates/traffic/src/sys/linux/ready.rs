//! Readiness of many sockets (epoll).

use crate::sys::types::Interest;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use socket2::Socket;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// Maximum number of events per call.
const AT_ONCE: usize = 256;

/// A set of sockets, identified by their index in the caller's list. A ready socket is returned once.
pub struct Ready {
    epoll: Epoll,
    events: Box<[EpollEvent; AT_ONCE]>,
    /// Ready sockets that were not returned yet.
    found: VecDeque<usize>,
}

impl Ready {
    /// Watches sockets. For writing, all are ready at first.
    pub fn watch<'a>(sockets: impl Iterator<Item = &'a Socket>, what: Interest) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        // Writable is reported once, when there is room again (edge-triggered). Readable is reported as long as there
        // is data (level-triggered).
        let flags = match what {
            Interest::Readable => EpollFlags::EPOLLIN,
            Interest::Writable => EpollFlags::EPOLLOUT | EpollFlags::EPOLLET,
        };
        let mut count = 0;
        for (place, socket) in sockets.enumerate() {
            epoll.add(socket, EpollEvent::new(flags, place as u64))?;
            count = place + 1;
        }
        // It never holds a socket twice, so it never grows.
        let mut found = VecDeque::with_capacity(count);
        if what == Interest::Writable {
            found.extend(0..count);
        }
        Ok(Ready { epoll, events: Box::new([EpollEvent::empty(); AT_ONCE]), found })
    }

    /// The next ready socket, waiting at most `limit`; `None` on a timeout.
    pub fn next(&mut self, limit: Duration) -> io::Result<Option<usize>> {
        if self.found.is_empty() {
            let limit = EpollTimeout::try_from(limit).unwrap_or(EpollTimeout::MAX);
            let count = match self.epoll.wait(&mut self.events[..], limit) {
                Err(nix::errno::Errno::EINTR) => 0,
                count => count?,
            };
            self.found.extend(self.events[..count].iter().map(|event| event.data() as usize));
        }
        Ok(self.found.pop_front())
    }

    /// Returns a socket again, after the others.
    pub fn again(&mut self, place: usize) {
        self.found.push_back(place);
    }

    /// Stops watching a socket.
    pub fn forget(&mut self, socket: &Socket) -> io::Result<()> {
        Ok(self.epoll.delete(socket)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn sockets_are_found_by_what_they_are_ready_for() {
        let sockets: Vec<UdpSocket> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let to = sockets[2].local_addr().unwrap();
        sockets[0].send_to(&[1], to).unwrap();
        let sockets: Vec<Socket> = sockets.into_iter().map(Socket::from).collect();
        let mut reading = Ready::watch(sockets.iter(), Interest::Readable).unwrap();
        assert_eq!(reading.next(Duration::from_secs(5)).unwrap(), Some(2));
        reading.forget(&sockets[2]).unwrap();
        assert_eq!(reading.next(Duration::from_millis(1)).unwrap(), None);
        let mut writing = Ready::watch(sockets.iter(), Interest::Writable).unwrap();
        assert_eq!(writing.next(Duration::ZERO).unwrap(), Some(0));
        writing.again(0);
        assert_eq!(
            (1..4).map(|_| writing.next(Duration::ZERO).unwrap()).collect::<Vec<_>>(),
            [Some(1), Some(2), Some(0)]
        );
    }
}
