//! Which load a goal needs next, on its way through its targets.

use super::space::{find_middle, keep_apart};
use crate::grid::LoadGrid;
use crate::targets::{Bounds, TargetSpec, Trials};
use std::time::Duration;

/// A trial that a goal needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    pub(super) step: i64,
    pub(super) duration: Duration,
    pub(super) width: i64,
}

impl Offer {
    /// The lowest load comes first, then the longest trial, then the widest.
    pub(super) fn comes_before(&self, other: &Offer) -> bool {
        if self.step != other.step {
            return self.step < other.step;
        }
        if self.duration != other.duration {
            return self.duration > other.duration;
        }
        self.width > other.width
    }
}

/// How the last load was chosen: its steps grow if they only moved the bound that they began from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadChoice {
    Inside,
    FromLower,
    FromUpper,
}

/// A load, and how far apart its bounds would then be.
struct Choice {
    step: i64,
    width: i64,
}

/// The way of one goal through its targets.
#[derive(Debug, Clone)]
pub(super) struct GoalSearch {
    /// The coarsest first.
    targets: Vec<TargetSpec>,
    current: usize,
    /// Where the target began: the loads, or bounds, of the stage before.
    low: Option<i64>,
    high: Option<i64>,
    /// The size of the next step outside of what is known.
    next_width: i64,
    way: LoadChoice,
}

impl GoalSearch {
    pub(super) fn new(targets: Vec<TargetSpec>, low: i64, high: i64) -> Self {
        let mut goal =
            GoalSearch { targets, current: 0, low: None, high: None, next_width: 0, way: LoadChoice::Inside };
        goal.begin_target(Some(low), Some(high));
        goal
    }

    fn target(&self) -> &TargetSpec {
        &self.targets[self.current]
    }

    fn begin_target(&mut self, low: Option<i64>, high: Option<i64>) {
        self.low = low;
        self.high = high;
        let mut widest = self.target().width;
        if let (Some(low), Some(high)) = (low, high) {
            widest = widest.max((high - low).abs());
        }
        self.next_width = widest * self.target().expansion;
    }

    /// The trial that this goal needs now; `None` when its last target is reached.
    pub(super) fn offer(&mut self, grid: &LoadGrid, trials: &Trials, last_width: i64) -> Option<Offer> {
        loop {
            let bounds = trials.find_bounds(&self.target().criterion);
            if let Some(choice) = self.choose(grid, bounds, last_width) {
                let duration = self.target().criterion.full_trial;
                return Some(Offer { step: choice.step, duration, width: choice.width });
            }
            if self.current + 1 == self.targets.len() {
                return None;
            }
            self.current += 1;
            self.begin_target(bounds.lower, bounds.upper);
        }
    }

    /// After a trial at the offered load: the wider steps that are to follow, if it only moved the bound that the step
    /// began from.
    pub(super) fn widen(&mut self, trials: &Trials, step: i64) -> Option<i64> {
        let bounds = trials.find_bounds(&self.target().criterion);
        let has_moved = match self.way {
            LoadChoice::Inside => false,
            LoadChoice::FromLower => bounds.lower == Some(step),
            LoadChoice::FromUpper => bounds.upper == Some(step),
        };
        if !has_moved {
            return None;
        }
        self.next_width = self.next_width.saturating_mul(self.target().expansion);
        Some(self.next_width)
    }

    fn choose(&mut self, grid: &LoadGrid, bounds: Bounds, last_width: i64) -> Option<Choice> {
        self.way = LoadChoice::Inside;
        self.choose_from_start(bounds)
            .or_else(|| self.choose_outside(grid, bounds, last_width))
            .or_else(|| self.choose_between(grid, bounds, last_width))
    }

    /// The loads that the target began with, and what is between them.
    fn choose_from_start(&mut self, bounds: Bounds) -> Option<Choice> {
        let width = self.target().width;
        let mut candidates = Vec::new();
        if let (Some(low), Some(high)) = (self.low, self.high) {
            let gap = (high - low).abs();
            if gap > width && gap <= 2 * width {
                candidates.push(find_middle(low.min(high), low.max(high), width));
            }
        }
        candidates.extend(self.low);
        candidates.extend(self.high);
        let step = candidates.into_iter().find(|step| self.is_worth(*step, bounds))?;
        self.reset_width(width);
        Some(Choice { step, width })
    }

    /// Where one bound is missing: a step from the other one.
    fn choose_outside(&mut self, grid: &LoadGrid, bounds: Bounds, last_width: i64) -> Option<Choice> {
        let width = last_width.max(self.next_width);
        let apart = self.target().width;
        let (from, way) = match (bounds.lower, bounds.upper) {
            (None, Some(upper)) if upper > 0 => (upper.saturating_sub(width), LoadChoice::FromUpper),
            (Some(lower), None) if lower < grid.top() => (lower.saturating_add(width), LoadChoice::FromLower),
            _ => return None,
        };
        let step = keep_apart(grid, from, apart, bounds.lower, bounds.upper)?;
        if !self.is_worth(step, bounds) {
            return None;
        }
        self.way = way;
        Some(Choice { step, width })
    }

    /// Between both bounds: the middle, unless a step from a bound stays on this side of where the target began.
    fn choose_between(&mut self, grid: &LoadGrid, bounds: Bounds, last_width: i64) -> Option<Choice> {
        let lower = bounds.lower?;
        let upper = bounds.upper?;
        let apart = self.target().width;
        if lower >= grid.top() || upper <= 0 || upper - lower <= apart {
            return None;
        }
        let width = last_width.max(self.next_width);
        let middle = find_middle(lower, upper, apart);
        if let Some(high) = self.high
            && middle < high
            && let Some(step) =
                keep_apart(grid, upper.saturating_sub(width), apart, bounds.lower, bounds.upper)
            && middle < step
            && step < high
        {
            self.way = LoadChoice::FromUpper;
            return Some(Choice { step, width });
        }
        if let Some(low) = self.low
            && middle > low
            && let Some(step) =
                keep_apart(grid, lower.saturating_add(width), apart, bounds.lower, bounds.upper)
            && low < step
            && step < middle
        {
            self.way = LoadChoice::FromLower;
            return Some(Choice { step, width });
        }
        if !self.is_worth(middle, bounds) {
            return None;
        }
        let narrow = (middle - lower).min(upper - middle);
        self.reset_width(narrow);
        Some(Choice { step: middle, width: narrow })
    }

    fn reset_width(&mut self, width: i64) {
        self.next_width = width.max(self.target().width) * self.target().expansion;
    }

    /// Whether a trial at this load could make or move a bound that is still too far from the other one.
    fn is_worth(&self, step: i64, bounds: Bounds) -> bool {
        if bounds.lower.is_some_and(|lower| lower >= step) || bounds.upper.is_some_and(|upper| upper <= step)
        {
            return false;
        }
        match (bounds.lower, bounds.upper) {
            (Some(lower), Some(upper)) => (upper - lower).abs() > self.target().width,
            _ => true,
        }
    }
}
