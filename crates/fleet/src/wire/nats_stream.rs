//! A byte stream over two subjects of NATS. Each message begins with its number; one without data is the end.

use async_nats::{Client, Subscriber};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::StreamExt;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;
use tokio::runtime::Handle;

/// Bytes of a message: far below a server's limit, which is 1 MiB unless it is set.
const PIECE: usize = 128 << 10;
const NUMBER: usize = 8;
/// Messages that wait to be read. A peer that sends more than it is asked ends its stream.
const MAX_WAITING: usize = 4096;

pub(super) struct Incoming {
    pieces: Receiver<io::Result<Bytes>>,
    rest: Bytes,
    /// The longest silence: before the first message, and after it.
    limits: [Duration; 2],
}

impl Incoming {
    /// Reads what comes to a subscription; fails after a silence before the first message or after it.
    pub(super) fn new(runtime: &Handle, mut subscriber: Subscriber, limits: [Duration; 2]) -> Self {
        let (sender, pieces) = mpsc::sync_channel(MAX_WAITING);
        runtime.spawn(async move {
            let mut number = 0;
            while let Some(message) = subscriber.next().await {
                let piece = piece(&message.payload, number);
                let ends = !matches!(&piece, Ok(data) if !data.is_empty());
                number += 1;
                if sender.try_send(piece).is_err() || ends {
                    break;
                }
            }
        });
        Incoming { pieces, rest: Bytes::new(), limits }
    }
}

/// The data of a message that must have this number.
pub(crate) fn piece(payload: &Bytes, expected: u64) -> io::Result<Bytes> {
    let number =
        payload.get(..NUMBER).map(|bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes")));
    match number {
        Some(number) if number == expected => Ok(payload.slice(NUMBER..)),
        Some(_) => Err(io::Error::new(ErrorKind::InvalidData, "a message was lost on the way")),
        None => Err(io::Error::new(ErrorKind::InvalidData, "a message is not one of a stream")),
    }
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let next = self.pieces.recv_timeout(self.limits[0]);
            self.limits[0] = self.limits[1];
            self.rest = match next {
                Ok(piece) => piece?,
                Err(RecvTimeoutError::Timeout) => return Err(ErrorKind::TimedOut.into()),
                // After its end.
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            };
        }
        let n = self.rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&self.rest.split_to(n));
        Ok(n)
    }
}

/// The writing end. What is written is sent when it is flushed, or fills a message.
pub(super) struct Outgoing {
    runtime: Handle,
    client: Client,
    subject: String,
    number: u64,
    waiting: BytesMut,
}

impl Outgoing {
    pub(super) fn new(runtime: Handle, client: Client, subject: String) -> Self {
        Outgoing { runtime, client, subject, number: 0, waiting: BytesMut::new() }
    }

    fn send(&mut self) -> io::Result<()> {
        let mut message = BytesMut::with_capacity(NUMBER + self.waiting.len());
        message.put_u64(self.number);
        message.extend_from_slice(&self.waiting);
        self.waiting.clear();
        self.number += 1;
        let publish = self.client.publish(self.subject.clone(), message.freeze());
        self.runtime.block_on(publish).map_err(io::Error::other)
    }
}

impl Write for Outgoing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(PIECE - self.waiting.len());
        self.waiting.extend_from_slice(&bytes[..n]);
        if self.waiting.len() == PIECE {
            self.send()?;
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            self.send()?;
        }
        self.runtime.block_on(self.client.flush()).map_err(io::Error::other)
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        // A message without data is the end.
        let _ = self.flush().and_then(|()| self.send()).and_then(|()| self.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_message(number: u64, data: &[u8]) -> Bytes {
        Bytes::from([&number.to_be_bytes(), data].concat())
    }

    #[test]
    fn a_gap_a_repetition_and_a_stranger_end_a_stream() {
        assert_eq!(piece(&make_message(3, b"abc"), 3).unwrap(), "abc");
        assert!(piece(&make_message(0, b""), 0).unwrap().is_empty());
        for (payload, number) in
            [(make_message(4, b"abc"), 3), (make_message(2, b"abc"), 3), (Bytes::from_static(b"x"), 0)]
        {
            assert!(piece(&payload, number).is_err(), "{payload:?}");
        }
    }
}
