//! Threads of a trial's flows, each pinned to a processor.

use crate::sys;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

/// Informs the thread of a host that the trial has ended, also when nobody waits for it any more.
pub(crate) struct Ender(pub Arc<AtomicBool>);

impl Drop for Ender {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Distributes the flows over threads: one thread per flow, up to the number of processors that work for sockets.
pub(crate) fn groups(flows: usize) -> Vec<Range<usize>> {
    let threads = flows.min(sys::processors_of_sockets()).max(1);
    (0..threads).map(|thread| thread * flows / threads..(thread + 1) * flows / threads).collect()
}

/// Runs each group on its own thread, a single one on this thread. Returns the first error when all have ended.
pub(crate) fn on_each<T: Send>(
    groups: &[Range<usize>],
    work: impl Fn(Range<usize>) -> io::Result<T> + Sync,
) -> io::Result<Vec<T>> {
    if let [one] = groups {
        return Ok(vec![work(one.clone())?]);
    }
    let processors: Vec<usize> = sys::allowed_processors().collect();
    thread::scope(|scope| {
        let threads: Vec<_> = groups
            .iter()
            .zip(processors)
            .map(|(group, processor)| {
                let work = &work;
                scope.spawn(move || {
                    sys::pin_thread(processor)?;
                    sys::precise_timers();
                    work(group.clone())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a loop does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flow_is_in_one_group() {
        for flows in [1, 2, 7, 10_000] {
            let groups = groups(flows);
            assert!(groups.len() <= flows);
            let all: Vec<usize> = groups.into_iter().flatten().collect();
            assert_eq!(all, (0..flows).collect::<Vec<_>>());
        }
    }

    #[test]
    fn error_of_one_thread_is_given_when_all_have_ended() {
        let done = on_each(&[0..1, 1..2][..1], |group| Ok(group.start)).unwrap();
        assert_eq!(done, [0]);
        let failed = on_each(&[0..1, 1..2], |group| match group.start {
            1 => Err(io::Error::other("the second")),
            _ => Ok(()),
        });
        // With a single processor there is no second thread that could fail.
        assert_eq!(failed.is_err(), sys::allowed_processors().count() > 1);
    }
}
