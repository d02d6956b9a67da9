//! Processor time of the machine and of its processes, as `/proc` has it.

use std::fs;
use std::io::Read;

/// Longer than any `/proc/PID/stat`: 52 numbers and a name of at most 64 bytes.
const MAX_LINE_LENGTH: usize = 2048;

/// The total of all processors, ticks.
#[derive(Default, Clone, Copy)]
pub(super) struct ProcessorTotals {
    pub(super) processors: usize,
    pub(super) busy: f64,
    pub(super) stolen: f64,
}

pub(super) struct ProcessTimes {
    pub(super) name: String,
    pub(super) parent: u32,
    pub(super) group: u32,
    /// Its own time, ticks.
    pub(super) own: f64,
    /// The time of children that have ended and were waited for, ticks.
    pub(super) children: f64,
}

/// The line of a file in `/proc` that has one, in one read: it is done for each process before and after each trial.
pub(super) fn read_line(path: &str) -> Option<String> {
    let mut room = [0; MAX_LINE_LENGTH];
    let length = fs::File::open(path).and_then(|mut file| file.read(&mut room)).ok()?;
    Some(String::from_utf8_lossy(&room[..length]).into_owned())
}

/// `/proc/stat`.
pub(super) fn read_machine(stat: &str) -> ProcessorTotals {
    let processors = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    let total = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = total.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    let of = |fields: &[usize]| fields.iter().filter_map(|field| ticks.get(*field)).sum();
    // user, nice, system, idle, iowait, irq, softirq, steal
    ProcessorTotals { processors, busy: of(&[0, 1, 2, 5, 6]), stolen: of(&[7]) }
}

/// `/proc/PID/stat`.
pub(super) fn read_process(stat: &str) -> Option<ProcessTimes> {
    // The name is in brackets, and may contain brackets and spaces itself.
    let (before, after) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let of = |field: usize| fields.get(field)?.parse::<f64>().ok();
    Some(ProcessTimes {
        name: before.split_once('(')?.1.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        own: of(11)? + of(12)?,
        children: of(13)? + of(14)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_are_read_by_their_fields() {
        let found = read_machine("cpu  10 1 20 300 4 5 6 7 0 0\ncpu0 5 0\ncpu1 5 1\nintr 1");
        assert_eq!((found.processors, found.busy, found.stolen), (2, 42.0, 7.0));
        let found = read_process("12 (a) b (c) S 1 9 9 0 -1 4194560 1 2 3 4 100 20 3 4 20 0 1 0 5").unwrap();
        assert_eq!((found.name.as_str(), found.parent, found.group), ("a) b (c", 1, 9));
        assert_eq!((found.own, found.children), (120.0, 7.0));
        assert!(read_process("12 a").is_none());
    }
}
