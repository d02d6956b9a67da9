//! The highest loads of the arms of a block, searched in turns of a slice each.
//!
//! An arm alone in its trial is searched in the same way. With a goal, the bounds of each arm follow, and then bursts,
//! losses at common loads, recoveries and connections where they are asked for.

mod balance;
mod bounds;
mod bursts;
mod connections;
mod loss_rate;
mod outcome;
mod recovery;
mod slice;

use crate::CampaignError;
use crate::rig::Rig;
use crate::trial::prepared::{Prepared, find_rig};
use crate::trial::search::bounds::search_bounds;
use crate::trial::search::bursts::search_bursts;
use crate::trial::search::connections::{ConnectionEnds, search_connections};
use crate::trial::search::loss_rate::measure_losses;
use crate::trial::search::outcome::{ArmOutcome, LoadOutcome, make_run};
use crate::trial::search::recovery::measure_recoveries;
use crate::trial::search::slice::{flood, forwarded_per_second, measure};
use crate::trial::spec::trial_seed;
use stacklab_model::{
    ArmSchedule, ConnectionState, LinkBucket, Metric, Pacing, RunRecord, SearchOutcome, SearchSlice,
    SearchSpec, SenderPriority, SplitMix64, Trial, TrialSpec,
};
use stacklab_search::paired::PairedSearch;
use stacklab_study::Study;
use stacklab_traffic::host::now_unix_ns;
use stacklab_trial::Collected;
use stacklab_trial::results::locate_loads;
use std::time::Instant;

/// How often a slice that the tester disturbed is repeated.
const MAX_REPEATS: usize = 3;
/// A block ends without figures once an arm had no valid slice in this many rounds: usually a tenth of all of them
/// is fewer.
const MAX_ROUNDS_WITHOUT: u32 = 8;
/// A block that has not found its loads after this many rounds ends without figures.
const MAX_ROUNDS: u32 = 400;
/// The first load is the flood's rate, moved by chance by at most this much: equal arms have no common grid.
const FIRST_LOAD_SPREAD: f64 = 0.04;

/// An arm while it is searched.
struct Arm<'a> {
    prepared: Prepared<'a>,
    bucket: Option<LinkBucket>,
    flood_spec: TrialSpec,
    flood: Collected,
    slices: Vec<SearchSlice>,
    /// The sockets of its connections, while these are searched.
    connections: Option<ConnectionEnds>,
    /// Slices of which no repetition was valid.
    never_valid: u32,
    /// Why an agent failed.
    failure: Option<String>,
}

/// How an arm's search in turns went.
#[derive(Clone, Copy, Default)]
struct SearchedArm {
    rounds: u32,
    never_valid: u32,
}

impl Arm<'_> {
    fn asks_for(&self, metric: Metric) -> bool {
        self.prepared.spec.probe.metrics.contains(&metric)
    }

    fn lacks_slices(&self) -> bool {
        self.never_valid >= MAX_ROUNDS_WITHOUT
    }

    fn last_round(&self) -> u32 {
        self.slices.last().map_or(0, |slice| slice.round)
    }

    /// What is disturbed afterwards counts anew. `first_round` is the last one before the search.
    fn end_search(&mut self, first_round: u32) -> SearchedArm {
        let rounds = self.last_round().saturating_sub(first_round);
        SearchedArm { rounds, never_valid: std::mem::take(&mut self.never_valid) }
    }
}

/// A slice that is to be sent.
#[derive(Clone, Copy)]
struct Turn {
    load: f64,
    slice_ns: u64,
    round: u32,
    /// The trial of the arm's goal that it is a part of.
    trial: Option<u32>,
    /// Of a slice whose messages have a connection each.
    state: Option<ConnectionState>,
}

/// Searches the arms of a block together, each on its own rig or all on one, and gives a run for each.
pub(super) fn run(
    rigs: &mut [&mut Rig],
    study: &Study,
    seed: u64,
    trials: &[Trial],
) -> Result<Vec<RunRecord>, CampaignError> {
    let started_unix_ns = now_unix_ns();
    let clock = Instant::now();
    let mut random = SplitMix64(trial_seed(seed, &trials[0]));
    for rig in rigs.iter_mut() {
        rig.begin(random.next_u64() >> 11)?;
    }
    let mut arms = Vec::new();
    for (place, trial) in trials.iter().enumerate() {
        arms.push(begin(find_rig(rigs, place), study, seed, trial)?);
    }
    let Pacing::Search(search) = arms[0].prepared.spec.probe.pacing else {
        unreachable!("a study's search has the pacing of a search")
    };
    let mut slice_ns = search.slice_ns.unwrap_or(0);
    let mut searched = SearchedLoads::none(arms.len());
    let flooded: Option<Vec<f64>> = arms.iter().map(first_load).collect();
    if let (Some(loads), true) = (flooded, searches_loads(&arms[0].prepared.spec)) {
        let slowest = loads.iter().copied().fold(f64::INFINITY, f64::min);
        slice_ns = search.slice_ns(slowest);
        let question = Question { slice_ns, first_round: 0, state: None };
        searched = search_loads(rigs, &mut arms, &search, &loads, question, &mut random)?;
    }
    let mut bounds = vec![Err("no load was found near which they lie".to_owned()); arms.len()];
    if let (Some(goal), Some(loads)) = (search.goal, &searched.located) {
        bounds = search_bounds(rigs, &mut arms, &search, goal, loads)?;
    }
    let bursts = search_bursts(rigs, &mut arms)?;
    let losses = measure_losses(rigs, &mut arms, &search)?;
    let recoveries = measure_recoveries(rigs, &mut arms, &search, searched.located.as_deref())?;
    let connections = search_connections(rigs, &mut arms, &search, &mut random)?;
    let wall_ns = u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX) / arms.len() as u64;
    let mut runs = Vec::new();
    let loads = searched.outcomes.into_iter().zip(bounds);
    let measured =
        [(Metric::BackToBack, bursts), (Metric::FrameLossRate, losses), (Metric::RecoveryTime, recoveries)];
    for (place, ((arm, (load, bounds)), mut figures)) in
        arms.into_iter().zip(loads).zip(connections).enumerate()
    {
        for (metric, values) in &measured {
            figures.extend(values[place].clone().map(|value| (*metric, value)));
        }
        let outcome = ArmOutcome { load, slice_ns, bounds, figures };
        runs.push(make_run(arm, &search, outcome, started_unix_ns, wall_ns));
    }
    if !runs.iter().all(RunRecord::is_valid) {
        // A host that is gone is an error, and the block is measured again.
        rigs.iter_mut().try_for_each(|rig| rig.ends.ensure_alive())?;
    }
    Ok(runs)
}

/// Whether a figure is asked for that needs each arm's own load.
fn searches_loads(spec: &TrialSpec) -> bool {
    let has_goal = matches!(spec.probe.pacing, Pacing::Search(SearchSpec { goal: Some(_), .. }));
    has_goal || spec.probe.metrics.contains(&Metric::LoadAtLoss)
}

fn begin<'a>(rig: &mut Rig, study: &Study, seed: u64, trial: &'a Trial) -> Result<Arm<'a>, CampaignError> {
    let mut prepared = Prepared::new(rig, study, seed, ArmSchedule::Alone, trial)?;
    prepared.spec.probe.warmup_ns = 0;
    prepared.spec.sender_priority = choose_priority(rig, &prepared.spec, trial);
    let bucket = rig.bucket(&trial.cell);
    let (flood_spec, flood) = flood(rig, &prepared)?;
    Ok(Arm {
        prepared,
        bucket,
        flood_spec,
        flood,
        slices: Vec::new(),
        connections: None,
        never_valid: 0,
        failure: None,
    })
}

/// What the study says. The receiver must have a processor that the sender does not take.
fn choose_priority(rig: &Rig, spec: &TrialSpec, trial: &Trial) -> SenderPriority {
    match spec.probe.pacing {
        Pacing::Search(search) if rig.separates_hosts(&trial.cell, trial.probe) => search.priority,
        _ => SenderPriority::Normal,
    }
}

/// What came out of an arm's flood, messages per second; `None` if nothing did.
fn first_load(arm: &Arm<'_>) -> Option<f64> {
    let reports = arm.flood.reports.as_ref().ok()?;
    forwarded_per_second(reports.first()?)
}

/// Messages per second that the arm's path carries: those of its link's rate, or else what came out of its flood.
fn carried_per_second(arm: &Arm<'_>) -> Option<f64> {
    let flooded = first_load(arm)?;
    Some(arm.bucket.map_or(flooded, |bucket| bucket.messages_per_second))
}

/// Which loads are searched.
#[derive(Clone, Copy)]
struct Question {
    slice_ns: u64,
    /// The last round of what was searched before.
    first_round: u32,
    /// Of slices whose messages have a connection each.
    state: Option<ConnectionState>,
}

/// The arms' loads.
struct SearchedLoads {
    /// Messages per second; `None` if the search did not end.
    located: Option<Vec<f64>>,
    outcomes: Vec<LoadOutcome>,
}

impl SearchedLoads {
    fn none(arms: usize) -> Self {
        SearchedLoads { located: None, outcomes: vec![LoadOutcome::default(); arms] }
    }
}

/// Measures rounds until all loads are found, or an agent fails.
fn search_loads(
    rigs: &mut [&mut Rig],
    arms: &mut [Arm<'_>],
    search: &SearchSpec,
    flooded: &[f64],
    question: Question,
    random: &mut SplitMix64,
) -> Result<SearchedLoads, CampaignError> {
    let mut first_loads = Vec::new();
    for arm in arms.iter_mut() {
        arm.never_valid = 0;
    }
    for load in flooded {
        first_loads.push(load * (FIRST_LOAD_SPREAD * (2.0 * draw_share(random) - 1.0)).exp());
    }
    let highest = search.highest_load();
    let mut paired = PairedSearch::new(&first_loads, SearchSpec::MIN_LOAD, highest, search.exceed_ppm);
    let mut order: Vec<usize> = (0..arms.len()).collect();
    for round in 1..=MAX_ROUNDS {
        // Every second round has the order of the one before backwards: what drifts evenly favours no arm.
        if round % 2 == 1 {
            shuffle(&mut order, random)
        } else {
            order.reverse()
        }
        let mut bad = vec![None; arms.len()];
        for place in &order {
            let arm = &mut arms[*place];
            let load = paired.load(*place);
            let round = question.first_round + round;
            let turn = Turn { load, slice_ns: question.slice_ns, round, trial: None, state: question.state };
            let slice = measure_turn(find_rig(rigs, *place), arm, search, turn)?;
            bad[*place] = slice.map(|slice| slice.is_bad());
        }
        if arms.iter().any(|arm| arm.failure.is_some() || arm.lacks_slices()) {
            break;
        }
        // A round in which the tester disturbed all slices of an arm moves no load.
        let bad: Option<Vec<bool>> = bad.into_iter().collect();
        if let Some(bad) = bad {
            paired.add_round(&bad);
        }
        if paired.is_complete() {
            break;
        }
    }
    Ok(collect_loads(arms, &paired, question))
}

fn collect_loads(arms: &mut [Arm<'_>], paired: &PairedSearch, question: Question) -> SearchedLoads {
    let located = if paired.is_complete() { locate_loads(paired.counted_rounds()) } else { None };
    let was_given_up = arms.iter().any(Arm::lacks_slices);
    let mut outcomes = Vec::new();
    for (place, arm) in arms.iter_mut().enumerate() {
        outcomes.push(LoadOutcome {
            searched: arm.end_search(question.first_round),
            load: located.as_ref().map(|loads| loads[place]),
            reached_highest: paired.has_reached_highest(place),
            was_given_up,
            slice_ns: question.slice_ns,
            reason: None,
        });
    }
    SearchedLoads { located, outcomes }
}

/// Measures an arm's slice of a round. Returns the valid one; `None` if none was, or an agent failed.
fn measure_turn(
    rig: &mut Rig,
    arm: &mut Arm<'_>,
    search: &SearchSpec,
    turn: Turn,
) -> Result<Option<SearchSlice>, CampaignError> {
    let flooded = first_load(arm);
    let Turn { load, slice_ns, round, trial, state } = turn;
    if let Some(state) = state {
        return connections::measure_turn(rig, arm, search, turn, state);
    }
    repeat_until_valid(arm, |prepared, number| {
        let measured = measure(rig, prepared, search, flooded, load, slice_ns, number)?;
        Ok(measured.map(|slice| SearchSlice { round, trial, ..slice }))
    })
}

/// Keeps an arm's next slice, and measures up to three more while the tester disturbed them. `measure` gets the slice's
/// number, and fails within if an agent did.
fn repeat_until_valid<'a>(
    arm: &mut Arm<'a>,
    mut measure: impl FnMut(&Prepared<'a>, u32) -> Result<Result<SearchSlice, String>, CampaignError>,
) -> Result<Option<SearchSlice>, CampaignError> {
    for _ in 0..=MAX_REPEATS {
        let number = arm.slices.len() as u32 + 1;
        let slice = match measure(&arm.prepared, number)? {
            Ok(slice) => slice,
            Err(reason) => {
                arm.failure = Some(reason);
                return Ok(None);
            }
        };
        arm.slices.push(slice.clone());
        if !matches!(slice.outcome, SearchOutcome::Invalid(_)) {
            return Ok(Some(slice));
        }
    }
    arm.never_valid += 1;
    Ok(None)
}

/// A number from 0 to 1.
fn draw_share(random: &mut SplitMix64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn shuffle(order: &mut [usize], random: &mut SplitMix64) {
    for last in (1..order.len()).rev() {
        order.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
}
