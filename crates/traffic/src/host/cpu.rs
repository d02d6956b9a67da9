//! CPU time of a host over a window, also over one that is known only when it is over.

use crate::sys::{self, CpuReader, CpuTimes, MeasuredIdle, Nanos};
use stacklab_model::{CpuScope, CpuSource, CpuTime, Slice};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Whether no other host shares this host's kernel, whatever the trial says of all hosts.
static ALONE: AtomicBool = AtomicBool::new(false);

/// Declares that no other host shares this host's kernel and processors.
pub(crate) fn alone() {
    ALONE.store(true, Ordering::Relaxed);
}

#[derive(Clone, Copy)]
struct Snapshot {
    at_ns: Nanos,
    times: Option<CpuTimes>,
    own: (u64, u64),
}

impl Snapshot {
    fn take(reader: &mut CpuReader) -> Self {
        let times = reader.read();
        Snapshot { at_ns: sys::now_ns(), times, own: sys::own_cpu_ns() }
    }
}

/// CPU time of the threads of an arm over its slices; `None` if not counted. User and kernel time of all that they did
/// divide it.
pub(crate) fn of_slices(slices: &[Slice], parts: Option<(Nanos, Nanos)>) -> Option<CpuTime> {
    let busy_ns: Option<u64> =
        slices.iter().filter(|slice| slice.messages > 0).map(|slice| slice.cpu_ns).sum();
    let window_ns = slices.iter().map(|slice| slice.last_ns.saturating_sub(slice.first_ns)).sum();
    let busy_ns = busy_ns.filter(|_| !slices.is_empty())?;
    let share = parts.map_or(0.0, |(user, kernel)| user as f64 / (user + kernel).max(1) as f64);
    let user_ns = (busy_ns as f64 * share) as u64;
    Some(CpuTime {
        scope: CpuScope::Threads,
        source: Some(CpuSource::ThreadClocks),
        window_ns,
        user_ns,
        system_ns: busy_ns.saturating_sub(user_ns),
        irq_ns: 0,
        softirq_ns: 0,
        idle_ns: window_ns.saturating_sub(busy_ns),
        steal_ns: 0,
        undivided: parts.is_none(),
        own_user_ns: user_ns,
        own_system_ns: busy_ns.saturating_sub(user_ns),
    })
}

pub(crate) struct CpuWindow {
    scope: CpuScope,
    /// Allocated in advance, so that opening and closing a window does not allocate.
    reader: CpuReader,
    opened: Option<Snapshot>,
    closed: Option<Snapshot>,
}

impl CpuWindow {
    pub(crate) fn new(scope: CpuScope) -> Self {
        let scope = if ALONE.load(Ordering::Relaxed) { CpuScope::Host } else { scope };
        // An empty list means all processors.
        let processors = match scope {
            CpuScope::Processors => sys::allowed_processors().collect(),
            _ => Vec::new(),
        };
        CpuWindow { scope, reader: CpuReader::new(processors), opened: None, closed: None }
    }

    pub(crate) fn open(&mut self) {
        self.opened = Some(Snapshot::take(&mut self.reader));
    }

    /// Closes the window; only the first call counts.
    pub(crate) fn close(&mut self) {
        if self.closed.is_none() {
            self.closed = Some(Snapshot::take(&mut self.reader));
        }
    }

    /// From the first opening of two threads of a host to the last closing.
    pub(crate) fn join(&mut self, other: CpuWindow) {
        let opened = self.opened.into_iter().chain(other.opened);
        let closed = self.closed.into_iter().chain(other.closed);
        self.opened = opened.min_by_key(|snapshot| snapshot.at_ns);
        self.closed = closed.max_by_key(|snapshot| snapshot.at_ns);
    }

    /// The CPU time from opening to closing, or to now. `None` if the host counts none, or the window was not open.
    pub(crate) fn finish(mut self) -> Option<CpuTime> {
        self.close();
        let from = self.opened?;
        let to = self.closed?;
        if to.at_ns < from.at_ns {
            return None;
        }
        let before = from.times?;
        let after = to.times?;
        // Counters of idle processors may step back by a tick. That counts as zero.
        let ns = |read: fn(CpuTimes) -> u64| read(after).saturating_sub(read(before));
        let counted = CpuTime {
            scope: self.scope,
            source: Some(CpuSource::Ticks),
            window_ns: to.at_ns - from.at_ns,
            user_ns: ns(|times| times.user_ns),
            system_ns: ns(|times| times.system_ns),
            irq_ns: ns(|times| times.irq_ns),
            softirq_ns: ns(|times| times.softirq_ns),
            idle_ns: ns(|times| times.idle_ns),
            steal_ns: ns(|times| times.steal_ns),
            undivided: after.undivided,
            own_user_ns: to.own.0.saturating_sub(from.own.0),
            own_system_ns: to.own.1.saturating_sub(from.own.1),
        };
        Some(match before.measured_idle.zip(after.measured_idle) {
            Some((before, after)) if before.processors == after.processors => {
                by_idle_time(counted, before, after)
            }
            _ => counted,
        })
    }
}

/// Takes busy time from what idle and stolen time leave of the window. Ticks find what runs at their moments, and miss
/// most of what timers wake up for less than a tick: they say only how busy time divides, as the kernel itself divides
/// a thread's time by them. If they found nothing, all is system time.
fn by_idle_time(counted: CpuTime, before: MeasuredIdle, after: MeasuredIdle) -> CpuTime {
    // Residency tells microseconds, but lacks the periods under way, and some drivers count interrupts in it. So it
    // must not contradict the idle time by more than this one's ticks.
    let residency = after.residency_ns.zip(before.residency_ns).map(|(now, then)| now.saturating_sub(then));
    let fit = residency.filter(|residency| residency.abs_diff(counted.idle_ns) <= after.step_ns);
    let (idle_ns, source) = match fit {
        Some(residency_ns) => (residency_ns, CpuSource::IdleResidency),
        None => (counted.idle_ns, CpuSource::IdleTime),
    };
    let whole_ns = counted.window_ns.saturating_mul(after.processors.into());
    let busy_ns = whole_ns.saturating_sub(idle_ns).saturating_sub(counted.steal_ns);
    let found_ns = counted.busy_ns().max(1);
    let part = |ns: Nanos| (u128::from(ns) * u128::from(busy_ns) / u128::from(found_ns)) as Nanos;
    let user_ns = part(counted.user_ns);
    let irq_ns = part(counted.irq_ns);
    let softirq_ns = part(counted.softirq_ns);
    let system_ns = busy_ns.saturating_sub(user_ns).saturating_sub(irq_ns).saturating_sub(softirq_ns);
    CpuTime { source: Some(source), user_ns, system_ns, irq_ns, softirq_ns, idle_ns, ..counted }
}

/// Time between two readings, each of which takes some ten microseconds.
const INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of readings. Of more, every second one is kept, and the time between two doubles.
const MAX_READINGS: usize = 10_000;

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
        if readings.len() == MAX_READINGS {
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
    let mut within = readings.iter().filter(|reading| (from_ns..=to_ns).contains(&reading.at_ns));
    let first = within.next()?;
    let last = within.next_back()?;
    CpuWindow { opened: Some(*first), closed: Some(*last), ..CpuWindow::new(CpuScope::Shared) }.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;
    use std::hint::spin_loop;

    /// 100 ms of two processors, of which ticks found 20 ms, half of it user time, and 5 ms were stolen.
    fn by_idle(idle_ns: Nanos, residency: [Option<Nanos>; 2]) -> CpuTime {
        let counted = CpuTime {
            scope: CpuScope::Host,
            source: Some(CpuSource::Ticks),
            window_ns: 100,
            user_ns: 10,
            system_ns: 4,
            irq_ns: 0,
            softirq_ns: 6,
            idle_ns,
            steal_ns: 5,
            undivided: false,
            own_user_ns: 1,
            own_system_ns: 1,
        };
        let [before, after] =
            residency.map(|residency_ns| MeasuredIdle { processors: 2, step_ns: 10, residency_ns });
        by_idle_time(counted, before, after)
    }

    #[test]
    fn busy_time_is_what_idle_and_stolen_time_leave() {
        let time = by_idle(150, [None, None]);
        assert_eq!((time.busy_ns(), time.idle_ns, time.source), (45, 150, Some(CpuSource::IdleTime)));
        assert_eq!((time.user_ns, time.system_ns, time.softirq_ns), (22, 10, 13));
        // More idle time than there is.
        assert_eq!(by_idle(300, [None, None]).busy_ns(), 0);
    }

    #[test]
    fn residency_counts_unless_idle_time_contradicts_it() {
        for (residency, busy_ns) in [(157, 38), (160, 35), (140, 55)] {
            let time = by_idle(150, [Some(1000), Some(1000 + residency)]);
            assert_eq!((time.busy_ns(), time.source), (busy_ns, Some(CpuSource::IdleResidency)));
        }
        // It stands still, has the interrupts in it, steps back, or is there no longer.
        for after in [Some(1000), Some(1161), Some(0), None] {
            let time = by_idle(150, [Some(1000), after]);
            assert_eq!((time.busy_ns(), time.source), (45, Some(CpuSource::IdleTime)), "{after:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn work_between_ticks_is_found() {
        // A little work after each sleep: ticks find two thirds of it.
        let pinned = std::thread::spawn(|| {
            sys::pin_thread(sys::allowed_processors().next().unwrap()).unwrap();
            let mut window = CpuWindow::new(CpuScope::Processors);
            window.open();
            let began = read_thread_clock();
            for _ in 0..4000 {
                std::thread::sleep(std::time::Duration::from_micros(50));
                let waking = read_thread_clock();
                while read_thread_clock() - waking < 50_000 {}
            }
            (read_thread_clock() - began, window.finish().unwrap())
        });
        let (worked_ns, time) = pinned.join().unwrap();
        assert!(worked_ns >= 200_000_000 && time.source != Some(CpuSource::Ticks), "{time:?}");
        // The processor was busy for at least as long, whatever else it did. Idle and waiting time are told in ticks.
        let least_ns = worked_ns.saturating_sub(2 * sys::tick_ns() + time.steal_ns);
        assert!((least_ns..=time.window_ns).contains(&time.busy_ns()), "{worked_ns} of {time:?}");
    }

    #[cfg(target_os = "linux")]
    fn read_thread_clock() -> Nanos {
        sys::thread_cpu_ns().unwrap()
    }

    /// Computes until this thread has had 100 ms of a processor. Returns how long that took: on a busy machine longer.
    #[cfg(target_os = "linux")]
    fn compute() -> Nanos {
        let began_ns = sys::now_ns();
        let had_ns = read_thread_clock();
        while read_thread_clock() - had_ns < 100_000_000 {
            spin_loop();
        }
        sys::now_ns() - began_ns
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn counts_what_this_thread_computed() {
        let mut window = CpuWindow::new(CpuScope::Host);
        window.open();
        let lasted_ns = compute();
        let time = window.finish().unwrap();
        assert!(time.window_ns >= lasted_ns, "{time:?}");
        // Ticks of the whole machine count in steps, at both ends of the window, and take what was stolen from this
        // thread for time of its own.
        let least_ns = 100_000_000 - 2 * sys::tick_ns();
        assert!(time.busy_ns() + time.steal_ns >= least_ns, "{time:?}");
        // The kernel rounds both parts to microseconds.
        assert!(time.own_user_ns + time.own_system_ns + 2_000 >= 100_000_000, "{time:?}");
    }

    #[test]
    fn windows_of_two_threads_join_into_one() {
        let mut windows = [CpuWindow::new(CpuScope::Host), CpuWindow::new(CpuScope::Host)];
        windows.iter_mut().for_each(CpuWindow::open);
        windows.iter_mut().for_each(CpuWindow::close);
        let [mut one, two] = windows;
        let first = one.opened.unwrap().at_ns;
        let last = two.closed.unwrap().at_ns;
        one.join(two);
        assert_eq!(one.opened.unwrap().at_ns, first);
        assert_eq!(one.closed.unwrap().at_ns, last);
        let mut unopened = CpuWindow::new(CpuScope::Host);
        unopened.join(one);
        assert_eq!(unopened.finish().unwrap().window_ns, last - first);
    }

    #[test]
    fn a_window_that_was_closed_first_has_no_time() {
        let mut window = CpuWindow::new(CpuScope::Host);
        window.close();
        std::thread::sleep(std::time::Duration::from_millis(1));
        window.open();
        assert_eq!(window.finish(), None);
    }

    #[test]
    fn a_window_that_never_opened_has_no_time() {
        assert_eq!(CpuWindow::new(CpuScope::Host).finish(), None);
    }

    #[test]
    fn a_watch_covers_the_window_alone() {
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
        for (from_ns, to_ns) in [(0, 1), (u64::MAX, 0)] {
            let watch = CpuWatch::begin().unwrap();
            assert_eq!(watch.between(from_ns, to_ns), None);
        }
    }

    #[test]
    fn of_many_readings_every_second_one_is_kept() {
        let mut readings: Vec<u32> = (0..7).collect();
        thin(&mut readings);
        assert_eq!(readings, [0, 2, 4, 6]);
    }
}
