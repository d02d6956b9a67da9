//! Facts, counters and capabilities of a host.

pub(crate) mod cpu;
pub mod facts;
pub mod files;
pub(crate) mod held_sockets;
pub mod names;
#[cfg(target_os = "linux")]
pub mod ping;
pub mod zone;

#[cfg(target_os = "linux")]
pub use crate::sys::{CpuLimit, cpu_limit};

use crate::sys::{self, Nanos, Socket};
use socket2::TcpKeepalive;
use stacklab_model::{Counters, Metric, TrialSpec};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the Unix epoch; 0 before it.
pub fn now_unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// Counters of this host (on Linux of its network namespace) and of an interface, as far as the host has them.
pub(crate) fn counters(interface: &str) -> Counters {
    Counters(sys::counters(interface))
}

/// Counters of an interface alone.
pub(crate) fn interface_counters(interface: &str) -> Counters {
    let mut counters = counters(interface);
    counters.0.retain(|name, _| name.starts_with("interface."));
    counters
}

/// The increase of each counter since an earlier reading, with the drops of the trial's own sockets.
pub(crate) fn counters_since(before: &Counters, interface: &str, sockets: &[&Socket]) -> Counters {
    increase(before, counters(interface), sockets)
}

/// The same with a later reading.
pub(crate) fn increase(before: &Counters, after: Counters, sockets: &[&Socket]) -> Counters {
    let moved = after.0.into_iter().filter_map(|(name, after)| {
        let by = after.checked_sub(before.get(&name)).filter(|by| *by > 0)?;
        Some((name, by))
    });
    let mut counters = Counters(moved.collect());
    if let drops @ 1.. = sockets.iter().filter_map(|socket| sys::socket_drops(socket).ok()).sum() {
        counters.0.insert("socket.drops".to_owned(), drops);
    }
    counters
}

/// Enables TCP keepalive, so that the kernel closes a connection whose peer is gone.
pub fn notice_a_dead_peer(socket: &socket2::Socket) -> io::Result<()> {
    let keepalive =
        TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(5));
    // Where packets are lost, what is lost is soon sent again, and not after a time that doubles.
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_thin_linear_timeouts(true);
    // Some systems choose the number of retries themselves.
    let thrice = keepalive.clone().with_retries(3);
    socket.set_tcp_keepalive(&thrice).or_else(|_| socket.set_tcp_keepalive(&keepalive))
}

/// Has both ends of a control connection send small segments: its messages then also arrive where large packets are
/// lost on the way and nobody says so. Before it is connected, or listens.
pub fn limit_segments(socket: &socket2::Socket) {
    // With headers the least MTU of IPv6, 1280 bytes. Where a system refuses, one end is enough.
    #[cfg(unix)]
    let _ = socket.set_tcp_mss(1220);
    #[cfg(windows)]
    let _ = socket;
}

const PERIOD: Duration = Duration::from_millis(10);
/// Maximum number of rows; beyond that, neighbouring rows are merged.
const MAX_ROWS: usize = 4096;

/// Samples the memory that TCP and UDP sockets hold, from its start to its [`SocketMemory::peak_kib`]. `None` inside if
/// nobody asks for it.
///
/// The kernel counts this memory per protocol for the whole machine, across network namespaces, and for both families
/// together (/proc/net/sockstat; sockstat6 has no such count).
pub(crate) struct SocketMemory(Option<(Sender<()>, JoinHandle<MemorySamples>)>);

impl SocketMemory {
    /// Starts sampling if the trial asks for the figure. It ends also when this is dropped.
    pub(crate) fn watch(spec: &TrialSpec) -> Self {
        let asked = spec.probe.metrics.contains(&Metric::MemorySockets);
        SocketMemory(asked.then(|| {
            let (stop, stopped) = channel();
            (stop, thread::spawn(move || sample(&stopped)))
        }))
    }

    /// The maximum between two moments, KiB; `None` without samples between them.
    pub(crate) fn peak_kib(self, from: Nanos, to: Nanos) -> Option<u64> {
        let (stop, sampler) = self.0?;
        drop(stop);
        Some(sampler.join().ok()?.peak(from, to)? / 1024)
    }
}

fn sample(stopped: &Receiver<()>) -> MemorySamples {
    let mut rows = MemorySamples::default();
    while let Some(bytes) = sys::socket_memory_bytes() {
        rows.add(sys::now_ns(), bytes);
        if stopped.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    rows
}

/// Samples in order of time. Each row is the maximum over a time span, so the number of rows is bounded.
#[derive(Default)]
struct MemorySamples(Vec<MemorySample>);

#[derive(Clone, Copy)]
struct MemorySample {
    first: Nanos,
    last: Nanos,
    bytes: u64,
}

impl MemorySamples {
    fn add(&mut self, at: Nanos, bytes: u64) {
        if self.0.len() == MAX_ROWS {
            self.0 = self.0.chunks(2).map(join_samples).collect();
        }
        self.0.push(MemorySample { first: at, last: at, bytes });
    }

    fn peak(&self, from: Nanos, to: Nanos) -> Option<u64> {
        let within = self.0.iter().filter(|row| row.last >= from && row.first <= to);
        within.map(|row| row.bytes).max()
    }
}

fn join_samples(pair: &[MemorySample]) -> MemorySample {
    MemorySample {
        first: pair[0].first,
        last: pair[pair.len() - 1].last,
        bytes: pair.iter().map(|row| row.bytes).max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::spec;
    use crate::sys::SocketOption;
    use stacklab_model::{Family, Transport};

    #[test]
    fn the_peak_is_the_windows_and_not_the_warm_ups() {
        let mut rows = MemorySamples::default();
        for (at, bytes) in [(10, 900), (20, 5), (30, 7), (40, 800)] {
            rows.add(at, bytes);
        }
        assert_eq!(rows.peak(15, 35), Some(7));
        assert_eq!(rows.peak(31, 39), None);
    }

    #[test]
    fn a_long_trial_keeps_few_rows_and_its_peak() {
        let mut rows = MemorySamples::default();
        for at in 0..100_000 {
            rows.add(at, if at == 77_777 { 1000 } else { at % 10 });
        }
        assert!(rows.0.len() <= MAX_ROWS, "{}", rows.0.len());
        assert_eq!(rows.peak(0, 100_000), Some(1000));
        assert_eq!(rows.peak(90_000, 100_000), Some(9));
    }

    #[test]
    fn socket_memory_is_seen_and_not_sampled_unasked() {
        let mut spec = spec(Family::Ipv4, Transport::Udp);
        let start = sys::now_ns();
        assert_eq!(SocketMemory::watch(&spec).peak_kib(start, u64::MAX), None);

        spec.probe.metrics = vec![Metric::MemorySockets];
        let memory = SocketMemory::watch(&spec);
        // More than the 1 MiB that a kernel reserves for each processor without counting it.
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = Socket::from(receiver.try_clone().unwrap());
        sys::set(&socket, SocketOption::ReceiveBuffer(16 << 20)).unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        for _ in 0..200 {
            sender.send(&[0; 60_000]).unwrap();
        }
        thread::sleep(5 * PERIOD);
        let room = socket.recv_buffer_size().unwrap() as u64 / 1024;
        let held = room.min(200 * 60_000 / 1024);
        let peak = memory.peak_kib(start, u64::MAX).unwrap();
        assert!(
            peak + 2048 * u64::from(sys::processors_online()) >= held && peak > 0,
            "{peak} of {held} KiB"
        );
    }
}
