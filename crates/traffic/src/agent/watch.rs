//! Notices a coordinator that asks nothing, and a trial that does not end: nobody keeps a listening agent for ever.

use crate::agent::locked;
use crate::agent::permission::Limits;
use crate::protocol::message::Request;
use crate::timing::{SLACK, longest};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(250);

#[derive(Debug, Clone)]
pub(super) struct Activity(Arc<Mutex<WatchState>>);

#[derive(Debug)]
struct WatchState {
    /// When a request last came or was answered.
    last: Instant,
    /// Each request that is under way, and each receiver that has not been collected.
    under_way: BTreeMap<u64, Lasting>,
}

#[derive(Debug, Clone, Copy)]
struct Lasting {
    began: Instant,
    /// How long it lasts, if that is known.
    lasts: Option<Duration>,
    bits_per_second: f64,
}

impl Activity {
    pub(super) fn new() -> Self {
        Activity(Arc::new(Mutex::new(WatchState { last: Instant::now(), under_way: BTreeMap::new() })))
    }

    pub(super) fn asked(&self) {
        locked(&self.0).last = Instant::now();
    }

    pub(super) fn begin(&self, id: u64, lasts: Option<Duration>, bits_per_second: f64) {
        let lasting = Lasting { began: Instant::now(), lasts, bits_per_second };
        locked(&self.0).under_way.insert(id, lasting);
    }

    pub(super) fn bits_per_second(&self) -> f64 {
        locked(&self.0).under_way.values().map(|lasting| lasting.bits_per_second).sum()
    }

    pub(super) fn end(&self, id: u64) {
        let mut state = locked(&self.0);
        state.last = Instant::now();
        state.under_way.remove(&id);
    }

    /// Calls `end` with the reason once a limit has passed.
    pub(super) fn watch(&self, limits: &Limits, end: impl FnOnce(&str) + Send + 'static) {
        let (state, longest, idle) = (Arc::downgrade(&self.0), limits.longest, limits.idle);
        thread::spawn(move || {
            loop {
                thread::sleep(LOOK);
                // The coordinator has gone, and nothing is under way.
                let Some(state) = state.upgrade() else { return };
                if let Some(reason) = Activity(state).passed(longest, SLACK, idle) {
                    return end(reason);
                }
            }
        });
    }

    fn passed(&self, longest: Duration, slack: Duration, idle: Duration) -> Option<&'static str> {
        let state = locked(&self.0);
        let is_over = |lasting: &Lasting| {
            let most = lasting.lasts.map_or(longest, |lasts| lasts.min(longest));
            lasting.began.elapsed() > most.saturating_add(slack)
        };
        if state.under_way.values().any(is_over) {
            return Some("a trial lasted longer than it should, or than trials may");
        }
        (state.under_way.is_empty() && state.last.elapsed() > idle)
            .then_some("the coordinator was idle for too long")
    }
}

/// How long what a request begins lasts: known of a trial by itself. A coordinator that is frozen then holds the agent
/// no longer than one that waits for a frozen agent.
pub(super) fn lasts(request: &Request) -> Option<Duration> {
    let spec = match request {
        Request::Listen { spec, .. } | Request::Wait { spec, .. } | Request::Open { spec, .. } => spec,
        Request::Send(arm) => &arm.spec,
        _ => return None,
    };
    spec.schedule.is_alone().then(|| longest(spec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use stacklab_model::{ArmSchedule, Family, Length, Transport};

    #[test]
    fn idleness_and_endless_trials_are_noticed_and_work_is_neither() {
        let activity = Activity::new();
        let (short, long, none) = (Duration::from_millis(20), Duration::from_secs(60), Duration::ZERO);
        assert_eq!(activity.passed(long, none, long), None);
        activity.begin(3, None, 0.0);
        thread::sleep(Duration::from_millis(30));
        assert_eq!(activity.passed(long, none, short), None);
        assert!(activity.passed(short, none, long).unwrap().contains("trial"));
        activity.end(3);
        assert_eq!(activity.passed(short, none, short), None);
        // One whose length is known lasts no longer than that and the slack, whatever others may.
        activity.begin(4, Some(short), 0.0);
        thread::sleep(Duration::from_millis(30));
        assert!(activity.passed(long, none, short).unwrap().contains("trial"));
        assert_eq!(activity.passed(long, long, short), None);
        activity.end(4);
        thread::sleep(Duration::from_millis(30));
        assert!(activity.passed(long, none, short).unwrap().contains("was idle"));
        activity.asked();
        assert_eq!(activity.passed(long, none, short), None);
    }

    #[test]
    fn a_trial_by_itself_lasts_as_long_as_its_traffic() {
        let mut spec = fixtures::spec(Family::Ipv4, Transport::Udp);
        (spec.probe.length, spec.probe.warmup_ns) = (Length::Time(2_000_000_000), 500_000_000);
        let listen = |spec: &stacklab_model::TrialSpec| Request::Listen {
            spec: Box::new(spec.clone()),
            address: "198.18.0.2".parse().unwrap(),
        };
        assert_eq!(lasts(&listen(&spec)), Some(Duration::from_millis(2500)));
        assert_eq!(lasts(&Request::Facts), None);
        // The other arms are not known here.
        spec.schedule = ArmSchedule::TokenPassing(None);
        assert_eq!(lasts(&listen(&spec)), None);
    }

    #[test]
    fn what_all_requests_send_is_added_while_they_last() {
        let activity = Activity::new();
        activity.begin(1, None, 4e6);
        activity.begin(2, None, 6e6);
        assert_eq!(activity.bits_per_second(), 10e6);
        activity.end(1);
        assert_eq!(activity.bits_per_second(), 6e6);
    }
}
