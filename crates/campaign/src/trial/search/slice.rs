//! One slice of a search, by the agents of its arm's rig.

use crate::CampaignError;
use crate::rig::Rig;
use crate::trial::prepared::Prepared;
use crate::trial::search::balance::judge;
use stacklab_model::{
    Direction, Ends, HostReport, Length, Pacing, SearchDevice, SearchOutcome, SearchSlice, SearchSpec,
    SenderPriority, TrialSpec,
};
use stacklab_testbed::kernel::router_thread::{RouterThread, ThreadTimes};
use stacklab_trial::validate::numbers;
use stacklab_trial::{Collected, collect};

/// The longest slice whose sender has a realtime priority, nanoseconds: the kernel takes a twentieth of each second
/// from threads that have one and never wait (`sched_rt_runtime_us`, and since Linux 6.12 the fair server).
pub(super) const MAX_REALTIME_NS: u64 = 500_000_000;
/// The length of the flood from whose rate a search begins, nanoseconds.
const FLOOD_NS: u64 = 100_000_000;

/// Sends as fast as it can, once. It counts for no figure.
pub(super) fn flood(rig: &mut Rig, arm: &Prepared<'_>) -> Result<(TrialSpec, Collected), CampaignError> {
    let spec = slice_spec(arm, Pacing::Flood, Length::Time(FLOOD_NS), 0);
    let collected = send(rig, arm, &spec)?;
    Ok((spec, collected))
}

/// Messages per second that came out of a flood.
pub(super) fn forwarded_per_second(ends: &Ends<HostReport>) -> Option<f64> {
    let received = &ends.receiver.received;
    let window_ns = received.last_ns.saturating_sub(received.first_ns);
    if received.measured < 2 || window_ns == 0 {
        return None;
    }
    Some((received.measured - 1) as f64 * 1e9 / window_ns as f64)
}

/// Sends one slice at a load, and judges it. `flooded` are the messages per second that came out of the arm's flood.
/// `number` is the slice's, so that no message of an earlier one counts. The inner result is the reason if an agent
/// failed.
pub(super) fn measure(
    rig: &mut Rig,
    arm: &Prepared<'_>,
    search: &SearchSpec,
    flooded: Option<f64>,
    load: f64,
    length_ns: u64,
    number: u32,
) -> Result<Result<SearchSlice, String>, CampaignError> {
    let spec = slice_spec(arm, Pacing::Shifted(load), Length::Time(length_ns), number);
    let times_before = sum_times(rig.network.router_threads());
    let ReportedSlice { ends, drops } = match send_and_count(rig, arm, &spec)? {
        Ok(reported) => reported,
        Err(reason) => return Ok(Err(reason)),
    };
    let times = sum_times(rig.network.router_threads());
    let mut slice = count(&ends, load, length_ns, drops);
    if let (Some(before), Some(after)) = (times_before, times) {
        slice.routers_waited_ns = Some(after.waited_ns.saturating_sub(before.waited_ns));
        slice.routers_ran_ns = Some(after.ran_ns.saturating_sub(before.ran_ns));
    }
    // A link with a rate, and an interface to another machine, let no more pass than they can.
    let may_hold_up = arm.path.rate.is_some() || search.device == SearchDevice::Path;
    let limit = flooded.filter(|_| may_hold_up);
    slice.outcome = judge(&slice, length_ns, search.loss_ppm, limit);
    Ok(Ok(slice))
}

/// What the hosts report of a slice, and the messages that the routers' rings had no room for meanwhile.
pub(super) struct ReportedSlice {
    pub ends: Ends<HostReport>,
    pub drops: u64,
}

/// Sends what a specification says. The inner result is the reason if an agent failed, or reports what cannot be.
pub(super) fn send_and_count(
    rig: &mut Rig,
    arm: &Prepared<'_>,
    spec: &TrialSpec,
) -> Result<Result<ReportedSlice, String>, CampaignError> {
    let drops_before = rig.network.count_queue_drops()?;
    let collected = send(rig, arm, spec)?;
    let drops = rig.network.count_queue_drops()?.saturating_sub(drops_before);
    let reports = match collected.reports {
        Ok(reports) => reports,
        Err(reason) => return Ok(Err(reason)),
    };
    let Some(ends) = reports.into_iter().next() else {
        return Ok(Err("no host reported the slice".to_owned()));
    };
    let from = Direction::of(&arm.trial.cell).senders()[0];
    Ok(match numbers(spec, &collected.limits, from, ends.as_ref()).into_iter().next() {
        Some(reason) => Err(reason),
        None => Ok(ReportedSlice { ends, drops }),
    })
}

fn send(rig: &mut Rig, arm: &Prepared<'_>, spec: &TrialSpec) -> Result<Collected, CampaignError> {
    let [sender, receiver] = rig.ends.agents();
    Ok(collect(sender, receiver, &arm.path, spec, Direction::of(&arm.trial.cell))?)
}

pub(super) fn slice_spec(arm: &Prepared<'_>, pacing: Pacing, length: Length, number: u32) -> TrialSpec {
    let mut spec = arm.spec.clone();
    spec.token ^= number.wrapping_mul(0x9e37_79b1);
    spec.probe.pacing = pacing;
    spec.probe.length = length;
    if matches!(length, Length::Time(ns) if ns > MAX_REALTIME_NS) {
        spec.sender_priority = SenderPriority::Normal;
    }
    spec
}

/// Adds both hosts' counts. Markers after the slice may be lost too, so the rings' count is of at most what is missing.
pub(super) fn count(
    ends: &Ends<HostReport>,
    load: f64,
    length_ns: u64,
    drops_at_routers: u64,
) -> SearchSlice {
    let Ends { sender, receiver } = ends;
    let offered = sender.sent.measured;
    let received = receiver.received.measured;
    let missing = offered.saturating_sub(received);
    let lost_at_receiver = receiver.counters.get("socket.drops").min(missing);
    let drops = sender.counters.get("interface.tx_dropped") + drops_at_routers;
    let took_ns = sender.sent.last_ns.saturating_sub(sender.sent.first_ns);
    // A sender that is held up for seconds is ended before all is sent.
    let due = (load * length_ns as f64 / 1e9) as u64;
    let cut_ns = (due.saturating_sub(offered) as f64 / load * 1e9) as u64;
    SearchSlice {
        round: 0,
        trial: None,
        percent: None,
        load,
        offered,
        received,
        lost_at_routers: drops.min(missing - lost_at_receiver),
        lost_at_receiver,
        waiting: receiver.received.waiting.unwrap_or(0),
        late_ns: took_ns.saturating_sub(length_ns).max(cut_ns),
        at_realtime_priority: sender.sent.at_realtime_priority,
        waited_ns: sender.slices.first().and_then(|slice| slice.waited_ns),
        routers_waited_ns: None,
        routers_ran_ns: None,
        recovery: None,
        connections: None,
        outcome: SearchOutcome::Good,
    }
}

/// The times of all threads together; `None` without threads, or where one has ended.
pub(super) fn sum_times(threads: &[RouterThread]) -> Option<ThreadTimes> {
    if threads.is_empty() {
        return None;
    }
    let mut sum = ThreadTimes::default();
    for thread in threads {
        let times = thread.times()?;
        sum.ran_ns += times.ran_ns;
        sum.waited_ns += times.waited_ns;
    }
    Some(sum)
}
