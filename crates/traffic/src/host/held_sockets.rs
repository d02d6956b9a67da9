//! Sockets that this host connects to itself over its loopback interface, and holds: what they take of the kernel's
//! memory, idle and with full queues.

use crate::sys;
use crate::{Attempt, EngineError};
use socket2::{Domain, Protocol, Socket, Type};
use stacklab_model::{
    Family, HeldSockets, MAX_PAIRS, Transport, Weighed, count_first_third, kernel_memory_at_rest,
};
use std::io;
use std::net::SocketAddr;

/// Pairs whose queues are filled at most: each takes megabytes.
const MAX_FULL_PAIRS: usize = 16;
/// The longest message that they are filled with: that of a datagram.
const MAX_MESSAGE: u32 = 65_000;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;
/// The kernel charges at least this for a datagram, bytes.
const MIN_CHARGED_BYTES: usize = 512;

/// What to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SocketsToHold {
    /// Of their addresses.
    pub family: Family,
    /// Theirs.
    pub transport: Transport,
    /// Pairs of them, both ends on this host.
    pub pairs: u32,
    /// Bytes of the messages that fill the queues.
    pub message_bytes: u32,
}

impl SocketsToHold {
    fn describe(&self) -> String {
        let SocketsToHold { family, transport, pairs, .. } = self;
        format!("hold {pairs} pairs of {transport} sockets over {family}")
    }
}

/// Holds sockets, and says what they took.
pub(crate) fn hold(asked: SocketsToHold) -> Result<HeldSockets, EngineError> {
    let asked = SocketsToHold { pairs: asked.pairs.min(MAX_PAIRS), ..asked };
    let pairs = asked.pairs;
    if !sys::has_kernel_sockets() {
        let reason = "they would be those of a stack in user space, which the kernel has no memory for";
        return Err(io::Error::new(io::ErrorKind::Unsupported, reason)).attempt(|| asked.describe());
    }
    sys::raise_file_limit(2 * u64::from(pairs)).attempt(|| asked.describe())?;
    let weighed = pairs - count_first_third(pairs);
    let mut held = connect_pairs(asked, count_first_third(pairs))?;
    let before = kernel_memory_at_rest(Weighed::Sockets).attempt(|| asked.describe())?;
    held.extend(connect_pairs(asked, weighed)?);
    let after = kernel_memory_at_rest(Weighed::Sockets).attempt(|| asked.describe())?;
    let charged_before = sys::socket_memory_bytes();
    let full = &held[..held.len().min(MAX_FULL_PAIRS)];
    let message = vec![0; asked.message_bytes.clamp(1, MAX_MESSAGE) as usize];
    for [one, other] in full {
        for end in [one, other] {
            match asked.transport {
                Transport::Tcp => fill_queues(end, &message),
                Transport::Udp => fill_queue(end, &message),
            }
            .attempt(|| asked.describe())?;
        }
    }
    let charged = sys::socket_memory_bytes().zip(charged_before);
    Ok(HeldSockets {
        pairs: weighed,
        idle_bytes: after.growth_since(before),
        full_pairs: full.len() as u32,
        full_bytes: charged.map(|(after, before)| after.saturating_sub(before)),
    })
}

fn connect_pairs(asked: SocketsToHold, count: u32) -> Result<Vec<[Socket; 2]>, EngineError> {
    let mut pairs = Vec::new();
    for _ in 0..count {
        pairs.push(connect_pair(asked.family, asked.transport).attempt(|| asked.describe())?);
    }
    Ok(pairs)
}

/// Two sockets of this host that are connected to each other.
fn connect_pair(family: Family, transport: Transport) -> io::Result<[Socket; 2]> {
    let one = bind_to_loopback(family, transport)?;
    let other = bind_to_loopback(family, transport)?;
    match transport {
        Transport::Udp => {
            one.connect(&other.local_addr()?)?;
            other.connect(&one.local_addr()?)?;
            Ok([one, other])
        }
        Transport::Tcp => {
            one.listen(BACKLOG)?;
            other.connect(&one.local_addr()?)?;
            // The listening socket is closed, and takes no memory any more.
            let (accepted, _) = one.accept()?;
            Ok([accepted, other])
        }
    }
}

fn bind_to_loopback(family: Family, transport: Transport) -> io::Result<Socket> {
    let address = SocketAddr::new(family.loopback(), 0);
    let (kind, protocol) = match transport {
        Transport::Tcp => (Type::STREAM, Protocol::TCP),
        Transport::Udp => (Type::DGRAM, Protocol::UDP),
    };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Sends messages that nobody reads until the kernel takes no more: then the peer's queue is full, and this socket's.
fn fill_queues(socket: &Socket, message: &[u8]) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    loop {
        match socket.send(message) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Sends datagrams that nobody reads, about twice as many as the peer has room for: those beyond vanish.
fn fill_queue(socket: &Socket, message: &[u8]) -> io::Result<()> {
    let limit = 2 * socket.recv_buffer_size()?;
    let mut charged = 0;
    while charged < limit {
        charged += socket.send(message)?.max(MIN_CHARGED_BYTES);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAUSIBLE: std::ops::Range<i64> = 500..20_000;

    fn idle_bytes_of_socket(held: &HeldSockets) -> i64 {
        held.idle_bytes.unwrap_or_default() / (2 * i64::from(held.pairs))
    }

    #[test]
    fn sockets_take_memory_and_full_ones_more() {
        for family in Family::ALL {
            for transport in Transport::ALL {
                let asked =
                    SocketsToHold { family: *family, transport: *transport, pairs: 500, message_bytes: 1400 };
                // A socket with its file takes 1.5 to 5 KB; others on this machine take and give meanwhile.
                let mut held = hold(asked).unwrap();
                for _ in 0..4 {
                    if PLAUSIBLE.contains(&idle_bytes_of_socket(&held)) {
                        break;
                    }
                    held = hold(asked).unwrap();
                }
                assert!(PLAUSIBLE.contains(&idle_bytes_of_socket(&held)), "{family} {transport}: {held:?}");
                assert_eq!((held.pairs, held.full_pairs), (334, 16));
                let full = held.full_bytes.unwrap() / 32;
                assert!((50_000..20_000_000).contains(&full), "{family} {transport}: {held:?}");
            }
        }
    }
}
