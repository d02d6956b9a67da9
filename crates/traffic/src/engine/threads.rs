//! Threads of a trial: its flows, each pinned to a processor, and the senders of the arms of an interleaved trial.

use crate::engine::allowance::Allowance;
use crate::engine::opening::WaitingSender;
use crate::engine::sender::{self, Run};
use crate::engine::turns::{OtherArmFailed, Turns};
use crate::protocol::message::SendArm;
use crate::{EngineError, sys};
use stacklab_model::{ArmSchedule, HostReport};
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

/// Distributes the flows over threads: one thread per flow, up to the number of processors.
pub(crate) fn groups(flows: usize) -> Vec<Range<usize>> {
    let threads = flows.min(sys::allowed_processors().count()).max(1);
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

/// Runs the senders of all arms, one slice at a time. Returns their reports in the order of the arms.
pub(crate) fn send_in_turns(
    arms: Vec<(SendArm, Option<WaitingSender>)>,
    seed: u64,
    allowance: Option<&Allowance>,
) -> Result<Vec<HostReport>, String> {
    if arms.is_empty() || arms.len() > ArmSchedule::MAX_ARMS {
        let most = ArmSchedule::MAX_ARMS;
        return Err(format!("cannot interleave {} arms: 1 to {most} are possible", arms.len()));
    }
    let turns = Turns::new(arms.len(), seed);
    let ended: Vec<Result<HostReport, EngineError>> = thread::scope(|scope| {
        let senders: Vec<_> = arms
            .into_iter()
            .enumerate()
            .map(|(number, (arm, waiting))| {
                let run = Run { waiting, turn: Some(turns.of(number)), stop: None, allowance };
                scope.spawn(move || sender::run_arm(arm, run))
            })
            .collect();
        senders.into_iter().map(|sender| sender.join().expect("a sender does not panic")).collect()
    });
    let mut reports = Vec::new();
    let mut reasons = Vec::new();
    for arm in ended {
        match arm {
            Ok(report) => reports.push(report),
            // The arm that made the others give up comes first.
            Err(error) if OtherArmFailed::is(&error.source) => reasons.push(error.to_string()),
            Err(error) => reasons.insert(0, error.to_string()),
        }
    }
    reasons.into_iter().next().map_or(Ok(reports), Err)
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
