//! What is searched.

use std::time::Duration;

/// One million: of this unit are loss ratios and exceed ratios, so that sums over them are exact.
pub const PPM: u32 = 1_000_000;
/// More coarser targets than this only repeat the shortest trials.
const MAX_COARSER_TARGETS: u32 = 16;

/// A goal of RFC 9971 (section 4): the load sought is the highest one at which no more than `exceed_ratio` of the time
/// has a larger loss ratio than `loss_ratio`.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// The largest loss ratio of a trial that counts as good, in millionths.
    pub loss_ratio: u32,
    /// The largest share of bad seconds at a lower bound, in millionths.
    pub exceed_ratio: u32,
    /// The largest distance of both bounds, relative to the upper one.
    pub width: f64,
    /// The length of the first trials, which only find the region.
    pub initial_trial: Duration,
    /// The length from which a trial is full.
    pub final_trial: Duration,
    /// The time that is measured at a load before it is a bound.
    pub duration_sum: Duration,
    /// Targets that come before the goal, each twice as wide as the next.
    pub coarser_targets: u32,
    /// The factor by which a step grows while the load sought is not yet enclosed.
    pub expansion: u32,
}

/// A goal that no search can have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GoalError {
    /// In millionths.
    #[error("a loss ratio of {0} millionths: it is below one")]
    LossRatio(u32),
    /// In millionths.
    #[error("an exceed ratio of {0} millionths: it is below one")]
    ExceedRatio(u32),
    /// Not between 0 and 1.
    #[error("a width of {0}: it lies between 0 and 1")]
    Width(f64),
    /// Of no time, or shorter at last than at first.
    #[error(
        "trials of {initial:?} at first and {last:?} at last: they are longer than 0, and not shorter at last"
    )]
    Trials {
        /// The first ones.
        initial: Duration,
        /// The full ones.
        last: Duration,
    },
    /// Less than one first trial.
    #[error("a duration sum of {sum:?}: it is not shorter than the first trial of {initial:?}")]
    Sum {
        /// The duration sum.
        sum: Duration,
        /// The first trial.
        initial: Duration,
    },
    /// Too many of them.
    #[error("{0} coarser targets: at most {MAX_COARSER_TARGETS}")]
    CoarserTargets(u32),
    /// Steps would not grow.
    #[error("an expansion of {0}: it is 2 or more")]
    Expansion(u32),
}

impl Goal {
    /// The throughput of RFC 2544 (section 26.1): no frame is lost in 60 s.
    pub fn rfc2544() -> Self {
        let minute = Duration::from_secs(60);
        Goal {
            loss_ratio: 0,
            exceed_ratio: 0,
            width: 0.01,
            initial_trial: minute,
            final_trial: minute,
            duration_sum: minute,
            coarser_targets: 1,
            expansion: 2,
        }
    }

    /// The binary search with loss verification of ETSI GS NFV-TST 009: a lossy trial of a minute is repeated once.
    pub fn tst009() -> Self {
        Goal {
            exceed_ratio: PPM / 2,
            duration_sum: Duration::from_secs(120),
            coarser_targets: 2,
            ..Self::rfc2544()
        }
    }

    /// Trials of a second, of which half may lose more than the ratio: 21 s at a bound.
    pub fn seconds(loss_ratio: u32) -> Self {
        let second = Duration::from_secs(1);
        Goal {
            loss_ratio,
            exceed_ratio: PPM / 2,
            width: 0.005,
            initial_trial: second,
            final_trial: second,
            duration_sum: Duration::from_secs(21),
            coarser_targets: 2,
            expansion: 2,
        }
    }

    /// # Errors
    /// The first value that no search can have.
    pub fn check(&self) -> Result<(), GoalError> {
        if self.loss_ratio >= PPM {
            return Err(GoalError::LossRatio(self.loss_ratio));
        }
        if self.exceed_ratio >= PPM {
            return Err(GoalError::ExceedRatio(self.exceed_ratio));
        }
        if !(self.width > 0.0 && self.width < 1.0) {
            return Err(GoalError::Width(self.width));
        }
        if self.initial_trial.is_zero() || self.initial_trial > self.final_trial {
            return Err(GoalError::Trials { initial: self.initial_trial, last: self.final_trial });
        }
        if self.duration_sum < self.initial_trial {
            return Err(GoalError::Sum { sum: self.duration_sum, initial: self.initial_trial });
        }
        if self.coarser_targets > MAX_COARSER_TARGETS {
            return Err(GoalError::CoarserTargets(self.coarser_targets));
        }
        if self.expansion < 2 {
            return Err(GoalError::Expansion(self.expansion));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_can_be_searched() {
        for goal in [Goal::rfc2544(), Goal::tst009(), Goal::seconds(0), Goal::seconds(5000)] {
            assert_eq!(goal.check(), Ok(()));
        }
    }

    #[test]
    fn refuses_impossible_values() {
        let goal = Goal::seconds(0);
        assert_eq!(Goal { loss_ratio: PPM, ..goal.clone() }.check(), Err(GoalError::LossRatio(PPM)));
        assert_eq!(Goal { exceed_ratio: PPM, ..goal.clone() }.check(), Err(GoalError::ExceedRatio(PPM)));
        for width in [0.0, 1.0, -0.1] {
            assert_eq!(Goal { width, ..goal.clone() }.check(), Err(GoalError::Width(width)));
        }
        assert!(Goal { width: f64::NAN, ..goal.clone() }.check().is_err());
        assert!(Goal { initial_trial: Duration::ZERO, ..goal.clone() }.check().is_err());
        assert!(Goal { final_trial: Duration::from_millis(1), ..goal.clone() }.check().is_err());
        assert!(Goal { duration_sum: Duration::from_millis(1), ..goal.clone() }.check().is_err());
        assert!(Goal { expansion: 1, ..goal.clone() }.check().is_err());
        assert!(Goal { coarser_targets: 17, ..goal }.check().is_err());
    }
}
