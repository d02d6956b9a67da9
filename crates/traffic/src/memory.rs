//! Memory of the kernel's sockets over a window, sampled.

use crate::sys::{self, Nanos};
use stacklab_model::{Metric, TrialSpec};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two samples.
const PERIOD: Duration = Duration::from_millis(10);
/// Rows kept at most; beyond that, neighbours are joined.
const MOST_ROWS: usize = 4096;

/// A sampler of the memory that TCP and UDP sockets hold, from its start to its [`SocketMemory::peak_kib`].
///
/// The kernel counts it per protocol for itself as a whole, whatever the network namespace, and both families together
/// (/proc/net/sockstat; sockstat6 has no such count).
pub struct SocketMemory {
    ended: Arc<AtomicBool>,
    sampler: Option<JoinHandle<Rows>>,
}

impl SocketMemory {
    /// Samples from now on, where the trial is asked for the figure; else costs nothing.
    pub fn watch(spec: &TrialSpec) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let asked = spec.probe.metrics.contains(&Metric::MemorySockets);
        let sampler = asked.then(|| {
            let ended = Arc::clone(&ended);
            thread::spawn(move || sample(&ended))
        });
        SocketMemory { ended, sampler }
    }

    /// The most that was seen between two moments, KiB; `None` where nothing was sampled between them.
    pub fn peak_kib(mut self, from: Nanos, to: Nanos) -> Option<u64> {
        self.ended.store(true, Ordering::Relaxed);
        let rows = self.sampler.take()?.join().ok()?;
        Some(rows.peak(from, to)? * sys::page_bytes() / 1024)
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
        let pages = fs::read_to_string("/proc/net/sockstat").ok().and_then(|text| pages(&text));
        let Some(pages) = pages else { break };
        rows.add(sys::now_ns(), pages);
        thread::sleep(PERIOD);
    }
    rows
}

/// Pages of TCP's and UDP's sockets together; `None` where neither is counted.
fn pages(sockstat: &str) -> Option<u64> {
    let of = |protocol: &str| -> Option<u64> {
        let line = sockstat.lines().find_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'))?;
        line.split_whitespace().skip_while(|word| *word != "mem").nth(1)?.parse().ok()
    };
    match (of("TCP"), of("UDP")) {
        (None, None) => None,
        (tcp, udp) => Some(tcp.unwrap_or(0) + udp.unwrap_or(0)),
    }
}

/// Samples in order of time, few enough however long a trial is: each row the most of a span of time.
#[derive(Default)]
struct Rows(Vec<Row>);

#[derive(Clone, Copy)]
struct Row {
    first: Nanos,
    last: Nanos,
    pages: u64,
}

impl Rows {
    fn add(&mut self, at: Nanos, pages: u64) {
        if self.0.len() == MOST_ROWS {
            let join = |pair: &[Row]| Row {
                first: pair[0].first,
                last: pair[pair.len() - 1].last,
                pages: pair.iter().map(|row| row.pages).max().unwrap_or(0),
            };
            self.0 = self.0.chunks(2).map(join).collect();
        }
        self.0.push(Row { first: at, last: at, pages });
    }

    fn peak(&self, from: Nanos, to: Nanos) -> Option<u64> {
        let within = self.0.iter().filter(|row| row.last >= from && row.first <= to);
        within.map(|row| row.pages).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conduct::tests::spec;
    use stacklab_model::{Family, Transport};

    #[test]
    fn pages_are_those_of_tcp_and_udp() {
        let text = "sockets: used 14\nTCP: inuse 1 orphan 0 tw 0 alloc 5 mem 37\nUDP: inuse 0 mem 4\n\
                    UDPLITE: inuse 0\nFRAG: inuse 0 memory 99\n";
        assert_eq!(pages(text), Some(41));
        assert_eq!(pages("UDP: inuse 0 mem 4\n"), Some(4));
        assert_eq!(pages("sockets: used 14\nTCP: inuse 1\n"), None);
        assert_eq!(pages(""), None);
    }

    #[test]
    fn the_peak_is_the_windows_and_not_the_warm_ups() {
        let mut rows = Rows::default();
        for (at, pages) in [(10, 900), (20, 5), (30, 7), (40, 800)] {
            rows.add(at, pages);
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
        // Beyond what a kernel sets aside for each processor without counting it, 1 MiB.
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket: socket2::Socket = receiver.try_clone().unwrap().into();
        sys::receive_room(&socket, 16 << 20).unwrap();
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
