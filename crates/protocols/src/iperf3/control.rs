//! The control connection of a test.

use crate::iperf3::{State, frame_text, text_bytes};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use stacklab_model::ScopedAddr;
use stacklab_traffic::host::{notice_a_dead_peer, zone};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);
const WRITE_LIMIT: Duration = Duration::from_secs(10);

pub(super) struct ControlConnection {
    stream: TcpStream,
}

impl ControlConnection {
    pub(super) fn connect(from: &ScopedAddr, to: SocketAddr) -> io::Result<Self> {
        let (from, to) = zone::ends(from, to)?;
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&from.into())?;
        socket.connect_timeout(&SockAddr::from(to), CONNECT_LIMIT)?;
        ControlConnection::over(socket.into())
    }

    /// Takes a connection that was opened. One whose peer is gone is noticed.
    pub(super) fn over(stream: TcpStream) -> io::Result<Self> {
        let socket = Socket::from(stream);
        notice_a_dead_peer(&socket)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_read_timeout(Some(POLL_INTERVAL))?;
        socket.set_write_timeout(Some(WRITE_LIMIT))?;
        Ok(ControlConnection { stream: socket.into() })
    }

    pub(super) fn ends(&self) -> io::Result<[SocketAddr; 2]> {
        Ok([self.stream.local_addr()?, self.stream.peer_addr()?])
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(super) fn tell(&mut self, state: State) -> io::Result<()> {
        self.send(&[state.byte()])
    }

    pub(super) fn send_text(&mut self, text: &str) -> io::Result<()> {
        self.send(&frame_text(text))
    }

    pub(super) fn fill(&mut self, room: &mut [u8], deadline: Instant) -> io::Result<()> {
        fill(&self.stream, room, deadline)
    }

    /// The state that the peer has sent, if it has.
    pub(super) fn look(&mut self) -> io::Result<Option<State>> {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => state_of(byte[0]).map(Some),
            Err(error) if is_nothing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the peer has closed. What it has said is not taken.
    pub(super) fn is_closed(&self) -> bool {
        match self.peek() {
            Ok(count) => count == 0,
            Err(error) => !is_nothing(&error),
        }
    }

    fn peek(&self) -> io::Result<usize> {
        self.stream.set_nonblocking(true)?;
        let seen = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        seen
    }

    pub(super) fn state(&mut self, deadline: Instant) -> io::Result<State> {
        let mut byte = [0];
        self.fill(&mut byte, deadline)?;
        state_of(byte[0])
    }

    /// A JSON text of at most this many bytes, until a deadline.
    pub(super) fn text(&mut self, most: usize, deadline: Instant) -> io::Result<String> {
        let mut prefix = [0; 4];
        self.fill(&mut prefix, deadline)?;
        let length = text_bytes(prefix, most).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.fill(&mut bytes, deadline)?;
        String::from_utf8(bytes).map_err(|_| io::Error::other("its text is not UTF-8"))
    }
}

/// Receives exactly as many bytes as there is room, until a deadline, from a stream with the read timeout
/// [`POLL_INTERVAL`].
pub(super) fn fill(mut stream: &TcpStream, room: &mut [u8], deadline: Instant) -> io::Result<()> {
    let mut at = 0;
    while at < room.len() {
        match stream.read(&mut room[at..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => at += count,
            Err(error) if is_nothing(&error) && Instant::now() < deadline => {}
            Err(error) if is_nothing(&error) => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn state_of(byte: u8) -> io::Result<State> {
    State::of(byte)
        .ok_or_else(|| io::Error::other(format!("it sent {}, which is not a state of iperf3", byte as i8)))
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
