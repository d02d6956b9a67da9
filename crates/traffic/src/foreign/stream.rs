//! One stream of another program, with its socket.

use crate::engine::header::{ForeignFormat, Phase};
use crate::engine::phases::wait_until_empty;
use crate::engine::receive_loop::receive;
use crate::engine::rx::RxBatch;
use crate::engine::send_loop::{SendPhase, Stamp, send};
use crate::engine::socket::{CONNECT_LIMIT, Channel};
use crate::engine::stamp_clock::StampClock;
use crate::engine::tx::TxBatch;
use crate::engine::{endpoint, socket_options};
use crate::error::{Attempt, EngineError};
use crate::foreign::counts::{ReceivedCounts, SentCounts, SentTally, Tally};
use crate::host::zone;
use crate::sys::{self, Nanos};
use socket2::Socket;
use stacklab_model::{Endpoint, Length, ScopedAddr, Transport, TrialSpec, Tuning};
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A stream in another program's format. Its trial is of one flow: pacing and length are the stream's own.
pub struct Stream {
    pub(super) channel: Channel,
    spec: TrialSpec,
}

/// How long what was sent may take to leave.
const DRAIN_LIMIT: Duration = Duration::from_secs(20);

impl Stream {
    /// Connects to a peer, from an own address.
    pub fn connect(
        spec: &TrialSpec,
        format: ForeignFormat,
        from: &ScopedAddr,
        to: SocketAddr,
    ) -> Result<Self, EngineError> {
        let (from, to) = zone::ends(from, to).attempt(|| format!("connect {from} to {to}"))?;
        let mut channel = Channel::connect(spec, from, to, CONNECT_LIMIT)?;
        channel.foreign = Some(format);
        Ok(Stream { channel, spec: spec.clone() })
    }

    /// Takes a connected socket that a peer's stream came to, and sets its options but the segment size: the peer has
    /// agreed on it when it connected.
    pub fn accepted(spec: &TrialSpec, format: ForeignFormat, socket: Socket) -> Result<Self, EngineError> {
        let tuning = Tuning { mss: None, flow_label: None, ..spec.tuning.clone() };
        let spec = TrialSpec { tuning, ..spec.clone() };
        socket_options::set(&socket, &spec).attempt(|| "set the options of a stream's socket".to_owned())?;
        let mut channel = Channel::new(&spec, socket)?;
        channel.foreign = Some(format);
        Ok(Stream { channel, spec })
    }

    /// The socket.
    pub fn socket(&self) -> &Socket {
        &self.channel.socket
    }

    /// The socket as the kernel reports it.
    pub fn endpoint(&self) -> Result<Endpoint, EngineError> {
        endpoint::observe(&self.channel.socket, None)
    }

    /// Segments that the kernel sent again; `None` for datagrams, or where the system does not count them.
    pub fn retransmits(&self) -> Option<u64> {
        match self.spec.transport {
            Transport::Tcp => sys::tcp_info(&self.channel.socket).ok()?.total_retrans,
            Transport::Udp => None,
        }
    }

    /// Waits until all that was sent has left the socket; for TCP, until it was acknowledged.
    pub fn drain(&self) -> io::Result<()> {
        let until = sys::now_ns() + DRAIN_LIMIT.as_nanos() as Nanos;
        if wait_until_empty(&self.channel, until)? {
            return Ok(());
        }
        let text = format!("the send queue did not empty within {} s", DRAIN_LIMIT.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    }

    /// Tells the peer of a connection that nothing more is sent.
    pub fn end(&self) {
        // One that is gone already needs no telling.
        let _ = self.channel.socket.shutdown(Shutdown::Write);
    }

    /// Ends both directions of a connection, so that nobody waits for it.
    pub fn shut(&self) {
        if self.spec.transport == Transport::Udp {
            // Nobody waits for long, and receives of a socket that is shut give nothing without end.
            return;
        }
        let _ = self.channel.socket.shutdown(Shutdown::Both);
    }

    /// Sends until the length is reached or `stop` is set; `progress` has the measured bytes so far.
    pub fn send(&self, omit_ns: Nanos, stop: &AtomicBool, progress: &AtomicU64) -> SentCounts {
        let mut tally = SentTally::new(u64::from(self.spec.message_bytes), progress);
        let ended = self.send_phases(omit_ns, stop, &mut tally);
        tally.counts.last_ns = sys::now_ns();
        if let Err(error) = ended
            && !stop.load(Ordering::Relaxed)
        {
            tally.counts.failed = Some(error.to_string());
        }
        tally.counts
    }

    fn send_phases(&self, omit_ns: Nanos, stop: &AtomicBool, tally: &mut SentTally<'_>) -> io::Result<()> {
        let mut tx = TxBatch::new(std::slice::from_ref(&self.channel), 0)?;
        let phase = |phase, length, sent_before| SendPhase {
            token: self.spec.token,
            phase,
            pacing: self.spec.probe.pacing,
            length,
            stamp: Stamp::Actual,
            slice: 0,
            offset_ns: 0,
            limit_ns: u64::MAX,
            sent_before,
            stop: Some(stop),
        };
        if omit_ns > 0 {
            let omitted = phase(Phase::Warmup, Length::Time(omit_ns), 0);
            send(&omitted, &mut tx, |sequence| {
                tally.sent(sequence, false);
                Ok(())
            })?;
        }
        tally.begin();
        let measured = phase(Phase::Measured, self.spec.probe.length, tally.counts.omitted);
        let report = send(&measured, &mut tx, |sequence| {
            tally.sent(sequence, true);
            Ok(())
        })?;
        tally.counts.refused = report.refused;
        Ok(())
    }

    /// Receives until the peer closes, or `stop` is set and nothing more comes; `progress` has the measured bytes so
    /// far. Arrivals before `omit_until_ns` do not count.
    pub fn receive(&self, omit_until_ns: Nanos, stop: &AtomicBool, progress: &AtomicU64) -> ReceivedCounts {
        let size = self.spec.message_bytes as usize;
        let datagram = (self.spec.transport == Transport::Udp).then_some(size);
        let mut tally = Tally::new(datagram, omit_until_ns, stop, progress);
        let ended = RxBatch::new(std::slice::from_ref(&self.channel), StampClock::new())
            .and_then(|mut rx| receive(&mut rx, size, self.spec.token, &mut tally));
        if let Err(error) = ended
            && !stop.load(Ordering::Relaxed)
        {
            tally.counts.failed = Some(error.to_string());
        }
        tally.finish()
    }
}
