//! ICMP echo, without an agent at the other end: round trips, and whether a packet of a size or a TTL gets there.

use crate::engine::flows::is_nothing;
use crate::host::zone;
use crate::sys::{self, Nanos};
use crate::{Attempt, EngineError};
use socket2::{Domain, Protocol, Socket, Type};
use stacklab_model::{Family, ScopedAddr};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::time::Duration;

const HEADER: usize = 8;
const ROOM: usize = 65_536;
/// Wait for room in this host's own queue.
const FULL_QUEUE: Duration = Duration::from_millis(2);

/// Echoes to one address.
pub struct Ping {
    socket: Socket,
    family: Family,
    /// Whether the kernel gives whole packets of all processes, with the IP header of IPv4.
    raw: bool,
    identifier: u16,
    sequence: u16,
}

/// What became of an echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Echo {
    /// It was answered after this time.
    Answered(Nanos),
    /// A router says that its TTL was too small.
    Expired,
    /// A router or this host says that it was too long.
    TooLong,
    /// A router or this host says that the host cannot be reached.
    Unreachable,
    /// Nothing came: echo, answer or error was lost, or somebody does not answer.
    Silent,
}

/// What an echo is sent with.
#[derive(Debug, Clone, Copy)]
pub struct PingOptions {
    /// Octets of the whole IP packet.
    pub packet_bytes: u32,
    /// TTL, or hop limit.
    pub ttl: u8,
    /// How long an answer is waited for.
    pub wait: Duration,
}

impl Ping {
    /// Opens a socket: an unprivileged one where the system allows it (`net.ipv4.ping_group_range`), else a raw one.
    /// Packets are never fragmented here, whatever the kernel remembers of the path.
    pub fn open(to: &ScopedAddr, identifier: u16) -> Result<Self, EngineError> {
        Ping::connect(to, identifier).attempt(|| {
            format!("send ICMP echoes to {to}: be root, or allow it (sysctl net.ipv4.ping_group_range)")
        })
    }

    fn connect(to: &ScopedAddr, identifier: u16) -> io::Result<Self> {
        let to = zone::socket_addr(to, 0)?;
        let protocol = if to.is_ipv4() { Protocol::ICMPV4 } else { Protocol::ICMPV6 };
        let open = |kind| Socket::new(Domain::for_address(to), kind, Some(protocol));
        let (socket, raw) = match open(Type::DGRAM) {
            Ok(socket) => (socket, false),
            Err(_) => (open(Type::from(libc::SOCK_RAW))?, true),
        };
        let family = Family::of(to.ip());
        sys::never_fragment(&socket, family)?;
        sys::enable_icmp_errors(&socket, family)?;
        socket.connect(&SocketAddr::new(to.ip(), 0).into()).or_else(|_| socket.connect(&to.into()))?;
        Ok(Ping { socket, family, raw, identifier, sequence: 0 })
    }

    /// Sends an echo and waits for what becomes of it.
    pub fn echo(&mut self, options: &PingOptions) -> io::Result<Echo> {
        self.sequence = self.sequence.wrapping_add(1);
        let set = match self.family {
            Family::Ipv4 => self.socket.set_ttl_v4(options.ttl.into()),
            Family::Ipv6 => self.socket.set_unicast_hops_v6(options.ttl.into()),
        };
        set?;
        let bytes = (options.packet_bytes.saturating_sub(self.family.header_bytes()) as usize).max(HEADER);
        let message = request(self.family, self.identifier, self.sequence, bytes);
        let began = match self.send(&message, options.wait) {
            Ok(began) => began,
            Err(error) if is_about_the_path(&error) => {
                let is_too_long = error.raw_os_error() == Some(libc::EMSGSIZE);
                let here = if is_too_long { Echo::TooLong } else { Echo::Unreachable };
                return Ok(self.refusal()?.unwrap_or(here));
            }
            Err(error) => return Err(error),
        };
        let mut room = vec![0; ROOM];
        loop {
            let waited = Duration::from_nanos(sys::now_ns() - began);
            let Some(left) = options.wait.checked_sub(waited).filter(|left| !left.is_zero()) else {
                return Ok(Echo::Silent);
            };
            self.socket.set_read_timeout(Some(left))?;
            match (&self.socket).read(&mut room) {
                Ok(length) if self.is_answer(&room[..length]) => {
                    return Ok(Echo::Answered(sys::now_ns() - began));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_nothing(&error) => return Ok(Echo::Silent),
                // An ICMP error, about this echo or about one before it.
                Err(error) if is_about_the_path(&error) => {
                    if let Some(refusal) = self.refusal()? {
                        return Ok(refusal);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends once this host has room for the packet, and gives the time. A full queue of this host says nothing about
    /// the path.
    fn send(&self, message: &[u8], wait: Duration) -> io::Result<Nanos> {
        let first = sys::now_ns();
        loop {
            let began = sys::now_ns();
            match self.socket.send(message) {
                Err(error) if error.raw_os_error() != Some(libc::ENOBUFS) => return Err(error),
                Ok(_) => return Ok(began),
                Err(_) if Duration::from_nanos(began - first) < wait => sys::sleep(FULL_QUEUE),
                Err(_) => {
                    let text = "this host sent no echo: the queue of its interface is full";
                    return Err(io::Error::other(text));
                }
            }
        }
    }

    fn refusal(&self) -> io::Result<Option<Echo>> {
        let mut room = [0; HEADER];
        let mut found = None;
        while let Some(error) = sys::next_icmp_error(&self.socket, &mut room)? {
            if let Some(kind) = error.kind
                && self.is_own(types(self.family)[0], &room[..error.len.min(HEADER)])
            {
                found = Some(refused_there(self.family, kind, error.code));
            }
        }
        Ok(found)
    }

    fn is_answer(&self, packet: &[u8]) -> bool {
        let skipped = match (self.raw, self.family, packet.first()) {
            (true, Family::Ipv4, Some(first)) => usize::from(first & 15) * 4,
            _ => 0,
        };
        packet.get(skipped..).is_some_and(|answer| self.is_own(types(self.family)[1], answer))
    }

    /// Whether a message is of this type and belongs to the echo that was sent last.
    fn is_own(&self, wanted: u8, message: &[u8]) -> bool {
        let Some([kind, _, _, _, id_high, id_low, high, low]) = message.first_chunk::<HEADER>() else {
            return false;
        };
        // The kernel has its own identifier on a datagram socket.
        let mine = !self.raw || u16::from_be_bytes([*id_high, *id_low]) == self.identifier;
        *kind == wanted && mine && u16::from_be_bytes([*high, *low]) == self.sequence
    }
}

fn types(family: Family) -> [u8; 2] {
    match family {
        Family::Ipv4 => [8, 0],
        Family::Ipv6 => [128, 129],
    }
}

fn request(family: Family, identifier: u16, sequence: u16, bytes: usize) -> Vec<u8> {
    let mut message: Vec<u8> = (0..bytes).map(|place| place as u8).collect();
    message[..4].copy_from_slice(&[types(family)[0], 0, 0, 0]);
    message[4..6].copy_from_slice(&identifier.to_be_bytes());
    message[6..HEADER].copy_from_slice(&sequence.to_be_bytes());
    // The kernel computes that of ICMPv6, which covers addresses.
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// The Internet checksum (RFC 1071).
fn checksum(message: &[u8]) -> u16 {
    let words = message.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Whether a socket's error is about a packet rather than the socket.
fn is_about_the_path(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    matches!(error.kind(), HostUnreachable | NetworkUnreachable | ConnectionRefused)
        || matches!(error.raw_os_error(), Some(libc::EMSGSIZE | libc::EPROTO | libc::EACCES))
}

/// What an ICMP error means (RFC 792, RFC 4443).
fn refused_there(family: Family, kind: u8, code: u8) -> Echo {
    const FRAGMENTATION_NEEDED: u8 = 4;
    match (family, kind) {
        (Family::Ipv4, 11) | (Family::Ipv6, 3) => Echo::Expired,
        (Family::Ipv4, 3) if code == FRAGMENTATION_NEEDED => Echo::TooLong,
        (Family::Ipv6, 2) => Echo::TooLong,
        _ => Echo::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        let message = request(Family::Ipv4, 7, 9, 57);
        assert_eq!(checksum(&message), 0);
        assert_eq!((message[0], message.len()), (8, 57));
    }

    #[test]
    fn an_icmp_error_says_what_became_of_the_echo() {
        for (family, kind, code, echo) in [
            (Family::Ipv4, 11, 0, Echo::Expired),
            (Family::Ipv4, 3, 4, Echo::TooLong),
            (Family::Ipv4, 3, 1, Echo::Unreachable),
            (Family::Ipv6, 3, 0, Echo::Expired),
            (Family::Ipv6, 2, 0, Echo::TooLong),
            (Family::Ipv6, 1, 4, Echo::Unreachable),
        ] {
            assert_eq!(refused_there(family, kind, code), echo, "{family} {kind} {code}");
        }
    }
}
