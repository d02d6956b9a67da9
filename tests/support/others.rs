//! Other load on the machine while a test measured. A test that compares rates needs a quiet machine; if it fails,
//! the load is reported in addition to the reason.

use stacklab_campaign::trial::other_load::{LoadSample, OtherLoad};
use std::fmt::Write;
use std::fs;
use std::sync::{Mutex, Once};

/// Processes below this share of a processor are not named.
const MIN_SHARE: f64 = 0.01;
/// Maximum number of named processes.
const NAMED: usize = 10;
/// How far the rate of a window of some 100 ms can be off, as a multiple of the share of time that others take: stalls
/// of some ms are rare in it.
const STALLS: f64 = 2.0;
/// The largest share that others may take: above it, the tolerance would pass anything.
const MAX_TAKEN: f64 = 0.45;

/// User time of processes that cannot be seen, below which it is the error of the two counts.
const MIN_UNSEEN: f64 = 0.03;
/// Ticks per second in `/proc`.
const TICKS: f64 = 100.0;

static SINCE: Mutex<Option<Since>> = Mutex::new(None);

struct Since {
    load: LoadSample,
    user: UserTime,
}

/// User time in ticks: of the whole machine, and of this test with its children that have ended.
#[derive(Default, Clone, Copy)]
struct UserTime {
    machine: f64,
    own: f64,
}

impl UserTime {
    fn now() -> Self {
        let machine = fs::read_to_string("/proc/stat").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        UserTime {
            // user and nice, behind the word `cpu`
            machine: sum_fields(&machine, [1, 2]),
            // utime and cutime, behind the name in brackets
            own: own.rsplit_once(')').map_or(0.0, |(_, rest)| sum_fields(rest, [11, 13])),
        }
    }

    /// The share of the processors' time that processes outside this test computed since. A test may see only its own
    /// processes, but the machine's count is of all. The kernel's threads work for the test, and have no user time.
    fn taken_since(before: Self, load: &OtherLoad) -> f64 {
        let now = UserTime::now();
        let others = (now.machine - before.machine) - (now.own - before.own);
        let share = others / TICKS / load.seconds / load.processors as f64;
        if share < MIN_UNSEEN { 0.0 } else { share.min(1.0) }
    }
}

fn sum_fields(line: &str, fields: [usize; 2]) -> f64 {
    let words: Vec<&str> = line.split_whitespace().collect();
    fields.iter().filter_map(|field| words.get(*field)?.parse::<f64>().ok()).sum()
}

/// The shares of the processors' time that others have had since [`watch`]: steal with the processes that this test
/// sees, and with all. 0 before it.
fn taken() -> [f64; 2] {
    let since = SINCE.lock().expect("no thread of a test has panicked here");
    let Some(since) = since.as_ref() else { return [0.0; 2] };
    let mut load = since.load.until(&LoadSample::now());
    // What began since is the test's own: guests' processes may have lost their parents.
    load.processes.retain(|process| process.ran_before);
    let all = load.stolen + UserTime::taken_since(since.user, &load);
    [load.share_of_others(), load.share_of_others().max(all.min(1.0))]
}

/// Starts observing: a later panic then reports the other load.
pub(crate) fn watch() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            // This code must not panic.
            if let Ok(since) = SINCE.lock()
                && let Some(since) = since.as_ref()
            {
                eprintln!("{}", report(&since.load.until(&LoadSample::now())));
            }
        }));
    });
    if let Ok(mut since) = SINCE.lock() {
        *since = Some(Since { load: LoadSample::now(), user: UserTime::now() });
    }
}

/// An allowed deviation of a rate on this machine: on a quiet one `quiet`, and more by the share of the CPUs that other
/// load has used since [`watch`]: steal, and processes that ran before. Stalls separate the windows in which the two
/// ends count. Panics above [`MAX_TAKEN`], so the tolerance is bounded.
pub(crate) fn allowed(quiet: f64) -> f64 {
    // The lock is released here: the hook of a panic takes it.
    let [taken, _] = taken();
    assert!(taken <= MAX_TAKEN, "this test needs a quiet machine: others took {:.0} %", 100.0 * taken);
    widened(quiet, taken)
}

/// The same without a bound, for tests that also run on a machine without a free processor: beside this tolerance they
/// compare what holds on any machine. They have no guests, whose processes would count as others.
pub(crate) fn allowed_on_any_machine(quiet: f64) -> f64 {
    let [_, taken] = taken();
    widened(quiet, taken).min(1.0)
}

fn widened(quiet: f64, taken: f64) -> f64 {
    static SAID: Once = Once::new();
    if taken > MIN_SHARE {
        SAID.call_once(|| {
            let percent = 100.0 * taken;
            println!(
                "note: other load used {percent:.0} % of the CPUs: rates may be off by {STALLS} times that"
            );
        });
    }
    quiet + STALLS * taken
}

fn report(load: &OtherLoad) -> String {
    let mut text = format!(
        "what the machine did for {:.1} s until then, the test's own work included: {:.0} % of its {} processors busy, \
         steal {:.0} %",
        load.seconds,
        100.0 * load.busy,
        load.processors,
        100.0 * load.stolen
    );
    let named: Vec<_> =
        load.processes.iter().filter(|process| process.share >= MIN_SHARE).take(NAMED).collect();
    if named.is_empty() {
        text += "\nno other process took 1 % of a processor";
        return text;
    }
    text += "\nother processes, with their children that have ended; a test that compares rates needs a quiet machine:";
    for process in named {
        let percent = 100.0 * process.share;
        let _ = write!(text, "\n  {percent:5.1} % of a processor: {} ({})", process.name, process.pid);
    }
    text
}
