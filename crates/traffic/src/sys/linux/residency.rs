//! Idle residency of processors (/sys/devices/system/cpu/cpuN/cpuidle): how long they were in idle states.

use crate::sys::types::Nanos;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Maximum number of states of all processors together: to read one takes about a microsecond.
const MOST_STATES: usize = 64;

/// The idle states of processors. Their files stay open, so that a reading neither allocates nor opens any.
pub(super) struct IdleStates(Vec<(usize, File)>);

impl IdleStates {
    pub(super) fn of_machine() -> &'static Self {
        static MACHINE: LazyLock<IdleStates> =
            LazyLock::new(|| IdleStates::below(Path::new("/sys/devices/system/cpu")));
        &MACHINE
    }

    /// Those below a folder; none if there are more than can be read in a moment.
    fn below(folder: &Path) -> Self {
        let mut states = Vec::new();
        for (processor, entry) in numbered(folder, "cpu") {
            let files =
                numbered(&entry.join("cpuidle"), "state").map(|(_, state)| File::open(state.join("time")));
            states.extend(files.flatten().map(|file| (processor, file)));
            if states.len() > MOST_STATES {
                return IdleStates(Vec::new());
            }
        }
        IdleStates(states)
    }

    /// How long these processors have been in idle states so far, without the period under way; an empty list means
    /// all. `None` if there are no states, or one cannot be read.
    pub(super) fn residency_ns(&self, processors: &[usize]) -> Option<Nanos> {
        let wanted = |processor: &usize| processors.is_empty() || processors.contains(processor);
        let mut files = self.0.iter().filter(|(processor, _)| wanted(processor)).peekable();
        files.peek()?;
        files
            .map(|(_, file)| microseconds(file))
            .try_fold(0, |sum: Nanos, us| Some(sum.saturating_add(us?.saturating_mul(1000))))
    }
}

/// The entries of a folder whose names are a prefix and a number.
fn numbered(folder: &Path, prefix: &'static str) -> impl Iterator<Item = (usize, PathBuf)> + use<> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn residency_is_that_of_all_states_of_the_processors_asked_for_at_each_reading() {
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
    fn a_machine_without_idle_states_or_with_too_many_has_no_residency() {
        let many = Folder::new("many", &[&["1"; MOST_STATES], &["1"]]);
        let none = Folder::new("none", &[]);
        for folder in [&none.0, &many.0, Path::new("/nowhere")] {
            assert_eq!(IdleStates::below(folder).residency_ns(&[]), None, "{folder:?}");
        }
    }
}
