//! What is under way at an agent. Notices a coordinator that asks nothing, a trial that does not end and a receiver that nobody
//! collects: nobody keeps a listening agent for ever.

use crate::agent::locked;
use crate::agent::permission::Limits;
use stacklab_model::{Slicing, TrialSpec};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How often it looks.
const LOOK: Duration = Duration::from_millis(250);
/// What a trial may take in addition to its length: connecting, waiting for lost messages, a busy machine.
const SLACK: Duration = Duration::from_secs(120);

/// What is under way at an agent.
#[derive(Debug, Clone)]
pub struct Activity(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// When a request last came or was answered.
    last: Instant,
    /// Each request that is under way, and each receiver that has not been collected.
    under_way: BTreeMap<u64, Lasting>,
}

/// What lasts: a request that is under way, or a receiver.
#[derive(Debug, Clone, Copy)]
struct Lasting {
    began: Instant,
    /// When it is given up, if it is a receiver.
    until: Option<Instant>,
    /// Rate of the payload that is sent, bits per second.
    bits_per_second: f64,
}

/// After how long a receiver is given up that nobody collected: the announced length of its trial, and what a trial may take in
/// addition. `None` for a trial that ends by its count of messages, at a rate that nobody announced.
pub fn longest_wait(spec: &TrialSpec) -> Option<Duration> {
    let length = Duration::from_nanos(super::permission::announced_ns(spec)?);
    // The arms of an interleaved trial wait for each other, and between turns for their paths to empty.
    let turns = if spec.slicing.is_some() { 2 * Slicing::MOST_ARMS as u32 } else { 1 };
    Some((length + Duration::from_nanos(spec.probe.warmup_ns)).saturating_mul(turns).saturating_add(SLACK))
}

impl Activity {
    /// Nothing is under way.
    pub fn new() -> Self {
        Activity(Arc::new(Mutex::new(State { last: Instant::now(), under_way: BTreeMap::new() })))
    }

    /// A request came.
    pub fn asked(&self) {
        locked(&self.0).last = Instant::now();
    }

    /// A request has begun that lasts, and sends this many bits of payload per second.
    pub fn begin(&self, id: u64, bits_per_second: f64) {
        let lasting = Lasting { began: Instant::now(), until: None, bits_per_second };
        locked(&self.0).under_way.insert(id, lasting);
    }

    /// A receiver listens that is given up after this time.
    pub fn listen(&self, id: u64, wait: Option<Duration>) {
        let began = Instant::now();
        let until = wait.and_then(|wait| began.checked_add(wait));
        locked(&self.0).under_way.insert(id, Lasting { began, until, bits_per_second: 0.0 });
    }

    /// What all requests under way send together, bits of payload per second.
    pub fn bits_per_second(&self) -> f64 {
        locked(&self.0).under_way.values().map(|lasting| lasting.bits_per_second).sum()
    }

    /// The receivers whose time has passed. They are no longer under way.
    pub fn given_up(&self) -> Vec<u64> {
        let (mut state, now) = (locked(&self.0), Instant::now());
        let over = |lasting: &Lasting| lasting.until.is_some_and(|until| until < now);
        let over: Vec<u64> = state.under_way.iter().filter(|one| over(one.1)).map(|one| *one.0).collect();
        for id in &over {
            state.under_way.remove(id);
            state.last = now;
        }
        over
    }

    /// It has ended.
    pub fn end(&self, id: u64) {
        let mut state = locked(&self.0);
        state.last = Instant::now();
        state.under_way.remove(&id);
    }

    /// Calls `give_up` for each receiver whose time has passed, and `end` with the reason once a limit has passed.
    pub fn watch(
        &self,
        limits: &Limits,
        give_up: impl Fn(u64) + Send + 'static,
        end: impl FnOnce(&str) + Send + 'static,
    ) {
        let (state, longest, idle) = (Arc::downgrade(&self.0), limits.longest + SLACK, limits.idle);
        thread::spawn(move || {
            loop {
                thread::sleep(LOOK);
                // The coordinator has gone, and nothing is under way.
                let Some(state) = state.upgrade() else { return };
                let activity = Activity(state);
                activity.given_up().into_iter().for_each(&give_up);
                if let Some(reason) = activity.passed(longest, idle) {
                    return end(reason);
                }
            }
        });
    }

    fn passed(&self, longest: Duration, idle: Duration) -> Option<&'static str> {
        let state = locked(&self.0);
        if state.under_way.values().any(|lasting| lasting.began.elapsed() > longest) {
            return Some("a trial lasted longer than trials may");
        }
        (state.under_way.is_empty() && state.last.elapsed() > idle)
            .then_some("the coordinator asked nothing for too long")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures;
    use stacklab_model::{Family, Length, Pacing, Transport};

    #[test]
    fn idleness_and_endless_trials_are_noticed_and_work_is_neither() {
        let activity = Activity::new();
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(60));
        assert_eq!(activity.passed(long, long), None);
        activity.begin(3, 0.0);
        thread::sleep(Duration::from_millis(30));
        assert_eq!(activity.passed(long, short), None);
        assert!(activity.passed(short, long).unwrap().contains("trial"));
        activity.end(3);
        assert_eq!(activity.passed(short, short), None);
        thread::sleep(Duration::from_millis(30));
        assert!(activity.passed(long, short).unwrap().contains("asked nothing"));
        activity.asked();
        assert_eq!(activity.passed(long, short), None);
    }

    #[test]
    fn a_receiver_is_given_up_after_its_trial() {
        let spec = fixtures::spec(Family::Ipv4, Transport::Udp);
        let of = |length, pacing| {
            let mut spec = spec.clone();
            (spec.probe.length, spec.probe.pacing, spec.probe.warmup_ns) = (length, pacing, 1_000_000_000);
            longest_wait(&spec)
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds) + SLACK);
        assert_eq!(of(Length::Time(9_000_000_000), Pacing::Flood), seconds(10));
        assert_eq!(of(Length::Packets(400), Pacing::Schedule(100.0)), seconds(5));
        assert_eq!(of(Length::Packets(400), Pacing::Flood), None);
        let activity = Activity::new();
        activity.listen(1, Some(Duration::from_millis(1)));
        activity.listen(2, Some(Duration::MAX));
        activity.listen(3, None);
        activity.begin(4, 0.0);
        thread::sleep(Duration::from_millis(5));
        assert_eq!(activity.given_up(), [1]);
        assert!(activity.given_up().is_empty());
    }

    #[test]
    fn what_all_requests_send_is_added_while_they_last() {
        let activity = Activity::new();
        activity.begin(1, 4e6);
        activity.begin(2, 6e6);
        assert_eq!(activity.bits_per_second(), 10e6);
        activity.end(1);
        assert_eq!(activity.bits_per_second(), 6e6);
    }
}
