//! Contiguous message buffers, sent and received one message per call.

use crate::sys::types::RecvMeta;
#[cfg(unix)]
use crate::sys::unix as os;
#[cfg(windows)]
use crate::sys::windows as os;
use socket2::Socket;
use std::ffi::c_int;
use std::io;

pub(crate) struct Batch {
    room: Box<[u8]>,
    each: usize,
    lengths: Box<[usize]>,
}

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
    /// of the last one. With [`os::DONTWAIT`] among the flags, sends only what fits.
    pub(crate) fn send(
        &mut self,
        socket: &Socket,
        from: usize,
        to: usize,
        flags: c_int,
    ) -> io::Result<(usize, usize)> {
        for place in from..to {
            let message = self.slots(place, place + 1);
            let sent = if flags & os::DONTWAIT == 0 {
                os::send(socket, message, flags)
            } else {
                os::send_now(socket, message, flags & !os::DONTWAIT)
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
        let received = if wait { os::receive(socket, room) } else { os::receive_now(socket, room) };
        self.lengths[0] = received?;
        Ok(1)
    }

    pub(crate) fn length(&self, place: usize) -> usize {
        self.lengths[place]
    }

    pub(crate) fn recv_meta(&self, _place: usize) -> RecvMeta {
        RecvMeta::default()
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
        os::set_timeouts(&sender).unwrap();
        os::set_timeouts(&receiver).unwrap();
        (sender, receiver)
    }

    #[test]
    fn messages_go_and_come_one_by_one() {
        let (sender, receiver) = pair();
        let mut out = Batch::new(4, 100);
        for place in 0..4 {
            out.slot(place).fill(place as u8);
        }
        assert_eq!(out.send(&sender, 1, 4, os::SEND_PLAIN).unwrap(), (3, 100));
        assert_eq!(out.send(&sender, 0, 1, os::SEND_PLAIN | os::DONTWAIT).unwrap(), (1, 100));
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
}
