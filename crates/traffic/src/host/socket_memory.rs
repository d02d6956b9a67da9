//! Kernel socket memory over a window, sampled.

use crate::sys::{self, Nanos};
use stacklab_model::{Metric, TrialSpec};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const PERIOD: Duration = Duration::from_millis(10);
/// Maximum number of rows; beyond that, neighbouring rows are merged.
const MOST_ROWS: usize = 4096;

/// Samples the memory that TCP and UDP sockets hold, from its start to its [`SocketMemory::peak_kib`].
///
/// The kernel counts this memory per protocol for the whole machine, across network namespaces, and for both families
/// together (/proc/net/sockstat; sockstat6 has no such count).
pub(crate) struct SocketMemory {
    ended: Arc<AtomicBool>,
    sampler: Option<JoinHandle<Rows>>,
}

impl SocketMemory {
    /// Starts sampling if the trial asks for the figure; otherwise costs nothing.
    pub(crate) fn watch(spec: &TrialSpec) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let asked = spec.probe.metrics.contains(&Metric::MemorySockets);
        let sampler = asked.then(|| {
            let ended = Arc::clone(&ended);
            thread::spawn(move || sample(&ended))
        });
        SocketMemory { ended, sampler }
    }

    /// The maximum between two moments, KiB; `None` without samples between them.
    pub(crate) fn peak_kib(mut self, from: Nanos, to: Nanos) -> Option<u64> {
        self.ended.store(true, Ordering::Relaxed);
        let rows = self.sampler.take()?.join().ok()?;
        Some(rows.peak(from, to)? / 1024)
    }
}

impl Drop for SocketMemory {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

fn sample(ended: &AtomicBool) -> Rows {
    let mut rows = Rows::default();
    while !ended.load(Ordering::Relaxed) {
        let Some(bytes) = sys::socket_memory_bytes() else { break };
        rows.add(sys::now_ns(), bytes);
        thread::sleep(PERIOD);
    }
    rows
}

/// Samples in order of time. Each row is the maximum over a time span, so the number of rows is bounded.
#[derive(Default)]
struct Rows(Vec<MemorySample>);

#[derive(Clone, Copy)]
struct MemorySample {
    first: Nanos,
    last: Nanos,
    bytes: u64,
}

impl Rows {
    fn add(&mut self, at: Nanos, bytes: u64) {
        if self.0.len() == MOST_ROWS {
            let join = |pair: &[MemorySample]| MemorySample {
                first: pair[0].first,
                last: pair[pair.len() - 1].last,
                bytes: pair.iter().map(|row| row.bytes).max().unwrap_or(0),
            };
            self.0 = self.0.chunks(2).map(join).collect();
        }
        self.0.push(MemorySample { first: at, last: at, bytes });
    }

    fn peak(&self, from: Nanos, to: Nanos) -> Option<u64> {
        let within = self.0.iter().filter(|row| row.last >= from && row.first <= to);
        within.map(|row| row.bytes).max()
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
        let mut rows = Rows::default();
        for (at, bytes) in [(10, 900), (20, 5), (30, 7), (40, 800)] {
            rows.add(at, bytes);
        }
        assert_eq!(rows.peak(15, 35), Some(7));
        assert_eq!(rows.peak(31, 39), None);
    }

    #[test]
    fn a_long_trial_keeps_few_rows_and_its_peak() {
        let mut rows = Rows::default();
        for at in 0..100_000 {
            rows.add(at, if at == 77_777 { 1000 } else { at % 10 });
        }
        assert!(rows.0.len() <= MOST_ROWS, "{}", rows.0.len());
        assert_eq!(rows.peak(0, 100_000), Some(1000));
        assert_eq!(rows.peak(90_000, 100_000), Some(9));
    }

    #[test]
    fn what_waits_in_a_socket_is_seen_and_nothing_is_sampled_unasked() {
        let mut spec = spec(Family::Ipv4, Transport::Udp);
        let start = sys::now_ns();
        assert_eq!(SocketMemory::watch(&spec).peak_kib(start, u64::MAX), None);

        spec.probe.metrics = vec![Metric::MemorySockets];
        let memory = SocketMemory::watch(&spec);
        // More than the 1 MiB that a kernel reserves for each processor without counting it.
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket: socket2::Socket = receiver.try_clone().unwrap().into();
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
