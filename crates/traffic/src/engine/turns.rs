//! Turns: the arms of an interleaved trial send one after another. Arms of one sender, each on its own thread, pass the
//! turn on; arms with separate senders have time slots.

use crate::protocol::message::Timetable;
use crate::sys::{self, Nanos};
use stacklab_model::{ArmSchedule, SplitMix64};
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Another arm of the trial has given up, and so does this one.
#[derive(Debug, thiserror::Error)]
#[error("another arm of the interleaved trial failed")]
pub(crate) struct OtherArmFailed;

impl OtherArmFailed {
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|source| source.is::<OtherArmFailed>())
    }
}

/// The turns of the arms of one sender. In each round every arm has one turn, in an order of [`position`].
pub(crate) struct Turns {
    arms: usize,
    seed: u64,
    state: Mutex<TurnState>,
    changed: Condvar,
}

#[derive(Default)]
struct TurnState {
    ended: u64,
    slice_ns: Nanos,
    /// The lowest rate at which an arm flooded, messages per second.
    flood_rate: Option<f64>,
    /// When the first round after the warm-up began, and the last round, once it has begun.
    began_ns: Option<Nanos>,
    last_round: Option<u64>,
    broken: bool,
}

pub(crate) struct Turn<'a> {
    order: TurnSignal<'a>,
    rounds: u64,
    complete: bool,
}

/// What tells an arm that its turn has come.
enum TurnSignal<'a> {
    Passed { turns: &'a Turns, arm: usize },
    Slots(Timetable),
}

impl Turns {
    pub(crate) fn new(arms: usize, seed: u64) -> Self {
        Turns { arms, seed, state: Mutex::default(), changed: Condvar::new() }
    }

    /// The place of an arm, counted from 0. Each arm has one.
    pub(crate) fn of(&self, arm: usize) -> Turn<'_> {
        Turn::new(TurnSignal::Passed { turns: self, arm })
    }

    fn lock_state(&self) -> MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An arm's position in a round.
///
/// After the warm-up (round 0), rounds come in pairs, of which the second has the order of the first reversed. As many
/// pairs as there are arms are a cycle: in it every arm follows every other one equally often, and once follows itself
/// in the middle of a pair. Which arm is which, and the order of the pairs, is drawn from the seed for each cycle.
///
/// Source: Williams (1949), Australian Journal of Scientific Research A 2, 149.
fn position(arm: usize, arms: usize, round: u64, seed: u64) -> usize {
    let pair = round.div_ceil(2);
    let is_second = round.is_multiple_of(2);
    let cycle = pair / arms as u64;
    let row = (pair % arms as u64) as usize;
    let mut random = seed ^ cycle.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let names = draw_order(arms, &mut random);
    let shift = draw_order(arms, &mut random)[row];
    let mut places = 0..arms;
    let place = places.position(|place| names[(pick_from_row(place, arms) + shift) % arms] == arm);
    let place = place.unwrap_or(arm);
    if is_second { arms - 1 - place } else { place }
}

/// The row 0, 1, n - 1, 2, n - 2, ..: it has each difference modulo n between neighbours once.
fn pick_from_row(place: usize, arms: usize) -> usize {
    if place % 2 == 1 { place.div_ceil(2) } else { (arms - place / 2) % arms }
}

/// The numbers below `count` in an order that is drawn.
fn draw_order(count: usize, random: &mut u64) -> [usize; ArmSchedule::MAX_ARMS] {
    let mut order: [usize; ArmSchedule::MAX_ARMS] = std::array::from_fn(|number| number);
    for last in (1..count).rev() {
        *random = SplitMix64::mix(*random);
        order.swap(last, (*random % (last as u64 + 1)) as usize);
    }
    order
}

fn begins_ns(timetable: &Timetable, round: u64) -> Nanos {
    let Timetable { arms, arm, seed, starts_ns, warmup_slot_ns, slot_ns, .. } = *timetable;
    let place = position(arm.into(), arms.into(), round, seed) as u64;
    let arms = u64::from(arms);
    let into = match round.checked_sub(1) {
        None => warmup_slot_ns.saturating_mul(place),
        Some(rounds) => {
            let slots_ns = slot_ns.saturating_mul(rounds * arms + place);
            slots_ns.saturating_add(warmup_slot_ns.saturating_mul(arms))
        }
    };
    starts_ns.saturating_add(into)
}

impl<'a> Turn<'a> {
    fn new(order: TurnSignal<'a>) -> Self {
        Turn { order, rounds: 0, complete: false }
    }

    pub(crate) fn in_slots(timetable: Timetable) -> io::Result<Self> {
        let Timetable { arm, arms, .. } = timetable;
        if arm >= arms || usize::from(arms) > ArmSchedule::MAX_ARMS {
            let most = ArmSchedule::MAX_ARMS;
            let reason = format!("arm {arm} of {arms}: 1 to {most} are possible, counted from 0");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        Ok(Turn::new(TurnSignal::Slots(timetable)))
    }

    /// Waits for this arm's turn. Returns whether there is time for a slice: not in a slot that came too late.
    pub(crate) fn wait(&mut self) -> io::Result<bool> {
        let (turns, arm) = match &self.order {
            TurnSignal::Passed { turns, arm } => (turns, *arm),
            TurnSignal::Slots(timetable) => {
                let begins_ns = begins_ns(timetable, self.rounds);
                sys::sleep(Duration::from_nanos(begins_ns.saturating_sub(sys::now_ns())));
                let late_ns = sys::now_ns().saturating_sub(begins_ns);
                return Ok(self.rounds == 0 || late_ns + timetable.slice_ns <= timetable.slot_ns);
            }
        };
        let place = position(arm, turns.arms, self.rounds, turns.seed);
        let own = self.rounds * turns.arms as u64 + place as u64;
        let mut state = turns.lock_state();
        while state.ended < own && !state.broken {
            state = turns.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.broken { Err(io::Error::other(OtherArmFailed)) } else { Ok(true) }
    }

    /// Whether a slice may last longer than planned. A time slot ends, and the next one is another sender's.
    pub(crate) fn may_extend(&self) -> bool {
        matches!(self.order, TurnSignal::Passed { .. })
    }

    /// Whether this round is the last, for arms that send for `whole_ns` each: if emptying the paths takes longer than
    /// the slices, a trial has fewer rounds instead of lasting longer. The first arm of a round decides.
    pub(crate) fn is_last_round(&self, whole_ns: Nanos) -> bool {
        let TurnSignal::Passed { turns, .. } = &self.order else { return false };
        let mut state = turns.lock_state();
        let now = sys::now_ns();
        let began = *state.began_ns.get_or_insert(now);
        let times = ArmSchedule::MAX_EMPTYING.saturating_mul(turns.arms as u64);
        let most_ns = times.saturating_mul(whole_ns).saturating_add(ArmSchedule::MAX_EMPTYING_NS);
        let is_first = state.ended % turns.arms as u64 == 0;
        if is_first && now.saturating_sub(began) >= most_ns {
            state.last_round = Some(self.rounds);
        }
        state.last_round == Some(self.rounds)
    }

    pub(crate) fn pass(&mut self) {
        self.rounds += 1;
        if let TurnSignal::Passed { turns, .. } = &self.order {
            turns.lock_state().ended += 1;
            turns.changed.notify_all();
        }
    }

    /// What the arms of one sender tell each other; `None` in time slots.
    fn lock_turns(&self) -> Option<MutexGuard<'_, TurnState>> {
        match &self.order {
            TurnSignal::Passed { turns, .. } => Some(turns.lock_state()),
            TurnSignal::Slots(_) => None,
        }
    }

    /// Tells how long a slice of this arm must be, at the least. All arms of a sender say so in the first round.
    pub(crate) fn propose(&self, slice_ns: Nanos) {
        if let Some(mut state) = self.lock_turns() {
            state.slice_ns = state.slice_ns.max(slice_ns);
        }
    }

    /// The timetable's, or the longest that an arm proposed, known from the second round on.
    pub(crate) fn slice_ns(&self) -> Nanos {
        match &self.order {
            TurnSignal::Passed { turns, .. } => turns.lock_state().slice_ns,
            TurnSignal::Slots(timetable) => timetable.slice_ns,
        }
    }

    /// Tells the rate of this arm's flood, messages per second, in the first round.
    pub(crate) fn tell_flood_rate(&self, per_second: f64) {
        if let Some(mut state) = self.lock_turns() {
            state.flood_rate = Some(state.flood_rate.map_or(per_second, |rate| rate.min(per_second)));
        }
    }

    /// Known from the second round on; `None` in time slots.
    pub(crate) fn flood_rate(&self) -> Option<f64> {
        self.lock_turns()?.flood_rate
    }

    pub(crate) fn complete(mut self) {
        self.complete = true;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let (TurnSignal::Passed { turns, .. }, false) = (&self.order, self.complete) {
            turns.lock_state().broken = true;
            turns.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn each_arm_has_one_turn_a_round_in_varying_order() {
        for arms in [1, 2, 5] {
            let turns = Turns::new(arms, 7);
            let taken = Mutex::new(Vec::new());
            thread::scope(|scope| {
                for arm in 0..arms {
                    let taken = &taken;
                    let mut turn = turns.of(arm);
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
    fn every_arm_follows_every_other_one_equally_often() {
        for arms in 2..=ArmSchedule::MAX_ARMS {
            let mut follows = vec![vec![0; arms]; arms];
            let mut itself = vec![0; arms];
            // The pairs of the second cycle.
            let first = 2 * arms as u64 - 1;
            for round in first..first + 2 * arms as u64 {
                let this = sort_arms(arms, round);
                this.windows(2).for_each(|pair| follows[pair[0]][pair[1]] += 1);
                if round % 2 == 1 {
                    assert!(this.iter().eq(sort_arms(arms, round + 1).iter().rev()), "{arms} {round}");
                    itself[this[arms - 1]] += 1;
                }
            }
            assert_eq!(itself, vec![1; arms]);
            for (one, row) in follows.iter().enumerate() {
                assert!(
                    row.iter().enumerate().all(|(other, n)| *n == if one == other { 0 } else { 2 }),
                    "{follows:?}"
                );
            }
        }
    }

    fn sort_arms(arms: usize, round: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..arms).collect();
        order.sort_by_key(|arm| position(*arm, arms, round, 7));
        order
    }

    #[test]
    fn an_arm_that_gives_up_ends_the_others() {
        let turns = Turns::new(2, 1);
        let one = turns.of(0);
        let mut other = turns.of(1);
        drop(one);
        assert!(other.wait().is_err());
    }

    #[test]
    fn the_longest_slice_that_an_arm_needs_is_everyones() {
        let turns = Turns::new(2, 1);
        let one = turns.of(0);
        let other = turns.of(1);
        one.propose(5);
        other.propose(3);
        assert_eq!((one.slice_ns(), other.slice_ns()), (5, 5));
        one.complete();
        other.complete();
    }

    #[test]
    fn slots_of_all_arms_fill_each_round_without_overlap() {
        let timetables: [Timetable; 3] = [0, 1, 2].map(|arm| Timetable {
            arms: 3,
            arm,
            seed: 9,
            starts_ns: 1000,
            warmup_slot_ns: 50,
            slot_ns: 20,
            slice_ns: 15,
        });
        for round in 0..50 {
            let mut begin = timetables.map(|timetable| begins_ns(&timetable, round));
            begin.sort_unstable();
            let first = if round == 0 { 1000 } else { 1000 + 150 + (round - 1) * 60 };
            let length = if round == 0 { 50 } else { 20 };
            assert_eq!(begin, [first, first + length, first + 2 * length], "{round}");
        }
        let orders: std::collections::HashSet<Nanos> =
            (1..50).map(|round| begins_ns(&timetables[0], round) - (round - 1) * 60).collect();
        assert_eq!(orders.len(), 3, "an arm has every place of a round");
        assert!(Turn::in_slots(Timetable { arm: 3, ..timetables[0] }).is_err());
    }

    #[test]
    fn an_arm_with_slots_waits_for_each() {
        let starts_ns = sys::now_ns() + 5_000_000;
        let timetable = Timetable {
            arms: 1,
            arm: 0,
            seed: 1,
            starts_ns,
            warmup_slot_ns: 3_000_000,
            slot_ns: 2_000_000,
            slice_ns: 1_000_000,
        };
        let mut turn = Turn::in_slots(timetable).unwrap();
        for begins_ns in [0, 3_000_000, 5_000_000] {
            turn.wait().unwrap();
            assert!(sys::now_ns() >= starts_ns + begins_ns);
            turn.pass();
        }
        assert_eq!(turn.slice_ns(), 1_000_000);
        // The slot of the third round is over.
        sys::sleep(Duration::from_millis(10));
        assert!(!turn.wait().unwrap());
    }
}
