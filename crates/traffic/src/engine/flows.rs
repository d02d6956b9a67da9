//! The flows of a trial: connected to the other host, and admitted by it.
//!
//! A TCP flow begins with a bare header, which shows whose it is, and whoever connects waits for an answer on each:
//! nothing is sent before the other end reads all flows. Otherwise the first flows would fill buffers that nobody
//! reads, and a rate would count them as if they had just arrived.

use crate::engine::allowance::{Allowance, Burst};
use crate::engine::header::{Header, Phase};
use crate::engine::own_socket;
use crate::engine::socket::MessageSocket;
use crate::{Attempt, EngineError, sys};
use stacklab_model::{HEADER_BYTES, Transport, TrialSpec};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long all flows together may take to open. A lost SYN costs 1, 3 or 7 seconds.
pub const OPEN_LIMIT: Duration = Duration::from_secs(15);

/// Connects all flows to a listening host, of a receiver or a waiting sender. Returns when it has admitted them.
pub(crate) fn connect_all(
    spec: &TrialSpec,
    from: SocketAddr,
    to: SocketAddr,
) -> Result<Vec<MessageSocket>, EngineError> {
    let end = Instant::now() + OPEN_LIMIT;
    let mut channels = Vec::new();
    for flow in 0..spec.flows {
        let socket = own_socket::open_flow(spec, from, flow)?;
        let limit = end.saturating_duration_since(Instant::now());
        channels.push(MessageSocket::connect_bound(spec, socket, [from, to], limit)?);
    }
    if spec.transport == Transport::Tcp {
        announce(spec, &mut channels, end)
            .attempt(|| format!("open {} TCP flows from {} to {to}", spec.flows, from.ip()))?;
    }
    Ok(channels)
}

/// Waits until connections may be opened, and counts their headers.
pub(crate) fn await_opening(spec: &TrialSpec, allowance: &Allowance, stop: Option<&AtomicBool>) {
    if spec.transport == Transport::Tcp {
        allowance.wait(Burst::Allowed, sys::now_ns() + OPEN_LIMIT.as_nanos() as sys::Nanos, stop);
        allowance.spend(u64::from(spec.flows) * u64::from(HEADER_BYTES));
    }
}

/// Says on each flow whose it is, and waits until the receiver has admitted all.
fn announce(spec: &TrialSpec, channels: &mut [MessageSocket], end: Instant) -> io::Result<()> {
    for (flow, channel) in channels.iter().enumerate() {
        // A new connection has room for it.
        sys::send(&channel.socket, &bare_header(spec.token, flow as u16, Phase::Warmup), sys::SEND_PLAIN)?;
    }
    for channel in channels {
        loop {
            match sys::receive(&channel.socket, &mut [0]) {
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the receiver closed one"));
                }
                Ok(_) => break,
                Err(error) if is_nothing(&error) && Instant::now() < end => {}
                Err(error) if is_nothing(&error) => {
                    let text = format!(
                        "the receiver did not admit all of them within {} s; the path loses packets: try again, or with fewer flows",
                        OPEN_LIMIT.as_secs()
                    );
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                Err(error) => return Err(error),
            }
        }
        channel.begin_trial();
    }
    Ok(())
}

/// A header without a message behind it, which shows whose a flow is.
pub(crate) fn bare_header(token: u32, flow: u16, phase: Phase) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    Header { token, phase, flow, sent_ns: sys::now_ns(), ..Header::default() }.write(&mut header);
    header
}

pub(crate) fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Informs the sender that all of its flows are read from now on.
pub(crate) fn admit_all(channels: &[MessageSocket]) -> io::Result<()> {
    channels.iter().try_for_each(|channel| sys::send(&channel.socket, &[1], sys::SEND_PLAIN).map(drop))
}
