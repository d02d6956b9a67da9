//! The CPU time of a guest's processes, counted by this machine's kernel. It is for guests whose own kernel counts no
//! CPU time or not all of it.

use std::collections::HashMap;
use std::fs;

/// CPU time in clock ticks, in user mode and in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks {
    /// User mode.
    pub user: u64,
    /// Kernel mode.
    pub system: u64,
}

/// One line of /proc/PID/stat.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Process {
    parent: u32,
    ticks: Ticks,
}

impl Ticks {
    /// The CPU time of a process and its descendants, without those that have been waited for.
    pub fn of(root: u32) -> Self {
        let mut processes = HashMap::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            // A process that has ended in the meantime has no file.
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            if let Some(process) = parse(&stat) {
                processes.insert(number, process);
            }
        }
        sum(root, &processes)
    }
}

/// Parses `PID (NAME) STATE PARENT ..`. The name may hold any characters. User and system time are fields 14 and 15.
pub(crate) fn parse(stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    Some(Process { parent: number(1)? as u32, ticks: Ticks { user: number(11)?, system: number(12)? } })
}

fn sum(root: u32, processes: &HashMap<u32, Process>) -> Ticks {
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
    fn a_tree_is_its_root_and_all_below() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 0 0 0 0 0 30 4 0 0 20 0 1 0 5";
        let root = parse(stat).unwrap();
        assert_eq!(root, Process { parent: 1, ticks: Ticks { user: 30, system: 4 } });
        let of = |parent, user| Process { parent, ticks: Ticks { user, system: 1 } };
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
