//! The connection between a coordinator and a listening agent, in plain or inside a TLS session.

use crate::hex::hex;
use rustls::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;
use stacklab_traffic::protocol::json_line;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum length of a line of the handshake, bytes.
pub(crate) const MAX_LENGTH: usize = 8192;
/// Time limit for a peer to take what is said to it during the handshake.
pub(crate) const TAKE_LIMIT: Duration = Duration::from_secs(1);
/// What a TLS session is bound to other proofs by: RFC 9266, `tls-exporter`.
const EXPORTER: &[u8] = b"EXPORTER-Channel-Binding";

/// A connection. Its clones share it: one may read on another thread while one writes.
#[derive(Debug, Clone)]
pub struct Channel {
    stream: Arc<TcpStream>,
    /// `None`: nothing is encrypted.
    session: Option<Arc<Mutex<Connection>>>,
}

impl From<TcpStream> for Channel {
    fn from(stream: TcpStream) -> Self {
        Channel { stream: Arc::new(stream), session: None }
    }
}

impl Channel {
    /// The connection inside a session, of which the handshake is done.
    pub(crate) fn inside(stream: TcpStream, session: Connection) -> Self {
        Channel { stream: Arc::new(stream), session: Some(Arc::new(Mutex::new(session))) }
    }

    /// The connection's socket.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether it is inside a TLS session.
    pub fn is_secure(&self) -> bool {
        self.session.is_some()
    }

    /// What only the two ends of this TLS session know, hexadecimal; nothing in plain.
    pub(crate) fn binding(&self) -> io::Result<String> {
        let Some(session) = &self.session else { return Ok(String::new()) };
        let exported = lock_session(session).export_keying_material([0; 32], EXPORTER, None);
        exported.map(|secret| hex(&secret)).map_err(io::Error::other)
    }

    /// Sends a line of the handshake.
    pub(crate) fn say(&self, line: &impl Serialize) -> io::Result<()> {
        let text = json_line(line)?;
        self.stream.set_write_timeout(Some(TAKE_LIMIT))?;
        self.clone().write_all(&text)
    }

    /// The next line of the handshake. `InvalidData` if it is something else, `TimedOut` if it does not come.
    pub(crate) fn hear<T: DeserializeOwned>(&self, deadline: Instant) -> io::Result<T> {
        let mut line = Vec::new();
        let mut byte = [0];
        loop {
            wait_until(&self.stream, deadline)?;
            // One at a time: what follows the line is not for this reader.
            match self.receive(&mut byte) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) if byte[0] == b'\n' => break,
                Ok(_) if line.len() == MAX_LENGTH => return Err(io::ErrorKind::InvalidData.into()),
                Ok(_) => line.push(byte[0]),
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(error),
            }
        }
        serde_json::from_slice(&line).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Removes the time limits of the handshake.
    pub(crate) fn remove_time_limits(&self) -> io::Result<()> {
        self.stream.set_read_timeout(None)?;
        self.stream.set_write_timeout(None)
    }

    /// Tells the peer that nothing more comes.
    pub(crate) fn finish(&self) -> io::Result<()> {
        if let Some(session) = &self.session {
            let mut session = lock_session(session);
            session.send_close_notify();
            self.send(session)?;
        }
        self.stream.shutdown(Shutdown::Write)
    }

    /// Sends what a session has to send.
    fn send(&self, mut session: MutexGuard<'_, Connection>) -> io::Result<()> {
        let mut records = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut records)?;
        }
        // A peer that takes nothing does not keep the other thread from reading.
        drop(session);
        (&*self.stream).write_all(&records)
    }

    /// Data, after at most one wait for the connection: `Interrupted` if what came then was not yet a whole record.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(session) = &self.session else { return (&*self.stream).read(buffer) };
        match lock_session(session).reader().read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
        // Another thread can write in the meantime: this one waits without the lock.
        self.stream.peek(&mut [0])?;
        let mut session = lock_session(session);
        session.read_tls(&mut &*self.stream)?;
        session.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        session.reader().read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::ErrorKind::Interrupted.into(),
            _ => error,
        })
    }
}

impl Read for Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.receive(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Write for Channel {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let Some(session) = &self.session else { return (&*self.stream).write(data) };
        let mut session = lock_session(session);
        let written = session.writer().write(data)?;
        self.send(session)?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.stream).flush()
    }
}

/// Lets the next read of a stream last until the deadline.
pub(crate) fn wait_until(stream: &TcpStream, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left))
}

/// Whether a read brought nothing because its time had passed or a signal came.
pub(crate) fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn lock_session(session: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}
