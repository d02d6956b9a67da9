//! How long a guest may take to boot: by what it does, not by the clock alone. On a busy machine it has little of the
//! processors, and takes many times longer.

use stacklab_testbed::Ticks;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A guest that makes progress may take this many times as long as on an idle machine.
const MAX_SLOWDOWN: u32 = 10;
/// More time than on an idle machine that it may take at all.
const MAX_EXTRA: Duration = Duration::from_secs(600);
/// Bytes of its console that are read. A boot writes fewer.
const MAX_CONSOLE: u64 = 256 << 10;
/// How often it is looked at: that reads /proc of all processes.
const CHECK_PERIOD: Duration = Duration::from_secs(1);
/// The time in which a guest without progress is given up, once its time on an idle machine has passed.
const MAX_SILENCE: Duration = Duration::from_secs(20);
/// An idle kernel's timer takes less than this share of a processor.
const MIN_SHARE: f64 = 0.03;
/// Ticks per second of processor time.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a guest has done so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    /// Lines of its console that differ in more than numbers. A dead kernel may repeat itself.
    pub lines: usize,
    /// Processor time of its processes, seconds.
    pub processor: f64,
}

impl Seen {
    pub(crate) fn of(process: u32, console: &Path) -> Self {
        let Ticks { user, system } = Ticks::of(process);
        let mut text = Vec::new();
        if let Ok(file) = File::open(console) {
            // A console that cannot be read shows no progress.
            let _ = file.take(MAX_CONSOLE).read_to_end(&mut text);
        }
        Seen { lines: count_lines(&text), processor: (user + system) as f64 / TICKS_PER_SECOND }
    }
}

fn count_lines(console: &[u8]) -> usize {
    let lines = console.split(|byte| *byte == b'\n');
    let without_numbers =
        lines.map(|line| line.iter().filter(|byte| byte.is_ascii_alphabetic()).copied().collect::<Vec<u8>>());
    without_numbers.collect::<BTreeSet<Vec<u8>>>().len()
}

/// The progress of a guest for which somebody waits.
pub(crate) struct BootProgress {
    patience: Duration,
    began: Instant,
    looked: Option<Instant>,
    first: Option<Seen>,
    /// When it last made progress, and what had been seen then.
    last: (Instant, Seen),
}

impl BootProgress {
    /// `patience` is enough on a machine with a free processor.
    pub(crate) fn new(patience: Duration) -> Self {
        let began = Instant::now();
        BootProgress { patience, began, looked: None, first: None, last: (began, Seen::default()) }
    }

    /// An error if it is no longer worth waiting: why. Looks at the guest every second.
    pub(crate) fn check(&mut self, now: Instant, look: impl FnOnce() -> Seen) -> Result<(), String> {
        if self.looked.is_some_and(|looked| now.saturating_duration_since(looked) < CHECK_PERIOD) {
            return Ok(());
        }
        self.looked = Some(now);
        let seen = look();
        let first = *self.first.get_or_insert(seen);
        let (since, before) = self.last;
        let silence = now.saturating_duration_since(since);
        let has_written = seen.lines > before.lines;
        let share = (seen.processor - before.processor) / silence.as_secs_f64().max(1.0);
        if has_written || (silence > MAX_SILENCE / 2 && share > MIN_SHARE) {
            self.last = (now, seen);
        }
        let waited = now.saturating_duration_since(self.began);
        let used = seen.processor - first.processor;
        if waited <= self.patience {
            return Ok(());
        }
        if used > self.patience.as_secs_f64() {
            return Err(format!("it has used {used:.0} s of processor time"));
        }
        let is_slow = waited > (self.patience * MAX_SLOWDOWN).min(self.patience + MAX_EXTRA);
        if is_slow || silence > MAX_SILENCE {
            let waited = waited.as_secs();
            return Err(format!(
                "in {waited} s it has had {used:.0} s of processor time{}",
                advise_by(read_load())
            ));
        }
        Ok(())
    }
}

/// Processes that run or wait for a processor, over the last minute, for each processor.
fn read_load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / processors as f64)
}

fn advise_by(load: Option<f64>) -> String {
    match load {
        Some(load) if load > 1.5 => {
            format!(
                "; this machine is busy ({load:.0} processes for each processor): try again when it is not"
            )
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE_TIME: Duration = Duration::from_secs(60);

    /// The second at which waiting ends, for what is seen at each second.
    fn find_end(seen: impl Fn(u64) -> Seen) -> Option<(u64, String)> {
        let mut progress = BootProgress::new(IDLE_TIME);
        let began = progress.began;
        (0..2000).find_map(|second| {
            let checked = progress.check(began + Duration::from_secs(second), || seen(second));
            checked.err().map(|reason| (second, reason))
        })
    }

    #[test]
    fn a_guest_on_a_busy_machine_has_more_time() {
        // A twentieth of a processor.
        let (end, _) = find_end(|second| Seen { lines: 10, processor: second as f64 / 20.0 }).unwrap();
        assert!(end > 500, "{end}");
        let (end, _) = find_end(|second| Seen { lines: second as usize, processor: 0.0 }).unwrap();
        assert_eq!(end, 601);
    }

    #[test]
    fn a_guest_that_hangs_is_given_up() {
        let (end, reason) = find_end(|_| Seen { lines: 10, processor: 5.0 }).unwrap();
        assert_eq!((end, reason.contains("in 61 s it has had 0 s")), (61, true), "{reason}");
        let (end, reason) = find_end(|second| Seen { lines: 10, processor: second as f64 }).unwrap();
        assert_eq!((end, reason.as_str()), (61, "it has used 61 s of processor time"));
    }

    #[test]
    fn what_a_console_repeats_is_no_progress() {
        let mut console = "Linux version 6.1\r\n".to_owned();
        for second in 0..700 {
            console += &format!("[{second:5}.123] watchdog: BUG: soft lockup\r\n");
        }
        // The last line is empty.
        assert_eq!(count_lines(console.as_bytes()), 3);
        let (end, _) = find_end(|_| Seen { lines: 3, processor: 0.0 }).unwrap();
        assert_eq!(end, 61);
    }

    #[test]
    fn a_disk_that_boots_slowly_has_ten_minutes_more() {
        let mut progress = BootProgress::new(Duration::from_secs(300));
        let began = progress.began;
        let end = (0..3000).find(|second| {
            let now = began + Duration::from_secs(*second);
            progress.check(now, || Seen { lines: *second as usize, processor: 0.0 }).is_err()
        });
        assert_eq!(end, Some(901));
    }

    #[test]
    fn a_busy_machine_is_named() {
        assert_eq!(advise_by(Some(0.7)), "");
        assert!(advise_by(Some(14.2)).contains("busy (14 processes for each processor): try again"));
    }
}
