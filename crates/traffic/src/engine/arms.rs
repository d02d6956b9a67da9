//! The senders of the arms of an interleaved trial.

use crate::EngineError;
use crate::engine::allowance::Allowance;
use crate::engine::opening::WaitingSender;
use crate::engine::sender::{self, Run};
use crate::engine::turns::{OtherArmFailed, Turns};
use crate::protocol::message::SendArm;
use stacklab_model::{ArmSchedule, HostReport};
use std::thread;

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
