//! One slice of an arm's connections.

use crate::CampaignError;
use crate::rig::Rig;
use crate::trial::prepared::Prepared;
use crate::trial::search::Turn;
use crate::trial::search::connections::balance::judge;
use crate::trial::search::connections::ends::{ConnectionEnds, Passed, Stream};
use crate::trial::search::slice::sum_times;
use stacklab_model::{
    ConnectionState, Length, SearchDevice, SearchOutcome, SearchSlice, SearchSpec, SliceConnections,
};
use stacklab_testbed::TrackedConnections;

/// The share of all connections that a slice uses at the most: a few more may be sent than its load has.
pub(super) const MAX_USED: f64 = 0.98;
/// Answers come back more slowly than messages went: it is not their rate that is searched.
const ANSWER_SHARE: f64 = 0.5;

/// A slice that is to be sent.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub search: &'a SearchSpec,
    pub turn: Turn,
    pub state: ConnectionState,
    /// Messages per second that came out of the arm's flood.
    pub flooded: Option<f64>,
    pub token: u32,
}

impl Asked<'_> {
    fn length_ns(&self, connections: u64) -> u64 {
        cut_length(self.turn.slice_ns, self.turn.load, connections)
    }
}

/// The nanoseconds of a slice: it is cut if its load needs more connections than there are.
pub(super) fn cut_length(slice_ns: u64, load: f64, connections: u64) -> u64 {
    let most_ns = connections as f64 * MAX_USED / load * 1e9;
    slice_ns.min(most_ns as u64)
}

/// Sends one slice, and judges it. The inner result is the reason if an agent failed.
pub(super) fn measure(
    rig: &mut Rig,
    arm: &Prepared<'_>,
    ends: &mut ConnectionEnds,
    asked: Asked<'_>,
) -> Result<Result<SearchSlice, String>, CampaignError> {
    match asked.state {
        ConnectionState::New => {
            ends.delete(rig)?;
        }
        ConnectionState::Established if ends.is_established => {}
        ConnectionState::Established => {
            if let Err(reason) = ends.establish(rig, !asked.token)? {
                return Ok(Err(reason));
            }
        }
    }
    let length_ns = asked.length_ns(ends.count());
    let stream = Stream { per_second: asked.turn.load, length: Length::Time(length_ns), token: asked.token };
    let before = ends.count_entries(rig)?;
    let drops_before = count_drops(rig)?;
    let times_before = sum_times(rig.network.router_threads());
    let passed = match ends.pass(rig, arm.spec.sender_priority, stream)? {
        Ok(passed) => passed,
        Err(reason) => return Ok(Err(reason)),
    };
    let times = sum_times(rig.network.router_threads());
    let drops = count_drops(rig)?.saturating_sub(drops_before);
    let mut connections = count_connections(asked.state, before, ends.count_entries(rig)?);
    let mut slice = make_slice(&passed, drops, length_ns, asked);
    if let (Some(before), Some(after)) = (times_before, times) {
        slice.routers_waited_ns = Some(after.waited_ns.saturating_sub(before.waited_ns));
        slice.routers_ran_ns = Some(after.ran_ns.saturating_sub(before.ran_ns));
    }
    let may_hold_up = arm.path.rate.is_some() || asked.search.device == SearchDevice::Path;
    let limit = asked.flooded.filter(|_| may_hold_up);
    slice.outcome = judge(&slice, &connections, length_ns, asked.search.loss_ppm, limit);
    // Of a bad slice, answers would say nothing more.
    if asked.state == ConnectionState::New && slice.outcome == SearchOutcome::Good {
        match ends.answer(rig, ANSWER_SHARE * asked.turn.load, asked.token)? {
            Ok(answers) => connections.answered = Some(answers.messages),
            Err(reason) => return Ok(Err(reason)),
        }
        slice.outcome = judge(&slice, &connections, length_ns, asked.search.loss_ppm, limit);
    }
    slice.connections = Some(connections);
    // An entry may have expired that only longer slices use.
    ends.is_established = connections.entries <= connections.entries_before;
    Ok(Ok(slice))
}

fn count_connections(
    state: ConnectionState,
    before: TrackedConnections,
    after: TrackedConnections,
) -> SliceConnections {
    SliceConnections {
        state,
        entries_before: before.entries,
        entries: after.entries,
        answered: None,
        refused: after.refused.saturating_sub(before.refused),
    }
}

/// Messages so far that the routers' queues had no room for.
fn count_drops(rig: &mut Rig) -> Result<u64, CampaignError> {
    let [sender, _] = rig.ends.counters()?;
    Ok(sender.get("interface.tx_dropped") + rig.network.count_queue_drops()?)
}

fn make_slice(passed: &Passed, drops: u64, length_ns: u64, asked: Asked<'_>) -> SearchSlice {
    let Passed { sent, taken } = passed;
    let load = asked.turn.load;
    let offered = sent.messages;
    let missing = offered.saturating_sub(taken.messages);
    let lost_at_receiver = taken.drops.min(missing);
    let took_ns = sent.last_ns.saturating_sub(sent.first_ns);
    // A sender that is held up for long is ended before all is sent.
    let due = (load * length_ns as f64 / 1e9) as u64;
    let cut_ns = (due.saturating_sub(offered) as f64 / load * 1e9) as u64;
    SearchSlice {
        round: asked.turn.round,
        trial: None,
        percent: None,
        load,
        offered,
        received: taken.messages,
        lost_at_routers: drops.min(missing - lost_at_receiver),
        lost_at_receiver,
        waiting: taken.waiting,
        late_ns: took_ns.saturating_sub(length_ns).max(cut_ns),
        at_realtime_priority: sent.at_realtime_priority,
        waited_ns: sent.waited_ns,
        routers_waited_ns: None,
        routers_ran_ns: None,
        recovery: None,
        connections: None,
        outcome: SearchOutcome::Good,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_traffic::protocol::{SentToPorts, TakenFromPorts};

    const SEARCH: SearchSpec = SearchSpec::new(5000);

    fn ask(load: f64) -> Asked<'static> {
        let state = ConnectionState::New;
        let turn = Turn { load, slice_ns: 100_000_000, round: 3, trial: None, state: Some(state) };
        Asked { search: &SEARCH, turn, state, flooded: None, token: 1 }
    }

    #[test]
    fn no_slice_needs_more_connections_than_there_are() {
        assert_eq!(ask(10_000.0).length_ns(16_384), 100_000_000);
        assert_eq!(ask(500_000.0).length_ns(10_000), 19_600_000);
    }

    #[test]
    fn a_slice_has_what_both_ends_count() {
        let sent = SentToPorts { messages: 950, first_ns: 5, last_ns: 104_000_005, ..SentToPorts::default() };
        let taken = TakenFromPorts { messages: 900, waiting: 3, drops: 10, ..TakenFromPorts::default() };
        let slice = make_slice(&Passed { sent, taken }, 100, 100_000_000, ask(10_000.0));
        assert_eq!((slice.lost_at_receiver, slice.lost_at_routers, slice.waiting), (10, 40, 3));
        assert_eq!(slice.late_ns, 5_000_000, "fifty of a thousand messages were not sent");
        assert_eq!(slice.round, 3);
    }
}
