//! Turns: the arms of an interleaved trial send one after another, each on its own thread.

use crate::sys::Nanos;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of arms of one trial.
pub const MOST_ARMS: usize = 16;

/// Another arm of the trial has given up, and so does this one.
#[derive(Debug, thiserror::Error)]
#[error("another arm of the interleaved trial failed")]
pub struct OtherArmFailed;

impl OtherArmFailed {
    /// Whether this is why a call failed.
    pub fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|source| source.is::<OtherArmFailed>())
    }
}

/// The turns of one trial. In each round every arm has one turn; the order of each round is drawn from the seed.
pub struct Turns {
    arms: usize,
    seed: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Turns that have ended.
    ended: u64,
    /// The longest slice that an arm needs.
    slice_ns: Nanos,
    /// Whether an arm has given up. The others then give up too.
    broken: bool,
}

/// One arm's place in the turns.
pub struct Turn<'a> {
    turns: &'a Turns,
    arm: usize,
    /// Rounds in which this arm has had its turn.
    rounds: u64,
    /// Whether the arm has had all of its turns.
    complete: bool,
}

impl Turns {
    /// Turns of this many arms.
    pub fn new(arms: usize, seed: u64) -> Self {
        Turns { arms, seed, state: Mutex::default(), changed: Condvar::new() }
    }

    /// The place of an arm, counted from 0. Each arm has one.
    pub fn of(&self, arm: usize) -> Turn<'_> {
        Turn { turns: self, arm, rounds: 0, complete: false }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An arm's position in a round.
    fn position(&self, arm: usize, round: u64) -> usize {
        let mut order: [usize; MOST_ARMS] = std::array::from_fn(|arm| arm);
        let mut random = self.seed ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for last in (1..self.arms).rev() {
            random = mixed(random);
            order.swap(last, (random % (last as u64 + 1)) as usize);
        }
        order[..self.arms].iter().position(|other| *other == arm).unwrap_or(arm)
    }
}

impl Turn<'_> {
    /// Waits for this arm's turn in the next round.
    ///
    /// # Errors
    /// If another arm has given up.
    pub fn wait(&mut self) -> io::Result<()> {
        let turns = self.turns;
        let own = self.rounds * turns.arms as u64 + turns.position(self.arm, self.rounds) as u64;
        let mut state = turns.locked();
        while state.ended < own && !state.broken {
            state = turns.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.broken { Err(io::Error::other(OtherArmFailed)) } else { Ok(()) }
    }

    /// Ends this arm's turn.
    pub fn pass(&mut self) {
        self.rounds += 1;
        self.turns.locked().ended += 1;
        self.turns.changed.notify_all();
    }

    /// Tells how long a slice of this arm must be, at the least. All arms say so in the first round.
    pub fn propose(&self, slice_ns: Nanos) {
        let mut state = self.turns.locked();
        state.slice_ns = state.slice_ns.max(slice_ns);
    }

    /// The length of all slices, nanoseconds: the longest that an arm proposed. Known from the second round on.
    pub fn slice_ns(&self) -> Nanos {
        self.turns.locked().slice_ns
    }

    /// Ends the arm's part: it has had all of its turns.
    pub fn complete(mut self) {
        self.complete = true;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.complete {
            self.turns.locked().broken = true;
            self.turns.changed.notify_all();
        }
    }
}

/// A step of SplitMix64 (Steele, Lea and Flood 2014).
fn mixed(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn every_arm_has_one_turn_in_each_round_alone_and_the_order_varies() {
        for arms in [1, 2, 5] {
            let turns = Turns::new(arms, 7);
            let taken = Mutex::new(Vec::new());
            thread::scope(|scope| {
                for arm in 0..arms {
                    let (taken, mut turn) = (&taken, turns.of(arm));
                    scope.spawn(move || {
                        for round in 0..100 {
                            turn.wait().unwrap();
                            taken.lock().unwrap().push((round, arm));
                            turn.pass();
                        }
                        turn.complete();
                    });
                }
            });
            let taken = taken.into_inner().unwrap();
            let rounds: Vec<Vec<usize>> =
                taken.chunks(arms).map(|round| round.iter().map(|(_, arm)| *arm).collect()).collect();
            assert_eq!(rounds.len(), 100);
            for (number, round) in rounds.iter().enumerate() {
                assert!(taken[number * arms..][..arms].iter().all(|(of, _)| *of == number));
                let mut sorted = round.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..arms).collect::<Vec<_>>());
            }
            let first = rounds.iter().filter(|round| round[0] == 0).count();
            // Five standard deviations of a binomial with n = 100 and p = 1 / arms.
            let expected = 100.0 / arms as f64;
            assert!((first as f64 - expected).abs() <= 5.0 * (expected * (1.0 - 1.0 / arms as f64)).sqrt());
        }
    }

    #[test]
    fn an_arm_that_gives_up_ends_the_others() {
        let turns = Turns::new(2, 1);
        let (one, mut other) = (turns.of(0), turns.of(1));
        drop(one);
        assert!(other.wait().is_err());
    }

    #[test]
    fn the_longest_slice_that_an_arm_needs_is_everyones() {
        let turns = Turns::new(2, 1);
        let (one, other) = (turns.of(0), turns.of(1));
        one.propose(5);
        other.propose(3);
        assert_eq!((one.slice_ns(), other.slice_ns()), (5, 5));
        one.complete();
        other.complete();
    }
}
