//! What /proc says of processes: whether one is still the same, and CPU time as this machine's kernel counts it. That
//! is for guests whose own kernel counts no CPU time or not all of it.

use crate::kernel::namespace::join;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    parent: u32,
    ticks: Ticks,
    /// Clock ticks since boot.
    started: u64,
}

impl Ticks {
    /// The CPU time of a process and its descendants, without those that have been waited for.
    pub fn of(root: u32) -> Self {
        let mut processes = HashMap::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            if let Some(process) = parse(&stat) {
                processes.insert(number, process);
            }
        }
        sum(root, &processes)
    }
}

/// Parses `PID (NAME) STATE PARENT ..`. The name may hold any characters. User time, system time and start are fields
/// 14, 15 and 22.
pub(crate) fn parse(stat: &str) -> Option<Stat> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    let ticks = Ticks { user: number(11)?, system: number(12)? };
    Some(Stat { parent: number(1)? as u32, ticks, started: number(19)? })
}

fn sum(root: u32, processes: &HashMap<u32, Stat>) -> Ticks {
    let below = |mut process: u32| {
        // The limit is deeper than any process tree. It ends a loop that appears if a process ID was reused during
        // the reads.
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
    };
    let all = processes.iter().filter(|(number, _)| below(**number));
    all.fold(Ticks::default(), |sum, (_, process)| Ticks {
        user: sum.user + process.ticks.user,
        system: sum.system + process.ticks.system,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let stat = "7 (a) b) c) S 1 7 7 0 -1 0 0 0 0 0 30 4 0 0 20 0 1 0 5";
        let root = parse(stat).unwrap();
        assert_eq!(root, Stat { parent: 1, ticks: Ticks { user: 30, system: 4 }, started: 5 });
        let of = |parent, user| Stat { parent, ticks: Ticks { user, system: 1 }, started: 5 };
        let all =
            HashMap::from([(1, of(0, 999)), (7, root), (8, of(7, 10)), (9, of(8, 100)), (10, of(1, 999))]);
        assert_eq!(sum(7, &all), Ticks { user: 140, system: 6 });
        assert_eq!(sum(77, &all), Ticks::default());
    }

    #[test]
    fn this_process_is_counted() {
        // Until 100 ms of CPU time: how long that takes depends on other load.
        let of_thread = || nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
        let start = std::time::Duration::from(of_thread());
        while (std::time::Duration::from(of_thread()) - start).as_millis() < 100 {}
        let Ticks { user, system } = Ticks::of(std::process::id());
        assert!(user + system >= 5, "{user} {system}");
    }
}
