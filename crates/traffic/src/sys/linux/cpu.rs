//! Processor times (/proc/stat) and how long a thread waited for a processor (schedstat).

use crate::sys::linux::residency::IdleStates;
use crate::sys::types::{CpuTimes, MeasuredIdle, Nanos};
use nix::unistd::{SysconfVar, sysconf};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

/// Buffer size for /proc/stat: some thousand lines of interrupts and processors.
const STAT_BYTES: usize = 256 * 1024;

pub(crate) fn tick_ns() -> u64 {
    1_000_000_000 / sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100).max(1) as u64
}

/// Online processors of the machine, whether or not this process may use them.
pub(crate) fn processors_online() -> u32 {
    sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten().unwrap_or(1).max(1) as u32
}

/// Reads the times of some processors without allocating.
pub(crate) struct CpuReader {
    processors: Vec<usize>,
    room: Vec<u8>,
    idle_states: &'static IdleStates,
}

impl CpuReader {
    /// A reader for these processors; an empty list means all together.
    pub(crate) fn new(processors: Vec<usize>) -> Self {
        CpuReader { processors, room: Vec::with_capacity(STAT_BYTES), idle_states: IdleStates::of_machine() }
    }

    pub(crate) fn read(&mut self) -> Option<CpuTimes> {
        self.room.clear();
        File::open("/proc/stat").and_then(|mut stat| stat.read_to_end(&mut self.room)).ok()?;
        let mut times = times(std::str::from_utf8(&self.room).ok()?, &self.processors)?;
        if let Some(idle) = &mut times.measured_idle {
            idle.residency_ns = self.idle_states.residency_ns(&self.processors);
        }
        Some(times)
    }
}

/// Reads how long a thread was ready to run and waited for a processor (/proc/thread-self/schedstat).
pub(crate) struct RunDelay(Option<File>);

impl RunDelay {
    pub(crate) fn of_this_thread() -> Self {
        RunDelay(File::open("/proc/thread-self/schedstat").ok())
    }

    /// The time so far, without allocating; `None` if the kernel does not count it.
    pub(crate) fn read(&self) -> Option<Nanos> {
        let mut room = [0; 64];
        let length = self.0.as_ref()?.read_at(&mut room, 0).ok()?;
        run_delay(std::str::from_utf8(&room[..length]).ok()?)
    }
}

/// The second number of schedstat, after the time on a processor and before how often the thread got one: a kernel that
/// does not count writes zeros.
pub(crate) fn run_delay(schedstat: &str) -> Option<Nanos> {
    let mut numbers = schedstat.split_whitespace().map(|number| number.parse::<Nanos>().ok());
    let (_, waited, times) = (numbers.next()??, numbers.next()??, numbers.next()??);
    (times > 0).then_some(waited)
}

/// The times of these processors in /proc/stat; an empty list means all together. `None` if they are missing or all
/// zero, as on gVisor.
pub(crate) fn times(stat: &str, processors: &[usize]) -> Option<CpuTimes> {
    let mut fields = [0; 8];
    let (mut lines, mut counted) = (0, 0);
    for line in stat.lines() {
        let Some((name, times)) = line.split_once(' ') else { continue };
        let number = name.strip_prefix("cpu").and_then(|number| number.parse().ok());
        let is_one = number.is_some_and(|n| processors.is_empty() || processors.contains(&n));
        counted += u32::from(is_one);
        let wanted = if processors.is_empty() { name == "cpu" } else { is_one };
        if wanted {
            lines += 1;
            for (field, time) in fields.iter_mut().zip(times.split_whitespace()) {
                *field = u64::saturating_add(*field, time.parse().unwrap_or(0));
            }
        }
    }
    // user nice system idle iowait irq softirq steal; user and nice already include guest times.
    let ns = |places: &[usize]| {
        let ticks = places.iter().fold(0, |sum: u64, place| sum.saturating_add(fields[*place]));
        ticks.saturating_mul(tick_ns())
    };
    fields.iter().any(|field| *field > 0).then(|| CpuTimes {
        user_ns: ns(&[0, 1]),
        system_ns: ns(&[2]),
        idle_ns: ns(&[3, 4]),
        irq_ns: ns(&[5]),
        softirq_ns: ns(&[6]),
        steal_ns: ns(&[7]),
        undivided: false,
        // With NO_HZ, which every distribution has, idle time is measured from its beginning to its end, interrupts
        // left out, and the period under way is in it. Each line is rounded down.
        measured_idle: (counted > 0).then(|| MeasuredIdle {
            processors: counted,
            step_ns: tick_ns().saturating_mul(lines),
            residency_ns: None,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_those_of_the_processors_asked_for() {
        let stat = "cpu  10 1 20 300 4 5 6 7 8 9\ncpu0 1 2 3 4 5 6 7 8\ncpu1 10 0 0 0\ncpu10 5\nintr 7 7\n";
        let of = |processors: &[usize], lines: u64, ticks: [u64; 6]| {
            let [user_ns, system_ns, idle_ns, irq_ns, softirq_ns, steal_ns] = ticks.map(|n| n * tick_ns());
            let processors = if processors.is_empty() { 3 } else { processors.len() as u32 };
            let idle = MeasuredIdle { processors, step_ns: lines * tick_ns(), residency_ns: None };
            let (undivided, measured_idle) = (false, Some(idle));
            CpuTimes { user_ns, system_ns, idle_ns, irq_ns, softirq_ns, steal_ns, undivided, measured_idle }
        };
        assert_eq!(times(stat, &[]), Some(of(&[], 1, [11, 20, 304, 5, 6, 7])));
        assert_eq!(times(stat, &[0, 1]), Some(of(&[0, 1], 2, [13, 3, 9, 6, 7, 8])));
        assert_eq!(times(stat, &[10]).unwrap().user_ns, 5 * tick_ns());
        assert_eq!(times(stat, &[2]), None);
    }

    #[test]
    fn the_run_delay_is_the_second_number_unless_nothing_is_counted() {
        assert_eq!(run_delay("113448 411159 2\n"), Some(411_159));
        // A thread that runs for the first time.
        assert_eq!(run_delay("0 0 1\n"), Some(0));
        for nothing in ["0 0 0\n", "", "1 2", "1 -2 3"] {
            assert_eq!(run_delay(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_host_that_counts_nothing_is_not_idle() {
        assert_eq!(times("cpu  0 0 0 0 0 0 0 0 0 0\n", &[]), None);
        assert_eq!(times("", &[]), None);
    }
}
