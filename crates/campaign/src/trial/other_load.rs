//! Other load on this Linux machine: time stolen by the hypervisor, and other processes. A run that it may have
//! disturbed has a warning.

mod peers;
mod proc;

use peers::find_peers;
use proc::{ProcessTimes, ProcessorTotals, read_line, read_machine, read_process};
use stacklab_model::{Slice, Warning};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Instant;

/// Ticks per second in `/proc`: the same on every Linux that Rust's standard library supports.
const TICKS: f64 = 100.0;
/// The kernel's own threads are children of this process. They work for others.
const KTHREADD: u32 = 2;
/// Deeper than any process tree. It ends a circle of parents, which appears if a number was used again while processes
/// were listed.
const DEEPEST: usize = 64;
/// Maximum steal, as a share of the time of all CPUs.
const MAX_STOLEN: f64 = 0.05;
/// What other processes may have together, as a share of one processor.
const MAX_OF_OTHERS: f64 = 0.1;
const NAMED: usize = 3;
/// A share of the processors that others have, from which on a campaign begins with a warning.
const BUSY: f64 = 0.25;

/// Processor time of the machine and of its processes at one moment.
pub struct LoadSample {
    at: Instant,
    machine: ProcessorTotals,
    processes: BTreeMap<u32, ProcessTimes>,
}

/// What others had of the processors between two samples.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherLoad {
    /// The time between the samples, seconds.
    pub seconds: f64,
    /// Number of processors.
    pub processors: usize,
    /// Share of the processors' time that all processes and the kernel had.
    pub busy: f64,
    /// Share of the processors' time that the machine below took away.
    pub stolen: f64,
    /// Other processes that had processor time, the most first. The kernel's threads are not among them.
    pub processes: Vec<OtherProcess>,
}

/// A process that is neither this one nor the agent that it measures with, nor started by either.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherProcess {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// What it and its children that have ended had, as a share of one processor.
    pub share: f64,
    /// Whether it ran before the first sample.
    pub ran_before: bool,
}

impl OtherLoad {
    /// Share of the processors' time that others had: the machine below, and other processes.
    pub fn share_of_others(&self) -> f64 {
        let others: f64 = self.processes.iter().map(|process| process.share).sum();
        (self.stolen + others / self.processors.max(1) as f64).clamp(0.0, 1.0)
    }

    /// A warning before a campaign, where other programs have much of the processors.
    pub fn busy(&self) -> Option<String> {
        if self.share_of_others() < BUSY {
            return None;
        }
        let most: Vec<String> = self
            .processes
            .iter()
            .take(NAMED)
            .map(|process| format!("{} (pid {})", process.name, process.pid))
            .collect();
        Some(format!(
            "other programs use {:.0} % of the processors: expect wide intervals and few verdicts ({})",
            100.0 * self.share_of_others(),
            if most.is_empty() { "the machine below".to_owned() } else { most.join(", ") }
        ))
    }
}

impl LoadSample {
    /// The present state. What cannot be read counts as nothing.
    pub fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let stats = pids.filter_map(|pid| Some((pid, read_line(&format!("/proc/{pid}/stat"))?)));
        Self::of(&stat, stats)
    }

    /// The state that `/proc/stat` and the `/proc/PID/stat` of processes tell, now.
    fn of(stat: &str, stats: impl Iterator<Item = (u32, String)>) -> Self {
        let processes = stats.filter_map(|(pid, stat)| Some((pid, read_process(&stat)?))).collect();
        LoadSample { at: Instant::now(), machine: read_machine(stat), processes }
    }

    /// What others had until a later sample, taken just now. A process that began and ended in between is its parent's,
    /// if it was waited for.
    pub fn until(&self, later: &LoadSample) -> OtherLoad {
        let load = self.compare(later, &BTreeSet::new());
        // Whoever is at the other end of a connection is looked for among those that had processor time, and not at all
        // where they had little: on a machine with many containers it takes a while.
        if load.processes.iter().map(|process| process.share).sum::<f64>() <= MAX_OF_OTHERS {
            return load;
        }
        let peers = find_peers(later.lineages(&load.processes).into_iter());
        if peers.is_empty() { load } else { self.compare(later, &peers) }
    }

    /// These processes, their ancestors and the leaders of their groups.
    fn lineages(&self, processes: &[OtherProcess]) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        let mut leaders = BTreeSet::new();
        for one in processes {
            let mut pid = one.pid;
            while let Some(process) = self.processes.get(&pid).filter(|_| found.insert(pid)) {
                leaders.insert(process.group);
                pid = process.parent;
            }
        }
        found.union(&leaders).copied().collect()
    }

    /// What others had until a later sample: all but this process, these peers, and those that they started.
    fn compare(&self, later: &LoadSample, peers: &BTreeSet<u32>) -> OtherLoad {
        let seconds = (later.at - self.at).as_secs_f64().max(1.0 / TICKS);
        let processors = later.machine.processors.max(1);
        let share = |ticks: f64| (ticks / TICKS / seconds).max(0.0);
        let roots: BTreeSet<u32> = peers.iter().copied().chain([std::process::id()]).collect();
        let own = own(&later.processes, &roots);
        let mut processes = Vec::new();
        for (&pid, process) in &later.processes {
            if own.contains(&pid) || pid == KTHREADD || process.parent == KTHREADD {
                continue;
            }
            let before = self.processes.get(&pid);
            let own_before = before.map_or(0.0, |before| before.own);
            let children_before = before.map_or(0.0, |before| before.children);
            // Not every child that ends is waited for.
            let ended = self.ended_below(pid, later, DEEPEST);
            let children = (process.children - children_before - ended).max(0.0);
            let had = share(process.own - own_before + children);
            if had > 0.0 {
                let name = process.name.clone();
                let ran_before = before.is_some();
                processes.push(OtherProcess { pid, name, share: had, ran_before });
            }
        }
        processes.sort_by(|a, b| b.share.total_cmp(&a.share));
        OtherLoad {
            seconds,
            processors,
            busy: share(later.machine.busy - self.machine.busy) / processors as f64,
            stolen: share(later.machine.stolen - self.machine.stolen) / processors as f64,
            processes,
        }
    }

    /// The time so far, ticks, of those below a process that have ended until a later sample: their parents have it
    /// then, in addition to what was theirs. At most this many generations.
    fn ended_below(&self, parent: u32, later: &LoadSample, generations: usize) -> f64 {
        if generations == 0 {
            return 0.0;
        }
        let children = self.processes.iter().filter(|(_, process)| process.parent == parent);
        let ended = children.filter(|(pid, _)| !later.processes.contains_key(pid));
        ended
            .map(|(pid, process)| {
                process.own + process.children + self.ended_below(*pid, later, generations - 1)
            })
            .sum()
    }
}

/// Processes, their descendants, and members of their process groups: a guest's helpers may have lost their parents.
fn own(processes: &BTreeMap<u32, ProcessTimes>, roots: &BTreeSet<u32>) -> BTreeSet<u32> {
    let mut descendants = BTreeSet::new();
    for pid in processes.keys() {
        if descends(processes, roots, *pid) {
            descendants.insert(*pid);
        }
    }
    let mut own = BTreeSet::new();
    for (pid, process) in processes {
        if descendants.contains(pid) || descendants.contains(&process.group) {
            own.insert(*pid);
        }
    }
    own
}

/// Whether a process is one of these roots, or a descendant of one.
fn descends(processes: &BTreeMap<u32, ProcessTimes>, roots: &BTreeSet<u32>, mut pid: u32) -> bool {
    for _ in 0..DEEPEST {
        let Some(process) = processes.get(&pid) else { return false };
        if roots.contains(&pid) {
            return true;
        }
        pid = process.parent;
    }
    false
}

/// The warning of a trial during which other load used much of the CPUs, with its parts. `held_up` are slices of an
/// interleaved trial that waited for a processor, and all of which that is known.
pub(super) fn warning(load: &OtherLoad, held_up: [usize; 2]) -> Option<Warning> {
    let others: f64 = load.processes.iter().map(|process| process.share).sum();
    if load.stolen <= MAX_STOLEN && others <= MAX_OF_OTHERS {
        return None;
    }
    let mut what = Vec::new();
    if load.stolen > 0.0 {
        what.push(format!("steal {}", print_percent(load.stolen)));
    }
    for process in load.processes.iter().filter(|process| process.share >= MAX_OF_OTHERS / 2.0).take(NAMED) {
        what.push(format!("{} used {} of one", process.name, print_percent(process.share)));
    }
    let taken = print_percent(load.share_of_others());
    let mut text = format!("other load used {taken} of the CPUs ({})", what.join(", "));
    let [some, all] = held_up;
    if some > 0 {
        let most = print_percent(Slice::MAX_WAITED);
        text += &format!("; {some} of {all} slices waited for a processor for over {most}");
    }
    Some(Warning {
        code: "other_load".to_owned(),
        text,
        advice: "stop other load, or measure on a dedicated machine".to_owned(),
    })
}

fn print_percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Other load between two listings of /proc, for the fuzz targets: the first line of each is that
/// of `/proc/stat`, the others are of `/proc/PID/stat`.
pub fn between([before, after]: [&str; 2]) -> OtherLoad {
    let before = read_listing(before);
    before.compare(&read_listing(after), &BTreeSet::new())
}

fn read_listing(listed: &str) -> LoadSample {
    let (stat, lines) = listed.split_once('\n').unwrap_or((listed, ""));
    let mut processes = Vec::new();
    for line in lines.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        if let Ok(pid) = first.parse() {
            processes.push((pid, line.to_owned()));
        }
    }
    LoadSample::of(stat, processes.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    fn ticks_of(pid: &str) -> f64 {
        read_process(&fs::read_to_string(format!("/proc/{pid}/stat")).unwrap()).unwrap().own
    }

    #[test]
    fn finds_an_unrelated_process_and_not_this_one() {
        let before = LoadSample::now();
        // Its parent is no longer a process of this test.
        let script = "setsid sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!";
        let other = Command::new("sh").args(["-c", script]).stderr(Stdio::null()).output().unwrap();
        let other: u32 = String::from_utf8(other.stdout).unwrap().trim().parse().unwrap();
        // This process is busy too, until both have had their part of a processor, however busy the machine is.
        while ticks_of("self") < 20.0 || ticks_of(&other.to_string()) < 20.0 {}
        let load = before.until(&LoadSample::now());
        // The shell has its own `kill`; the program is in a package that not every machine has.
        let _ = Command::new("sh").args(["-c", &format!("kill -KILL {other}")]).status();
        let found = load.processes.iter().find(|process| process.pid == other);
        let found = found.unwrap_or_else(|| panic!("{other} is not in {load:?}"));
        assert!(found.share < 1.1 && found.share * load.seconds > 0.1 && !found.ran_before, "{load:?}");
        assert!(load.processes.iter().all(|process| process.pid != std::process::id()), "{load:?}");
        assert!(load.share_of_others() > 0.0 && load.busy > load.share_of_others() - load.stolen, "{load:?}");
        assert!(load.seconds > 0.1 && load.processors >= 1, "{load:?}");
    }

    /// A sample of processes with their parents and times.
    fn make_sample(seconds: u64, listed: &[(u32, u32, [f64; 2])]) -> LoadSample {
        let mut processes = BTreeMap::new();
        for &(pid, parent, [own, children]) in listed {
            processes.insert(pid, ProcessTimes { name: "sh".to_owned(), parent, group: pid, own, children });
        }
        let at = Instant::now() + Duration::from_secs(seconds);
        LoadSample { at, machine: ProcessorTotals { processors: 2, ..ProcessorTotals::default() }, processes }
    }

    #[test]
    fn time_of_ended_processes_is_not_counted_twice() {
        // A shell, its child with 500 ticks of grandchildren of before, and a grandchild that runs.
        let before = make_sample(0, &[(10, 1, [3.0, 0.0]), (11, 10, [0.0, 500.0]), (12, 11, [80.0, 0.0])]);
        // Waited for, or not.
        for children in [500.0 + 80.0 + 30.0, 0.0] {
            let later = make_sample(1, &[(10, 1, [3.0 + 10.0, children])]);
            let load = before.compare(&later, &BTreeSet::new());
            let [only] = &load.processes[..] else { panic!("{load:?}") };
            let share = if children > 0.0 { 0.4 } else { 0.1 };
            assert!(only.pid == 10 && (only.share - share).abs() < 0.01, "{load:?}");
        }
    }

    fn of(parent: u32, group: u32) -> ProcessTimes {
        ProcessTimes { name: String::new(), parent, group, own: 0.0, children: 0.0 }
    }

    #[test]
    fn lineages_have_parents_and_group_leaders() {
        let processes = BTreeMap::from([(1, of(0, 1)), (5, of(1, 5)), (6, of(5, 4)), (7, of(1, 7))]);
        let sample = LoadSample { at: Instant::now(), machine: ProcessorTotals::default(), processes };
        let busy = OtherProcess { pid: 6, name: String::new(), share: 0.5, ran_before: true };
        assert_eq!(sample.lineages(&[busy]), BTreeSet::from([1, 4, 5, 6]));
    }

    #[test]
    fn members_of_a_childs_process_group_are_own() {
        let all = BTreeMap::from([(1, of(0, 1)), (5, of(1, 5)), (6, of(5, 6)), (7, of(1, 6)), (8, of(1, 8))]);
        assert_eq!(own(&all, &BTreeSet::from([5])), BTreeSet::from([5, 6, 7]));
        assert_eq!(own(&all, &BTreeSet::from([7, 8])), BTreeSet::from([7, 8]));
    }

    fn load(stolen: f64, listed: &[(&str, f64)]) -> OtherLoad {
        let mut processes = Vec::new();
        for &(name, share) in listed {
            processes.push(OtherProcess { pid: 7, name: name.to_owned(), share, ran_before: true });
        }
        OtherLoad { seconds: 1.0, processors: 2, busy: 0.5, stolen, processes }
    }

    #[test]
    fn what_had_the_processors_is_named_where_it_was_much() {
        assert_eq!(warning(&load(0.05, &[("cron", 0.04), ("sshd", 0.05)]), [9, 9]), None);
        assert_eq!(
            warning(&load(0.12, &[("cc1", 0.5), ("sshd", 0.01)]), [0, 9]).unwrap().text,
            "other load used 38 % of the CPUs (steal 12 %, cc1 used 50 % of one)"
        );
        assert_eq!(
            warning(&load(0.0, &[("cc1", 0.2)]), [0, 9]).unwrap().text,
            "other load used 10 % of the CPUs (cc1 used 20 % of one)"
        );
        assert_eq!(
            warning(&load(0.0, &[("cc1", 0.2)]), [2, 80]).unwrap().text,
            "other load used 10 % of the CPUs (cc1 used 20 % of one); 2 of 80 slices waited for a processor for over 10 %"
        );
    }

    #[test]
    fn a_busy_machine_is_said_before_the_start() {
        let mut load = load(0.0, &[("compiler", 1.2)]);
        let warning = load.busy().unwrap();
        assert!(
            warning.contains("60 % of the processors") && warning.contains("compiler (pid 7)"),
            "{warning}"
        );
        load.processes[0].share = 0.2;
        assert_eq!(load.busy(), None);
    }
}
