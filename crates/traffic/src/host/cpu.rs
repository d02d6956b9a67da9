//! CPU time of a host over a window.

use crate::sys::{self, CpuReader, CpuTimes, Nanos};
use stacklab_model::{CpuScope, CpuTime, Slice};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether no other host shares this host's kernel, whatever the trial says of all hosts.
static ALONE: AtomicBool = AtomicBool::new(false);

/// Declares that no other host shares this host's kernel and processors.
pub fn alone() {
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

/// CPU time since a fixed moment, such as boot; `None` if the host counts none.
pub fn so_far() -> Option<CpuTime> {
    let mut window = CpuWindow::new(CpuScope::Shared);
    let nothing = CpuTimes {
        user_ns: 0,
        system_ns: 0,
        idle_ns: 0,
        irq_ns: 0,
        softirq_ns: 0,
        steal_ns: 0,
        undivided: false,
    };
    window.opened = Some(Snapshot { at_ns: 0, times: Some(nothing), own: (0, 0) });
    window.finish()
}

/// CPU time of an arm of an interleaved trial: of its threads, over its slices. `None` if the system does not count it.
/// `parts` is user and kernel time of all that they did, if the system divides it: their slices are divided alike.
pub fn of_slices(slices: &[Slice], parts: Option<(Nanos, Nanos)>) -> Option<CpuTime> {
    let busy_ns: Option<u64> =
        slices.iter().filter(|slice| slice.messages > 0).map(|slice| slice.cpu_ns).sum();
    let window_ns = slices.iter().map(|slice| slice.last_ns.saturating_sub(slice.first_ns)).sum();
    let busy_ns = busy_ns.filter(|_| !slices.is_empty())?;
    let share = parts.map_or(0.0, |(user, kernel)| user as f64 / (user + kernel).max(1) as f64);
    let user_ns = (busy_ns as f64 * share) as u64;
    Some(CpuTime {
        scope: CpuScope::Threads,
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

/// A window over which CPU time is counted.
pub struct CpuWindow {
    scope: CpuScope,
    /// Reads the processors whose time counts. Allocated in advance, so that opening and closing a window does not
    /// allocate.
    reader: CpuReader,
    opened: Option<Snapshot>,
    closed: Option<Snapshot>,
}

impl CpuWindow {
    /// A window that is not open yet.
    pub fn new(scope: CpuScope) -> Self {
        let scope = if ALONE.load(Ordering::Relaxed) { CpuScope::Host } else { scope };
        // An empty list means all processors.
        let processors = match scope {
            CpuScope::Processors => sys::allowed_processors().collect(),
            _ => Vec::new(),
        };
        CpuWindow { scope, reader: CpuReader::new(processors), opened: None, closed: None }
    }

    /// Opens the window.
    pub fn open(&mut self) {
        self.opened = Some(Snapshot::take(&mut self.reader));
    }

    /// Closes the window; only the first call counts.
    pub fn close(&mut self) {
        if self.closed.is_none() {
            self.closed = Some(Snapshot::take(&mut self.reader));
        }
    }

    /// Combines the windows of two threads of one host: from the first opening to the last closing.
    pub fn join(&mut self, other: CpuWindow) {
        let both = |one: Option<Snapshot>, two: Option<Snapshot>| one.into_iter().chain(two);
        self.opened = both(self.opened, other.opened).min_by_key(|snapshot| snapshot.at_ns);
        self.closed = both(self.closed, other.closed).max_by_key(|snapshot| snapshot.at_ns);
    }

    /// The CPU time from opening to closing (or to now, if it was not closed). `None` if the host counts none, or if
    /// the window was never opened or was closed before it was opened.
    pub fn finish(mut self) -> Option<CpuTime> {
        self.close();
        let (from, to) = (self.opened?, self.closed?);
        if to.at_ns < from.at_ns {
            return None;
        }
        let (before, after) = (from.times?, to.times?);
        // Counters of idle processors may step back by a tick. That counts as zero.
        let ns = |read: fn(CpuTimes) -> u64| read(after).saturating_sub(read(before));
        Some(CpuTime {
            scope: self.scope,
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
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_loop_is_seen() {
        let mut window = CpuWindow::new(CpuScope::Host);
        window.open();
        let start = sys::now_ns();
        while sys::now_ns() - start < 100_000_000 {}
        let time = window.finish().unwrap();
        assert!(time.window_ns >= 100_000_000);
        assert!(time.busy_ns() + sys::tick_ns() >= 50_000_000, "{time:?}");
        assert!(time.own_user_ns + time.own_system_ns >= 50_000_000, "{time:?}");
    }

    #[test]
    fn windows_of_two_threads_are_one_from_the_first_opening_to_the_last_closing() {
        let mut windows = [CpuWindow::new(CpuScope::Host), CpuWindow::new(CpuScope::Host)];
        windows.iter_mut().for_each(CpuWindow::open);
        windows.iter_mut().for_each(CpuWindow::close);
        let [mut one, two] = windows;
        let ends = |window: &CpuWindow| (window.opened.unwrap().at_ns, window.closed.unwrap().at_ns);
        let (first, last) = (ends(&one).0, ends(&two).1);
        one.join(two);
        assert_eq!(ends(&one), (first, last));
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
}
