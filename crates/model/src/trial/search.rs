//! A search for the highest load of which a path loses no more than a given share.

use crate::names::named;
use crate::{SliceConnections, print_duration};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Shares are in millionths of one, so that a search in a record repeats exactly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SearchSpec {
    /// The share of a slice's messages that may be lost or late; with more of them the slice is bad.
    pub loss_ppm: u32,
    /// The share of slices that are bad at the load which is the answer.
    pub exceed_ppm: u32,
    /// Nanoseconds of a slice; `None`: chosen in each block.
    pub slice_ns: Option<u64>,
    /// Messages per second; `None`: [`SearchSpec::MAX_LOAD`].
    pub highest: Option<f64>,
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub device: SearchDevice,
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub priority: SenderPriority,
    /// What each arm's bounds are searched for afterwards, near the load that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<SearchGoal>,
    /// How many connections a slice may make; `None`: [`SearchSpec::USUAL_CONNECTIONS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
}

/// A goal of RFC 9971: a load is a lower bound if no more than `exceed_ppm` of its time has a larger loss than
/// `loss_ppm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchGoal {
    pub loss_ppm: u32,
    pub exceed_ppm: u32,
    /// Nanoseconds of a full trial.
    pub trial_ns: u64,
    /// Nanoseconds of all trials at a bound together.
    pub sum_ns: u64,
    /// The distance of both bounds, over the upper one.
    pub width_ppm: u32,
}

/// `no loss in 100 % of the trials of 1 min, 1 min at a bound`.
impl fmt::Display for SearchGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.loss_ppm {
            0 => f.write_str("no loss")?,
            loss_ppm => write!(f, "at most {} % loss", f64::from(loss_ppm) / 10_000.0)?,
        }
        let share = 100.0 - f64::from(self.exceed_ppm) / 10_000.0;
        let [trial, sum] = [self.trial_ns, self.sum_ns].map(print_duration);
        write!(f, " in {share} % of the trials of {trial}, {sum} at a bound")
    }
}

named! {
    #[derive(Default)]
    pub enum SearchDevice("device") {
        /// A part of the testbed, which is built here.
        #[default]
        Testbed = "testbed",
        /// The network between two machines, of which nothing is known.
        Path = "path",
    }
}

named! {
    #[derive(Default)]
    pub enum SenderPriority("priority") {
        #[default]
        Normal = "normal",
        /// Before all threads of its processor that have none: nothing else keeps it waiting (SCHED_FIFO).
        Realtime = "realtime",
    }
}

impl SearchSpec {
    /// Nanoseconds of a trial of the recovery time: of the overload, and of half the load behind it.
    pub const RECOVERY_NS: [u64; 2] = [4_000_000_000, 1_000_000_000];
    /// Trials of a block's recovery time.
    pub const RECOVERIES: usize = 3;
    /// The least load, messages per second.
    pub const MIN_LOAD: f64 = 10.0;
    /// More than any generator here can send, messages per second.
    pub const MAX_LOAD: f64 = 5_000_000.0;
    /// Nanoseconds of a trial of the frame loss rate without a goal: longer ones have no sender with realtime priority.
    const LOSS_TRIAL_NS: u64 = 500_000_000;
    /// A table of this size fits into the limit of most kernels, and holds a slice of 50 ms at 300,000 messages per
    /// second.
    pub const USUAL_CONNECTIONS: u32 = 16_384;

    /// A search of a testbed for the load at which half of the slices lose more than that.
    pub const fn new(loss_ppm: u32) -> Self {
        SearchSpec {
            loss_ppm,
            exceed_ppm: 500_000,
            slice_ns: None,
            highest: None,
            device: SearchDevice::Testbed,
            priority: SenderPriority::Normal,
            goal: None,
            connections: None,
        }
    }

    /// The length of slices, nanoseconds: the one that is set, or one that holds enough messages of the slowest arm for
    /// one more lost message to be a small part of the allowed loss. Without any allowed loss the length is part of the
    /// question.
    pub fn slice_ns(&self, slowest_per_second: f64) -> u64 {
        const MIN_SLICE: f64 = 0.05;
        const MAX_SLICE: f64 = 5.0;
        const SLICE_WITHOUT_LOSS: f64 = 1.0;
        /// Lost messages that make a slice bad.
        const COUNTED: f64 = 10.0;
        let allowed = f64::from(self.loss_ppm) / 1e6;
        let seconds = match self.slice_ns {
            Some(slice_ns) => return slice_ns,
            None if self.loss_ppm == 0 => SLICE_WITHOUT_LOSS,
            None => (COUNTED / (allowed * slowest_per_second.max(1.0))).clamp(MIN_SLICE, MAX_SLICE),
        };
        (seconds * 1e9) as u64
    }

    /// Nanoseconds of a trial of the frame loss rate.
    pub fn loss_trial_ns(&self) -> u64 {
        self.goal.map_or(SearchSpec::LOSS_TRIAL_NS, |goal| goal.trial_ns)
    }

    pub fn connections(&self) -> u32 {
        self.connections.unwrap_or(SearchSpec::USUAL_CONNECTIONS)
    }

    pub fn highest_load(&self) -> f64 {
        self.highest.unwrap_or(SearchSpec::MAX_LOAD)
    }
}

/// `the highest load with at most 0.5 % loss`.
impl fmt::Display for SearchSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the highest load with at most {} % loss", f64::from(self.loss_ppm) / 10_000.0)?;
        if let Some(slice_ns) = self.slice_ns {
            write!(f, " in slices of {}", print_duration(slice_ns))?;
        }
        match self.goal {
            Some(goal) => write!(f, ", then bounds with {goal}"),
            None => Ok(()),
        }
    }
}

/// What a trial with an overload and half the load behind it showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// Nanoseconds from the last message of the overload to the first one of half the load from which on none is lost.
    After { ns: u64 },
    /// Not by the overload either.
    NothingLost,
    /// The last message was lost, too.
    StillLost,
    /// The receiver did not say which message was lost last.
    Unknown,
}

/// One slice of an arm in a search, as its row in the record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchSlice {
    /// Round of the block, from 1; 0 is the flood before.
    pub round: u32,
    /// From 1: the trial of the arm's goal that the slice is a part of, the number of the burst, or that of the trial
    /// of the frame loss rate or the recovery time. `None` in the search in turns, and with connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<u32>,
    /// Of a trial of the frame loss rate: its load in per cent of the highest one, which arms that are measured
    /// together have in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u32>,
    /// Messages per second that were to be sent.
    pub load: f64,
    pub offered: u64,
    pub received: u64,
    /// Messages that the ring of a router's ingress, or the queue before its translator, had no room for.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub lost_at_routers: u64,
    /// Messages that the receiver's socket had no room for: the tester's own loss.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub lost_at_receiver: u64,
    /// Messages that arrived after the slice's end and the least delay of the path: they waited in a queue.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub waiting: u64,
    /// Nanoseconds by which the sender was late, in sum.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub late_ns: u64,
    /// Whether the sender had the realtime priority that the search asks for.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub at_realtime_priority: bool,
    /// Nanoseconds for which the sender's thread waited for a processor; `None` if the kernel does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
    /// The same of the routers' threads together, and their time on a processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routers_waited_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routers_ran_ns: Option<u64>,
    /// Of a trial of the recovery time: what it showed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Of a slice whose messages have a connection each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<SliceConnections>,
    pub outcome: SearchOutcome,
}

impl SearchSlice {
    /// Messages that the path lost: not those that the receiver's socket had no room for.
    pub fn lost(&self) -> u64 {
        self.offered.saturating_sub(self.received.saturating_add(self.lost_at_receiver))
    }

    /// Messages that count as late in a search that allows this loss. Where none may be lost, none does: the last
    /// message is later than the least delay by chance, too, and each slice would be bad.
    pub fn late(&self, loss_ppm: u32) -> u64 {
        if loss_ppm > 0 { self.waiting } else { 0 }
    }

    /// Nanoseconds that its messages take at its load.
    pub fn duration_ns(&self) -> u64 {
        if self.load > 0.0 { (self.offered as f64 / self.load * 1e9) as u64 } else { 0 }
    }

    /// Messages that the load had in the time by which the sender was late.
    pub fn unsent(&self) -> u64 {
        (self.load * self.late_ns as f64 / 1e9) as u64
    }

    /// The share of its messages that counts as lost or late in a search that allows this loss; `None` if the slice
    /// says nothing of the path.
    pub fn lost_share(&self, loss_ppm: u32) -> Option<f64> {
        let unsent = match self.outcome {
            SearchOutcome::Invalid(_) => return None,
            SearchOutcome::NotSent => self.unsent(),
            SearchOutcome::Good | SearchOutcome::Bad => 0,
        };
        let lost = self.lost().saturating_add(self.late(loss_ppm)).saturating_add(unsent);
        let offered = self.offered.saturating_add(unsent);
        (offered > 0).then(|| (lost as f64 / offered as f64).min(1.0))
    }

    /// The share that a trial of the frame loss rate has lost; `None` if the trial says nothing of the path. What waits
    /// in a queue at its end counts, where that is more than `loss_ppm` of its messages and some may be lost: a longer
    /// trial would lose it.
    pub fn trial_loss(&self, loss_ppm: u32) -> Option<f64> {
        let allowed = self.offered as f64 * f64::from(loss_ppm) / 1e6;
        let counts_waiting = self.waiting as f64 > allowed;
        self.lost_share(if counts_waiting { loss_ppm } else { 0 })
    }

    /// Whether more was lost or late than may be.
    pub fn is_bad(&self) -> bool {
        matches!(self.outcome, SearchOutcome::Bad | SearchOutcome::NotSent)
    }
}

/// What a slice says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchOutcome {
    #[default]
    Good,
    /// More was lost or late than may be.
    Bad,
    /// Less was sent than was to be, though the sender's thread could run: the path or the generator is at its limit.
    NotSent,
    /// Nothing: the tester itself disturbed it. It was repeated.
    Invalid(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_holds_enough_messages() {
        let spec = SearchSpec::new(5000);
        assert_eq!(spec.slice_ns(1e6), 50_000_000);
        assert_eq!(spec.slice_ns(10_000.0), 200_000_000);
        assert_eq!(spec.slice_ns(10.0), 5_000_000_000);
        assert_eq!(SearchSpec { loss_ppm: 0, ..spec }.slice_ns(1e6), 1_000_000_000);
        assert_eq!(SearchSpec { slice_ns: Some(7), ..spec }.slice_ns(1e6), 7);
    }

    #[test]
    fn a_slice_has_a_share_of_lost_and_late_messages() {
        let slice =
            SearchSlice { load: 1000.0, offered: 100, received: 97, waiting: 2, ..SearchSlice::default() };
        assert_eq!(slice.lost_share(5000), Some(0.05));
        assert_eq!(slice.lost_share(0), Some(0.03), "no message is late where none may be lost");
        assert_eq!(SearchSlice { lost_at_receiver: 1, ..slice.clone() }.lost_share(5000), Some(0.04));
        let not_sent = SearchSlice { late_ns: 100_000_000, outcome: SearchOutcome::NotSent, ..slice.clone() };
        assert_eq!(not_sent.lost_share(5000), Some(105.0 / 200.0));
        let invalid = SearchOutcome::Invalid("the sender waited".to_owned());
        assert_eq!(SearchSlice { outcome: invalid, ..slice }.lost_share(5000), None);
        assert_eq!(SearchSlice::default().lost_share(5000), None, "nothing was sent");
        let hostile =
            SearchSlice { load: f64::INFINITY, waiting: u64::MAX, late_ns: 1, ..SearchSlice::default() };
        let hostile = SearchSlice { outcome: SearchOutcome::NotSent, ..hostile };
        assert_eq!(hostile.lost_share(5000), Some(1.0));
    }

    #[test]
    fn a_trial_loses_what_its_queue_would() {
        let trial =
            SearchSlice { load: 1000.0, offered: 1000, received: 1000, waiting: 5, ..SearchSlice::default() };
        assert_eq!(trial.trial_loss(5000), Some(0.0), "the last messages are a little late by chance");
        let queued = SearchSlice { waiting: 6, ..trial.clone() };
        assert_eq!(queued.trial_loss(5000), Some(0.006));
        assert_eq!(queued.trial_loss(0), Some(0.0), "no message is late where none may be lost");
        let invalid = SearchOutcome::Invalid("the sender waited".to_owned());
        assert_eq!(SearchSlice { outcome: invalid, ..trial }.trial_loss(5000), None);
    }

    #[test]
    fn says_what_is_searched() {
        let spec = SearchSpec::new(5000);
        assert_eq!(spec.to_string(), "the highest load with at most 0.5 % loss");
        let spec = SearchSpec { loss_ppm: 0, slice_ns: Some(1_000_000_000), ..spec };
        assert_eq!(spec.to_string(), "the highest load with at most 0 % loss in slices of 1 s");
        let minute = 60_000_000_000;
        let goal =
            SearchGoal { loss_ppm: 0, exceed_ppm: 0, trial_ns: minute, sum_ns: minute, width_ppm: 10_000 };
        assert_eq!(goal.to_string(), "no loss in 100 % of the trials of 1 min, 1 min at a bound");
        let goal = SearchGoal { loss_ppm: 5000, exceed_ppm: 500_000, trial_ns: 1_000_000_000, ..goal };
        assert_eq!(goal.to_string(), "at most 0.5 % loss in 50 % of the trials of 1 s, 1 min at a bound");
        let spec = SearchSpec { goal: Some(goal), ..SearchSpec::new(5000) };
        assert!(
            spec.to_string()
                .starts_with("the highest load with at most 0.5 % loss, then bounds with at most")
        );
    }
}
