//! Neighbours of earlier testbeds, whose memory the kernel frees some seconds after them.

use stacklab_model::{KernelMemory, Weighed, read_kernel_memory, say};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The kernel frees them in batches that are five seconds apart (kfree_rcu): it has freed all when none came for so
/// long.
const DEFERRED: Duration = Duration::from_secs(7);
/// How long that is waited for at most: others of this machine may free memory at any time.
const MAX_DEFERRED: Duration = Duration::from_secs(40);
/// Less than this is freed by others.
const FREED_BYTES: i64 = 256 << 10;
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often the wait says that it is one.
const SIGN_OF_LIFE: Duration = Duration::from_secs(4);

/// What a wait has come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Settled,
    /// The kernel was still freeing at the end.
    Unsettled,
    Interrupted,
}

/// Waits until nothing more of earlier testbeds is freed.
pub(super) fn await_memory(interrupted: &AtomicBool) -> io::Result<Rest> {
    watch_memory(&mut || read_kernel_memory(Weighed::Entries), interrupted, [DEFERRED, MAX_DEFERRED])
}

/// Waits until `read` has not fallen for the first of these times, or for the second at most.
fn watch_memory(
    read: &mut dyn FnMut() -> io::Result<KernelMemory>,
    interrupted: &AtomicBool,
    [quiet, most]: [Duration; 2],
) -> io::Result<Rest> {
    let start = Instant::now();
    let mut freed = start;
    let mut next = SIGN_OF_LIFE;
    let mut memory = read()?;
    while freed.elapsed() < quiet {
        if interrupted.load(Ordering::Relaxed) {
            return Ok(Rest::Interrupted);
        }
        if start.elapsed() > most {
            return Ok(Rest::Unsettled);
        }
        if start.elapsed() > next {
            next += SIGN_OF_LIFE;
            say!("stacklab: waiting until the kernel has freed the neighbours of earlier testbeds ..");
        }
        thread::sleep(POLL_INTERVAL.min(quiet));
        let now = read()?;
        // Whether it has fallen is not known of readings of different things.
        if now.growth_since(memory).is_none_or(|growth| growth < -FREED_BYTES) {
            freed = Instant::now();
        }
        memory = now;
    }
    Ok(Rest::Settled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: u64) -> io::Result<KernelMemory> {
        Ok(KernelMemory { bytes, is_of_objects: true })
    }

    const TIMES: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(500)];

    #[test]
    fn waits_until_memory_has_stopped_falling() {
        let running = AtomicBool::new(false);
        let mut readings = vec![1 << 20, 2 << 20, 3 << 20, 4 << 20];
        let found =
            watch_memory(&mut || read(readings.pop().unwrap_or(1 << 20)), &running, [TIMES[0], MAX_DEFERRED]);
        assert_eq!(found.unwrap(), Rest::Settled);
        assert!(readings.is_empty(), "{readings:?}");
    }

    #[test]
    fn a_wait_ends_at_its_limit_or_an_interrupt() {
        let mut memory = 1_u64 << 40;
        let running = AtomicBool::new(false);
        let found = watch_memory(
            &mut || {
                memory -= 2 * FREED_BYTES as u64;
                read(memory)
            },
            &running,
            TIMES,
        );
        assert_eq!(found.unwrap(), Rest::Unsettled);
        let interrupted = AtomicBool::new(true);
        assert_eq!(watch_memory(&mut || read(1), &interrupted, TIMES).unwrap(), Rest::Interrupted);
    }
}
