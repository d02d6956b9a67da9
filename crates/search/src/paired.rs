//! Several arms at their own loads, in turns of a slice each.
//!
//! Each arm's load goes up after a good slice and down after a bad one, so it stays where a slice is bad with the
//! probability of the exceed ratio. What disturbs the machine for longer than a round moves all arms' loads alike, and
//! their ratio not at all: one arm searched after the other would measure the drift.

use crate::class::exceeds;
use crate::goal::PPM;

/// The first steps, as logarithms of loads. A step is halved when its direction changes.
const FIRST_STEP: f64 = 0.08;
const LAST_STEP: f64 = 0.01;
/// Rounds that count once every arm has the last step.
const COUNTED_ROUNDS: usize = 12;

/// What came of an arm's slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Frames that were sent.
    pub offered: u64,
    /// Frames that did not arrive.
    pub lost: u64,
    /// Frames that arrived after the last one was sent and the least delay of the path had passed: they waited in a
    /// queue, which otherwise hides an overload until it is full.
    pub waiting: u64,
}

impl Slice {
    /// Whether more of the frames were lost or waiting than this ratio, in millionths.
    pub fn is_bad(&self, loss_ratio: u32) -> bool {
        exceeds(self.lost.saturating_add(self.waiting), self.offered, loss_ratio)
    }
}

/// One arm's load.
#[derive(Debug, Clone)]
struct Tracker {
    /// The logarithm.
    load: f64,
    step: f64,
    was_bad: Option<bool>,
}

/// The loads of all arms in one block of a campaign.
#[derive(Debug, Clone)]
pub struct PairedSearch {
    trackers: Vec<Tracker>,
    /// Shares of a step, so that going up and down are balanced at the exceed ratio.
    up: f64,
    down: f64,
    least: f64,
    highest: f64,
    /// The loads of the rounds that count, in the order of the arms.
    counted: Vec<Vec<f64>>,
    /// Of each arm, whether a round that counts had it at the highest load and good.
    reached_highest: Vec<bool>,
}

impl PairedSearch {
    /// Begins at a first load of each arm, in frames a second: what a flood forwarded, moved by chance, so that equal
    /// arms have no common grid. The exceed ratio is in millionths and below one.
    pub fn new(first_loads: &[f64], least: f64, highest: f64, exceed_ratio: u32) -> Self {
        let exceed = f64::from(exceed_ratio.min(PPM - 1)) / f64::from(PPM);
        let larger = exceed.max(1.0 - exceed);
        let mut trackers = Vec::new();
        for load in first_loads {
            trackers.push(Tracker { load: load.clamp(least, highest).ln(), step: FIRST_STEP, was_bad: None });
        }
        PairedSearch {
            reached_highest: vec![false; trackers.len()],
            trackers,
            up: exceed / larger,
            down: (1.0 - exceed) / larger,
            least: least.ln(),
            highest: highest.ln(),
            counted: Vec::new(),
        }
    }

    /// The load of an arm's next slice, in frames a second.
    pub fn load(&self, arm: usize) -> f64 {
        self.trackers[arm].load.exp()
    }

    /// Adds a round: whether each arm's slice was bad, in their order. Nothing happens once all rounds are there.
    pub fn add_round(&mut self, bad: &[bool]) {
        if self.is_complete() || bad.len() != self.trackers.len() {
            return;
        }
        if self.trackers.iter().all(|tracker| tracker.step <= LAST_STEP) {
            self.counted.push(self.trackers.iter().map(|tracker| tracker.load.exp()).collect());
            for (arm, tracker) in self.trackers.iter().enumerate() {
                self.reached_highest[arm] |= tracker.load >= self.highest && !bad[arm];
            }
        }
        for (tracker, is_bad) in self.trackers.iter_mut().zip(bad) {
            if tracker.was_bad.is_some_and(|was_bad| was_bad != *is_bad) {
                tracker.step = (tracker.step / 2.0).max(LAST_STEP);
            }
            tracker.was_bad = Some(*is_bad);
            // An exceed ratio of zero goes up too, by a hundredth of what it goes down.
            let by = if *is_bad { -self.down } else { self.up.max(0.01) };
            let wanted = tracker.load + by * tracker.step;
            tracker.load = wanted.clamp(self.least, self.highest);
            // An arm at a limit has no other reversal: the others would wait for it without end.
            if tracker.load != wanted {
                tracker.step = (tracker.step / 2.0).max(LAST_STEP);
            }
        }
    }

    /// Whether all rounds that count are there.
    pub fn is_complete(&self) -> bool {
        self.counted.len() == COUNTED_ROUNDS
    }

    /// The loads of the rounds that count so far, in frames a second: of each round one for each arm, in their order.
    pub fn counted_rounds(&self) -> &[Vec<f64>] {
        &self.counted
    }

    /// Whether an arm carried the highest load: its figure is then at least that, and no ratio can be made of it.
    pub fn has_reached_highest(&self, arm: usize) -> bool {
        self.reached_highest[arm]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches arms that lose what exceeds these rates.
    fn search(rates: &[f64], highest: f64) -> PairedSearch {
        let firsts: Vec<f64> =
            rates.iter().enumerate().map(|(arm, rate)| rate * (1.02 + 0.01 * arm as f64)).collect();
        let mut search = PairedSearch::new(&firsts, 10.0, highest, PPM / 2);
        while !search.is_complete() {
            let bad: Vec<bool> = (0..rates.len()).map(|arm| search.load(arm) > rates[arm]).collect();
            search.add_round(&bad);
        }
        search
    }

    fn mean_log(rounds: &[Vec<f64>], arm: usize) -> f64 {
        rounds.iter().map(|loads| loads[arm].ln()).sum::<f64>() / rounds.len() as f64
    }

    #[test]
    fn loads_stay_at_the_rate_of_each_arm() {
        let search = search(&[100_000.0, 60_000.0], 1e6);
        let rounds = search.counted_rounds();
        assert_eq!(rounds.len(), COUNTED_ROUNDS);
        assert!((mean_log(rounds, 0) - 100_000_f64.ln()).abs() < LAST_STEP);
        let ratio = (mean_log(rounds, 1) - mean_log(rounds, 0)).exp();
        assert!((ratio - 0.6).abs() < 0.01, "{ratio}");
        assert!(!search.has_reached_highest(0) && !search.has_reached_highest(1));
    }

    #[test]
    fn names_an_arm_at_the_highest_load() {
        let search = search(&[5000.0, 500.0], 1000.0);
        assert!(search.has_reached_highest(0));
        assert!(!search.has_reached_highest(1));
        assert!(search.counted_rounds().iter().all(|loads| loads[0] > 999.0));
    }

    #[test]
    fn ends_though_nothing_is_carried() {
        let search = search(&[1.0, 500.0], 1000.0);
        assert!(!search.has_reached_highest(0));
        assert!(search.counted_rounds().iter().all(|loads| loads[0] < 10.1));
    }

    #[test]
    fn waiting_frames_are_not_carried() {
        let slice = Slice { offered: 1000, lost: 0, waiting: 6 };
        assert!(slice.is_bad(5000));
        assert!(!slice.is_bad(6000));
        assert!(!Slice { waiting: 0, ..slice }.is_bad(0));
    }
}
