//! What happens during trials beside their own traffic. Other stations flood the access point with UDP, and so always
//! have a frame to send. The network's ends forget each other's link-layer address again and again, and then ask for
//! it, by ARP and by neighbour discovery.

use futures_util::TryStreamExt;
use nix::sys::socket::{setsockopt, sockopt};
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use stacklab_testbed::kernel::netlink::{Netlink, index};
use stacklab_testbed::{Attempt, Fault, INTERFACE};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const PAYLOAD: usize = 1408;
/// The discard port (RFC 863).
const PORT: u16 = 9;
/// As that of a trial's own UDP streams: less than a radio's queue has room for.
const SEND_BUFFER: usize = 32_768;
const MOMENT: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct Background {
    /// The access point's socket. Nobody reads it: its kernel drops what arrives, and answers nothing.
    _sink: UdpSocket,
    sockets: Vec<Arc<UdpSocket>>,
    senders: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

/// A socket that takes messages at the access point. Call it in its network namespace.
pub(crate) fn sink(address: IpAddr) -> Result<UdpSocket, Fault> {
    let own = SocketAddr::new(address, PORT);
    UdpSocket::bind(own).attempt(format!("bind to {own}"))
}

/// A station's socket to the access point. Call it in the station's network namespace.
pub(crate) fn socket(address: IpAddr, access_point: IpAddr) -> Result<UdpSocket, Fault> {
    let own = SocketAddr::new(address, 0);
    let to = SocketAddr::new(access_point, PORT);
    let socket = UdpSocket::bind(own).attempt(format!("bind to {own}"))?;
    socket.connect(to).attempt(format!("send to {to}"))?;
    setsockopt(&socket, sockopt::SndBuf, &SEND_BUFFER).attempt("set the size of the send buffer")?;
    Ok(socket)
}

impl Background {
    pub(crate) fn new(sink: UdpSocket, sockets: Vec<UdpSocket>) -> Self {
        let sockets = sockets.into_iter().map(Arc::new).collect();
        Background { _sink: sink, sockets, senders: Vec::new(), stop: Arc::default() }
    }

    pub(crate) fn begin(&mut self) -> Result<(), Fault> {
        self.stop = Arc::default();
        for socket in &self.sockets {
            let socket = socket.clone();
            let stop = self.stop.clone();
            let sender =
                thread::Builder::new().name("station".to_owned()).spawn(move || send(&socket, &stop));
            self.senders.push(sender.attempt("start the traffic of another station")?);
        }
        Ok(())
    }

    /// Ends sending. What a socket's buffer holds is still sent.
    pub(crate) fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for sender in self.senders.drain(..) {
            let _ = sender.join();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends until the stop request; waits while the buffer is full.
fn send(socket: &UdpSocket, stop: &AtomicBool) {
    let message = [0x5a; PAYLOAD];
    while !stop.load(Ordering::Relaxed) {
        // A station that lost its association has an error, which is found after the trial. Virtual time must pass.
        if socket.send(&message).is_err() {
            thread::sleep(MOMENT);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Neighbours {
    lifetime: Duration,
    ends: Arc<Mutex<[Entries; 2]>>,
    forgetting: Option<Forgetting>,
}

type Forgetting = (Sender<()>, JoinHandle<Result<(), Fault>>);

#[derive(Debug)]
pub(crate) struct Entries {
    netlink: Netlink,
    interface: u32,
    peer: [IpAddr; 2],
}

impl Neighbours {
    pub(crate) fn new(lifetime: Duration, ends: [Entries; 2]) -> Self {
        Neighbours { lifetime, ends: Arc::new(Mutex::new(ends)), forgetting: None }
    }

    /// Removes the entries, and again after each lifetime.
    pub(crate) fn begin(&mut self) -> Result<(), Fault> {
        let (stop, stopped) = mpsc::channel::<()>();
        let lifetime = self.lifetime;
        let ends = self.ends.clone();
        let thread = thread::Builder::new().name("neighbours".to_owned()).spawn(move || {
            let ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                ends.iter().try_for_each(Entries::forget)?;
                if stopped.recv_timeout(lifetime) != Err(RecvTimeoutError::Timeout) {
                    return Ok(());
                }
            }
        });
        self.forgetting = Some((stop, thread.attempt("start removing neighbour entries")?));
        Ok(())
    }

    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        let Some((stop, thread)) = self.forgetting.take() else { return Ok(()) };
        drop(stop);
        thread.join().map_err(|_| "its thread has panicked").attempt("remove neighbour entries")?
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl Entries {
    /// A host's entries of these addresses. Call it in its network namespace.
    pub(crate) fn open(peer: [IpAddr; 2]) -> Result<Self, Fault> {
        let netlink = Netlink::open()?;
        Ok(Entries { netlink, interface: index(INTERFACE)?, peer })
    }

    /// Removes them. One whose address the host is asking for stays, and the packets that wait for it.
    fn forget(&self) -> Result<(), Fault> {
        self.netlink.run(async |netlink| {
            let mut all = netlink.neighbours().get().execute();
            while let Some(entry) = all.try_next().await.attempt("list the neighbour entries")? {
                if self.is_known(&entry) {
                    let removed = netlink.neighbours().del(entry).execute().await;
                    removed.attempt(format!("remove a neighbour entry on {INTERFACE}"))?;
                }
            }
            Ok(())
        })
    }

    fn is_known(&self, entry: &NeighbourMessage) -> bool {
        use NeighbourState::{Delay, Permanent, Probe, Reachable, Stale};
        let is_of_peer = entry.attributes.iter().any(|attribute| match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => {
                self.peer.contains(&(*address).into())
            }
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => {
                self.peer.contains(&(*address).into())
            }
            _ => false,
        });
        entry.header.ifindex == self.interface
            && is_of_peer
            && matches!(entry.header.state, Reachable | Stale | Delay | Probe | Permanent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::net::Ipv4Addr;

    #[test]
    fn stations_send_while_they_are_told_to() {
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let sink = UdpSocket::bind((local, 0)).unwrap();
        sink.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let reader = sink.try_clone().unwrap();
        let from = UdpSocket::bind((local, 0)).unwrap();
        from.connect(sink.local_addr().unwrap()).unwrap();
        let own = from.local_addr().unwrap();
        let mut background = Background::new(sink, vec![from]);
        let mut room = [0; PAYLOAD + 1];
        for _ in 0..2 {
            background.begin().unwrap();
            assert_eq!(reader.recv_from(&mut room).unwrap(), (PAYLOAD, own));
            background.end();
            reader.set_nonblocking(true).unwrap();
            while reader.recv(&mut room).is_ok() {}
            assert_eq!(reader.recv(&mut room).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            reader.set_nonblocking(false).unwrap();
        }
    }
}
