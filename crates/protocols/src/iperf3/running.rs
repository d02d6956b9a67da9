//! The streams of one test, each on a separate thread.

use stacklab_traffic::foreign::{Counted, SentCounts, Stream, Way, now_ns};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a stream may take to end by itself; then its socket is shut.
const GRACE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(2);

/// Streams under way. They end when this is dropped.
pub(crate) struct RunningStreams {
    streams: Vec<(Arc<Stream>, Way)>,
    threads: Vec<JoinHandle<Counted>>,
    stop: Arc<AtomicBool>,
    progress: Arc<Vec<AtomicU64>>,
    omit_until_ns: u64,
}

impl RunningStreams {
    /// Starts all streams. The first `omit_ns` do not count.
    pub(crate) fn start(streams: Vec<(Arc<Stream>, Way)>, omit_ns: u64) -> io::Result<Self> {
        let progress = Arc::new(streams.iter().map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
        let omit_until_ns = now_ns() + omit_ns;
        let mut running =
            RunningStreams { streams, threads: Vec::new(), stop: Arc::default(), progress, omit_until_ns };
        for place in 0..running.streams.len() {
            let (stream, way) = &running.streams[place];
            let (stream, way) = (Arc::clone(stream), *way);
            let (stop, progress) = (Arc::clone(&running.stop), Arc::clone(&running.progress));
            let work = move || match way {
                Way::Send => Counted::Sent(stream.send(omit_ns, &stop, &progress[place])),
                Way::Receive => Counted::Received(stream.receive(omit_until_ns, &stop, &progress[place])),
            };
            // On an error the streams that run are stopped as this is dropped.
            running.threads.push(thread::Builder::new().name(format!("stream {place}")).spawn(work)?);
        }
        Ok(running)
    }

    /// When the measured part begins.
    pub(crate) fn omit_until_ns(&self) -> u64 {
        self.omit_until_ns
    }

    /// Measured bytes so far of all streams in one direction.
    pub(crate) fn bytes(&self, way: Way) -> u64 {
        let of = self.streams.iter().zip(self.progress.iter()).filter(|((_, own), _)| *own == way);
        of.map(|(_, bytes)| bytes.load(Ordering::Relaxed)).sum()
    }

    /// Whether all streams in one direction have ended.
    pub(crate) fn is_over(&self, way: Way) -> bool {
        self.streams.iter().zip(&self.threads).all(|((_, own), thread)| *own != way || thread.is_finished())
    }

    /// The streams, in the order in which they were given.
    pub(crate) fn streams(&self) -> &[(Arc<Stream>, Way)] {
        &self.streams
    }

    /// Stops all streams, and waits for what they counted, in the order in which they were given.
    pub(crate) fn finish(mut self) -> Vec<Counted> {
        self.stop_all();
        self.threads
            .drain(..)
            .map(|thread| thread.join().unwrap_or_else(|_| Counted::Sent(SentCounts::default())))
            .collect()
    }

    fn stop_all(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let start = Instant::now();
        while !self.threads.iter().all(JoinHandle::is_finished) {
            if start.elapsed() > GRACE {
                self.streams.iter().for_each(|(stream, _)| stream.shut());
                return;
            }
            thread::sleep(LOOK);
        }
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
