//! The traffic of a network's other stations: each floods the access point with UDP, and so always has a frame to send.

use nix::sys::socket::{setsockopt, sockopt};
use stacklab_testbed::{Attempt, Fault};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The payload of a message, bytes.
const PAYLOAD: usize = 1408;
/// The discard port (RFC 863).
const PORT: u16 = 9;
/// The send buffer, bytes: as that of a trial's own UDP streams, less than a radio's queue has room for.
const SEND_BUFFER: usize = 32_768;
const MOMENT: Duration = Duration::from_millis(1);

/// The sockets of other stations, and the senders while there are any. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Background {
    /// The access point's socket. Nobody reads it: its kernel drops what arrives, and answers nothing.
    _sink: UdpSocket,
    sockets: Vec<Arc<UdpSocket>>,
    senders: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

/// A socket that takes messages at the access point. Call it in its network namespace.
pub(super) fn sink(address: IpAddr) -> Result<UdpSocket, Fault> {
    let own = SocketAddr::new(address, PORT);
    UdpSocket::bind(own).attempt(format!("bind to {own}"))
}

/// A station's socket to the access point. Call it in the station's network namespace.
pub(super) fn socket(address: IpAddr, access_point: IpAddr) -> Result<UdpSocket, Fault> {
    let (own, to) = (SocketAddr::new(address, 0), SocketAddr::new(access_point, PORT));
    let socket = UdpSocket::bind(own).attempt(format!("bind to {own}"))?;
    socket.connect(to).attempt(format!("send to {to}"))?;
    setsockopt(&socket, sockopt::SndBuf, &SEND_BUFFER).attempt("set the size of the send buffer")?;
    Ok(socket)
}

impl Background {
    /// The traffic of these sockets, which does not begin yet.
    pub(super) fn new(sink: UdpSocket, sockets: Vec<UdpSocket>) -> Self {
        let sockets = sockets.into_iter().map(Arc::new).collect();
        Background { _sink: sink, sockets, senders: Vec::new(), stop: Arc::default() }
    }

    pub(super) fn begin(&mut self) -> Result<(), Fault> {
        self.stop = Arc::default();
        for socket in &self.sockets {
            let (socket, stop) = (socket.clone(), self.stop.clone());
            let sender =
                thread::Builder::new().name("station".to_owned()).spawn(move || send(&socket, &stop));
            self.senders.push(sender.attempt("start the traffic of another station")?);
        }
        Ok(())
    }

    /// Ends sending. What a socket's buffer holds is still sent.
    pub(super) fn end(&mut self) {
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

/// Sends until the stop request. It waits while the buffer is full.
fn send(socket: &UdpSocket, stop: &AtomicBool) {
    let message = [0x5a; PAYLOAD];
    while !stop.load(Ordering::Relaxed) {
        // A station that lost its association has an error: the look after the trial says so. Virtual time must pass.
        if socket.send(&message).is_err() {
            thread::sleep(MOMENT);
        }
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
