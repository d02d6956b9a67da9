//! Whether a load is a lower or an upper bound, from the trials at it (RFC 9971, section 6.4 and appendix A).
//!
//! Sums are of whole nanoseconds and ratios of millionths: with floats, trials of 0.1 s miss a quantile by rounding.

use crate::goal::PPM;
use std::time::Duration;

/// What came of one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// How long it was to be: whether it is full depends on that.
    pub intended: Duration,
    /// How long it took together with its preparation; mostly the intended duration.
    pub effective: Duration,
    /// Frames that were to be sent, or that were sent if those are more.
    pub frames: u64,
    /// Frames of these that were lost or not sent.
    pub lost: u64,
}

impl Trial {
    /// From the frames that were to be sent, those that were, and those of them that did not arrive.
    pub fn new(duration: Duration, intended: u64, offered: u64, lost: u64) -> Self {
        let unsent = intended.saturating_sub(offered);
        Trial { intended: duration, effective: duration, frames: intended.max(offered), lost: lost + unsent }
    }

    /// The share of lost frames.
    pub fn loss_ratio(&self) -> f64 {
        if self.frames == 0 { 0.0 } else { self.lost as f64 / self.frames as f64 }
    }
}

/// Whether more than this ratio of frames was lost, in millionths.
pub(crate) fn exceeds(lost: u64, frames: u64, loss_ratio: u32) -> bool {
    u128::from(lost) * u128::from(PPM) > u128::from(frames) * u128::from(loss_ratio)
}

/// What a load has to show to be a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criterion {
    /// As of a [`Goal`](crate::goal::Goal), in millionths.
    pub loss_ratio: u32,
    /// As of a goal, in millionths.
    pub exceed_ratio: u32,
    /// The length from which a trial is full.
    pub full_trial: Duration,
    /// The time that is to be measured.
    pub duration_sum: Duration,
}

/// What a load is for a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The load is carried, whatever the time that is still to be measured shows.
    Lower,
    /// The load is not carried, whatever that time shows.
    Upper,
    /// It depends on that time.
    Undecided,
}

/// Nanoseconds of the trials at one load.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Sums {
    full_low: i128,
    full_high: i128,
    short_low: i128,
    short_high: i128,
}

impl Sums {
    fn add(&mut self, trial: &Trial, criterion: &Criterion) {
        let is_short = trial.intended < criterion.full_trial;
        let sum = match (is_short, exceeds(trial.lost, trial.frames, criterion.loss_ratio)) {
            (false, false) => &mut self.full_low,
            (false, true) => &mut self.full_high,
            (true, false) => &mut self.short_low,
            (true, true) => &mut self.short_high,
        };
        *sum += trial.effective.as_nanos() as i128;
    }
}

/// The class of a load with these trials.
pub fn classify(trials: &[Trial], criterion: &Criterion) -> Class {
    let mut sums = Sums::default();
    for trial in trials {
        sums.add(trial, criterion);
    }
    let one = i128::from(PPM);
    let exceed = i128::from(criterion.exceed_ratio);
    let allowed = one - exceed;
    // Short trials count by what they are worse than allowed. All sums are multiplied by the allowed share.
    let high = sums.full_high * allowed + (sums.short_high * allowed - sums.short_low * exceed).max(0);
    let low = sums.full_low * allowed;
    let whole = (low + high).max(criterion.duration_sum.as_nanos() as i128 * allowed);
    let is_carried_at_best = high * one <= exceed * whole;
    let is_carried_at_worst = (whole - low) * one <= exceed * whole;
    match (is_carried_at_best, is_carried_at_worst) {
        (true, true) => Class::Lower,
        (false, false) => Class::Upper,
        _ => Class::Undecided,
    }
}

/// The loss ratio that the best part of the full trials does not exceed: of `1 - exceed_ratio` of the time. Time that
/// was not measured counts as lost.
pub fn conditional_loss(trials: &[Trial], criterion: &Criterion) -> f64 {
    let mut full: Vec<&Trial> =
        trials.iter().filter(|trial| trial.intended >= criterion.full_trial).collect();
    full.sort_by(|one, other| one.loss_ratio().total_cmp(&other.loss_ratio()));
    let measured: i128 = full.iter().map(|trial| trial.effective.as_nanos() as i128).sum();
    let whole = measured.max(criterion.duration_sum.as_nanos() as i128);
    let mut left = whole * i128::from(PPM - criterion.exceed_ratio);
    let mut reached = None;
    for trial in full {
        if let (Some(ratio), true) = (reached, left <= 0) {
            return ratio;
        }
        reached = Some(trial.loss_ratio());
        left -= trial.effective.as_nanos() as i128 * i128::from(PPM);
    }
    if left > 0 { 1.0 } else { reached.unwrap_or(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(count: usize, millis: u64, lost: u64) -> Vec<Trial> {
        vec![Trial::new(Duration::from_millis(millis), 1000, 1000, lost); count]
    }

    fn criterion(exceed_ratio: u32, full_ms: u64, sum_ms: u64) -> Criterion {
        Criterion {
            loss_ratio: 0,
            exceed_ratio,
            full_trial: Duration::from_millis(full_ms),
            duration_sum: Duration::from_millis(sum_ms),
        }
    }

    #[test]
    fn missing_time_keeps_a_load_undecided() {
        let half = criterion(PPM / 2, 1000, 21_000);
        assert_eq!(classify(&[], &half), Class::Undecided);
        assert_eq!(classify(&trials(10, 1000, 0), &half), Class::Undecided);
        assert_eq!(classify(&trials(11, 1000, 0), &half), Class::Lower);
        assert_eq!(classify(&trials(10, 1000, 1), &half), Class::Undecided);
        assert_eq!(classify(&trials(11, 1000, 1), &half), Class::Upper);
    }

    #[test]
    fn one_bad_trial_is_enough_where_none_may_be() {
        let none = criterion(0, 60_000, 60_000);
        assert_eq!(classify(&trials(1, 60_000, 0), &none), Class::Lower);
        assert_eq!(classify(&trials(1, 60_000, 1), &none), Class::Upper);
        assert_eq!(classify(&trials(1, 1000, 1), &none), Class::Upper);
        assert_eq!(classify(&trials(60, 1000, 0), &none), Class::Undecided);
    }

    #[test]
    fn tenths_of_a_second_sum_up_exactly() {
        let mut mixed = trials(7, 100, 0);
        mixed.extend(trials(3, 100, 1));
        assert_eq!(classify(&mixed, &criterion(300_000, 100, 1000)), Class::Lower);
        assert_eq!(conditional_loss(&mixed, &criterion(300_000, 100, 1000)), 0.0);
        assert_eq!(classify(&mixed, &criterion(299_999, 100, 1000)), Class::Upper);
        assert_eq!(conditional_loss(&mixed, &criterion(299_999, 100, 1000)), 0.001);
    }

    #[test]
    fn unsent_frames_are_lost() {
        let trial = Trial::new(Duration::from_secs(1), 1000, 900, 50);
        assert_eq!(trial.loss_ratio(), 0.15);
        let over = Trial::new(Duration::from_secs(1), 1000, 1100, 11);
        assert_eq!(over.loss_ratio(), 0.01);
    }

    #[test]
    fn unmeasured_time_has_lost_all() {
        assert_eq!(conditional_loss(&trials(1, 1000, 0), &criterion(0, 1000, 2000)), 1.0);
        assert_eq!(conditional_loss(&[], &criterion(0, 1000, 2000)), 1.0);
    }
}
