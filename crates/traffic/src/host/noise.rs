//! The noise floor: what this host's clock, timers and sockets add to every figure.

use crate::sys::{self, Batch, Nanos};
use socket2::{Domain, Protocol, Socket, Type};
use stacklab_model::{EchoFloor, Family, NoiseFloor, Spread, Transport};
use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;
use std::{io, thread};

const READINGS: u64 = 100;
const BATCHES: u64 = 101;
/// Minimum number of samples: a 99th percentile needs this many. The number of sleeps, and the minimum of round
/// trips.
const LEAST: usize = 100;
const SLEEP: Duration = Duration::from_micros(500);
/// Target number of round trips and arrivals of each kind. The time limit applies once [`LEAST`] samples exist.
const ROUNDS: usize = 2000;
const LIMIT_NS: Nanos = 20_000_000;
/// Timeout of one message on loopback: a virtual machine may be paused for tens of milliseconds.
const LOST_NS: Nanos = 200_000_000;
const MESSAGE: usize = 64;

/// This host's noise floor, measured on the first call in a fifth of a second. Do not call it first during a
/// trial.
pub(crate) fn floor() -> NoiseFloor {
    static FLOOR: OnceLock<NoiseFloor> = OnceLock::new();
    // On a separate thread, to set its timers like the engine's without changing other threads.
    let measured = || thread::spawn(measure).join().expect("measuring the noise floor does not panic");
    FLOOR.get_or_init(measured).clone()
}

fn measure() -> NoiseFloor {
    sys::precise_timers();
    let (clock_read_ns, clock_read_least_ns, clock_step_ns) = clock();
    let kinds = Transport::ALL.iter().flat_map(|transport| Family::ALL.iter().map(|f| (*transport, *f)));
    NoiseFloor {
        clock_read_ns,
        clock_read_least_ns,
        clock_step_ns,
        timer_late: Spread::of((0..LEAST).map(|_| overslept()).collect()),
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
    let mut batch = || {
        let start = sys::now_ns();
        let mut last = start;
        for _ in 0..READINGS {
            let now = black_box(sys::now_ns());
            if now > last {
                step = step.min(now - last);
            }
            last = now;
        }
        (last - start) / READINGS
    };
    let mut batches: Vec<Nanos> = (0..BATCHES).map(|_| batch()).collect();
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
    sys::enable_rx_timestamps(&there)?;
    let mut rx = Batch::new(1, MESSAGE);
    let start = sys::now_ns();
    let mut delays = Vec::with_capacity(ROUNDS);
    while delays.len() < ROUNDS && (delays.len() < LEAST || sys::now_ns() - start < LIMIT_NS) {
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
    while times.len() < ROUNDS && (times.len() < LEAST || sys::now_ns() - begun < LIMIT_NS) {
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

pub(super) fn loopback(transport: Transport, family: Family) -> io::Result<[Socket; 2]> {
    let address = SocketAddr::new(family.loopback(), 0);
    let open = |kind, protocol| Socket::new(Domain::for_address(address), kind, Some(protocol));
    Ok(match transport {
        Transport::Udp => {
            let [here, there] = [open(Type::DGRAM, Protocol::UDP)?, open(Type::DGRAM, Protocol::UDP)?];
            here.bind(&address.into())?;
            there.bind(&address.into())?;
            here.connect(&there.local_addr()?)?;
            there.connect(&here.local_addr()?)?;
            [here, there]
        }
        Transport::Tcp => {
            let listener = open(Type::STREAM, Protocol::TCP)?;
            listener.bind(&address.into())?;
            listener.listen(1)?;
            let here = open(Type::STREAM, Protocol::TCP)?;
            here.connect(&listener.local_addr()?)?;
            let (there, _) = listener.accept()?;
            here.set_tcp_nodelay(true)?;
            there.set_tcp_nodelay(true)?;
            [here, there]
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn no_more_is_measured_than_a_percentile_takes_and_the_limit_allows() {
        let stamps = arrival_stamps().unwrap().len();
        let rounds = round_trips(Transport::Udp, Family::Ipv6).unwrap().len();
        assert!(
            (LEAST..=ROUNDS).contains(&stamps) && (LEAST..=ROUNDS).contains(&rounds),
            "{stamps}, {rounds}"
        );
    }

    #[test]
    fn a_message_that_never_comes_is_given_up() {
        let nothing = until_there(|| Err(io::ErrorKind::WouldBlock.into())).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::TimedOut);
    }
}
