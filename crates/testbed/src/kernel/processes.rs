//! What /proc says of processes: whether one is still the same, and CPU time as this machine's kernel counts it. That
//! is for guests whose own kernel counts no CPU time or not all of it.

use crate::kernel::belonging::{list_others, list_processes, namespace_of};
use crate::kernel::namespace::{ChildCpu, join};
use nix::time::ClockId;
use nix::unistd::{Pid, SysconfVar, sysconf};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;
use std::{fs, io};

/// A process, and not another one that has its number later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningProcess {
    /// Its number.
    pub pid: u32,
    started: u64,
    network: u64,
}

impl RunningProcess {
    /// The process that has this number now; an error if there is none.
    pub fn of(pid: u32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let stat =
            parse(&stat).ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat has no start time")))?;
        let network = fs::metadata(format!("/proc/{pid}/ns/net"))?.ino();
        Ok(RunningProcess { pid, started: stat.started, network })
    }

    /// Moves this process into its network namespace, as [`join`] does.
    pub fn enter(self) -> io::Result<()> {
        join(self.pid)?;
        let entered = fs::metadata("/proc/self/ns/net")?.ino();
        if self.runs() && entered == self.network {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "its process has ended: stacklab lab down"))
    }

    /// Whether it still runs, and where it was.
    pub fn runs(self) -> bool {
        Self::of(self.pid).is_ok_and(|now| now == self)
    }
}

/// CPU time in clock ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks {
    /// User mode.
    pub user: u64,
    /// Kernel mode.
    pub system: u64,
}

impl Ticks {
    fn total(self) -> u64 {
        self.user + self.system
    }
}

/// The CPU time so far of all processes in a host's network namespace but the one that holds it: a program and whatever
/// it has started, also what has left its group.
#[derive(Debug, Default)]
pub struct NamespaceCpu {
    /// Of each process, nanoseconds with those of the children that it has waited for.
    by_process: BTreeMap<u32, u64>,
    /// The same in ticks, by which the time is divided into that of programs and that of the kernel.
    ticks: Ticks,
    /// Of children that were waited for: exact to a tick.
    waited_for_ns: u64,
}

impl NamespaceCpu {
    /// Of what belongs to the host of this process.
    pub fn of(holder: u32) -> io::Result<Self> {
        let host = namespace_of(&holder.to_string())?;
        let tick_ns = 1_000_000_000 / ticks_per_second()?;
        let mut found = NamespaceCpu::default();
        for pid in list_others(&[host], &[holder]) {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let Some(Stat { ticks, waited_for, .. }) = parse(&stat) else {
                // A process may end at any moment.
                continue;
            };
            // Exact, where /proc has it in ticks.
            let own_ns = ClockId::pid_cpu_clock_id(Pid::from_raw(pid as i32))
                .and_then(ClockId::now)
                .map_or(ticks.total() * tick_ns, |time| Duration::from(time).as_nanos() as u64);
            found.by_process.insert(pid, own_ns + waited_for.total() * tick_ns);
            found.ticks.user += ticks.user + waited_for.user;
            found.ticks.system += ticks.system + waited_for.system;
            found.waited_for_ns += waited_for.total() * tick_ns;
        }
        Ok(found)
    }

    /// What was used since an earlier time. `None` if a process has ended since and nobody has waited for it: then
    /// its time is lost.
    pub fn since(&self, before: &NamespaceCpu) -> Option<ChildCpu> {
        let ended = before.by_process.iter().filter(|(pid, _)| !self.by_process.contains_key(pid));
        let ended_ns: u64 = ended.map(|(_, ns)| ns).sum();
        let waited_for_ns = self.waited_for_ns.saturating_sub(before.waited_for_ns);
        // A tick is 10 ms at most.
        if ended_ns > waited_for_ns + 10_000_000 {
            return None;
        }
        let [now_ns, before_ns] = [self, before].map(|one| one.by_process.values().sum::<u64>());
        let used_ns = now_ns.checked_sub(before_ns)?;
        let user = self.ticks.user.saturating_sub(before.ticks.user);
        let system = self.ticks.system.saturating_sub(before.ticks.system);
        let user_ns = (used_ns as f64 * user as f64 / (user + system).max(1) as f64) as u64;
        Some(ChildCpu { user_ns, system_ns: used_ns - user_ns })
    }
}

/// The bytes of a process's calls that write (wchar of /proc/PID/io, proc_pid_io(5)).
pub(crate) fn count_written(pid: u32) -> io::Result<u64> {
    count_io(pid, "wchar")
}

/// The bytes of a process's calls that read.
pub(crate) fn count_read(pid: u32) -> io::Result<u64> {
    count_io(pid, "rchar")
}

fn count_io(pid: u32, name: &str) -> io::Result<u64> {
    let path = format!("/proc/{pid}/io");
    let text = fs::read_to_string(&path)?;
    let counts = text.lines().filter_map(|line| line.split_once(": "));
    let count = counts.filter(|(other, _)| *other == name).find_map(|(_, count)| count.trim().parse().ok());
    count.ok_or_else(|| io::Error::other(format!("{path} has no {name} (CONFIG_TASK_XACCT)")))
}

fn ticks_per_second() -> io::Result<u64> {
    let ticks = sysconf(SysconfVar::CLK_TCK)?.and_then(|ticks| u64::try_from(ticks).ok());
    ticks.filter(|ticks| *ticks > 0).ok_or_else(|| io::Error::other("the system has no clock ticks"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    parent: u32,
    ticks: Ticks,
    /// Of children that have ended and were waited for.
    waited_for: Ticks,
    /// Clock ticks since boot.
    started: u64,
}

impl Ticks {
    /// The CPU time of a process and its descendants, without those that have been waited for.
    pub fn of(root: u32) -> Self {
        let mut processes = HashMap::new();
        for number in list_processes() {
            let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            if let Some(process) = parse(&stat) {
                processes.insert(number, process);
            }
        }
        sum(root, &processes)
    }
}

/// Parses `PID (NAME) STATE PARENT ..`. The name may hold any characters. User time, system time, those of children and
/// start are fields 14 to 17 and 22.
pub(crate) fn parse(stat: &str) -> Option<Stat> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    let ticks = Ticks { user: number(11)?, system: number(12)? };
    let waited_for = Ticks { user: number(13)?, system: number(14)? };
    Some(Stat { parent: number(1)? as u32, ticks, waited_for, started: number(19)? })
}

fn sum(root: u32, processes: &HashMap<u32, Stat>) -> Ticks {
    let mut sum = Ticks::default();
    for (number, process) in processes {
        if is_below(*number, root, processes) {
            sum.user += process.ticks.user;
            sum.system += process.ticks.system;
        }
    }
    sum
}

fn is_below(mut process: u32, root: u32, processes: &HashMap<u32, Stat>) -> bool {
    // The limit is deeper than any process tree. It ends a loop that appears if a process ID was reused during the
    // reads.
    for _ in 0..64 {
        if process == root {
            return true;
        }
        match processes.get(&process) {
            Some(known) => process = known.parent,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_new_namespace;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_not_another_one_with_its_number() {
        let own = RunningProcess::of(std::process::id()).unwrap();
        assert!(own.runs() && own.started > 0);
        assert!(!RunningProcess { started: own.started + 1, ..own }.runs());
        assert!(!RunningProcess { network: own.network + 1, ..own }.runs());
        assert!(RunningProcess::of(u32::MAX).is_err());
    }

    #[test]
    fn a_tree_is_its_root_and_all_below() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 0 0 0 0 0 30 4 2 1 20 0 1 0 5";
        let root = parse(stat).unwrap();
        let waited_for = Ticks { user: 2, system: 1 };
        assert_eq!(root, Stat { parent: 1, ticks: Ticks { user: 30, system: 4 }, waited_for, started: 5 });
        let of = |parent, user| Stat { parent, ticks: Ticks { user, system: 1 }, waited_for, started: 5 };
        let all =
            HashMap::from([(1, of(0, 999)), (7, root), (8, of(7, 10)), (9, of(8, 100)), (10, of(1, 999))]);
        assert_eq!(sum(7, &all), Ticks { user: 140, system: 6 });
        assert_eq!(sum(77, &all), Ticks::default());
    }

    #[test]
    fn a_namespace_has_the_time_of_all_its_processes() {
        let count = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let script = format!("echo begin; {count}; sh -c '{count}; {count}'; echo end; exec sleep 60");
        in_new_namespace(|| {
            let mut holder = Command::new("sleep").arg("60").spawn().unwrap();
            let mut worker = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(worker.stdout.take().unwrap()).lines();
            assert_eq!(lines.next().unwrap().unwrap(), "begin");
            let before = NamespaceCpu::of(holder.id()).unwrap();
            assert_eq!(lines.next().unwrap().unwrap(), "end");
            let used_ns = NamespaceCpu::of(holder.id()).unwrap().since(&before).unwrap().total_ns();
            let stat = parse(&fs::read_to_string(format!("/proc/{}/stat", worker.id())).unwrap()).unwrap();
            let [own, waited_for] = [stat.ticks, stat.waited_for].map(|ticks| ticks.total() * 10_000_000);
            assert!(waited_for > own / 2 && own > 0, "{own} {waited_for}");
            let all = (own + waited_for) as f64;
            assert!((used_ns as f64 / all - 1.0).abs() < 0.2, "{used_ns} of {all}");
            for process in [&mut holder, &mut worker] {
                process.kill().unwrap();
                process.wait().unwrap();
            }
        })
        .unwrap();
    }

    fn cpu(by_process: &[(u32, u64)], [user, system]: [u64; 2], waited_for_ns: u64) -> NamespaceCpu {
        let by_process = by_process.iter().copied().collect();
        NamespaceCpu { by_process, ticks: Ticks { user, system }, waited_for_ns }
    }

    #[test]
    fn time_is_exact_though_its_parts_are_in_ticks() {
        // 8 ms before the first tick, and 100 ms in the program since.
        let before = cpu(&[(7, 8_000_000)], [0, 0], 0);
        let after = cpu(&[(7, 108_000_000)], [10, 0], 0);
        let used = ChildCpu { user_ns: 100_000_000, system_ns: 0 };
        assert_eq!(after.since(&before), Some(used));
        let mixed = cpu(&[(7, 108_000_000)], [6, 4], 0).since(&before).unwrap();
        assert_eq!(mixed, ChildCpu { user_ns: 60_000_000, system_ns: 40_000_000 });
    }

    #[test]
    fn time_of_a_process_that_nobody_waited_for_is_lost() {
        let before = cpu(&[(7, 50_000_000), (8, 300_000_000)], [35, 0], 0);
        // Its parent has waited for it, and has its time.
        let waited_for = cpu(&[(7, 460_000_000)], [46, 0], 400_000_000);
        assert_eq!(waited_for.since(&before).unwrap().total_ns(), 110_000_000);
        assert_eq!(cpu(&[(7, 900_000_000)], [90, 0], 0).since(&before), None);
    }

    #[test]
    fn this_process_is_counted() {
        // Until 100 ms of CPU time: how long that takes depends on other load.
        let start = read_thread_clock();
        while (read_thread_clock() - start).as_millis() < 100 {}
        let Ticks { user, system } = Ticks::of(std::process::id());
        assert!(user + system >= 5, "{user} {system}");
    }

    fn read_thread_clock() -> Duration {
        nix::time::clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
    }
}
