//! CPU time of a host over a window.

use crate::sys::{self, Nanos};
use stacklab_model::{CpuScope, CpuTime};
use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

/// Room for /proc/stat: some thousand lines of interrupts and processors.
const STAT_BYTES: usize = 256 * 1024;

/// Whether this host's kernel is its own, whatever a trial says of all hosts.
static ALONE: AtomicBool = AtomicBool::new(false);

/// Says that this host's kernel, and so its processors, are no other host's.
pub fn alone() {
    ALONE.store(true, Ordering::Relaxed);
}

/// The times of /proc/stat's first line, ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    user: u64,
    system: u64,
    idle: u64,
    irq: u64,
    softirq: u64,
    steal: u64,
}

/// Reads the times of these processors from /proc/stat, of all together where none are named. `None` where they are not
/// there or all zero, as under gVisor.
fn parse(stat: &str, processors: &[usize]) -> Option<Ticks> {
    let mut fields = [0; 8];
    for line in stat.lines() {
        let Some((name, times)) = line.split_once(' ') else { continue };
        let number = name.strip_prefix("cpu").and_then(|number| number.parse().ok());
        let wanted = if processors.is_empty() {
            name == "cpu"
        } else {
            number.is_some_and(|n| processors.contains(&n))
        };
        if wanted {
            for (field, time) in fields.iter_mut().zip(times.split_whitespace()) {
                *field += time.parse::<u64>().unwrap_or(0);
            }
        }
    }
    let at = |place: usize| fields[place];
    // user nice system idle iowait irq softirq steal; guest times are inside user's and nice's already.
    let ticks = Ticks {
        user: at(0) + at(1),
        system: at(2),
        idle: at(3) + at(4),
        irq: at(5),
        softirq: at(6),
        steal: at(7),
    };
    fields.iter().any(|field| *field > 0).then_some(ticks)
}

#[derive(Clone, Copy)]
struct Snapshot {
    at_ns: Nanos,
    ticks: Option<Ticks>,
    own: (u64, u64),
}

impl Snapshot {
    fn take(processors: &[usize], room: &mut Vec<u8>) -> Self {
        room.clear();
        let read = File::open("/proc/stat").and_then(|mut stat| stat.read_to_end(room));
        let text = read.ok().and_then(|_| std::str::from_utf8(room).ok());
        let ticks = text.and_then(|stat| parse(stat, processors));
        Snapshot { at_ns: sys::now_ns(), ticks, own: sys::own_cpu_ns() }
    }
}

/// A window over which CPU time is counted.
pub struct CpuWindow {
    scope: CpuScope,
    /// Those whose time counts; none stands for all.
    processors: Vec<usize>,
    /// What /proc/stat is read into, so that a window opens and closes without asking for memory.
    room: Vec<u8>,
    opened: Option<Snapshot>,
    closed: Option<Snapshot>,
}

impl CpuWindow {
    /// A window that is not open yet.
    pub fn new(scope: CpuScope) -> Self {
        let scope = if ALONE.load(Ordering::Relaxed) { CpuScope::Host } else { scope };
        let processors = if scope == CpuScope::Processors { sys::own_processors() } else { Vec::new() };
        CpuWindow { scope, processors, room: Vec::with_capacity(STAT_BYTES), opened: None, closed: None }
    }

    /// Opens it.
    pub fn open(&mut self) {
        self.opened = Some(Snapshot::take(&self.processors, &mut self.room));
    }

    /// Closes it; only the first call counts.
    pub fn close(&mut self) {
        if self.closed.is_none() {
            self.closed = Some(Snapshot::take(&self.processors, &mut self.room));
        }
    }

    /// The same host's window of another thread: from the first opening of both to the last closing.
    pub fn join(&mut self, other: CpuWindow) {
        let both = |one: Option<Snapshot>, two: Option<Snapshot>| one.into_iter().chain(two);
        self.opened = both(self.opened, other.opened).min_by_key(|snapshot| snapshot.at_ns);
        self.closed = both(self.closed, other.closed).max_by_key(|snapshot| snapshot.at_ns);
    }

    /// The CPU time from opening to closing (now, where it was not closed); `None` where the host counts none or the
    /// window never opened, or not before it was closed.
    pub fn finish(mut self) -> Option<CpuTime> {
        self.close();
        let (from, to) = (self.opened?, self.closed?);
        if to.at_ns < from.at_ns {
            return None;
        }
        let (before, after) = (from.ticks?, to.ticks?);
        // Counters of idle processors may step back by a tick; that is no time.
        let ns = |read: fn(Ticks) -> u64| read(after).saturating_sub(read(before)) * sys::tick_ns();
        Some(CpuTime {
            scope: self.scope,
            window_ns: to.at_ns - from.at_ns,
            user_ns: ns(|ticks| ticks.user),
            system_ns: ns(|ticks| ticks.system),
            irq_ns: ns(|ticks| ticks.irq),
            softirq_ns: ns(|ticks| ticks.softirq),
            idle_ns: ns(|ticks| ticks.idle),
            steal_ns: ns(|ticks| ticks.steal),
            own_user_ns: to.own.0 - from.own.0,
            own_system_ns: to.own.1 - from.own.1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_those_of_the_processors_asked_for() {
        let stat = "cpu  10 1 20 300 4 5 6 7 8 9\ncpu0 1 2 3 4 5 6 7 8\ncpu1 10 0 0 0\ncpu10 5\nintr 7 7\n";
        let ticks = |processors| parse(stat, processors).unwrap();
        assert_eq!(ticks(&[]), Ticks { user: 11, system: 20, idle: 304, irq: 5, softirq: 6, steal: 7 });
        assert_eq!(ticks(&[0, 1]), Ticks { user: 13, system: 3, idle: 9, irq: 6, softirq: 7, steal: 8 });
        assert_eq!(ticks(&[10]).user, 5);
        assert_eq!(parse(stat, &[2]), None);
    }

    #[test]
    fn a_host_that_counts_nothing_is_not_idle() {
        assert_eq!(parse("cpu  0 0 0 0 0 0 0 0 0 0\n", &[]), None);
        assert_eq!(parse("", &[]), None);
    }

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
