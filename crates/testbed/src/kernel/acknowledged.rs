//! What the peers of a namespace's TCP connections have acknowledged. The kernel reports each socket that it removes
//! with its `tcp_info` to those who listen (SKNLGRP_INET_TCP_DESTROY, sock_diag(7)): also of a program that moves bytes
//! from socket to socket within the kernel (splice), and of connections that are shorter than any interval of polling.

use nix::errno::Errno;
use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, setsockopt, socket,
};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The groups of removed TCP sockets of both families, as bits: 1 and 3.
const REMOVED: u32 = 1 | 1 << 2;
/// How often reports are read, and the room for those that come meanwhile, bytes: some 25,000.
const READ_INTERVAL: Duration = Duration::from_millis(20);
const ROOM: usize = 32 << 20;

/// `struct nlmsghdr`, `struct inet_diag_msg` behind it, and in that the family and the peer's address.
const HEADER: usize = 16;
const SOCKET: usize = 72;
const FAMILY: usize = 0;
const PEER: usize = 24;
/// The attribute with `struct tcp_info`, and where that has the bytes that were acknowledged.
const INFO: u16 = 2;
const ACKNOWLEDGED: usize = 120;

/// Adds up the bytes that these peers have acknowledged, until it is dropped. A connection counts when its socket is
/// removed; the SYN and the FIN count as a byte each.
#[derive(Debug)]
pub(crate) struct AcknowledgedBytes {
    reader: Arc<Reader>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Reader {
    socket: Mutex<OwnedFd>,
    peers: Vec<IpAddr>,
    bytes: AtomicU64,
    /// More came than there was room for.
    has_lost: AtomicBool,
    is_done: AtomicBool,
}

impl AcknowledgedBytes {
    /// Begins to count in the calling thread's namespace.
    pub(crate) fn watch(peers: Vec<IpAddr>) -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkSockDiag)?;
        // Without the privilege, the room is the system's.
        let _ = setsockopt(&socket, RcvBufForce, &ROOM);
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, REMOVED))?;
        let reader = Arc::new(Reader {
            socket: Mutex::new(socket),
            peers,
            bytes: AtomicU64::new(0),
            has_lost: AtomicBool::new(false),
            is_done: AtomicBool::new(false),
        });
        let own = Arc::clone(&reader);
        let builder = thread::Builder::new().name("removed sockets".into());
        let thread = Some(builder.spawn(move || own.read_until_done())?);
        Ok(AcknowledgedBytes { reader, thread })
    }

    /// The bytes so far. Fails if reports were lost.
    pub(crate) fn count(&self) -> io::Result<u64> {
        self.reader.read_all();
        if self.reader.has_lost.swap(false, Ordering::Relaxed) {
            let lost = "more connections ended than the kernel has kept reports of: use fewer in a run";
            return Err(io::Error::other(lost));
        }
        Ok(self.reader.bytes.load(Ordering::Relaxed))
    }
}

impl Drop for AcknowledgedBytes {
    fn drop(&mut self) {
        self.reader.is_done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Reader {
    fn read_until_done(&self) {
        while !self.is_done.load(Ordering::Relaxed) {
            self.read_all();
            thread::sleep(READ_INTERVAL);
        }
    }

    fn read_all(&self) {
        let socket = self.socket.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut room = [0; 4096];
        loop {
            match recv(socket.as_raw_fd(), &mut room, MsgFlags::empty()) {
                Ok(length) => self.add(&room[..length]),
                Err(Errno::EAGAIN) => return,
                Err(Errno::EINTR) => {}
                Err(Errno::ENOBUFS) => self.has_lost.store(true, Ordering::Relaxed),
                Err(_) => {
                    self.has_lost.store(true, Ordering::Relaxed);
                    return;
                }
            }
        }
    }

    fn add(&self, report: &[u8]) {
        if let Some(connection) = read_connection(report)
            && self.peers.contains(&connection.peer)
        {
            self.bytes.fetch_add(connection.acknowledged, Ordering::Relaxed);
        }
    }
}

/// A TCP connection whose socket was removed.
#[derive(Debug, PartialEq, Eq)]
struct EndedConnection {
    peer: IpAddr,
    acknowledged: u64,
}

fn read_connection(report: &[u8]) -> Option<EndedConnection> {
    let socket = report.get(HEADER..HEADER + SOCKET)?;
    let peer = match i32::from(socket[FAMILY]) {
        libc::AF_INET => IpAddr::from(<[u8; 4]>::try_from(&socket[PEER..PEER + 4]).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(&socket[PEER..PEER + 16]).ok()?),
    };
    let mut rest = report.get(HEADER + SOCKET..)?;
    while let [low, high, kind_low, kind_high, ..] = rest {
        let length = usize::from(u16::from_ne_bytes([*low, *high]));
        let body = rest.get(4..length)?;
        if u16::from_ne_bytes([*kind_low, *kind_high]) == INFO {
            let count = body.get(ACKNOWLEDGED..ACKNOWLEDGED + 8)?;
            return Some(EndedConnection { peer, acknowledged: u64::from_ne_bytes(count.try_into().ok()?) });
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::namespace::in_new_namespace;
    use crate::kernel::netlink::raise;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    /// A connection that ends at once is seen too, with all that its peer has acknowledged.
    fn count_short_connection() -> u64 {
        raise("lo", 65_536).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let watch = AcknowledgedBytes::watch(vec!["127.0.0.1".parse().unwrap()]).unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        stream.write_all(&[7; 5000]).unwrap();
        accepted.read_exact(&mut [0; 5000]).unwrap();
        drop((stream, accepted));
        let began = Instant::now();
        while watch.count().unwrap() < 5000 && began.elapsed() < Duration::from_secs(5) {
            thread::sleep(READ_INTERVAL);
        }
        watch.count().unwrap()
    }

    #[test]
    fn acknowledged_bytes_of_ended_connections_are_added() {
        let bytes = in_new_namespace(count_short_connection).unwrap();
        assert!((5000..5010).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_cut_report_is_not_read() {
        for length in 0..HEADER + SOCKET + 4 {
            assert_eq!(read_connection(&vec![4; length]), None, "{length}");
        }
    }
}
