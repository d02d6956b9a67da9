//! What is lost at which share of the highest load (RFC 2544, section 26.3).

/// Per cent of the highest load between two trials, the most that RFC 2544 allows.
const STEP: u32 = 10;
/// After as many trials in a row that lose nothing, no lower load is tried.
const LOSSLESS_TRIALS: usize = 2;

/// The trials of an arm, from the highest load down.
#[derive(Debug, Clone, Default)]
pub struct LossCurve {
    /// What each trial lost, 0 to 1; `None` if it says nothing.
    losses: Vec<Option<f64>>,
}

impl LossCurve {
    /// The load of the next trial in per cent of the highest one; `None` after two trials that lost nothing, or after
    /// the least load.
    pub fn next_percent(&self) -> Option<u32> {
        let tried = self.losses.len();
        let last = &self.losses[tried.saturating_sub(LOSSLESS_TRIALS)..];
        if last.len() == LOSSLESS_TRIALS && last.iter().all(|loss| *loss == Some(0.0)) {
            return None;
        }
        let percent = 100_u32.saturating_sub(STEP * tried as u32);
        (percent > 0).then_some(percent)
    }

    /// Adds the trial at that load: the share that was lost, if it says anything.
    pub fn add(&mut self, loss: Option<f64>) {
        self.losses.push(loss);
    }

    /// What the trial at the highest load lost.
    pub fn loss_at_highest(&self) -> Option<f64> {
        *self.losses.first()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loads of an arm that carries this share of the highest one.
    fn list_loads(carried: f64) -> (Vec<u32>, Option<f64>) {
        let mut curve = LossCurve::default();
        let mut loads = Vec::new();
        while let Some(percent) = curve.next_percent() {
            loads.push(percent);
            let load = f64::from(percent) / 100.0;
            curve.add(Some((1.0 - carried / load).max(0.0)));
        }
        (loads, curve.loss_at_highest())
    }

    #[test]
    fn ends_after_two_trials_without_loss() {
        assert_eq!(list_loads(1.0), (vec![100, 90], Some(0.0)));
        assert_eq!(list_loads(0.75), (vec![100, 90, 80, 70, 60], Some(0.25)));
        let all: Vec<u32> = (1..=10).rev().map(|tenth| 10 * tenth).collect();
        assert_eq!(list_loads(0.0), (all, Some(1.0)));
    }

    #[test]
    fn a_disturbed_trial_is_not_one_without_loss() {
        let mut curve = LossCurve::default();
        for (loss, next) in
            [(Some(0.0), Some(90)), (None, Some(80)), (Some(0.0), Some(70)), (Some(0.0), None)]
        {
            curve.add(loss);
            assert_eq!(curve.next_percent(), next);
        }
        assert_eq!(curve.loss_at_highest(), Some(0.0));
        let mut disturbed = LossCurve::default();
        disturbed.add(None);
        assert_eq!(disturbed.loss_at_highest(), None);
    }
}
