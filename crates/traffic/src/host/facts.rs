//! Properties and capabilities of this host, each of which is tested, and its noise floor: what its clock, timers and
//! sockets add to every figure.

use crate::sys::{self, Batch, Nanos, Socket, SocketOption};
use socket2::{Domain, Type};
use stacklab_model::{EchoFloor, Family, HostFacts, NoiseFloor, Spread, Transport};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// Collects the facts, without the noise floor. Never fails: what cannot be read is empty, absent or zero.
pub fn collect() -> HostFacts {
    HostFacts {
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        cores: sys::processors_online(),
        abilities: abilities(),
        ..sys::host()
    }
}

/// Tests each capability on loopback, in both families where the family matters.
fn abilities() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut note = |name: String, result: io::Result<()>| {
        found.insert(name, result.map_or_else(|error| error.to_string(), |()| "yes".to_owned()));
    };
    for family in Family::ALL.iter().copied() {
        note(format!("tcp_segment_framing_{family}"), segment_framing(family));
    }
    note("socket_drop_count".to_owned(), socket_drop_count());
    note("kernel_pacing".to_owned(), kernel_pacing());
    note("transmit_stamps".to_owned(), transmit_stamps());
    note("hardware_stamps".to_owned(), hardware_stamps());
    found
}

/// Two sockets of this host; the second waits for a second at most.
fn connect_loopback(transport: Transport, family: Family) -> io::Result<[Socket; 2]> {
    let ends = loopback(transport, family)?;
    ends[1].set_read_timeout(Some(Duration::from_secs(1)))?;
    Ok(ends)
}

/// Whether messages sent with MSG_EOR leave in separate segments and TCP_INFO counts these segments.
fn segment_framing(family: Family) -> io::Result<()> {
    const MESSAGES: u64 = 5;
    let [sender, receiver] = connect_loopback(Transport::Tcp, family)?;
    for _ in 0..MESSAGES {
        sender.send_with_flags(&[1; 64], sys::SEND_EOR)?;
    }
    let mut all = [0; 64 * MESSAGES as usize];
    (&receiver).read_exact(&mut all)?;
    match sys::tcp_info(&sender)?.data_segs_out {
        Some(MESSAGES) => Ok(()),
        Some(segments) => Err(io::Error::other(format!("{MESSAGES} messages left in {segments} segments"))),
        None => Err(io::Error::other("TCP_INFO counts no segments")),
    }
}

fn kernel_socket(domain: Domain, kind: Type) -> io::Result<Socket> {
    Ok(Socket::from(socket2::Socket::new(domain, kind, None)?))
}

fn socket_drop_count() -> io::Result<()> {
    let socket = kernel_socket(Domain::IPV4, Type::DGRAM)?;
    sys::socket_drops(&socket).map(drop)
}

fn kernel_pacing() -> io::Result<()> {
    const MESSAGES: usize = 40;
    const BYTES: usize = 1000;
    // Forty messages in twenty milliseconds; the first ten of a connection are not paced.
    const RATE: u64 = 2_000_000;
    let [sender, receiver] = connect_loopback(Transport::Tcp, Family::Ipv4)?;
    sys::set(&sender, SocketOption::Pacing { bytes_per_second: RATE, waiting: 2 * BYTES })?;
    let start = sys::now_ns();
    for _ in 0..MESSAGES {
        sender.send_with_flags(&[1; BYTES], sys::SEND_EOR)?;
    }
    (&receiver).read_exact(&mut [0; BYTES * MESSAGES])?;
    let took = sys::now_ns() - start;
    let least = (MESSAGES / 2 * BYTES) as u64 * 1_000_000_000 / RATE;
    if took >= least {
        return Ok(());
    }
    let took = took / 1000;
    let least = least / 1000;
    Err(io::Error::other(format!("paced sends took {took} us, expected at least {least} us")))
}

fn transmit_stamps() -> io::Result<()> {
    let [sender, receiver] = connect_loopback(Transport::Udp, Family::Ipv4)?;
    sys::set(&sender, SocketOption::TxTimestamps)?;
    let before = sys::now_ns() as i64 + sys::realtime_offset().offset_ns;
    sender.send(&[1; 64])?;
    (&receiver).read_exact(&mut [0; 64])?;
    let (_, left) = sys::read_tx_timestamp(&sender, Duration::from_millis(100))?;
    let sys::TxTimestamp::Software(stamp) = left else { return Ok(()) };
    let late = stamp as i64 - before;
    if (-1_000_000..1_000_000_000).contains(&late) {
        Ok(())
    } else {
        Err(io::Error::other(format!("the stamp is {late} ns after the send")))
    }
}

fn hardware_stamps() -> io::Result<()> {
    let socket = kernel_socket(Domain::IPV4, Type::DGRAM)?;
    let names: Vec<String> = sys::interface_indices()?.into_iter().map(|(_, name)| name).collect();
    if names.iter().any(|name| sys::has_hardware_timestamps(&socket, name).unwrap_or(false)) {
        return Ok(());
    }
    Err(io::Error::other(format!("no interface does ({})", names.join(", "))))
}

const READINGS: u64 = 100;
const BATCHES: usize = 101;
/// Minimum number of samples: a 99th percentile needs this many. The number of sleeps, and the minimum of round
/// trips.
const MIN_ROUND_TRIPS: usize = 100;
const SLEEP: Duration = Duration::from_micros(500);
/// Target number of round trips and arrivals of each kind. The time limit applies once [`MIN_ROUND_TRIPS`] samples
/// exist.
const ROUNDS: usize = 2000;
const LIMIT_NS: Nanos = 20_000_000;
/// Timeout of one message on loopback: a virtual machine may be paused for tens of milliseconds.
const LOST_NS: Nanos = 200_000_000;
const MESSAGE: usize = 64;

/// This host's noise floor, measured on the first call in a fifth of a second. Do not call it first during a
/// trial.
pub(crate) fn floor() -> NoiseFloor {
    static FLOOR: OnceLock<NoiseFloor> = OnceLock::new();
    let floor = FLOOR.get_or_init(|| {
        // On a separate thread, to set its timers like the engine's without changing other threads.
        thread::spawn(measure).join().expect("measuring the noise floor does not panic")
    });
    floor.clone()
}

fn measure() -> NoiseFloor {
    sys::precise_timers();
    let (clock_read_ns, clock_read_least_ns, clock_step_ns) = clock();
    let kinds = Transport::ALL.iter().flat_map(|transport| Family::ALL.iter().map(|f| (*transport, *f)));
    NoiseFloor {
        clock_read_ns,
        clock_read_least_ns,
        clock_step_ns,
        timer_late: Spread::of((0..MIN_ROUND_TRIPS).map(|_| overslept()).collect()),
        arrival_stamp: arrival_stamps().ok().and_then(Spread::of),
        echoes: kinds
            .filter_map(|(transport, family)| {
                let round_trip = Spread::of(round_trips(transport, family).ok()?)?;
                Some(EchoFloor { transport, family, round_trip })
            })
            .collect(),
    }
}

/// Median and minimum duration of a clock reading, and the smallest step between two readings.
fn clock() -> (Nanos, Nanos, Nanos) {
    let mut step = Nanos::MAX;
    let mut batches = Vec::with_capacity(BATCHES);
    while batches.len() < BATCHES {
        let start = sys::now_ns();
        let mut last = start;
        for _ in 0..READINGS {
            let now = black_box(sys::now_ns());
            if now > last {
                step = step.min(now - last);
            }
            last = now;
        }
        batches.push((last - start) / READINGS);
    }
    batches.sort_unstable();
    (batches[batches.len() / 2], batches[0], step)
}

fn overslept() -> Nanos {
    let start = sys::now_ns();
    sys::sleep(SLEEP);
    (sys::now_ns() - start).saturating_sub(SLEEP.as_nanos() as Nanos)
}

/// Times from the kernel's receive timestamp of a datagram to the return of the receive call.
fn arrival_stamps() -> io::Result<Vec<Nanos>> {
    let [here, there] = pair(Transport::Udp, Family::Ipv4)?;
    sys::set(&there, SocketOption::RxTimestamps)?;
    let mut rx = Batch::new(1, MESSAGE);
    let start = sys::now_ns();
    let mut delays = Vec::with_capacity(ROUNDS);
    while delays.len() < ROUNDS && (delays.len() < MIN_ROUND_TRIPS || sys::now_ns() - start < LIMIT_NS) {
        sys::send(&here, &[0; MESSAGE], sys::SEND_PLAIN)?;
        until_there(|| rx.receive(&there, false))?;
        let now = sys::now_ns();
        let arrived = rx.recv_meta(0).software_rx_ns;
        let arrived = arrived.ok_or_else(|| io::Error::other("the kernel supports no receive timestamps"))?;
        delays.push((now as i64 - (arrived as i64 - sys::realtime_offset().offset_ns)).max(0) as Nanos);
    }
    Ok(delays)
}

/// Round-trip times of a message. One thread has both ends, so no processor has to be woken, and a host with a single
/// processor is measured like any other.
fn round_trips(transport: Transport, family: Family) -> io::Result<Vec<Nanos>> {
    let [here, there] = pair(transport, family)?;
    let mut message = [0; MESSAGE];
    let begun = sys::now_ns();
    let mut times = Vec::with_capacity(ROUNDS);
    while times.len() < ROUNDS && (times.len() < MIN_ROUND_TRIPS || sys::now_ns() - begun < LIMIT_NS) {
        let start = sys::now_ns();
        for [from, to] in [[&here, &there], [&there, &here]] {
            sys::send(from, &message, sys::SEND_PLAIN)?;
            // Messages of this size are never split, not even over TCP.
            until_there(|| sys::receive_now(to, &mut message))?;
        }
        times.push(sys::now_ns() - start);
    }
    Ok(times)
}

fn until_there(mut receive: impl FnMut() -> io::Result<usize>) -> io::Result<()> {
    let start = sys::now_ns();
    loop {
        match receive() {
            Ok(1..) => return Ok(()),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if sys::now_ns() - start > LOST_NS => return Err(io::ErrorKind::TimedOut.into()),
            Err(_) => thread::yield_now(),
        }
    }
}

fn pair(transport: Transport, family: Family) -> io::Result<[Socket; 2]> {
    let ends = loopback(transport, family)?;
    ends.iter().try_for_each(sys::set_timeouts)?;
    Ok(ends)
}

fn loopback(transport: Transport, family: Family) -> io::Result<[Socket; 2]> {
    let address = SocketAddr::new(family.loopback(), 0);
    Ok(match transport {
        Transport::Udp => {
            let [here, there] = [UdpSocket::bind(address)?, UdpSocket::bind(address)?];
            here.connect(there.local_addr()?)?;
            there.connect(here.local_addr()?)?;
            [here.into(), there.into()]
        }
        Transport::Tcp => {
            let listener = TcpListener::bind(address)?;
            let here = TcpStream::connect(listener.local_addr()?)?;
            let (there, _) = listener.accept()?;
            here.set_nodelay(true)?;
            there.set_nodelay(true)?;
            [here.into(), there.into()]
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ability_is_found_or_has_a_reason() {
        let all = abilities();
        for name in ["tcp_segment_framing_ipv6", "kernel_pacing", "transmit_stamps"] {
            assert_eq!(all[name], "yes", "{name}");
        }
        assert!(!all["hardware_stamps"].is_empty());
        // No loopback interface is hardware.
        let socket = kernel_socket(Domain::IPV4, Type::DGRAM).unwrap();
        assert!(!sys::has_hardware_timestamps(&socket, "lo").unwrap_or(false));
    }

    #[test]
    fn the_floor_is_measured_of_every_kind_and_once() {
        let found = floor();
        assert!(
            found.clock_read_least_ns > 0 && found.clock_read_least_ns <= found.clock_read_ns,
            "{found:?}"
        );
        assert!(found.clock_step_ns >= 1 && found.clock_step_ns < 1_000_000, "{found:?}");
        assert!(found.timer_late.is_some() && found.arrival_stamp.is_some(), "{found:?}");
        assert_eq!(found.echoes.len(), Transport::ALL.len() * Family::ALL.len(), "{found:?}");
        for EchoFloor { round_trip, .. } in &found.echoes {
            // At least four system calls, each longer than a clock reading.
            assert!(round_trip.median_ns > 4 * found.clock_read_least_ns, "{found:?}");
            assert!(round_trip.median_ns <= round_trip.p99_ns, "{found:?}");
        }
        // A second measurement would not give the same figures.
        assert_eq!(floor(), found);
    }

    #[test]
    fn measures_enough_for_a_percentile_within_the_limit() {
        let stamps = arrival_stamps().unwrap().len();
        let rounds = round_trips(Transport::Udp, Family::Ipv6).unwrap().len();
        assert!(
            (MIN_ROUND_TRIPS..=ROUNDS).contains(&stamps) && (MIN_ROUND_TRIPS..=ROUNDS).contains(&rounds),
            "{stamps}, {rounds}"
        );
    }

    #[test]
    fn a_message_that_never_comes_is_given_up() {
        let nothing = until_there(|| Err(io::ErrorKind::WouldBlock.into())).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::TimedOut);
    }
}
