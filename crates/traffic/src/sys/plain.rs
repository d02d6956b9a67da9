//! One call per message, and poll for readiness, where there are no batched calls and no epoll.

#[cfg(any(test, windows))]
use crate::sys::{self, RecvMeta};
use crate::sys::{Interest, PollEntry, Socket, poll_sockets};
use std::collections::VecDeque;
#[cfg(any(test, windows))]
use std::ffi::c_int;
use std::io;
#[cfg(windows)]
use std::net::SocketAddr;
use std::time::Duration;

#[cfg(any(test, windows))]
pub(crate) struct Batch {
    room: Box<[u8]>,
    each: usize,
    lengths: Box<[usize]>,
}

#[cfg(any(test, windows))]
impl Batch {
    pub(crate) fn new(count: usize, each: usize) -> Self {
        let room = vec![0; count * each].into_boxed_slice();
        Batch { room, each, lengths: vec![0; count].into_boxed_slice() }
    }

    pub(crate) fn count(&self) -> usize {
        self.lengths.len()
    }

    pub(crate) fn slot(&mut self, place: usize) -> &mut [u8] {
        &mut self.room[place * self.each..][..self.each]
    }

    pub(crate) fn slots(&self, from: usize, to: usize) -> &[u8] {
        &self.room[from * self.each..to * self.each]
    }

    /// Sends the messages `from..to`, one datagram or write each. Returns how many were accepted, and how many bytes
    /// of the last one. With [`sys::DONTWAIT`] among the flags, sends only what fits.
    pub(crate) fn send(
        &mut self,
        socket: &Socket,
        from: usize,
        to: usize,
        flags: c_int,
    ) -> io::Result<(usize, usize)> {
        for place in from..to {
            let message = self.slots(place, place + 1);
            let sent = if flags & sys::DONTWAIT == 0 {
                sys::send(socket, message, flags)
            } else {
                sys::send_now(socket, message, flags & !sys::DONTWAIT)
                    .and_then(|sent| sent.ok_or_else(|| io::ErrorKind::WouldBlock.into()))
            };
            match sent {
                Ok(bytes) if bytes < self.each => return Ok((place - from + 1, bytes)),
                Ok(_) => {}
                // Reports the messages sent before the error; the next call returns the error.
                Err(_) if place > from => return Ok((place - from, self.each)),
                Err(error) => return Err(error),
            }
        }
        Ok((to - from, self.each))
    }

    pub(crate) fn receive(&mut self, socket: &Socket, wait: bool) -> io::Result<usize> {
        let room = &mut self.room[..self.each];
        let received = if wait { sys::receive(socket, room) } else { sys::receive_now(socket, room) };
        self.lengths[0] = received?;
        Ok(1)
    }

    pub(crate) fn length(&self, place: usize) -> usize {
        self.lengths[place]
    }

    /// Several customers and destinations are on Linux only.
    #[cfg(windows)]
    pub(crate) fn keep_addresses(&mut self) {}

    #[cfg(windows)]
    pub(crate) fn set_destination(&mut self, _place: usize, _to: SocketAddr) {}

    #[cfg(windows)]
    pub(crate) fn source(&self, _place: usize) -> Option<SocketAddr> {
        None
    }

    pub(crate) fn recv_meta(&self, _place: usize) -> RecvMeta {
        RecvMeta::default()
    }
}

pub(crate) struct Ready {
    watched: Vec<(PollEntry, usize)>,
    /// The array for poll, allocated in advance so that polling does not allocate.
    entries: Vec<PollEntry>,
    /// All sockets by index; `None` for those no longer watched.
    all: Vec<Option<PollEntry>>,
    found: VecDeque<usize>,
    /// How many are returned before others are looked for, so that none is kept waiting by those returned again.
    left: usize,
}

impl Ready {
    pub(crate) fn watch<'a>(sockets: impl Iterator<Item = &'a Socket>, what: Interest) -> io::Result<Self> {
        let all: Vec<_> = sockets.map(|socket| Some(PollEntry::new(socket, what))).collect();
        let mut ready = Ready {
            watched: Vec::with_capacity(all.len()),
            entries: Vec::with_capacity(all.len()),
            found: VecDeque::with_capacity(all.len()),
            all,
            left: 0,
        };
        match what {
            Interest::Writable => ready.found.extend(0..ready.all.len()),
            Interest::Readable => (0..ready.all.len()).for_each(|place| ready.look_for(place)),
        }
        ready.left = ready.found.len();
        Ok(ready)
    }

    fn look_for(&mut self, place: usize) {
        if let Some(entry) = self.all[place] {
            self.watched.push((entry, place));
        }
    }

    /// `None` on a timeout. The socket is watched again afterwards, unless it is returned with `again`.
    pub(crate) fn next(&mut self, limit: Duration) -> io::Result<Option<usize>> {
        if self.found.is_empty() {
            if self.watched.is_empty() {
                // Nothing can become ready. The caller still checks the time after each wait.
                std::thread::sleep(limit);
                return Ok(None);
            }
            self.look(limit)?;
        } else if self.left == 0 && !self.watched.is_empty() {
            self.look(Duration::ZERO)?;
        }
        self.left = self.left.saturating_sub(1);
        let next = self.found.pop_front();
        if let Some(place) = next {
            self.look_for(place);
        }
        Ok(next)
    }

    fn look(&mut self, limit: Duration) -> io::Result<()> {
        self.entries.clear();
        self.entries.extend(self.watched.iter().map(|(entry, _)| *entry));
        poll_sockets(&mut self.entries, limit)?;
        let mut entries = self.entries.iter();
        let found = &mut self.found;
        let mut new = 0;
        self.watched.retain(|(_, place)| {
            let ready = entries.next().is_some_and(PollEntry::is_ready);
            if ready {
                // Before those that were returned already: they may share what there is room for.
                found.insert(new, *place);
                new += 1;
            }
            !ready
        });
        self.left = self.found.len();
        Ok(())
    }

    pub(crate) fn again(&mut self, place: usize) {
        // It was most likely the last one returned, and so the last one watched.
        match self.watched.last() {
            Some((_, last)) if *last == place => drop(self.watched.pop()),
            _ => self.watched.retain(|(_, watched)| *watched != place),
        }
        self.found.push_back(place);
    }

    pub(crate) fn forget(&mut self, socket: &Socket) -> io::Result<()> {
        let forgotten = |entry: &PollEntry| entry.is_of(socket);
        self.watched.retain(|(entry, _)| !forgotten(entry));
        for entry in &mut self.all {
            if entry.as_ref().is_some_and(forgotten) {
                *entry = None;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn pair() -> (Socket, Socket) {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let (sender, receiver): (Socket, Socket) = (sender.into(), receiver.into());
        sys::set_timeouts(&sender).unwrap();
        sys::set_timeouts(&receiver).unwrap();
        (sender, receiver)
    }

    #[test]
    fn messages_go_and_come_one_by_one() {
        let (sender, receiver) = pair();
        let mut out = Batch::new(4, 100);
        for place in 0..4 {
            out.slot(place).fill(place as u8);
        }
        assert_eq!(out.send(&sender, 1, 4, sys::SEND_PLAIN).unwrap(), (3, 100));
        assert_eq!(out.send(&sender, 0, 1, sys::SEND_PLAIN | sys::DONTWAIT).unwrap(), (1, 100));
        let mut back = Batch::new(8, 150);
        assert_eq!((out.count(), back.count()), (4, 8));
        for expected in [1, 2, 3, 0] {
            assert_eq!(back.receive(&receiver, true).unwrap(), 1);
            assert_eq!(back.length(0), 100);
            assert!(back.slot(0)[..100].iter().all(|byte| *byte == expected));
            assert_eq!(back.recv_meta(0), RecvMeta::default());
        }
        for wait in [true, false] {
            let nothing = back.receive(&receiver, wait).unwrap_err();
            assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn a_message_too_long_for_its_room_fills_it() {
        let (sender, receiver) = pair();
        sender.send(&[1; 64]).unwrap();
        let mut back = Batch::new(1, 33);
        assert_eq!(back.receive(&receiver, true).unwrap(), 1);
        assert_eq!(back.length(0), 33);
    }

    #[test]
    fn sockets_are_found_by_what_they_are_ready_for() {
        let sockets: Vec<UdpSocket> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let to = sockets[2].local_addr().unwrap();
        sockets[0].send_to(&[1], to).unwrap();
        let sockets: Vec<Socket> = sockets.into_iter().map(Socket::from).collect();
        let mut reading = Ready::watch(sockets.iter(), Interest::Readable).unwrap();
        // A socket that is not read is found again.
        for _ in 0..2 {
            assert_eq!(reading.next(Duration::from_secs(5)).unwrap(), Some(2));
        }
        reading.forget(&sockets[2]).unwrap();
        assert_eq!(reading.next(Duration::from_millis(1)).unwrap(), None);
        let mut writing = Ready::watch(sockets.iter(), Interest::Writable).unwrap();
        assert_eq!(writing.next(Duration::ZERO).unwrap(), Some(0));
        writing.again(0);
        assert_eq!(
            (1..4).map(|_| writing.next(Duration::ZERO).unwrap()).collect::<Vec<_>>(),
            // Those that were polled come before one that was returned again.
            [Some(1), Some(2), Some(1)]
        );
        // None was returned with `again`: they are polled, and are writable.
        let mut left: Vec<_> = (0..3).map(|_| writing.next(Duration::from_secs(5)).unwrap()).collect();
        left.sort();
        assert_eq!(left, [Some(0), Some(1), Some(2)]);
    }
}
