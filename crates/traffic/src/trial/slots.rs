//! Interleaved trials whose arms are on testbeds of their own: each arm's sender has its time slots.

use crate::protocol::client::{AgentClient, AgentError};
use crate::protocol::message::{Request, Timetable};
use crate::sys;
use crate::trial::execute::{SLACK, failure, finish, listen, longest, send_arm};
use crate::trial::path::Path;
use crate::trial::run::Collected;
use crate::trial::transfers::{self, Transfer};
use stacklab_model::{
    Direction, HostReport, Length, Pacing, Probe, ProbeSpec, Transport, TrialSpec, wire_size,
};
use std::time::{Duration, Instant, SystemTime};

/// Time for all senders to open their sockets before the first slot.
const LEAD_NS: u64 = 200_000_000;
/// A slice is at least this long, and an arm has at least this many: clocks and sleeps differ by less than a millisecond.
const LEAST_SLICE_NS: u64 = 10_000_000;
const LEAST_ROUNDS: u64 = 8;
/// A slice should hold this many messages of a stream, or round trips of an echo of this length.
const MESSAGES: u64 = 200;
const ROUND_TRIPS: u64 = 20;
const ROUND_TRIP_NS: u64 = 1_000_000;
/// What a path may hold when a slice ends, bytes, and the limits of the time to empty it.
const HELD_BYTES: u64 = 256 * 1024;
const LEAST_GAP_NS: u64 = 3_000_000;
const MOST_GAP_NS: u64 = 50_000_000;

/// An arm of an interleaved trial with hosts of its own.
pub struct SlotArm<'a> {
    /// The testbed's sender and receiver.
    pub agents: [&'a mut AgentClient; 2],
    /// Its path.
    pub path: &'a Path,
    /// Its specification.
    pub spec: &'a TrialSpec,
}

/// Lengths of the slots of an interleaved trial, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotLengths {
    /// For how much of its slot an arm sends.
    pub slice_ns: u64,
    /// What follows until the next slot.
    pub gap_ns: u64,
    /// For how much of its first slot an arm sends.
    pub warmup_ns: u64,
}

impl SlotLengths {
    /// The longest that one of the arms needs, with the study's slice if it names one.
    pub fn of(arms: &[(&Path, &TrialSpec)], slice_ns: Option<u64>) -> Self {
        let most = |need: &dyn Fn(&Path, &TrialSpec) -> u64| {
            arms.iter().map(|(path, spec)| need(path, spec)).max().unwrap_or(0)
        };
        SlotLengths {
            slice_ns: slice_ns.unwrap_or_else(|| most(&slice)),
            gap_ns: most(&gap),
            warmup_ns: most(&|_, spec| spec.probe.warmup_ns.max(LEAST_SLICE_NS)),
        }
    }
}

/// Nanoseconds of the slice that an arm needs.
fn slice(path: &Path, spec: &TrialSpec) -> u64 {
    let ProbeSpec { probe, pacing, length, .. } = &spec.probe;
    let wire = wire_size(spec.family, spec.transport, spec.message_bytes, path.mtu).wire_bytes;
    let needs_ns = match (probe, pacing) {
        (Probe::Echo, _) => ROUND_TRIPS * ROUND_TRIP_NS,
        (_, Pacing::Schedule(per_second)) => (MESSAGES as f64 / per_second * 1e9) as u64,
        (_, _) => path
            .rate
            .map_or(0, |rate| MESSAGES * u64::from(wire) * 8 * 1_000_000_000 / rate.bits_per_second().max(1)),
    };
    let most_ns = match length {
        Length::Time(ns) => ns / LEAST_ROUNDS,
        Length::Packets(_) => u64::MAX,
    };
    needs_ns.max(LEAST_SLICE_NS).min(most_ns.max(1))
}

/// Nanoseconds in which an arm's path empties.
fn gap(path: &Path, spec: &TrialSpec) -> u64 {
    let floods = spec.probe.pacing == Pacing::Flood || spec.transport == Transport::Tcp;
    let held = if floods { HELD_BYTES } else { 0 };
    let empties_ns = path.rate.map_or(0, |rate| held * 8 * 1_000_000_000 / rate.bits_per_second().max(1));
    empties_ns.clamp(LEAST_GAP_NS, MOST_GAP_NS)
}

/// Runs an interleaved trial whose arms are on testbeds of their own. Returns what was collected of each arm.
///
/// # Errors
/// When an agent is gone or silent, or the user interrupts. An agent's failure is every arm's.
///
/// # Panics
/// For arms in both directions: each arm is one transfer.
pub fn collect_in_slots(
    mut arms: Vec<SlotArm<'_>>,
    direction: Direction,
    seed: u64,
    lengths: SlotLengths,
) -> Result<Vec<Collected>, AgentError> {
    assert_ne!(direction, Direction::Both, "an arm is one transfer");
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let clock = Instant::now();
    let transfers: Vec<Transfer> =
        arms.iter().flat_map(|arm| transfers::of(arm.path, arm.spec, direction)).collect();
    let seen = execute_in_slots(&mut arms, &transfers, seed, lengths);
    // The arms share the time.
    let wall_ns = clock.elapsed().as_nanos() as u64 / arms.len().max(1) as u64;
    let started_unix_ns = started.as_nanos() as u64;
    let of_arm = |reports| Collected { started_unix_ns, wall_ns, reports };
    match seen {
        Ok(reports) => Ok(reports.into_iter().map(|pair| of_arm(Ok(vec![pair]))).collect()),
        Err(AgentError::Failed { host, reason }) => {
            Ok(arms.iter().map(|_| of_arm(Err(format!("{host} {reason}")))).collect())
        }
        Err(error) => Err(error),
    }
}

fn execute_in_slots(
    arms: &mut [SlotArm<'_>],
    transfers: &[Transfer],
    seed: u64,
    lengths: SlotLengths,
) -> Result<Vec<[HostReport; 2]>, AgentError> {
    let SlotLengths { slice_ns, gap_ns, warmup_ns } = lengths;
    let offsets =
        arms.iter_mut().zip(transfers).map(|(arm, transfer)| arm.agents[transfer.from].clock_offset());
    let offsets = offsets.collect::<Result<Vec<_>, _>>()?;
    let error_ns = offsets.iter().map(|offset| offset.bound_ns).max().unwrap_or(0);
    let mut first_failure = None;
    let mut listening = Vec::new();
    for (arm, transfer) in arms.iter_mut().zip(transfers) {
        match listen(arm.agents[transfer.to()], transfer) {
            Ok(place) => listening.push(place),
            Err(error) => {
                first_failure = Some(failure(error)?);
                break;
            }
        }
    }
    let mut sent: Vec<Option<HostReport>> = transfers.iter().map(|_| None).collect();
    let slot_ns = slice_ns + gap_ns + 2 * error_ns;
    let rounds = transfers.iter().map(|transfer| longest(&transfer.spec)).max().unwrap_or(SLACK).as_nanos()
        as u64
        / slice_ns.max(1);
    let limit =
        SLACK + Duration::from_nanos(slot_ns.saturating_mul(rounds).saturating_mul(arms.len() as u64));
    if first_failure.is_none() {
        let starts_ns = sys::now_ns() + LEAD_NS;
        let mut pending = Vec::new();
        for (number, (arm, transfer)) in arms.iter_mut().zip(transfers).enumerate() {
            let timetable = Timetable {
                arms: transfers.len() as u16,
                arm: number as u16,
                seed,
                starts_ns: starts_ns.wrapping_add_signed(offsets[number].offset_ns),
                warmup_slot_ns: warmup_ns + gap_ns + 2 * error_ns,
                slot_ns,
                slice_ns,
            };
            let request = Request::SendInSlots { arm: send_arm(transfer, listening[number].1), timetable };
            pending.push(arm.agents[transfer.from].start(request, "send in slots")?);
        }
        for ((arm, transfer), (pending, sent)) in
            arms.iter_mut().zip(transfers).zip(pending.into_iter().zip(&mut sent))
        {
            match finish(arm.agents[transfer.from], pending, "send in slots", limit) {
                Ok(report) => *sent = Some(report),
                Err(error) => drop(first_failure.get_or_insert(failure(error)?)),
            }
        }
    }
    // As for transfers at the same time: no receiver is left waiting.
    let mut host_reports = Vec::new();
    for (((arm, transfer), (id, _)), sent) in arms.iter_mut().zip(transfers).zip(listening).zip(sent) {
        let agent = &mut *arm.agents[transfer.to()];
        let pending = agent.start(Request::Collect { listen: id }, "collect")?;
        match finish(agent, pending, "collect", limit) {
            Ok(received) => host_reports.extend(sent.map(|sent| [sent, received])),
            Err(error) => drop(first_failure.get_or_insert(failure(error)?)),
        }
    }
    first_failure.map_or(Ok(host_reports), Err)
}
