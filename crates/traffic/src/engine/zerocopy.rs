//! Completions of sends with MSG_ZEROCOPY.

use crate::sys::{self, Nanos, Socket};
use std::io;
use std::time::Duration;

/// How long a completion is waited for, and how often it is looked whether there is time for that.
const LIMIT: Duration = Duration::from_secs(20);
const COMPLETION_POLL_INTERVAL: Duration = Duration::from_millis(20);

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

    pub(crate) fn note_sends(&mut self, room: usize, sends: usize) {
        self.sent += sends as u64;
        self.needed[room] = self.sent;
    }

    /// Waits until a buffer may be written to. TCP completes sends in order.
    pub(crate) fn await_room(&mut self, socket: &Socket, room: usize) -> io::Result<()> {
        if self.done >= self.needed[room] {
            return Ok(());
        }
        let until = sys::now_ns() + LIMIT.as_nanos() as Nanos;
        if self.await_done(socket, self.needed[room], until)? {
            return Ok(());
        }
        let text = format!("no zerocopy completion after {} s", LIMIT.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    }

    /// Waits for completions until this time; a slow path discards the rest with the socket. Returns sends and copies.
    pub(crate) fn finish(mut self, socket: &Socket, until: Nanos) -> io::Result<(u64, u64)> {
        self.await_done(socket, self.sent, until)?;
        Ok((self.sent, self.copied))
    }

    fn await_done(&mut self, socket: &Socket, count: u64, until: Nanos) -> io::Result<bool> {
        while self.done < count {
            match sys::zerocopy_completion(socket, COMPLETION_POLL_INTERVAL)? {
                Some(done) => {
                    self.done += done.sends;
                    self.copied += if done.copied { done.sends } else { 0 };
                }
                None if sys::now_ns() > until => return Ok(false),
                None => {}
            }
        }
        Ok(true)
    }
}
