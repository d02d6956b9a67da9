//! The streams of a test, each on a separate thread: their settings for the engine, and their counts for the peer.

use crate::iperf3::{Parameters, StreamResult, read_header, stream_id, write_header};
use stacklab_model::{Cell, Family, Length, Pacing, Probe, ProbeSpec, SizeOf, Transport, TrialSpec, Tuning};
use stacklab_traffic::foreign::{Counted, ForeignFormat, SentCounts, Stream, Way, now_ns};
use std::io;
use std::iter::repeat_n;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub(super) fn format(parameters: &Parameters) -> ForeignFormat {
    match (parameters.transport, parameters.long_counters) {
        (Transport::Tcp, _) => ForeignFormat::Bytes,
        (Transport::Udp, true) => ForeignFormat::Datagrams {
            write: |own, room| write_header(own, 8, room),
            read: |message| read_header(8, message),
        },
        (Transport::Udp, false) => ForeignFormat::Datagrams {
            write: |own, room| write_header(own, 4, room),
            read: |message| read_header(4, message),
        },
    }
}

/// The engine's parameters of one stream: a block per call, as iperf3 sends them.
pub(super) fn stream_spec(parameters: &Parameters, family: Family, length: Length) -> TrialSpec {
    let Parameters { transport, block_bytes, bandwidth, omit_s, .. } = *parameters;
    let pacing = if bandwidth > 0 {
        Pacing::Schedule(bandwidth as f64 / 8.0 / f64::from(block_bytes))
    } else {
        Pacing::Flood
    };
    let probe = ProbeSpec {
        probe: Probe::Stream,
        pacing,
        length,
        warmup_ns: u64::from(omit_s) * 1_000_000_000,
        interval_ns: 1_000_000_000,
        metrics: Vec::new(),
    };
    let mut spec = TrialSpec::new(0, &Cell::new(family, transport, SizeOf::Write, block_bytes), probe);
    let is_tcp = transport == Transport::Tcp;
    *spec.tuning = Tuning {
        send_buffer: parameters.window,
        receive_buffer: parameters.window,
        mss: parameters.mss.filter(|_| is_tcp),
        nodelay: is_tcp.then_some(parameters.nodelay),
        congestion_control: parameters.congestion.clone().filter(|_| is_tcp),
        dscp: (parameters.tos > 0).then_some(parameters.tos >> 2),
        ..Tuning::default()
    };
    spec
}

/// Which way each stream of a test goes, seen from the client, in the order in which it opens them.
pub(super) fn ways(parameters: &Parameters) -> Vec<Way> {
    let Parameters { parallel, reverse, bidirectional, .. } = *parameters;
    let mut ways = Vec::new();
    if bidirectional || !reverse {
        ways.extend(repeat_n(Way::Send, parallel as usize));
    }
    if bidirectional || reverse {
        ways.extend(repeat_n(Way::Receive, parallel as usize));
    }
    ways
}

/// The counts of streams for the peer. The measured part begins at `begin_ns`; a receiver counts until `end_ns`, as
/// iperf3's does, and not only until the last arrival.
pub(super) fn results_of(
    streams: &[(Arc<Stream>, Way)],
    counted: &[Counted],
    block_bytes: u32,
    begin_ns: u64,
    end_ns: u64,
) -> Vec<StreamResult> {
    let seconds = |last_ns: u64| last_ns.saturating_sub(begin_ns) as f64 / 1e9;
    let mut results = Vec::new();
    for (place, ((stream, _), counted)) in streams.iter().zip(counted).enumerate() {
        let id = stream_id(place);
        results.push(match counted {
            Counted::Sent(counts) => StreamResult {
                id,
                bytes: counts.measured * u64::from(block_bytes),
                retransmits: stream.retransmits(),
                packets: counts.omitted + counts.measured,
                omitted_packets: counts.omitted,
                seconds: seconds(counts.last_ns),
                ..StreamResult::default()
            },
            Counted::Received(counts) => StreamResult {
                id,
                bytes: counts.bytes,
                jitter_s: counts.jitter_ns / 1e9,
                errors: counts.lost,
                omitted_errors: counts.omitted_lost,
                packets: counts.next,
                omitted_packets: counts.omitted_next,
                seconds: seconds(counts.last_ns.max(end_ns)),
                ..StreamResult::default()
            },
        });
    }
    results
}

/// How long a stream may take to end by itself; then its socket is shut.
const GRACE: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Streams under way. They end when this is dropped.
pub(super) struct RunningStreams {
    /// In the order in which they were given.
    pub streams: Vec<(Arc<Stream>, Way)>,
    threads: Vec<JoinHandle<Counted>>,
    stop: Arc<AtomicBool>,
    progress: Arc<Vec<AtomicU64>>,
    /// When the measured part begins.
    begin_ns: Arc<AtomicU64>,
}

impl RunningStreams {
    /// Starts all streams. The first `omit_ns` do not count.
    pub(super) fn start(streams: Vec<(Arc<Stream>, Way)>, omit_ns: u64) -> io::Result<Self> {
        Self::start_from(streams, omit_ns, now_ns() + omit_ns)
    }

    /// Starts streams that only receive, before the peer may send: on a busy machine what arrives would wait, and the
    /// measured time begin when it is read. An omitted part lasts until [`Self::measure_from`].
    pub(super) fn receive_early(streams: Vec<(Arc<Stream>, Way)>, omits: bool) -> io::Result<Self> {
        Self::start_from(streams, 0, if omits { u64::MAX } else { 0 })
    }

    /// Ends the omitted part at a time.
    pub(super) fn measure_from(&self, begin_ns: u64) {
        self.begin_ns.store(begin_ns, Ordering::Relaxed);
    }

    /// When the measured part begins.
    pub(super) fn begin_ns(&self) -> u64 {
        self.begin_ns.load(Ordering::Relaxed)
    }

    fn start_from(streams: Vec<(Arc<Stream>, Way)>, omit_ns: u64, begin_ns: u64) -> io::Result<Self> {
        let progress = Arc::new(streams.iter().map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
        let begin_ns = Arc::new(AtomicU64::new(begin_ns));
        let mut running =
            RunningStreams { streams, threads: Vec::new(), stop: Arc::default(), progress, begin_ns };
        for place in 0..running.streams.len() {
            let (stream, way) = &running.streams[place];
            let stream = Arc::clone(stream);
            let way = *way;
            let stop = Arc::clone(&running.stop);
            let progress = Arc::clone(&running.progress);
            let begin_ns = Arc::clone(&running.begin_ns);
            let builder = thread::Builder::new().name(format!("stream {place}"));
            let thread = builder.spawn(move || match way {
                Way::Send => Counted::Sent(stream.send(omit_ns, &stop, &progress[place])),
                Way::Receive => Counted::Received(stream.receive(&begin_ns, &stop, &progress[place])),
            });
            // On an error the streams that run are stopped as this is dropped.
            running.threads.push(thread?);
        }
        Ok(running)
    }

    /// Measured bytes so far of all streams in one direction.
    pub(super) fn bytes(&self, way: Way) -> u64 {
        let of = self.streams.iter().zip(self.progress.iter()).filter(|((_, own), _)| *own == way);
        of.map(|(_, bytes)| bytes.load(Ordering::Relaxed)).sum()
    }

    /// Whether all streams in one direction have ended.
    pub(super) fn is_over(&self, way: Way) -> bool {
        self.streams.iter().zip(&self.threads).all(|((_, own), thread)| *own != way || thread.is_finished())
    }

    /// Stops all streams, and waits for what they counted, in the order in which they were given.
    pub(super) fn finish(mut self) -> Vec<Counted> {
        self.stop.store(true, Ordering::Relaxed);
        let start = Instant::now();
        while !self.threads.iter().all(JoinHandle::is_finished) {
            if start.elapsed() > GRACE {
                self.streams.iter().for_each(|(stream, _)| stream.shut());
                break;
            }
            thread::sleep(POLL_INTERVAL);
        }
        let ended = self.threads.drain(..).map(JoinHandle::join);
        ended.map(|counted| counted.unwrap_or_else(|_| Counted::Sent(SentCounts::default()))).collect()
    }
}

impl Drop for RunningStreams {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if !self.threads.is_empty() {
            self.streams.iter().for_each(|(stream, _)| stream.shut());
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_traffic::foreign::ForeignHeader;

    #[test]
    fn stream_has_the_rate_and_size_the_client_names() {
        let parameters = Parameters {
            bandwidth: 8_000_000,
            tos: 0xb8,
            mss: Some(1000),
            omit_s: 1,
            ..Parameters::new(Transport::Tcp, 1000)
        };
        let spec = stream_spec(&parameters, Family::Ipv6, Length::Time(5));
        assert_eq!((spec.probe.pacing, spec.message_bytes), (Pacing::Schedule(1000.0), 1000));
        assert_eq!(
            (spec.tuning.dscp, spec.tuning.mss, spec.tuning.nodelay),
            (Some(46), Some(1000), Some(false))
        );
        let udp = Parameters::new(Transport::Udp, 1000);
        assert_eq!(*stream_spec(&udp, Family::Ipv4, Length::Time(5)).tuning, Tuning::default());
    }

    #[test]
    fn the_first_datagram_has_number_one() {
        for long_counters in [true, false] {
            let parameters = Parameters { long_counters, ..Parameters::new(Transport::Udp, 100) };
            let ForeignFormat::Datagrams { write, read } = format(&parameters) else { panic!() };
            let mut message = [0; 100];
            let first = ForeignHeader { sequence: 0, sent_ns: 2_000 };
            write(first, &mut message);
            assert_eq!(message[if long_counters { 15 } else { 11 }], 1);
            assert_eq!(read(&message), Some(first));
        }
    }
}
