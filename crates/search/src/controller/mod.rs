//! MLRsearch (RFC 9971): several goals of one arm, each trial chosen by what the trials before it have shown.
//!
//! The class of a load and the bounds are those of the RFC. Which load is tried next is free there; the choices here
//! are those of its authors' program, so that both can be compared trial by trial.
//!
//! ```
//! use stacklab_search::controller::Search;
//! use stacklab_search::goal::Goal;
//!
//! let mut search = Search::new(vec![Goal::seconds(0)], 1_000.0, 1_000_000.0).unwrap();
//! while let Some(request) = search.next_trial() {
//!     let frames = (request.load * request.duration.as_secs_f64()) as u64;
//!     let carried = (40_000.0 * request.duration.as_secs_f64()) as u64;
//!     search.add(frames, frames, frames.saturating_sub(carried));
//! }
//! let found = &search.results()[0];
//! assert!(found.lower.unwrap() <= 40_000.0 && found.upper.unwrap() > 40_000.0);
//! ```

mod choice;
mod space;

use crate::class::{Criterion, Trial, conditional_loss};
use crate::goal::{Goal, GoalError, PPM};
use crate::grid::{GridError, LoadGrid};
use crate::targets::{TargetSpec, Trials, list_targets};
use choice::{GoalSearch, Offer};
use space::keep_apart;
use std::time::Duration;

/// A trial that the search needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialRequest {
    /// The number of the load in the search's grid.
    pub step: i64,
    /// Frames a second.
    pub load: f64,
    /// How long to send at that load.
    pub duration: Duration,
}

/// What was found for a goal. A bound that is missing lies outside the range of loads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The relevant lower bound: the highest load that is carried, frames a second.
    pub lower: Option<f64>,
    /// The relevant upper bound: the least load that is not carried.
    pub upper: Option<f64>,
    /// The frames a second that arrive at the lower bound in the time that the goal allows to be bad.
    pub conditional_throughput: Option<f64>,
}

/// A search that cannot begin.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SearchError {
    /// There is nothing to search.
    #[error("a search without a goal")]
    NoGoal,
    /// A goal that cannot be searched.
    #[error("goal {number} has {error}")]
    Goal {
        /// From 1.
        number: usize,
        /// What is wrong with it.
        error: GoalError,
    },
    /// Loads between which nothing can be searched.
    #[error(transparent)]
    Grid(#[from] GridError),
}

/// The first trials find the region: the highest load, then what was forwarded of it, then a load beside that.
#[derive(Debug, Clone)]
enum SearchPhase {
    Highest,
    Forwarded { step: i64 },
    Beside { first: i64, step: i64 },
    Goals(Vec<GoalSearch>),
}

/// A search for all goals at once: a trial counts for each of them.
#[derive(Debug, Clone)]
pub struct Search {
    /// The targets of each goal, the coarsest first and the goal itself last.
    targets: Vec<Vec<TargetSpec>>,
    /// Of the strictest goal.
    least_loss_ratio: f64,
    grid: LoadGrid,
    trials: Trials,
    phase: SearchPhase,
    /// The width of the last choice: a goal that begins to look outside its bounds takes no smaller steps.
    last_width: i64,
    pending: Option<Pending>,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    request: TrialRequest,
    /// The goal that asked, and the width of its choice; `None` of the first trials.
    of_goal: Option<(usize, i64)>,
}

impl Search {
    /// # Errors
    /// A goal that no search can have, or loads that are no range.
    pub fn new(goals: Vec<Goal>, least: f64, highest: f64) -> Result<Self, SearchError> {
        if goals.is_empty() {
            return Err(SearchError::NoGoal);
        }
        for (number, goal) in goals.iter().enumerate() {
            goal.check().map_err(|error| SearchError::Goal { number: number + 1, error })?;
        }
        let widths: Vec<f64> = goals.iter().map(|goal| goal.width).collect();
        let grid = LoadGrid::new(least, highest, &widths)?;
        let least_ppm = goals.iter().map(|goal| goal.loss_ratio).min().unwrap_or(0);
        Ok(Search {
            targets: goals.iter().map(|goal| list_targets(goal, &grid)).collect(),
            least_loss_ratio: f64::from(least_ppm) / f64::from(PPM),
            grid,
            trials: Trials::default(),
            phase: SearchPhase::Highest,
            last_width: 0,
            pending: None,
        })
    }

    /// The trial to make now; `None` when all goals are reached. The same one until its result is added.
    pub fn next_trial(&mut self) -> Option<TrialRequest> {
        if self.pending.is_none() {
            self.pending = self.choose();
        }
        self.pending.map(|pending| pending.request)
    }

    /// Adds the result of the trial that was asked for: the frames that were to be sent, those that were sent, and
    /// those of them that were lost. Without a trial that was asked for, nothing happens.
    pub fn add(&mut self, intended: u64, offered: u64, lost: u64) {
        let Some(Pending { request, of_goal }) = self.pending.take() else { return };
        let trial = Trial::new(request.duration, intended, offered, lost);
        self.trials.add(request.step, trial);
        match of_goal {
            None => self.go_on_from(request.step, trial.loss_ratio()),
            Some((number, width)) => self.note_choice(number, width, request.step),
        }
    }

    /// What was found for each goal so far, in their order.
    pub fn results(&self) -> Vec<Found> {
        self.targets.iter().map(|targets| self.result(&targets[targets.len() - 1].criterion)).collect()
    }

    fn result(&self, criterion: &Criterion) -> Found {
        let bounds = self.trials.find_bounds(criterion);
        let conditional_throughput = bounds.lower.map(|step| {
            let loss = conditional_loss(self.trials.at(step), criterion);
            self.grid.load(step) * (1.0 - loss)
        });
        Found {
            lower: bounds.lower.map(|step| self.grid.load(step)),
            upper: bounds.upper.map(|step| self.grid.load(step)),
            conditional_throughput,
        }
    }

    fn choose(&mut self) -> Option<Pending> {
        match &mut self.phase {
            SearchPhase::Highest => Some(self.first_trial(self.grid.top())),
            SearchPhase::Forwarded { step } | SearchPhase::Beside { step, .. } => {
                let step = *step;
                Some(self.first_trial(step))
            }
            SearchPhase::Goals(goals) => {
                let mut best: Option<(usize, Offer)> = None;
                for (number, goal) in goals.iter_mut().enumerate() {
                    let Some(offer) = goal.offer(&self.grid, &self.trials, self.last_width) else { continue };
                    if best.is_none_or(|(_, chosen)| offer.comes_before(&chosen)) {
                        best = Some((number, offer));
                    }
                }
                let (number, offer) = best?;
                let request = TrialRequest {
                    step: offer.step,
                    load: self.grid.load(offer.step),
                    duration: offer.duration,
                };
                Some(Pending { request, of_goal: Some((number, offer.width)) })
            }
        }
    }

    /// The first trials are as long as the longest first trial of a goal.
    fn first_trial(&self, step: i64) -> Pending {
        let mut duration = Duration::ZERO;
        for targets in &self.targets {
            duration = duration.max(targets[0].criterion.full_trial);
        }
        Pending { request: TrialRequest { step, load: self.grid.load(step), duration }, of_goal: None }
    }

    fn go_on_from(&mut self, step: i64, loss_ratio: f64) {
        let top = self.grid.top();
        let width = self.widest_first();
        let forwarded = self.forwarded_step(step, loss_ratio);
        match self.phase {
            SearchPhase::Highest => {
                let next = if forwarded < top {
                    keep_apart(&self.grid, forwarded, width, None, Some(top))
                } else {
                    None
                };
                match next {
                    Some(step) => self.phase = SearchPhase::Forwarded { step },
                    None => self.begin_goals(top, top),
                }
            }
            SearchPhase::Forwarded { .. } => {
                let next = if loss_ratio > self.least_loss_ratio {
                    keep_apart(&self.grid, forwarded, width, None, Some(step))
                } else {
                    keep_apart(&self.grid, step + width, width, Some(step), Some(top))
                };
                match next {
                    Some(beside) => self.phase = SearchPhase::Beside { first: step, step: beside },
                    None => self.begin_goals(step, step),
                }
            }
            SearchPhase::Beside { first, step } => self.begin_goals(first.min(step), first.max(step)),
            SearchPhase::Goals(_) => {}
        }
    }

    fn begin_goals(&mut self, low: i64, high: i64) {
        self.last_width = high - low;
        let mut goals = Vec::new();
        for targets in &self.targets {
            goals.push(GoalSearch::new(targets.clone(), low, high));
        }
        self.phase = SearchPhase::Goals(goals);
    }

    fn note_choice(&mut self, number: usize, width: i64, step: i64) {
        self.last_width = width;
        if let SearchPhase::Goals(goals) = &mut self.phase
            && let Some(wider) = goals[number].widen(&self.trials, step)
        {
            self.last_width = wider;
        }
    }

    /// The load that the frames which arrived would be, if they had lost what the strictest goal allows.
    fn forwarded_step(&self, step: i64, loss_ratio: f64) -> i64 {
        self.grid.step_below(self.grid.load(step) * (1.0 - loss_ratio) / (1.0 - self.least_loss_ratio))
    }

    fn widest_first(&self) -> i64 {
        let mut widest = 1;
        for targets in &self.targets {
            widest = widest.max(targets[0].width);
        }
        widest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_cannot_be_searched() {
        assert_eq!(Search::new(vec![], 1.0, 2.0).unwrap_err(), SearchError::NoGoal);
        let goal = Goal { expansion: 0, ..Goal::seconds(0) };
        let error = Search::new(vec![Goal::rfc2544(), goal], 1.0, 2.0).unwrap_err().to_string();
        assert_eq!(error, "goal 2 has an expansion of 0: it is 2 or more");
        let error = Search::new(vec![Goal::seconds(0)], 5.0, 5.0).unwrap_err().to_string();
        assert_eq!(error, "loads from 5 to 5: the least is above 0, and the highest above the least");
    }

    #[test]
    fn asks_the_same_until_it_is_answered() {
        let mut search = Search::new(vec![Goal::seconds(0)], 1000.0, 2000.0).unwrap();
        let first = search.next_trial().unwrap();
        assert_eq!(first.load, 2000.0);
        assert_eq!(search.next_trial(), Some(first));
        search.add(2000, 2000, 0);
        // Nothing was asked for.
        search.add(1, 1, 1);
        while search.next_trial().is_some() {
            search.add(2000, 2000, 0);
        }
        let found = search.results()[0];
        assert_eq!(found, Found { lower: Some(2000.0), upper: None, conditional_throughput: Some(2000.0) });
    }
}
