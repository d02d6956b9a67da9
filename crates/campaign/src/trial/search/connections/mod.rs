//! How many messages per second an arm carries if each makes a connection, how many if all connections are known, and
//! how fast a router deletes them.

mod balance;
mod ends;
mod slice;
mod teardown;

pub(super) use ends::ConnectionEnds;

use crate::CampaignError;
use crate::rig::Rig;
use crate::trial::prepared::{Prepared, find_rig};
use crate::trial::search::connections::ends::{Passed, Stream};
use crate::trial::search::connections::slice::{Asked, MAX_USED, cut_length, measure};
use crate::trial::search::connections::teardown::measure_teardowns;
use crate::trial::search::outcome::{LoadOutcome, find_value};
use crate::trial::search::{Arm, Question, Turn, first_load, repeat_until_valid, search_loads};
use stacklab_model::{
    CONNECTION_METRICS, ConnectionState, Length, Metric, SearchSlice, SearchSpec, SplitMix64, Value,
};

/// How much faster than a flood the first messages are sent, for how long at the most, and the share of what gets
/// through of them that makes connections with ease.
const OVERLOAD: f64 = 1.5;
const MAX_OVERLOAD_NS: f64 = 200_000_000.0;
const EASE: f64 = 0.6;
/// Where rates are looked for if nothing of a flood arrived, messages per second.
const USUAL_LOAD: f64 = 10_000.0;
/// The number from which the token of the first messages is made; those of slices are below.
const OVERLOAD_NUMBER: u32 = 0x7000;

type Figures = Vec<(Metric, Value)>;

/// Searches what is asked for of the arms' connections, in turns.
pub(super) fn search_connections(
    rigs: &mut [&mut Rig],
    arms: &mut [Arm<'_>],
    search: &SearchSpec,
    random: &mut SplitMix64,
) -> Result<Vec<Figures>, CampaignError> {
    let mut figures = vec![Figures::new(); arms.len()];
    if !CONNECTION_METRICS.iter().any(|metric| asks_for(&arms[0], *metric)) {
        return Ok(figures);
    }
    let sharing = if rigs.len() == 1 { arms.len() } else { 1 };
    for (place, arm) in arms.iter_mut().enumerate() {
        begin(find_rig(rigs, place), arm, search, sharing)?;
    }
    for (metric, state) in [
        (Metric::ConnectionRate, ConnectionState::New),
        (Metric::EstablishedRate, ConnectionState::Established),
    ] {
        if !asks_for(&arms[0], metric) {
            continue;
        }
        let outcomes = search_rates(rigs, arms, search, state, random)?;
        for (place, outcome) in outcomes.iter().enumerate() {
            figures[place].push((metric, find_value(arms[place].bucket, search, outcome)));
        }
    }
    if asks_for(&arms[0], Metric::TeardownRate) {
        for (place, value) in measure_teardowns(rigs, arms)?.into_iter().enumerate() {
            figures[place].push((Metric::TeardownRate, value));
        }
    }
    for (place, arm) in arms.iter_mut().enumerate() {
        if let Some(ends) = arm.connections.take() {
            ends.close(find_rig(rigs, place))?;
        }
    }
    Ok(figures)
}

fn asks_for(arm: &Arm<'_>, metric: Metric) -> bool {
    arm.prepared.spec.probe.metrics.contains(&metric)
}

/// Opens an arm's sockets, and makes connections faster than they can be made: from what gets through, the search
/// begins.
fn begin(rig: &mut Rig, arm: &mut Arm<'_>, search: &SearchSpec, sharing: usize) -> Result<(), CampaignError> {
    if arm.failure.is_some() {
        return Ok(());
    }
    match ConnectionEnds::open(rig, &arm.prepared, search, sharing)? {
        Ok(ends) => arm.connections = Some(ends),
        Err(reason) => {
            arm.failure = Some(reason);
            return Ok(());
        }
    }
    let forwarded = overload(rig, arm, ConnectionState::New)?;
    if let Some(ends) = &mut arm.connections {
        ends.easy_rate = EASE * forwarded.unwrap_or(USUAL_LOAD);
    }
    Ok(())
}

/// Messages per second that get through of more than can; `None` if none do, or an agent failed.
fn overload(rig: &mut Rig, arm: &mut Arm<'_>, state: ConnectionState) -> Result<Option<f64>, CampaignError> {
    let token = choose_token(&arm.prepared, OVERLOAD_NUMBER + state as u32);
    let per_second = OVERLOAD * first_load(arm).unwrap_or(USUAL_LOAD);
    let Some(ends) = &mut arm.connections else { return Ok(None) };
    let most_ns = ends.count() as f64 * MAX_USED / per_second * 1e9;
    let length = Length::Time(most_ns.min(MAX_OVERLOAD_NS) as u64);
    match state {
        ConnectionState::New => {
            ends.delete(rig)?;
        }
        ConnectionState::Established => {
            if let Err(reason) = ends.establish(rig, !token)? {
                arm.failure = Some(reason);
                return Ok(None);
            }
        }
    }
    match ends.pass(rig, arm.prepared.spec.sender_priority, Stream { per_second, length, token })? {
        Ok(Passed { taken, .. }) => {
            let took_ns = taken.last_ns.saturating_sub(taken.first_ns);
            let counted = taken.messages.saturating_sub(1) as f64;
            Ok((took_ns > 0 && counted > 0.0).then(|| counted * 1e9 / took_ns as f64))
        }
        Err(reason) => {
            arm.failure = Some(reason);
            Ok(None)
        }
    }
}

fn search_rates(
    rigs: &mut [&mut Rig],
    arms: &mut [Arm<'_>],
    search: &SearchSpec,
    state: ConnectionState,
    random: &mut SplitMix64,
) -> Result<Vec<LoadOutcome>, CampaignError> {
    let first_round = arms.iter().map(Arm::last_round).max().unwrap_or(0);
    // Before any of them has its own again: arms may have the same routers.
    for (place, arm) in arms.iter_mut().enumerate() {
        if let Some(ends) = &arm.connections {
            ends.delete(find_rig(rigs, place))?;
        }
    }
    let mut loads = Vec::new();
    for (place, arm) in arms.iter_mut().enumerate() {
        arm.never_valid = 0;
        loads.push(find_first_load(find_rig(rigs, place), arm, state)?);
    }
    if loads.iter().any(Result::is_err) {
        return Ok(loads.into_iter().map(leave_out).collect());
    }
    let loads: Vec<f64> = loads.into_iter().flatten().collect();
    let slowest = loads.iter().copied().fold(f64::INFINITY, f64::min);
    let question = Question { slice_ns: search.slice_ns(slowest), first_round, state: Some(state) };
    let mut outcomes = search_loads(rigs, arms, search, &loads, question, random)?.outcomes;
    for (arm, outcome) in arms.iter().zip(&mut outcomes) {
        if let (Some(ends), Some(load)) = (&arm.connections, outcome.load) {
            outcome.slice_ns = cut_length(outcome.slice_ns, load, ends.count());
        }
    }
    Ok(outcomes)
}

/// The load near which an arm's is searched, or why it has none.
fn find_first_load(
    rig: &mut Rig,
    arm: &mut Arm<'_>,
    state: ConnectionState,
) -> Result<Result<f64, String>, CampaignError> {
    let slowness = arm.connections.as_ref().and_then(ConnectionEnds::describe_slowness);
    if let (ConnectionState::Established, Some(reason)) = (state, slowness) {
        return Ok(Err(reason));
    }
    let found = overload(rig, arm, state)?;
    Ok(found
        .ok_or_else(|| arm.failure.clone().unwrap_or_else(|| "no new connection came through".to_owned())))
}

/// The outcome of an arm that is not searched since one of them has no first load.
fn leave_out(load: Result<f64, String>) -> LoadOutcome {
    let reason =
        load.err().unwrap_or_else(|| "another arm of its block has no load to begin with".to_owned());
    LoadOutcome { reason: Some(reason), ..LoadOutcome::default() }
}

/// Measures an arm's slice of a round. Returns the valid one; `None` if none was, or an agent failed.
pub(super) fn measure_turn(
    rig: &mut Rig,
    arm: &mut Arm<'_>,
    search: &SearchSpec,
    turn: Turn,
    state: ConnectionState,
) -> Result<Option<SearchSlice>, CampaignError> {
    let Some(mut ends) = arm.connections.take() else { return Ok(None) };
    let flooded = first_load(arm);
    let measured = repeat_until_valid(arm, |prepared, number| {
        let token = choose_token(prepared, number);
        measure(rig, prepared, &mut ends, Asked { search, turn, state, flooded, token })
    });
    arm.connections = Some(ends);
    measured
}

/// Messages of earlier slices have another token.
fn choose_token(arm: &Prepared<'_>, number: u32) -> u32 {
    arm.spec.token ^ number.wrapping_mul(0x9e37_79b1)
}
