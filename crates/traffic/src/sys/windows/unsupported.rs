//! What only Linux has: Windows does without, or returns an `Unsupported` error.

use super::SEND_PLAIN;
use crate::sys::{Nanos, SocketOption, TxTimestamp, ZerocopyCompletion};
use socket2::Socket;
use stacklab_model::Offloads;
use std::ffi::c_int;
use std::io;
use std::time::Duration;

/// No call sends or receives several messages.
pub(crate) const BATCHED_CALLS: bool = false;
/// Windows has none of the flags that Linux has for these.
pub(crate) const SEND_EOR: c_int = SEND_PLAIN;
pub(crate) const SEND_MORE: c_int = SEND_PLAIN;
pub(crate) const SEND_ZEROCOPY: c_int = 0;

fn unsupported(what: &str) -> io::Error {
    refused(&format!("stacklab's agent for Windows has no {what}"))
}

fn refused(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// Sets an option if Windows has it, or says why not.
pub(crate) fn set(socket: &Socket, option: SocketOption<'_>) -> io::Result<()> {
    Err(match option {
        SocketOption::SendBuffer(bytes) => return socket.set_send_buffer_size(bytes),
        SocketOption::ReceiveBuffer(bytes) => return socket.set_recv_buffer_size(bytes),
        SocketOption::WholeMessages(_) => return Ok(()),
        SocketOption::Mss(_) => refused("Windows sets it by the interface's MTU"),
        SocketOption::CongestionControl(_) => {
            refused("Windows sets it for all connections (Set-NetTCPSetting -CongestionProvider)")
        }
        // It would accept the option and ignore it.
        SocketOption::TrafficClass(..) => {
            refused("Windows ignores this socket option: set a policy (New-NetQosPolicy)")
        }
        SocketOption::BusyPoll(_) => unsupported("busy polling"),
        SocketOption::Device(_) => unsupported("sockets of an interface"),
        SocketOption::FlowLabel(..) | SocketOption::ReflectFlowLabel | SocketOption::NoFlowLabel => {
            unsupported("per-connection flow labels")
        }
        SocketOption::Pacing { .. } => unsupported("pacing by the kernel"),
        SocketOption::RxTimestamps => unsupported("kernel receive timestamps"),
        SocketOption::TxTimestamps => unsupported("transmit timestamps"),
        SocketOption::RxTtl(_) => unsupported("the TTL of datagrams"),
        SocketOption::Gso(_) => unsupported("GSO"),
        SocketOption::Gro => unsupported("GRO"),
        SocketOption::Zerocopy => unsupported("zerocopy sends"),
    })
}

/// Processors on which this process may use sockets at the same time.
pub(crate) fn processors_of_sockets() -> usize {
    super::allowed_processors().count()
}

/// Threads keep the priority that they have.
pub(crate) struct RealtimePriority(());

impl RealtimePriority {
    pub(crate) fn take() -> Option<Self> {
        None
    }
}

/// How long a thread waited for a processor: not counted.
pub(crate) struct RunDelay;

impl RunDelay {
    pub(crate) fn of_this_thread() -> Self {
        RunDelay
    }

    pub(crate) fn read(&self) -> Option<Nanos> {
        None
    }
}

/// Without batched calls, nothing follows a partly sent message.
pub(crate) fn skips_bytes() -> bool {
    false
}

/// Only memory limits the number of sockets.
pub(crate) fn raise_file_limit(_sockets: u64) -> io::Result<()> {
    Ok(())
}

/// Windows limits memory by jobs, which the listening agent does not make.
pub(crate) fn bound_memory(_bytes: u64) -> io::Result<()> {
    Ok(())
}

/// None can be chosen, and Windows says so itself.
pub(crate) fn has_congestion_control(_name: &str) -> bool {
    true
}

pub(crate) fn congestion_control(_socket: &Socket) -> Option<String> {
    None
}

/// Windows counts a thread's CPU time in ticks, too coarse for a slice.
pub(crate) fn thread_cpu_ns() -> Option<Nanos> {
    None
}

pub(crate) fn thread_cpu_parts() -> Option<(Nanos, Nanos)> {
    None
}

pub(crate) fn has_kernel_sockets() -> bool {
    true
}

pub(crate) fn socket_memory_bytes() -> Option<u64> {
    None
}

pub(crate) fn lacks_acknowledgement(_socket: &Socket) -> bool {
    false
}

pub(crate) fn out_of_order_bytes(_socket: &Socket) -> u64 {
    0
}

pub(crate) fn unacknowledged_segments(_socket: &Socket) -> io::Result<Option<u32>> {
    Ok(None)
}

pub(crate) fn unsent_bytes(_socket: &Socket) -> io::Result<Option<u32>> {
    Ok(None)
}

pub(crate) fn offloads(_socket: &Socket, _interface: &str) -> Offloads {
    Offloads::default()
}

pub(crate) fn socket_drops(_socket: &Socket) -> io::Result<u64> {
    Err(unsupported("socket drop counter"))
}

pub(crate) fn zerocopy_completion(
    _socket: &Socket,
    _limit: Duration,
) -> io::Result<Option<ZerocopyCompletion>> {
    Err(unsupported("zerocopy sends"))
}

pub(crate) fn read_tx_timestamp(_socket: &Socket, _limit: Duration) -> io::Result<(u32, TxTimestamp)> {
    Err(unsupported("transmit timestamps"))
}

pub(crate) fn has_hardware_timestamps(_socket: &Socket, _interface: &str) -> io::Result<bool> {
    Err(unsupported("hardware timestamps"))
}

pub(crate) fn receive_with_timestamp(
    _socket: &Socket,
    _room: &mut [u8],
    _wait: bool,
) -> io::Result<(usize, Option<Nanos>)> {
    Err(unsupported("kernel receive timestamps"))
}
