//! The connect probe: TCP connections opened one after another.

use crate::engine::admit::{Listener, is_peer};
use crate::engine::own_socket::{self, add_connection_hint};
use crate::engine::pacer::Pacer;
use crate::engine::{mapped, socket_options};
use crate::host::cpu::CpuWindow;
use crate::stats::flow::FlowDelays;
use crate::sys::{self, Socket};
use crate::{Attempt, EngineError, host};
use stacklab_model::{
    Counters, DelayPoints, HostReport, Length, Pacing, Point, Received, Role, ScopedAddr, Sent, TrialSpec,
};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Consecutive refused connections after which the receiver counts as gone. A single refusal (about one in 100,000
/// connections at this rate) is counted and the connection retried.
const MAX_REFUSED: u32 = 10;
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// The sender: opens a connection, closes it, opens the next. `from` has port 0.
pub(crate) fn open_connections(
    spec: &TrialSpec,
    from: SocketAddr,
    to: SocketAddr,
    stop: Option<&AtomicBool>,
) -> Result<HostReport, EngineError> {
    let before = host::counters(&own_socket::interface_of(from)?);
    let mut sent = Sent::default();
    let mut last = None;
    if spec.probe.warmup_ns > 0 {
        let mut unmeasured = FlowDelays::new();
        let warmup = Length::Time(spec.probe.warmup_ns);
        (sent.warmup, _) = open_phase((spec, from, to), warmup, stop, &mut unmeasured, &mut last)?;
    }
    let mut times = FlowDelays::new();
    let mut cpu = CpuWindow::new(spec.cpu_scope);
    cpu.open();
    sent.first_ns = sys::now_ns();
    (sent.measured, sent.refused) =
        open_phase((spec, from, to), spec.probe.length, stop, &mut times, &mut last)?;
    sent.last_ns = sys::now_ns();
    cpu.close();
    let last = last
        .ok_or_else(|| io::Error::other("the time was over before the first connection"))
        .attempt(|| format!("connect from {} to {to}", ScopedAddr::from(from)))?;
    let endpoint = own_socket::observe(&last, None)?;
    Ok(HostReport {
        sent,
        delays: times.finish(),
        delay_points: Some(DelayPoints::between(Point::Call, Point::Call)),
        cpu: cpu.finish(),
        tcp: sys::tcp_info(&last).ok(),
        counters: host::counters_since(&before, &endpoint.interface, &[&last]),
        peak_rss_kib: sys::peak_rss_kib(),
        ..HostReport::new(Role::Sender, endpoint)
    })
}

/// Returns the numbers of opened and refused connections, and keeps the last one open.
fn open_phase(
    (spec, from, to): (&TrialSpec, SocketAddr, SocketAddr),
    length: Length,
    stop: Option<&AtomicBool>,
    times: &mut FlowDelays,
    last: &mut Option<Socket>,
) -> Result<(u64, u64), EngineError> {
    let mut refused = 0;
    let mut in_a_row = 0;
    let mut pacer = Pacer::start(Pacing::Flood, length).stopped_by(stop);
    let mut opened = 0;
    while pacer.next_slot(opened, 1).is_some() {
        let socket = own_socket::open(spec, from)?;
        let connected = match time_connect(&socket, spec, to) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && in_a_row < MAX_REFUSED => {
                (refused, in_a_row) = (refused + 1, in_a_row + 1);
                continue;
            }
            connected => connected
                .map_err(|error| add_connection_hint(error, to))
                .attempt(|| format!("connect from {} to {to}", ScopedAddr::from(from)))?,
        };
        times.record(connected);
        (opened, in_a_row) = (opened + 1, 0);
        *last = Some(socket);
    }
    Ok((opened, refused))
}

/// Connects a socket. Returns the nanoseconds that this took.
fn time_connect(socket: &Socket, spec: &TrialSpec, to: SocketAddr) -> io::Result<u64> {
    // Closing resets the connection, so that ports waiting in TIME_WAIT do not run out.
    socket.set_linger(Some(Duration::ZERO))?;
    socket.set_write_timeout(Some(CONNECT_LIMIT))?;
    if spec.tuning.nodelay.is_some() {
        socket_options::set_after_connect(socket, spec)?;
    }
    let address = socket_options::destination(socket, spec, to)?;
    let start = sys::now_ns();
    socket.connect(&address)?;
    Ok(sys::now_ns() - start)
}

/// The receiver: accepts and closes connections until the trial has ended.
pub(crate) fn accept_connections(
    listener: Listener<'_>,
    before: &Counters,
) -> Result<HostReport, EngineError> {
    let Listener { peers, socket, ended, .. } = listener;
    let mut received = Received::default();
    let mut peer = None;
    loop {
        let over = ended.load(Ordering::Relaxed);
        match sys::accept(socket) {
            // Where the opener has closed it already, the address may be missing.
            Ok((_, from @ Some(_))) if !is_peer(peers, from) => received.strays += 1,
            Ok((_, address)) => {
                received.measured += 1;
                peer = address.map(mapped::unmap);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && over => break,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // The sender reset a connection that had not been accepted yet.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            error => error.map(drop).attempt(|| "accept a connection".to_owned())?,
        }
    }
    let endpoint = own_socket::observe(socket, peer)?;
    Ok(HostReport {
        received,
        counters: host::counters_since(before, &endpoint.interface, &[socket]),
        peak_rss_kib: sys::peak_rss_kib(),
        ..HostReport::new(Role::Receiver, endpoint)
    })
}
