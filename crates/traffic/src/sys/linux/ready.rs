//! Which of many sockets can be read or written now.

use crate::sys::types::Interest;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use socket2::Socket;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// Sockets looked at in one call.
const AT_ONCE: usize = 256;

/// A set of sockets, by their place in somebody's list. One that was found ready is offered once.
pub struct Ready {
    epoll: Epoll,
    events: Box<[EpollEvent; AT_ONCE]>,
    /// Found ready and not yet offered.
    found: VecDeque<usize>,
}

impl Ready {
    /// Watches sockets. Those to be written are ready at first.
    pub fn watch<'a>(sockets: impl Iterator<Item = &'a Socket>, what: Interest) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        // A socket without room is told of once, when there is room; one with something to read as long as there is.
        let flags = match what {
            Interest::Readable => EpollFlags::EPOLLIN,
            Interest::Writable => EpollFlags::EPOLLOUT | EpollFlags::EPOLLET,
        };
        let mut count = 0;
        for (place, socket) in sockets.enumerate() {
            epoll.add(socket, EpollEvent::new(flags, place as u64))?;
            count = place + 1;
        }
        // It never holds a socket twice, and so never grows.
        let mut found = VecDeque::with_capacity(count);
        if what == Interest::Writable {
            found.extend(0..count);
        }
        Ok(Ready { epoll, events: Box::new([EpollEvent::empty(); AT_ONCE]), found })
    }

    /// The next socket that is ready, waiting for one so long; `None` where none was.
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

    /// Offers a socket again, after the others.
    pub fn again(&mut self, place: usize) {
        self.found.push_back(place);
    }

    /// Watches a socket no more.
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
