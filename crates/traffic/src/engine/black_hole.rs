//! Path MTU black holes: connections open, because small packets arrive, and no large one does, because a router drops
//! it and the message that says so is dropped too (RFC 2923, section 2.1).

use crate::engine::socket::Channel;
use crate::error::EngineError;
use crate::sys;
use stacklab_model::{Transport, TrialSpec};
use std::net::{Shutdown, SocketAddr};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use std::{io, thread};

/// How often a sender looks whether anything was acknowledged.
const LOOK: Duration = Duration::from_millis(500);
/// A sender gives up after this many looks in a row at data without an acknowledgement. A kernel that probes for the
/// path MTU (net.ipv4.tcp_mtu_probing) has done so by then.
const MOST_LOOKS: u32 = 8;

/// Sends on the flows of a trial by `send`. Connections on which nothing was ever acknowledged are ended.
pub(crate) fn guarded<T>(
    spec: &TrialSpec,
    channels: &[Channel],
    to: SocketAddr,
    send: impl FnOnce() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    if spec.transport != Transport::Tcp {
        return send();
    }
    let (over, changed) = (Mutex::new(false), Condvar::new());
    let (sent, is_hole) = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut looks = 0;
            while looks < MOST_LOOKS {
                let ended = over.lock().unwrap_or_else(PoisonError::into_inner);
                let (ended, _) = changed
                    .wait_timeout_while(ended, LOOK, |over| !*over)
                    .unwrap_or_else(PoisonError::into_inner);
                if *ended {
                    return false;
                }
                let all_wait = channels.iter().all(|channel| sys::is_unacknowledged(&channel.socket));
                looks = if all_wait { looks + 1 } else { 0 };
            }
            for channel in channels {
                let _ = channel.socket.shutdown(Shutdown::Both);
            }
            true
        });
        let sent = send();
        *over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        (sent, watcher.join().unwrap_or(false))
    });
    if !is_hole {
        return sent.map_err(given_up);
    }
    let text = format!(
        "nothing was acknowledged for {} s, though the connection opened: large packets do not arrive; a path MTU black hole? Smaller segments (-M 1220) may pass",
        (MOST_LOOKS * LOOK).as_secs()
    );
    Err(EngineError {
        attempted: format!("send over {} to {to}", spec.transport),
        source: io::Error::new(io::ErrorKind::TimedOut, text),
    })
}

/// Explains the error of a connection that the kernel has ended after too many retransmissions of one segment.
fn given_up(error: EngineError) -> EngineError {
    let EngineError { attempted, source } = error;
    let by_kernel = source.kind() == io::ErrorKind::TimedOut && source.raw_os_error().is_some();
    let text = "the kernel ended a connection because retransmissions of a segment failed too often: the path or \
                this host's queue drops too much; use fewer flows (-P), or measure UDP";
    let source = if by_kernel { io::Error::new(io::ErrorKind::TimedOut, text) } else { source };
    EngineError { attempted, source }
}
