//! MSG_ZEROCOPY: which send buffers the kernel still uses.

use crate::sys;
use socket2::Socket;
use std::io;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// Tracks completions: the kernel numbers a socket's sends from 0 and reports which are complete.
pub(crate) struct Zerocopy {
    sent: u64,
    /// Completed sends, and how many of them were copied anyway.
    done: u64,
    copied: u64,
    /// For each buffer, how many sends must be complete before it may be written to.
    needed: Vec<u64>,
}

impl Zerocopy {
    pub(crate) fn new(rooms: usize) -> Self {
        Zerocopy { sent: 0, done: 0, copied: 0, needed: vec![0; rooms] }
    }

    pub(crate) fn sent(&mut self, room: usize, sends: usize) {
        self.sent += sends as u64;
        self.needed[room] = self.sent;
    }

    /// Waits until a buffer may be written to. TCP completes sends in order.
    pub(crate) fn await_room(&mut self, socket: &Socket, room: usize) -> io::Result<()> {
        if self.done >= self.needed[room] {
            return Ok(());
        }
        let until = sys::now_ns() + LIMIT.as_nanos() as sys::Nanos;
        if self.await_done(socket, self.needed[room], until)? {
            return Ok(());
        }
        let text = format!("no zerocopy completion after {} s", LIMIT.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    }

    /// Waits for all completions, but not longer than until this time: what a slow path has not taken by then is
    /// discarded with the socket. Returns the number of sends, and how many were copied anyway.
    pub(crate) fn finish(mut self, socket: &Socket, until: sys::Nanos) -> io::Result<(u64, u64)> {
        self.await_done(socket, self.sent, until)?;
        Ok((self.sent, self.copied))
    }

    fn await_done(&mut self, socket: &Socket, count: u64, until: sys::Nanos) -> io::Result<bool> {
        while self.done < count {
            match sys::zerocopy_completion(socket)? {
                Some(done) => {
                    self.done += done.sends;
                    self.copied += if done.copied { done.sends } else { 0 };
                }
                None if sys::now_ns() > until => return Ok(false),
                None => sys::wait_error_queue(socket, Duration::from_millis(20))?,
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::receiver::Receiver;
    use crate::engine::sender;
    use crate::fixtures;
    use stacklab_model::{Family, HostReport, Io, Length, Pacing, SizeOf, Transport, TrialSpec};

    /// Both hosts' reports of 2000 messages that fill segments, asked to leave from the program's memory.
    fn flood(family: Family, flows: u32) -> [HostReport; 2] {
        let mut spec = fixtures::spec(family, Transport::Tcp);
        (spec.probe.pacing, spec.probe.length) = (Pacing::Flood, Length::Packets(2_000));
        spec.probe.warmup_ns = 2_000_000;
        let (message_bytes, size_of, io) = (30_000, SizeOf::Write, Io::Zerocopy);
        let spec = TrialSpec { message_bytes, size_of, io, flows, ..spec };
        let receiver = Receiver::listen(spec.clone(), family.loopback()).unwrap();
        let sender = sender::run(&spec, family.loopback(), receiver.address).unwrap();
        [sender, receiver.collect().unwrap()]
    }

    #[test]
    fn what_leaves_from_the_programs_memory_arrives_as_it_was() {
        for family in Family::ALL.iter().copied() {
            let [sender, receiver] = flood(family, 1);
            let received = receiver.received;
            assert_eq!((received.measured, received.reordered, received.strays), (2_000, 0, 0));
            assert!(sender.counters.get("socket.zerocopy") > 2_000, "the warm-up is sent so too");
        }
    }

    #[test]
    fn flows_that_share_a_thread_do_not_leave_from_the_programs_memory() {
        let [sender, receiver] = flood(Family::Ipv4, sys::allowed_processors().count() as u32 + 1);
        assert_eq!(sender.io, Some(Io::Sendmmsg), "the report says what was done");
        assert_eq!(sender.counters.get("socket.zerocopy"), 0);
        assert_eq!(receiver.received.measured, sender.sent.measured);
    }
}
