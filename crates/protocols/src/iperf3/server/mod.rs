//! A server for unmodified clients of iperf3: many at once.
//!
//! | thread | does |
//! |---|---|
//! | a listener of TCP for each family | accepts connections |
//! | one for each connection | reads the cookie: a new test, which it then serves, or a stream of one |
//! | a listener of UDP for each family | gives greetings to the test that waits for them |

mod limits;
mod listeners;
mod registry;
mod session;

pub use limits::ServerLimits;

use crate::iperf3::server::listeners::{Listeners, datagrams};
use crate::iperf3::server::registry::{Arrived, Registry};
use crate::iperf3::server::session::serve;
use crate::iperf3::{Cookie, State};
use stacklab_traffic::host::zone::ListenAddress;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a connection may take to say its cookie.
const COOKIE_LIMIT: Duration = Duration::from_secs(5);

/// A server cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("could not listen on {at}: {reason}")]
pub struct ServerError {
    /// The address.
    pub at: String,
    /// The system's reason.
    pub reason: io::Error,
}

/// Serves until interrupted, or with `once` until the first test is over.
pub fn listen(
    place: &ListenAddress,
    limits: ServerLimits,
    once: bool,
    interrupted: &'static AtomicBool,
) -> Result<(), ServerError> {
    stacklab_traffic::foreign::renounce_privileges();
    let listeners = Listeners::open(place).map_err(|(at, reason)| ServerError { at, reason })?;
    let announcement = listeners.announcement();
    let registry = Arc::new(Registry::new(limits));
    for socket in listeners.udp {
        let registry = Arc::clone(&registry);
        // It ends with the program.
        thread::spawn(move || datagrams(&socket, &registry, interrupted));
    }
    let mut accepting = Vec::new();
    for listener in listeners.tcp {
        let registry = Arc::clone(&registry);
        accepting.push(thread::spawn(move || {
            let is_over =
                || interrupted.load(Ordering::Relaxed) || once && registry.served.load(Ordering::Relaxed) > 0;
            while !is_over() {
                match listener.accept() {
                    Ok((stream, _)) => meet(&registry, stream.into(), interrupted),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // An aborted connection, or no free file descriptor: both are temporary.
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
            }
        }));
    }
    eprintln!("{announcement}");
    for accepting in accepting {
        let _ = accepting.join();
    }
    registry.wait_until_empty();
    Ok(())
}

/// Handles each connection on a separate thread, so that a silent one delays no others.
fn meet(registry: &Arc<Registry>, stream: TcpStream, interrupted: &'static AtomicBool) {
    let Some(place) = registry.connection() else { return };
    let order = registry.order.fetch_add(1, Ordering::Relaxed);
    let registry = Arc::clone(registry);
    // Without a thread the connection is closed, and its place is free again.
    let _ = thread::Builder::new().name("iperf3 client".to_owned()).spawn(move || {
        let _place = place;
        let Ok(cookie) = cookie(&stream) else { return };
        if let Some(test) = registry.waiting(&cookie) {
            let _ = test.send(Arrived { stream, order });
            return;
        }
        match registry.begin() {
            Some(slot) => {
                if let Err(error) = serve(stream, cookie, &registry, interrupted) {
                    eprintln!("stacklab: iperf3: {error}");
                }
                drop(slot);
            }
            None => {
                let _ = (&stream).write_all(&[State::AccessDenied.byte()]);
            }
        }
    });
}

fn cookie(stream: &TcpStream) -> io::Result<Cookie> {
    let deadline = Instant::now() + COOKIE_LIMIT;
    let (mut bytes, mut at): (Cookie, usize) = ([0; 37], 0);
    while at < bytes.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match (&mut &*stream).read(&mut bytes[at..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => at += count,
        }
    }
    Ok(bytes)
}
