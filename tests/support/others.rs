//! Other load on the machine while a test measured. A test that compares rates needs a quiet machine; if it fails,
//! the load is reported in addition to the reason.

use stacklab_campaign::trial::other_load::{LoadSample, OtherLoad};
use std::fmt::Write;
use std::sync::{Mutex, Once};

/// Processes below this share of a processor are not named.
const LEAST_SHARE: f64 = 0.01;
/// Maximum number of named processes.
const NAMED: usize = 10;
/// How far the rate of a window of some 100 ms can be off, as a multiple of the share of time that others take: stalls
/// of some ms are rare in it.
const STALLS: f64 = 2.0;
/// The largest share that others may take: above it, the tolerance would pass anything.
const MOST_TAKEN: f64 = 0.45;

static SINCE: Mutex<Option<LoadSample>> = Mutex::new(None);

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
                eprintln!("{}", report(&since.until(&LoadSample::now())));
            }
        }));
    });
    if let Ok(mut since) = SINCE.lock() {
        *since = Some(LoadSample::now());
    }
}

/// An allowed deviation of a rate on this machine: on a quiet one `quiet`, and more by the share of the CPUs that other
/// load has used since [`watch`]: steal, and processes that ran before. Stalls separate the windows in which the two
/// ends count. Panics above [`MOST_TAKEN`], so the tolerance is bounded.
pub(crate) fn allowed(quiet: f64) -> f64 {
    static TOLD: Once = Once::new();
    // The lock is released here: the hook of a panic takes it.
    let load = {
        let since = SINCE.lock().expect("no thread of a test has panicked here");
        since.as_ref().map(|since| since.until(&LoadSample::now()))
    };
    let Some(mut load) = load else { return quiet };
    // What began since is the test's own: guests' processes may have lost their parents.
    load.processes.retain(|process| process.ran_before);
    let taken = load.taken();
    let percent = 100.0 * taken;
    assert!(taken <= MOST_TAKEN, "this test needs a quiet machine: others took {percent:.0} %");
    if taken > LEAST_SHARE {
        TOLD.call_once(|| {
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
        load.processes.iter().filter(|process| process.share >= LEAST_SHARE).take(NAMED).collect();
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
