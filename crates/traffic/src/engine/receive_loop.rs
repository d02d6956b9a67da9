//! The receive loop.

use crate::engine::header::{Header, Phase};
use crate::engine::rx::{RxBatch, RxStatus};
use crate::sys::{self, Nanos};
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;

/// Handles arrivals, whose headers are `H`. Each call may stop the loop.
pub(crate) trait Sink<H = Header> {
    /// Handles a message of the trial and its arrival time.
    fn take(&mut self, header: H, message: &mut [u8], arrived: Nanos) -> io::Result<ControlFlow<()>>;
    /// Handles the address from which that message came, if it wants to read it.
    fn note_source(&mut self, _read: impl FnOnce() -> Option<SocketAddr>) {}
    /// Handles the beginning of a stream's message that has not arrived whole; after further receives, a longer one.
    fn partial(&mut self, _message: &[u8], _arrived: Nanos) {}
    /// Handles the number of bytes that have arrived behind a lost segment since the last call, which the kernel holds
    /// back.
    fn held_back(&mut self, _bytes: u64, _now: Nanos) {}
    /// Whether the sink waits no longer for what still arrives.
    fn is_over(&mut self) -> bool {
        false
    }
    /// Handles anything that is not a message of the trial.
    fn stray(&mut self) -> ControlFlow<()>;
    /// Called when nothing has arrived for [`sys::RECEIVE_TICK`].
    fn idle(&mut self, now: Nanos) -> ControlFlow<()>;
}

/// Receives messages of `size` bytes with this token until the sink stops it or the peer closes. The next call
/// processes remaining data first.
pub(crate) fn receive(rx: &mut RxBatch<'_>, size: usize, token: u32, sink: &mut impl Sink) -> io::Result<()> {
    let foreign = rx.foreign();
    receive_headers(
        rx,
        |message| match foreign {
            None => header_of(message, size, token),
            Some(format) => format.read(message, token),
        },
        sink,
    )
}

/// Receives messages whose header `read` reads, until the sink stops it or the peer closes.
pub(crate) fn receive_headers<H>(
    rx: &mut RxBatch<'_>,
    read: impl Fn(&[u8]) -> Option<H>,
    sink: &mut impl Sink<H>,
) -> io::Result<()> {
    let is_stream = rx.is_stream();
    loop {
        while let Some((message, arrived)) = rx.next() {
            let header = read(message);
            if is_stream && header.is_none() {
                // Each message behind it would be cut wrongly too.
                let text = "the TCP stream has lost bytes: there is no header where a message begins";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            let has_header = header.is_some();
            let next = deliver(header, message, arrived, sink)?;
            if has_header {
                sink.note_source(|| rx.source());
            }
            if next.is_break() {
                return Ok(());
            }
        }
        if let Some((message, arrived)) = rx.tail() {
            sink.partial(message, arrived);
        }
        match rx.fill()? {
            RxStatus::Data if sink.is_over() => return Ok(()),
            RxStatus::Data => {}
            RxStatus::Timeout => {
                let now = sys::now_ns();
                if let bytes @ 1.. = rx.newly_held_back() {
                    sink.held_back(bytes, now);
                }
                if sink.idle(now).is_break() {
                    return Ok(());
                }
            }
            RxStatus::Closed => return Ok(()),
        }
    }
}

/// The header of a message of `size` bytes with this token, or of an opening message; `None` for a stray.
#[inline]
pub(crate) fn header_of(message: &[u8], size: usize, token: u32) -> Option<Header> {
    Header::read_front(message, size, token)
        .filter(|header| message.len() == size || header.phase == Phase::Open)
}

/// Gives the sink what has arrived: a message with its header, or a stray.
#[inline]
pub(crate) fn deliver<H>(
    header: Option<H>,
    message: &mut [u8],
    arrived: Nanos,
    sink: &mut impl Sink<H>,
) -> io::Result<ControlFlow<()>> {
    match header {
        Some(header) => sink.take(header, message, arrived),
        None => Ok(sink.stray()),
    }
}

pub(crate) fn stop_if(stop: bool) -> ControlFlow<()> {
    if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
