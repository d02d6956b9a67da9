//! What one stream sent or received.

use crate::engine::header::Header;
use crate::engine::receive_loop::{Sink, stop_if};
use crate::stats::flow::{Arrival, SequenceWindow};
use crate::sys::{self, Nanos};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How long a receiver takes what is still under way after the end.
const LATE_NS: Nanos = 1_000_000_000;
/// Weight of a new difference in the jitter (RFC 3550, section 6.4.1).
const JITTER_SHARE: f64 = 1.0 / 16.0;

/// What one stream sent.
#[derive(Debug, Default)]
pub struct SentCounts {
    /// Messages before the measured part.
    pub omitted: u64,
    /// Messages of the measured part.
    pub measured: u64,
    /// The first measured send.
    pub first_ns: Nanos,
    /// After the last send.
    pub last_ns: Nanos,
    /// The longest time between two sends of the measured part, or from the last one to the end, nanoseconds.
    pub longest_pause_ns: Nanos,
    /// Calls repeated after ENOBUFS.
    pub refused: u64,
    /// Why it ended early.
    pub failed: Option<String>,
}

/// What one stream received.
#[derive(Debug, Default)]
pub struct ReceivedCounts {
    /// Bytes of payload before the measured part.
    pub omitted_bytes: u64,
    /// Bytes of payload of the measured part, without duplicates.
    pub bytes: u64,
    /// Datagrams of the measured part, without duplicates.
    pub messages: u64,
    /// One more than the highest sequence number.
    pub next: u64,
    /// The same at the end of the omitted part.
    pub omitted_next: u64,
    /// Datagrams lost: sequence numbers below the highest that did not arrive, with those of the omitted part.
    pub lost: u64,
    /// Those lost in the omitted part.
    pub omitted_lost: u64,
    /// Datagrams behind a later one (RFC 4737).
    pub reordered: u64,
    /// Further copies.
    pub duplicates: u64,
    /// Bytes that are not a message of the stream.
    pub strays: u64,
    /// Jitter (RFC 3550), nanoseconds.
    pub jitter_ns: f64,
    /// The first measured arrival.
    pub first_ns: Nanos,
    /// The last arrival.
    pub last_ns: Nanos,
    /// The longest time between two arrivals of the measured part, nanoseconds.
    pub longest_pause_ns: Nanos,
    /// Why it ended early.
    pub failed: Option<String>,
}

/// Which way a stream goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From this host.
    Send,
    /// To this host.
    Receive,
}

/// What a stream counted.
#[derive(Debug)]
pub enum Counted {
    /// As a sender.
    Sent(SentCounts),
    /// As a receiver.
    Received(ReceivedCounts),
}

pub(super) struct Tally<'a> {
    pub counts: ReceivedCounts,
    window: SequenceWindow,
    arrived: u64,
    transit_ns: Option<i64>,
    /// When the measured part begins.
    begin_ns: &'a AtomicU64,
    is_omitting: bool,
    /// Bytes of a datagram; `None` for a stream of bytes.
    size: Option<usize>,
    stop: &'a AtomicBool,
    stopped_ns: Option<Nanos>,
    progress: &'a AtomicU64,
}

impl<'a> Tally<'a> {
    pub(super) fn new(
        size: Option<usize>,
        begin_ns: &'a AtomicU64,
        stop: &'a AtomicBool,
        progress: &'a AtomicU64,
    ) -> Self {
        Tally {
            counts: ReceivedCounts::default(),
            // Streams share no window, and there may be hundreds of them.
            window: SequenceWindow::new(16),
            arrived: 0,
            transit_ns: None,
            begin_ns,
            is_omitting: true,
            size,
            stop,
            stopped_ns: None,
            progress,
        }
    }

    pub(super) fn finish(mut self) -> ReceivedCounts {
        self.counts.lost = self.counts.next.saturating_sub(self.arrived);
        self.counts
    }

    /// A peer that still sends does not keep a receiver alive.
    fn go_on(&mut self, now: Nanos) -> ControlFlow<()> {
        let stopped = self.stop.load(Ordering::Relaxed);
        stop_if(stopped && now.saturating_sub(*self.stopped_ns.get_or_insert(now)) > LATE_NS)
    }

    /// Whether a datagram counts: no copy of an earlier one.
    fn is_new(&mut self, header: Header, now: Nanos) -> bool {
        let counts = &mut self.counts;
        match self.window.arrive(header.sequence) {
            Arrival::First => counts.next = header.sequence + 1,
            Arrival::Reordered => counts.reordered += 1,
            Arrival::Duplicate => {
                counts.duplicates += 1;
                return false;
            }
            Arrival::BeyondWindow => {
                counts.strays += 1;
                return false;
            }
        }
        self.arrived += 1;
        let transit_ns = (now as i64).wrapping_sub(header.sent_ns as i64);
        if let Some(before) = self.transit_ns.replace(transit_ns) {
            let difference = transit_ns.wrapping_sub(before).unsigned_abs() as f64;
            counts.jitter_ns += (difference - counts.jitter_ns) * JITTER_SHARE;
        }
        true
    }
}

impl Sink for Tally<'_> {
    fn take(&mut self, header: Header, message: &mut [u8], now: Nanos) -> io::Result<ControlFlow<()>> {
        if self.is_omitting && now >= self.begin_ns.load(Ordering::Relaxed) {
            self.is_omitting = false;
            self.counts.omitted_next = self.counts.next;
            self.counts.omitted_lost = self.counts.next.saturating_sub(self.arrived);
        }
        if let Some(size) = self.size {
            if message.len() != size {
                return Ok(self.stray());
            }
            if !self.is_new(header, now) {
                return Ok(self.go_on(now));
            }
        }
        let bytes = message.len() as u64;
        if self.is_omitting {
            self.counts.omitted_bytes += bytes;
        } else {
            if self.counts.first_ns == 0 {
                self.counts.first_ns = now;
            } else {
                let pause_ns = now.saturating_sub(self.counts.last_ns);
                self.counts.longest_pause_ns = self.counts.longest_pause_ns.max(pause_ns);
            }
            self.counts.bytes += bytes;
            self.counts.messages += 1;
            self.progress.store(self.counts.bytes, Ordering::Relaxed);
        }
        self.counts.last_ns = now;
        Ok(self.go_on(now))
    }

    fn stray(&mut self) -> ControlFlow<()> {
        self.counts.strays += 1;
        self.go_on(sys::now_ns())
    }

    fn idle(&mut self, _now: Nanos) -> ControlFlow<()> {
        // Nothing is under way any more.
        stop_if(self.stop.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::header::ForeignFormat;

    fn tally_of(numbers: &[u64], begin_ns: Nanos) -> ReceivedCounts {
        let stop = AtomicBool::new(false);
        let progress = AtomicU64::new(0);
        let begin_ns = AtomicU64::new(begin_ns);
        let mut tally = Tally::new(Some(100), &begin_ns, &stop, &progress);
        let header = ForeignFormat::Bytes.read(&[], 0).unwrap();
        for (place, sequence) in numbers.iter().enumerate() {
            let header = Header { sequence: *sequence, sent_ns: 10 * place as u64, ..header };
            assert!(tally.take(header, &mut [0; 100], 1000 + 10 * place as u64).unwrap().is_continue());
        }
        let counts = tally.finish();
        assert_eq!(progress.into_inner(), counts.bytes);
        counts
    }

    #[test]
    fn losses_copies_and_reordering_are_told_apart() {
        let counts = tally_of(&[0, 1, 3, 2, 2, 5], 0);
        assert_eq!((counts.messages, counts.bytes, counts.next), (5, 500, 6));
        assert_eq!((counts.lost, counts.reordered, counts.duplicates), (1, 1, 1));
        assert_eq!(counts.jitter_ns, 0.0, "each was as long under way as the one before");
    }

    #[test]
    fn what_is_omitted_is_counted_apart() {
        let counts = tally_of(&[0, 2, 3, 4, 6], 1025);
        assert_eq!((counts.omitted_bytes, counts.omitted_next, counts.omitted_lost), (300, 4, 1));
        assert_eq!((counts.bytes, counts.messages, counts.next, counts.lost), (200, 2, 7, 2));
    }

    #[test]
    fn the_longest_pause_is_between_two_measured_arrivals() {
        let stop = AtomicBool::new(false);
        let progress = AtomicU64::new(0);
        let begin_ns = AtomicU64::new(1000);
        let mut tally = Tally::new(None, &begin_ns, &stop, &progress);
        let header = ForeignFormat::Bytes.read(&[], 0).unwrap();
        for arrived_ns in [10, 1500, 1600, 2300, 2400] {
            let _ = tally.take(header, &mut [0; 100], arrived_ns).unwrap();
        }
        assert_eq!(tally.finish().longest_pause_ns, 700);
    }

    #[test]
    fn a_datagram_of_another_size_is_a_stray() {
        let stop = AtomicBool::new(false);
        let progress = AtomicU64::new(0);
        let begin_ns = AtomicU64::new(0);
        let mut tally = Tally::new(Some(100), &begin_ns, &stop, &progress);
        let header = ForeignFormat::Bytes.read(&[], 0).unwrap();
        let _ = tally.take(header, &mut [0; 101], 5).unwrap();
        let counts = tally.finish();
        assert_eq!((counts.strays, counts.bytes, counts.lost), (1, 0, 0));
    }

    #[test]
    fn whoever_goes_on_sending_keeps_no_receiver() {
        let stop = AtomicBool::new(true);
        let progress = AtomicU64::new(0);
        let begin_ns = AtomicU64::new(0);
        let mut tally = Tally::new(Some(100), &begin_ns, &stop, &progress);
        assert!(tally.stray().is_continue());
        tally.stopped_ns = Some(sys::now_ns() - LATE_NS - 1);
        assert!(tally.stray().is_break());
    }
}
