//! MSG_ZEROCOPY: which send buffers the kernel still uses.

use crate::sys;
use socket2::Socket;
use std::io;
use std::time::Duration;

/// How long a completion may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The kernel numbers a socket's sends from 0 and says which are done.
pub struct Zerocopy {
    /// Sends so far.
    sent: u64,
    /// Sends that are done, and those of them that were copied after all.
    done: u64,
    copied: u64,
    /// For each room, how many sends must be done before it may be written to.
    needed: Vec<u64>,
}

impl Zerocopy {
    /// Nothing was sent from any of so many rooms.
    pub fn new(rooms: usize) -> Self {
        Zerocopy { sent: 0, done: 0, copied: 0, needed: vec![0; rooms] }
    }

    /// Notes that so many sends were made from a room.
    pub fn sent(&mut self, room: usize, sends: usize) {
        self.sent += sends as u64;
        self.needed[room] = self.sent;
    }

    /// Waits until a room may be written to. TCP is done with sends in their order.
    pub fn await_room(&mut self, socket: &Socket, room: usize) -> io::Result<()> {
        self.await_done(socket, self.needed[room])
    }

    /// Waits for all sends; gives how many there were, and how many were copied after all.
    pub fn finish(mut self, socket: &Socket) -> io::Result<(u64, u64)> {
        self.await_done(socket, self.sent)?;
        Ok((self.sent, self.copied))
    }

    fn await_done(&mut self, socket: &Socket, count: u64) -> io::Result<()> {
        let start = sys::now_ns();
        while self.done < count {
            match sys::zerocopy_completion(socket)? {
                Some(done) => {
                    self.done += done.sends;
                    self.copied += if done.copied { done.sends } else { 0 };
                }
                None if sys::now_ns() - start > LIMIT.as_nanos() as u64 => {
                    let text = format!("the kernel still holds what was sent {} s ago", LIMIT.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                None => sys::wait_error_queue(socket, Duration::from_millis(20))?,
            }
        }
        Ok(())
    }
}
