//! Notices a coordinator that asks nothing, and a trial that does not end: nobody keeps a listening agent for ever.

use crate::agent::locked;
use crate::agent::permission::Limits;
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
    /// When each request began that is under way, and each receiver that has not been collected.
    began: BTreeMap<u64, Instant>,
}

impl Activity {
    /// Nothing is under way.
    pub fn new() -> Self {
        Activity(Arc::new(Mutex::new(State { last: Instant::now(), began: BTreeMap::new() })))
    }

    /// A request came.
    pub fn asked(&self) {
        locked(&self.0).last = Instant::now();
    }

    /// What lasts has begun.
    pub fn begin(&self, id: u64) {
        locked(&self.0).began.insert(id, Instant::now());
    }

    /// It has ended.
    pub fn end(&self, id: u64) {
        let mut state = locked(&self.0);
        state.last = Instant::now();
        state.began.remove(&id);
    }

    /// Calls `end` with the reason once a limit has passed.
    pub fn watch(&self, limits: &Limits, end: impl FnOnce(&str) + Send + 'static) {
        let (state, longest, idle) = (Arc::downgrade(&self.0), limits.longest + SLACK, limits.idle);
        thread::spawn(move || {
            loop {
                thread::sleep(LOOK);
                // The coordinator has gone, and nothing is under way.
                let Some(state) = state.upgrade() else { return };
                if let Some(reason) = Activity(state).passed(longest, idle) {
                    return end(reason);
                }
            }
        });
    }

    fn passed(&self, longest: Duration, idle: Duration) -> Option<&'static str> {
        let state = locked(&self.0);
        if state.began.values().any(|began| began.elapsed() > longest) {
            return Some("a trial lasted longer than trials may");
        }
        (state.began.is_empty() && state.last.elapsed() > idle)
            .then_some("the coordinator asked nothing for too long")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idleness_and_endless_trials_are_noticed_and_work_is_neither() {
        let activity = Activity::new();
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(60));
        assert_eq!(activity.passed(long, long), None);
        activity.begin(3);
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
}
