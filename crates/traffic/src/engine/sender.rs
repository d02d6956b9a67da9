//! The sending host of a trial: prepares, warms up, measures, ends, reports.

use crate::engine::allowance::Allowance;
use crate::engine::flow_sender::{FlowSender, HostBefore};
use crate::engine::flows::{self, connect_all};
use crate::engine::opening::WaitingSender;
use crate::engine::own_socket;
use crate::engine::socket::MessageSocket;
use crate::engine::turns::Turn;
use crate::engine::{connect, threads};
use crate::host::{SocketMemory, zone};
use crate::protocol::message::SendArm;
use crate::sys;
use crate::{Attempt, EngineError};
use stacklab_model::{HostReport, Probe, Transport, TrialSpec, count};
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How a sender runs, but for its trial and its addresses.
#[derive(Default)]
pub(crate) struct Run<'a> {
    /// The flows that the receiver has opened, if it does.
    pub waiting: Option<WaitingSender>,
    /// The turns of an arm of an interleaved trial, which sends in them only. Only streams and echoes can.
    pub turn: Option<Turn<'a>>,
    /// Ends the trial early: what was sent until then is the whole trial.
    pub stop: Option<&'a AtomicBool>,
    /// What all senders of the agent together may send, if that has a limit.
    pub allowance: Option<&'a Allowance>,
}

#[cfg(test)]
pub(crate) fn run(
    spec: &TrialSpec,
    from: impl Into<stacklab_model::ScopedAddr>,
    to: SocketAddr,
) -> Result<HostReport, EngineError> {
    run_arm(SendArm { spec: Box::new(spec.clone()), from: from.into(), to, waiting: None }, Run::default())
}

/// Runs the sender of a trial. Link-local addresses are in the zone of the own one.
pub(crate) fn run_arm(arm: SendArm, run: Run<'_>) -> Result<HostReport, EngineError> {
    let Run { waiting, turn, stop, allowance } = run;
    let SendArm { spec, from: given, to, .. } = arm;
    let spec = &*spec;
    sys::precise_timers();
    let (from, to) = match &waiting {
        Some(waiting) => (waiting.address, to),
        None => zone::ends(&given, to).attempt(|| format!("send from {given} to {to}"))?,
    };
    if turn.is_some() && !spec.probe.probe.interleaves() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "only streams and echoes can take turns"))
            .attempt(|| format!("run {} in turns", spec.probe.probe));
    }
    if spec.probe.probe == Probe::Connect {
        return connect::open_connections(spec, from, to, stop);
    }
    // Before the trial's packets; those that opened the flows are not the sender's.
    let opened = waiting.map(|waiting| waiting.flows(to)).transpose()?;
    let before = HostBefore {
        counters: own_socket::count_at_uplinks(spec, &own_socket::interface_of(from)?),
        memory: SocketMemory::watch(spec),
    };
    sys::raise_file_limit(spec.flows.into()).attempt(|| format!("open {}", count(spec.flows, "flow")))?;
    let mut channels = match opened {
        Some(channels) => channels,
        None => {
            if let Some(allowance) = allowance {
                flows::await_opening(spec, allowance, stop);
            }
            connect_all(spec, from, to)?
        }
    };
    // In turns, one thread sends all.
    let all = 0..channels.len();
    let groups = if turn.is_some() { vec![all] } else { threads::groups(channels.len()) };
    if groups.iter().any(|group| group.len() > 1) {
        channels.iter_mut().for_each(MessageSocket::without_zerocopy);
    }
    let channels = channels;
    let flows = FlowSender { spec, from, to, channels: &channels, groups: &groups, stop, allowance };
    guard_against_black_hole(spec, &channels, to, || flows.run(before, turn))
}

/// How often a sender looks whether anything was acknowledged.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// A sender gives up after this many looks in a row; a kernel that probes for the path MTU has done so by then.
const MAX_LOOKS: u32 = 8;

/// Sends on the flows of a trial by `send`. Connections on which nothing was ever acknowledged are ended: in a path MTU
/// black hole they open, because small packets arrive, and no large one does (RFC 2923, section 2.1).
fn guard_against_black_hole<T>(
    spec: &TrialSpec,
    channels: &[MessageSocket],
    to: SocketAddr,
    send: impl FnOnce() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    if spec.transport != Transport::Tcp {
        return send();
    }
    let (over, watched) = mpsc::channel::<()>();
    let (sent, is_hole) = thread::scope(|scope| {
        let watcher = scope.spawn(move || {
            let mut looks = 0;
            while looks < MAX_LOOKS {
                if watched.recv_timeout(POLL_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return false;
                }
                let all_wait = channels.iter().all(|channel| sys::lacks_acknowledgement(&channel.socket));
                looks = if all_wait { looks + 1 } else { 0 };
            }
            for channel in channels {
                let _ = channel.socket.shutdown(Shutdown::Both);
            }
            true
        });
        let sent = send();
        drop(over);
        (sent, watcher.join().unwrap_or(false))
    });
    if !is_hole {
        return sent.map_err(given_up);
    }
    let text = format!(
        "nothing was acknowledged for {} s, though the connection opened: large packets do not arrive; a path MTU black hole? Smaller segments (-M 1220) may pass",
        (MAX_LOOKS * POLL_INTERVAL).as_secs()
    );
    Err(io::Error::new(io::ErrorKind::TimedOut, text))
        .attempt(|| format!("send over {} to {to}", spec.transport))
}

/// Explains the error of a connection that the kernel has ended after too many retransmissions of one segment.
fn given_up(error: EngineError) -> EngineError {
    let EngineError { attempted, mut source } = error;
    if source.kind() == io::ErrorKind::TimedOut && source.raw_os_error().is_some() {
        let text = "the kernel ended a connection because retransmissions of a segment failed too often: the path or \
                    this host's queue drops too much; use fewer flows (-P), or measure UDP";
        source = io::Error::new(io::ErrorKind::TimedOut, text);
    }
    EngineError { attempted, source }
}
