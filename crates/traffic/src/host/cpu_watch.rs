//! Processor times that are read all the time, for the CPU time of a window that is known only when it is over.

use super::cpu::{CpuWindow, Snapshot};
use crate::sys::{CpuReader, Nanos};
use stacklab_model::{CpuScope, CpuTime};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two readings, each of which takes some ten microseconds.
const INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of readings. Of more, every second one is kept, and the time between two doubles.
const MOST: usize = 10_000;

/// Reads the processor times of this host until it is asked for a window, or dropped.
pub(crate) struct CpuWatch {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Snapshot>>,
}

impl CpuWatch {
    pub(crate) fn begin() -> io::Result<Self> {
        let (stop, stopped) = channel();
        let thread =
            thread::Builder::new().name("cpu watch".to_owned()).spawn(move || read(&stopped, INTERVAL))?;
        Ok(CpuWatch { stop, thread })
    }

    /// The CPU time of this host between the first reading from `from_ns` on and the last one up to `to_ns`,
    /// nanoseconds of its monotonic clock. `None` if there are no two readings between, or the host counts none.
    pub(crate) fn between(self, from_ns: Nanos, to_ns: Nanos) -> Option<CpuTime> {
        drop(self.stop);
        window(&self.thread.join().ok()?, from_ns, to_ns)
    }
}

fn read(stopped: &Receiver<()>, mut interval: Duration) -> Vec<Snapshot> {
    let mut reader = CpuReader::new(Vec::new());
    let mut readings = Vec::new();
    loop {
        readings.push(Snapshot::take(&mut reader));
        if readings.len() == MOST {
            thin(&mut readings);
            interval *= 2;
        }
        if stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
            return readings;
        }
    }
}

fn thin<T>(readings: &mut Vec<T>) {
    let mut place = 0;
    readings.retain(|_| {
        place += 1;
        place % 2 == 1
    });
}

fn window(readings: &[Snapshot], from_ns: Nanos, to_ns: Nanos) -> Option<CpuTime> {
    let mut within = readings.iter().filter(|reading| (from_ns..=to_ns).contains(&reading.at_ns()));
    let (first, last) = (within.next()?, within.next_back()?);
    CpuWindow::of(CpuScope::Shared, *first, *last).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;
    use std::hint::spin_loop;

    #[test]
    fn the_window_is_told_and_nothing_else() {
        let watch = CpuWatch::begin().unwrap();
        thread::sleep(3 * INTERVAL);
        let from_ns = sys::now_ns();
        while sys::now_ns() < from_ns + 300_000_000 {
            spin_loop();
        }
        let to_ns = sys::now_ns();
        thread::sleep(3 * INTERVAL);
        let time = watch.between(from_ns, to_ns).unwrap();
        // Without up to an interval at each end, and what a busy machine adds to it.
        assert!(time.window_ns <= to_ns - from_ns, "{time:?}");
        assert!(time.window_ns > 20_000_000, "{time:?}");
        // One processor at least was busy all the time, but for what it gave to others.
        assert!(time.busy_ns() + time.steal_ns > time.window_ns / 2, "{time:?}");
    }

    #[test]
    fn a_window_without_readings_has_no_time() {
        let watch = || CpuWatch::begin().unwrap();
        assert_eq!(watch().between(0, 1), None);
        assert_eq!(watch().between(u64::MAX, 0), None);
    }

    #[test]
    fn of_many_readings_every_second_one_is_kept() {
        let mut readings: Vec<u32> = (0..7).collect();
        thin(&mut readings);
        assert_eq!(readings, [0, 2, 4, 6]);
    }
}
