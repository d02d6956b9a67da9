//! The loads that a search may choose: whole steps of a logarithmic grid between the least and the highest load.

/// A width is a whole number of steps and at least this share of itself, and never quite the whole, so that rounding
/// cannot make two bounds a step too far apart.
const MIN_SHARE_OF_WIDTH: f64 = 0.99;
const MAX_SHARE_OF_WIDTH: f64 = 0.999_999;
/// The share of a step by which rounding may have moved a load.
const ROUNDING: f64 = 1e-9;
/// With more steps, two bounds would differ by less than a frame in a hundred million.
const MAX_STEPS: f64 = 1e8;

/// Loads as numbers of steps: 0 is the least load, [`LoadGrid::top`] the highest one.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadGrid {
    least: f64,
    highest: f64,
    top: i64,
    /// The logarithm of one step.
    step: f64,
}

/// Loads between which nothing can be searched.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GridError {
    /// No range of loads.
    #[error("loads from {least} to {highest}: the least is above 0, and the highest above the least")]
    Range {
        /// Frames a second.
        least: f64,
        /// Frames a second.
        highest: f64,
    },
    /// The grid would have too many steps.
    #[error("a width of {0} is too small between these loads")]
    Width(f64),
}

impl LoadGrid {
    /// The coarsest grid of which every width is a whole number of steps.
    ///
    /// # Errors
    /// The loads are no range, or a width is too small for it.
    pub fn new(least: f64, highest: f64, widths: &[f64]) -> Result<Self, GridError> {
        if !(least > 0.0 && highest > least && highest.is_finite()) {
            return Err(GridError::Range { least, highest });
        }
        let span = (highest / least).ln();
        let mut steps = 1.0_f64;
        loop {
            let mut needed = Vec::new();
            for width in widths {
                let units = -(-width).ln_1p() / (span / steps);
                let share = units.floor() / units;
                if !(MIN_SHARE_OF_WIDTH..=MAX_SHARE_OF_WIDTH).contains(&share) {
                    needed.push((units.floor() + 1.0) / MAX_SHARE_OF_WIDTH / units * steps);
                }
            }
            let Some(most) = needed.into_iter().reduce(f64::max) else { break };
            steps = most.max(steps + 1.0).ceil();
            if steps > MAX_STEPS {
                let narrowest = widths.iter().copied().fold(f64::INFINITY, f64::min);
                return Err(GridError::Width(narrowest));
            }
        }
        Ok(LoadGrid { least, highest, top: steps as i64, step: span / steps })
    }

    /// The number of the highest load.
    pub fn top(&self) -> i64 {
        self.top
    }

    /// The load at a step.
    pub fn load(&self, step: i64) -> f64 {
        if step <= 0 {
            self.least
        } else if step >= self.top {
            self.highest
        } else {
            self.least * (step as f64 * self.step).exp()
        }
    }

    /// The highest step that is not above a load.
    pub fn step_below(&self, load: f64) -> i64 {
        if load <= self.least {
            return 0;
        }
        if load >= self.highest {
            return self.top;
        }
        ((load / self.least).ln() / self.step + ROUNDING).floor() as i64
    }

    /// A width as a number of steps.
    pub fn steps_of(&self, width: f64) -> i64 {
        (-(-width).ln_1p() / self.step).floor() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_whole_steps() {
        let grid = LoadGrid::new(5000.0, 1e6, &[0.005]).unwrap();
        assert_eq!(grid.top(), 1058);
        assert_eq!(grid.steps_of(0.005), 1);
        assert!((grid.load(640) - 123_281.358_634_124_38).abs() < 1e-6);
        for step in 0..=grid.top() {
            assert_eq!(grid.step_below(grid.load(step)), step);
        }
    }

    #[test]
    fn refuses_what_is_no_range() {
        for (least, highest) in [(0.0, 1.0), (2.0, 1.0), (1.0, 1.0), (1.0, f64::INFINITY), (f64::NAN, 1.0)] {
            assert!(matches!(LoadGrid::new(least, highest, &[0.01]), Err(GridError::Range { .. })));
        }
        assert_eq!(LoadGrid::new(1.0, 1e9, &[1e-9]), Err(GridError::Width(1e-9)));
    }
}
