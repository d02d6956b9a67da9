//! Times of processors, threads and this process, and how long processors were idle.

use crate::sys::{CpuTimes, MeasuredIdle, Nanos};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

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
}

impl CpuReader {
    /// A reader for these processors; an empty list means all together.
    pub(crate) fn new(processors: Vec<usize>) -> Self {
        // Opened before the first reading.
        LazyLock::force(&IDLE_STATES);
        CpuReader { processors, room: Vec::with_capacity(STAT_BYTES) }
    }

    pub(crate) fn read(&mut self) -> Option<CpuTimes> {
        self.room.clear();
        File::open("/proc/stat").and_then(|mut stat| stat.read_to_end(&mut self.room)).ok()?;
        let mut times = times(std::str::from_utf8(&self.room).ok()?, &self.processors)?;
        if let Some(idle) = &mut times.measured_idle {
            idle.residency_ns = IDLE_STATES.residency_ns(&self.processors);
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
    numbers.next()??;
    let waited = numbers.next()??;
    let times = numbers.next()??;
    (times > 0).then_some(waited)
}

/// The times of these processors in /proc/stat; an empty list means all together. `None` if they are missing or all
/// zero, as on gVisor.
pub(crate) fn times(stat: &str, processors: &[usize]) -> Option<CpuTimes> {
    let mut fields = [0; 8];
    let mut lines = 0;
    let mut counted = 0;
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
    let [user, nice, system, idle, iowait, irq, softirq, steal] =
        fields.map(|ticks: u64| ticks.saturating_mul(tick_ns()));
    fields.iter().any(|field| *field > 0).then(|| CpuTimes {
        user_ns: user.saturating_add(nice),
        system_ns: system,
        idle_ns: idle.saturating_add(iowait),
        irq_ns: irq,
        softirq_ns: softirq,
        steal_ns: steal,
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

/// Maximum number of states of all processors together: to read one takes about a microsecond.
const MAX_STATES: usize = 64;

static IDLE_STATES: LazyLock<IdleStates> =
    LazyLock::new(|| IdleStates::below(Path::new("/sys/devices/system/cpu")));

/// The idle states of processors. Their files stay open, so that a reading neither allocates nor opens any.
struct IdleStates(Vec<(usize, File)>);

impl IdleStates {
    /// Those below a folder; none if there are more than can be read in a moment.
    fn below(folder: &Path) -> Self {
        let mut states = Vec::new();
        for (processor, entry) in list_numbered_entries(folder, "cpu") {
            let files = list_numbered_entries(&entry.join("cpuidle"), "state")
                .map(|(_, state)| File::open(state.join("time")));
            states.extend(files.flatten().map(|file| (processor, file)));
            if states.len() > MAX_STATES {
                return IdleStates(Vec::new());
            }
        }
        IdleStates(states)
    }

    /// How long these processors have been in idle states so far, without the period under way; an empty list means
    /// all. `None` if there are no states, or one cannot be read.
    fn residency_ns(&self, processors: &[usize]) -> Option<Nanos> {
        let mut total_ns: Option<Nanos> = None;
        for (processor, file) in &self.0 {
            if processors.is_empty() || processors.contains(processor) {
                let read_ns = microseconds(file)?.saturating_mul(1000);
                total_ns = Some(total_ns.unwrap_or(0).saturating_add(read_ns));
            }
        }
        total_ns
    }
}

/// The entries of a folder whose names are a prefix and a number.
fn list_numbered_entries(
    folder: &Path,
    prefix: &'static str,
) -> impl Iterator<Item = (usize, PathBuf)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let number = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
        Some((number, entry.path()))
    })
}

fn microseconds(file: &File) -> Option<u64> {
    let mut room = [0; 32];
    let length = file.read_at(&mut room, 0).ok()?;
    std::str::from_utf8(&room[..length]).ok()?.trim().parse().ok()
}

pub(crate) fn pin_thread(processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// The processors that this thread may use, without allocating.
pub(crate) fn allowed_processors() -> impl Iterator<Item = usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(move |cpu| allowed.is_set(*cpu).unwrap_or(false))
}

pub(crate) fn thread_cpu_ns() -> Option<Nanos> {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
    Some(used.tv_sec() as Nanos * 1_000_000_000 + used.tv_nsec() as Nanos)
}

/// This process's user and kernel time so far, nanoseconds.
pub(crate) fn own_cpu_ns() -> (Nanos, Nanos) {
    usage(UsageWho::RUSAGE_SELF).unwrap_or_default()
}

/// The same of this thread. Linux divides by what its ticks found running.
pub(crate) fn thread_cpu_parts() -> Option<(Nanos, Nanos)> {
    usage(UsageWho::RUSAGE_THREAD)
}

fn usage(of: UsageWho) -> Option<(Nanos, Nanos)> {
    let usage = getrusage(of).ok()?;
    Some((to_ns(usage.user_time()), to_ns(usage.system_time())))
}

fn to_ns(time: TimeVal) -> Nanos {
    time.num_microseconds() as Nanos * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_those_of_the_processors_asked_for() {
        let stat = "cpu  10 1 20 300 4 5 6 7 8 9\ncpu0 1 2 3 4 5 6 7 8\ncpu1 10 0 0 0\ncpu10 5\nintr 7 7\n";
        assert_eq!(times(stat, &[]), Some(count_times(3, 1, [11, 20, 304, 5, 6, 7])));
        assert_eq!(times(stat, &[0, 1]), Some(count_times(2, 2, [13, 3, 9, 6, 7, 8])));
        assert_eq!(times(stat, &[10]).unwrap().user_ns, 5 * tick_ns());
        assert_eq!(times(stat, &[2]), None);
    }

    fn count_times(processors: u32, lines: u64, ticks: [u64; 6]) -> CpuTimes {
        let [user_ns, system_ns, idle_ns, irq_ns, softirq_ns, steal_ns] = ticks.map(|n| n * tick_ns());
        let idle = MeasuredIdle { processors, step_ns: lines * tick_ns(), residency_ns: None };
        let undivided = false;
        let measured_idle = Some(idle);
        CpuTimes { user_ns, system_ns, idle_ns, irq_ns, softirq_ns, steal_ns, undivided, measured_idle }
    }

    #[test]
    fn run_delay_is_the_second_number_unless_all_are_zero() {
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

    /// A folder with the residencies of the idle states of processors, microseconds.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, processors: &[&[&str]]) -> Self {
            let folder = std::env::temp_dir().join(format!("stacklab-{name}-{}", std::process::id()));
            for (processor, states) in processors.iter().enumerate() {
                for (state, time) in states.iter().enumerate() {
                    let state = folder.join(format!("cpu{processor}/cpuidle/state{state}"));
                    fs::create_dir_all(&state).unwrap();
                    fs::write(state.join("time"), time).unwrap();
                }
            }
            // Others that are there.
            fs::create_dir_all(folder.join("cpuidle")).unwrap();
            fs::create_dir_all(folder.join("cpu7/topology")).unwrap();
            Folder(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn residency_sums_all_states_of_the_asked_processors() {
        let folder = Folder::new("idle", &[&["1\n", "20\n"], &["300\n", "4000\n"]]);
        let states = IdleStates::below(&folder.0);
        assert_eq!(states.residency_ns(&[]), Some(4_321_000));
        assert_eq!(states.residency_ns(&[1]), Some(4_300_000));
        assert_eq!(states.residency_ns(&[7]), None);
        fs::write(folder.0.join("cpu1/cpuidle/state0/time"), "301\n").unwrap();
        assert_eq!(states.residency_ns(&[1]), Some(4_301_000));
        fs::write(folder.0.join("cpu1/cpuidle/state0/time"), "many\n").unwrap();
        assert_eq!(states.residency_ns(&[]), None);
    }

    #[test]
    fn too_many_or_no_idle_states_give_no_residency() {
        let many = Folder::new("many", &[&["1"; MAX_STATES], &["1"]]);
        let none = Folder::new("none", &[]);
        for folder in [&none.0, &many.0, Path::new("/nowhere")] {
            assert_eq!(IdleStates::below(folder).residency_ns(&[]), None, "{folder:?}");
        }
    }
}
