//! Other load on the machine while a test measured. A test that compares rates needs a quiet machine; if it fails,
//! the load is reported in addition to the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::sync::{Mutex, Once};
use std::time::Instant;

/// Processes below this share of a processor are not named.
const LEAST_SHARE: f64 = 0.01;
/// Maximum number of named processes.
const NAMED: usize = 10;
/// Ticks per second in `/proc`: the same on every Linux that Rust's standard library supports.
const TICKS: f64 = 100.0;

/// How far the rate of a window of some 100 ms can be off, as a multiple of the share of time that others take: stalls of
/// some ms are rare in it.
const STALLS: f64 = 2.0;
/// The kernel's own threads are children of this process.
const KTHREADD: u32 = 2;

static SINCE: Mutex<Option<Sample>> = Mutex::new(None);

/// Starts observing: a later panic then reports the other load.
pub fn watch() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            // This code must not panic.
            if let Ok(since) = SINCE.lock()
                && let Some(since) = since.as_ref()
            {
                eprintln!("{}", report(since, &Sample::now()));
            }
        }));
    });
    if let Ok(mut since) = SINCE.lock() {
        *since = Some(Sample::now());
    }
}

/// The share of the processors' time that others have taken since [`watch`]: the machine below, and processes that ran
/// before. 0 before [`watch`].
pub fn taken() -> f64 {
    let since = SINCE.lock().expect("no thread of a test has panicked here");
    since.as_ref().map_or(0.0, |since| share_taken(since, &Sample::now()))
}

/// An allowed deviation of a rate on this machine: on a quiet one `quiet`, and more by the share of the time that others
/// have taken since [`watch`]. Stalls separate the windows in which the two ends count.
pub fn allowed(quiet: f64) -> f64 {
    static TOLD: Once = Once::new();
    let taken = taken();
    if taken > LEAST_SHARE {
        TOLD.call_once(|| {
            let percent = 100.0 * taken;
            println!(
                "note: others took {percent:.0} % of the processors: rates may be off by {STALLS} times that"
            );
        });
    }
    quiet + STALLS * taken
}

/// Processor time at one moment, in ticks.
struct Sample {
    at: Instant,
    machine: Machine,
    processes: BTreeMap<u32, Process>,
}

/// The total of all processors.
#[derive(Default, Clone, Copy)]
struct Machine {
    processors: usize,
    busy: f64,
    stolen: f64,
}

#[derive(Clone)]
struct Process {
    name: String,
    parent: u32,
    /// Its own time, and the time of children that have ended and were waited for.
    ticks: f64,
    own_ticks: f64,
}

impl Sample {
    fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let processes = pids
            .filter_map(|pid| Some((pid, process(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?)));
        Sample { at: Instant::now(), machine: machine(&stat), processes: processes.collect() }
    }
}

/// `/proc/stat`.
fn machine(stat: &str) -> Machine {
    let processors = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    let total = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = total.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    let of = |fields: &[usize]| fields.iter().filter_map(|field| ticks.get(*field)).sum();
    // user, nice, system, idle, iowait, irq, softirq, steal
    Machine { processors, busy: of(&[0, 1, 2, 5, 6]), stolen: of(&[7]) }
}

/// `/proc/PID/stat`.
fn process(stat: &str) -> Option<Process> {
    // The name is in brackets, and may contain brackets and spaces itself.
    let (before, after) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let of = |field: usize| fields.get(field)?.parse::<f64>().ok();
    let own_ticks = of(11)? + of(12)?;
    Some(Process {
        name: before.split_once('(')?.1.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        ticks: own_ticks + of(13)? + of(14)?,
        own_ticks,
    })
}

/// A process and all its descendants.
fn family(processes: &BTreeMap<u32, Process>, root: u32) -> BTreeSet<u32> {
    let descends = |mut pid: u32| {
        while let Some(process) = processes.get(&pid) {
            if pid == root {
                return true;
            }
            pid = process.parent;
        }
        false
    };
    processes.keys().copied().filter(|pid| descends(*pid)).collect()
}

fn share_taken(since: &Sample, now: &Sample) -> f64 {
    let own = family(&now.processes, std::process::id());
    let before = |(pid, process): (&u32, &Process)| {
        let earlier = since.processes.get(pid)?;
        let counts = !own.contains(pid) && *pid != KTHREADD && process.parent != KTHREADD;
        counts.then(|| (process.own_ticks - earlier.own_ticks).max(0.0))
    };
    let others: f64 = now.processes.iter().filter_map(before).sum();
    let stolen = now.machine.stolen - since.machine.stolen;
    let ticks = (now.at - since.at).as_secs_f64().max(1.0 / TICKS) * TICKS;
    ((others + stolen) / ticks / now.machine.processors.max(1) as f64).clamp(0.0, 1.0)
}

fn report(since: &Sample, now: &Sample) -> String {
    let seconds = (now.at - since.at).as_secs_f64().max(1.0 / TICKS);
    let own = family(&now.processes, std::process::id());
    let (before, after) = (since.machine, now.machine);
    let share = |ticks: f64| 100.0 * ticks / TICKS / seconds;
    let mut text = format!(
        "what the machine did for {seconds:.1} s until then, the test's own work included: {:.0} % of its {} processors busy, \
         {:.0} % taken away by the machine below",
        share(after.busy - before.busy) / after.processors.max(1) as f64,
        after.processors,
        share(after.stolen - before.stolen) / after.processors.max(1) as f64,
    );
    let mut others: Vec<(f64, u32, &str)> = Vec::new();
    for (pid, process) in now.processes.iter().filter(|(pid, _)| !own.contains(pid)) {
        let begun = since.processes.get(pid).map_or(0.0, |process| process.ticks);
        // The earlier time of its children that have ended since.
        let ended = since.processes.iter().filter(|(gone, _)| !now.processes.contains_key(gone));
        let earlier: f64 =
            ended.filter(|(_, gone)| gone.parent == *pid).map(|(_, gone)| gone.own_ticks).sum();
        others.push((share((process.ticks - begun - earlier).max(0.0)), *pid, &process.name));
    }
    others.retain(|(share, ..)| *share >= 100.0 * LEAST_SHARE);
    others.sort_by(|a, b| b.0.total_cmp(&a.0));
    if others.is_empty() {
        text += "\nno other process took 1 % of a processor";
        return text;
    }
    text += "\nother processes, with their children that have ended; a test that compares rates needs a quiet machine:";
    for (share, pid, name) in others.into_iter().take(NAMED) {
        let _ = write!(text, "\n  {share:5.1} % of a processor: {name} ({pid})");
    }
    text
}

#[test]
fn what_else_runs_is_told_with_its_share() {
    let since = Sample::now();
    // An unrelated process: its parent is no longer a process of this test.
    let script = "setsid sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!";
    let other = std::process::Command::new("sh").args(["-c", script]).output().unwrap();
    let other: u32 = String::from_utf8(other.stdout).unwrap().trim().parse().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    let said = report(&since, &Sample::now());
    super::program::signal(other, "KILL");
    let line = said.lines().find(|line| line.ends_with(&format!("({other})")));
    let line = line.unwrap_or_else(|| panic!("{other} is not in: {said}"));
    let share: f64 = line.split_whitespace().next().unwrap().parse().unwrap();
    assert!(share > 10.0 && share < 110.0, "{said}");
    assert!(!said.contains(&format!("({})", std::process::id())), "{said}");
}
