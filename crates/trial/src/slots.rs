//! Interleaved trials whose arms are on separate testbeds: each arm's sender has its time slots.

use crate::path::Path;
use crate::transfer::Transfer;
use stacklab_model::{ArmSchedule, Length, Pacing, Probe, ProbeSpec, Rate, TrialSpec, wire_size};
use stacklab_traffic::protocol::{AgentClient, AgentError, Timetable};
use stacklab_traffic::timing::{MIN_MESSAGES, MIN_ROUND_TRIPS};
use std::time::Duration;

/// Time for all senders to open their sockets before the first slot.
pub(crate) const LEAD_NS: u64 = 200_000_000;
/// The shortest slice: clocks and sleeps differ by less than a millisecond.
const MIN_SLICE_NS: u64 = 10_000_000;
/// A round trip, without what the links add.
const ROUND_TRIP_NS: u64 = 1_000_000;
/// A slice of a stream has this many of the round trips that the links add.
const ROUND_TRIPS_OF_STREAM: u64 = 8;
/// What a path may hold when a slice ends, bytes, and the limits of the time to empty it.
const HELD_BYTES: u64 = 256 * 1024;
const MIN_GAP_NS: u64 = 3_000_000;
const MAX_GAP_NS: u64 = 250_000_000;
/// Clocks drift apart by no more than this share of a trial: a slot has as much of it to spare.
const DRIFT: u64 = 5_000;

/// The agents of the first and the second host.
pub(crate) type AgentPair<'a> = [&'a mut AgentClient; 2];

/// What is known of the paths of all arms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathLimits {
    /// The rate of the slowest link, if one is limited.
    pub rate: Option<Rate>,
    /// What the links add to a round trip, nanoseconds.
    pub round_trip_ns: u64,
    /// How late sleeping senders wake up, nanoseconds.
    pub wake_up_ns: u64,
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
    pub fn of(arms: &[(&Path, &TrialSpec)], limits: PathLimits, slice_ns: Option<u64>) -> Self {
        let mut lengths = SlotLengths { slice_ns: slice_ns.unwrap_or(0), gap_ns: 0, warmup_ns: 0 };
        for (path, spec) in arms {
            if slice_ns.is_none() {
                lengths.slice_ns = lengths.slice_ns.max(slice(path, spec, limits));
            }
            lengths.gap_ns = lengths.gap_ns.max(gap(spec, limits));
            lengths.warmup_ns = lengths.warmup_ns.max(spec.probe.warmup_ns.max(MIN_SLICE_NS));
        }
        lengths
    }
}

/// Nanoseconds in which this many bytes leave.
fn leaves_ns(bytes: u64, limits: PathLimits) -> u64 {
    limits.rate.map_or(0, |rate| bytes.saturating_mul(8_000_000_000) / rate.bits_per_second().max(1))
}

/// Nanoseconds of the slice that an arm needs.
fn slice(path: &Path, spec: &TrialSpec, limits: PathLimits) -> u64 {
    let ProbeSpec { probe, pacing, length, .. } = &*spec.probe;
    let wire = wire_size(spec.family, spec.transport, spec.message_bytes, path.mtu).wire_bytes;
    let needs_ns = match (probe, pacing) {
        (Probe::Echo, _) => MIN_ROUND_TRIPS * (ROUND_TRIP_NS + limits.round_trip_ns),
        (_, Pacing::Schedule(per_second)) => (MIN_MESSAGES as f64 / per_second * 1e9) as u64,
        (_, _) => leaves_ns(MIN_MESSAGES * u64::from(wire), limits)
            .max(ROUND_TRIPS_OF_STREAM * limits.round_trip_ns),
    };
    let most_ns = match length {
        Length::Time(ns) => ns / ArmSchedule::MIN_SLICES,
        Length::Packets(_) => u64::MAX,
    };
    needs_ns.max(MIN_SLICE_NS).min(most_ns.max(1))
}

/// Nanoseconds in which an arm's path empties.
fn gap(spec: &TrialSpec, limits: PathLimits) -> u64 {
    let fills = spec.probe.pacing == Pacing::Flood;
    let empties_ns = leaves_ns(if fills { HELD_BYTES } else { 0 }, limits) + limits.round_trip_ns;
    (empties_ns + limits.wake_up_ns).clamp(MIN_GAP_NS, MAX_GAP_NS)
}

/// The slots of an interleaved trial.
pub(crate) struct Slots {
    lengths: SlotLengths,
    seed: u64,
    /// How far the clock of each sender is ahead, nanoseconds.
    offsets_ns: Vec<i64>,
    /// Nanoseconds of the first slot, and of all others.
    slots_ns: [u64; 2],
    /// How long they take.
    pub length: Duration,
}

impl Slots {
    /// Compares the clocks of all senders. A slot has as much to spare as they may be apart at the end.
    pub(crate) fn plan(
        pairs: &mut [AgentPair<'_>],
        transfers: &[Transfer],
        seed: u64,
        lengths: SlotLengths,
    ) -> Result<Self, AgentError> {
        let senders = pairs.iter_mut().zip(transfers).map(|(pair, transfer)| &mut *pair[transfer.from]);
        let offsets = senders.map(|sender| sender.clock_offset()).collect::<Result<Vec<_>, _>>()?;
        let error_ns = offsets.iter().map(|offset| offset.bound_ns).max().unwrap_or(0);
        let gap_ns = lengths.gap_ns + 2 * error_ns;
        let shortest_ns = lengths.slice_ns + gap_ns;
        let slot_ns = shortest_ns + all_slots_ns(transfers, lengths, shortest_ns) / DRIFT;
        Ok(Slots {
            lengths,
            seed,
            offsets_ns: offsets.iter().map(|offset| offset.offset_ns).collect(),
            slots_ns: [lengths.warmup_ns + gap_ns, slot_ns],
            length: Duration::from_nanos(all_slots_ns(transfers, lengths, slot_ns)),
        })
    }

    /// The timetable of an arm's sender. The first slot starts at this time of this machine.
    pub(crate) fn timetable(&self, arm: usize, starts_ns: u64) -> Timetable {
        Timetable {
            arms: self.offsets_ns.len() as u16,
            arm: arm as u16,
            seed: self.seed,
            starts_ns: starts_ns.wrapping_add_signed(self.offsets_ns[arm]),
            warmup_slot_ns: self.slots_ns[0],
            slot_ns: self.slots_ns[1],
            slice_ns: self.lengths.slice_ns,
        }
    }
}

/// How long the slots of all arms take, nanoseconds.
fn all_slots_ns(
    transfers: &[Transfer],
    SlotLengths { slice_ns, warmup_ns, .. }: SlotLengths,
    slot_ns: u64,
) -> u64 {
    let mut most_ns = 0;
    for transfer in transfers {
        if let Length::Time(ns) = transfer.spec.probe.length {
            most_ns = most_ns.max(ns);
        }
    }
    // The last round is that of the end markers.
    let rounds = most_ns.div_ceil(slice_ns.max(1)) + 1;
    let of_arm = slot_ns.saturating_mul(rounds).saturating_add(slot_ns + warmup_ns);
    of_arm.saturating_mul(transfers.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::transfers;
    use stacklab_model::{Direction, Family, Transport};

    fn spec(probe: Probe, pacing: Pacing, transport: Transport) -> TrialSpec {
        let mut spec = fixtures::spec(Family::Ipv4, transport);
        (spec.probe.probe, spec.probe.pacing) = (probe, pacing);
        (spec.probe.length, spec.probe.warmup_ns) = (Length::Time(800_000_000), 50_000_000);
        spec.message_bytes = 1408;
        spec
    }

    #[test]
    fn a_slot_has_what_the_slowest_arm_needs() {
        let path = fixtures::path(Family::Ipv4);
        let slow = PathLimits { rate: Some(Rate(100_000_000)), round_trip_ns: 0, wake_up_ns: 0 };
        let far = PathLimits { round_trip_ns: 40_000_000, ..slow };
        let flood = spec(Probe::Stream, Pacing::Flood, Transport::Udp);
        let echo = spec(Probe::Echo, Pacing::Lockstep, Transport::Udp);
        let paced = spec(Probe::Stream, Pacing::Schedule(1_000.0), Transport::Udp);
        let coarse = PathLimits { wake_up_ns: 10_000_000, ..slow };
        assert_eq!(plan_lengths_us(PathLimits::default(), &[&flood]), (10_000, 3_000));
        // 200 frames of 1474 bytes with preamble and gap; 256 KiB.
        assert_eq!(plan_lengths_us(slow, &[&flood, &echo]), (23_584, 20_971));
        assert_eq!(plan_lengths_us(slow, &[&echo]), (20_000, 3_000));
        assert_eq!(plan_lengths_us(coarse, &[&echo]), (20_000, 10_000));
        // No more than a sixteenth of the trial: 200 messages would take 200 ms, and 8 round trips 320 ms.
        assert_eq!(plan_lengths_us(slow, &[&paced]), (50_000, 3_000));
        assert_eq!(plan_lengths_us(far, &[&flood]), (50_000, 60_971));
        assert_eq!(SlotLengths::of(&[(&path, &flood)], slow, Some(5_000_000)).slice_ns, 5_000_000);
    }

    /// The lengths of slice and gap, after a warm-up of 50 ms.
    fn plan_lengths_us(limits: PathLimits, specs: &[&TrialSpec]) -> (u64, u64) {
        let path = fixtures::path(Family::Ipv4);
        let arms: Vec<_> = specs.iter().map(|spec| (&path, *spec)).collect();
        let SlotLengths { slice_ns, gap_ns, warmup_ns } = SlotLengths::of(&arms, limits, None);
        assert_eq!(warmup_ns, 50_000_000);
        (slice_ns / 1000, gap_ns / 1000)
    }

    #[test]
    fn a_trial_takes_the_slots_of_all_arms() {
        let flood = spec(Probe::Stream, Pacing::Flood, Transport::Udp);
        let path = fixtures::path(Family::Ipv4);
        let transfers = transfers::of(&path, &flood, Direction::Forward);
        let lengths = SlotLengths { slice_ns: 20_000_000, gap_ns: 5_000_000, warmup_ns: 50_000_000 };
        // 41 slots of 25 ms, and the first one.
        let slots = Duration::from_millis(41 * 25 + 25 + 50);
        assert_eq!(all_slots_ns(&transfers, lengths, 25_000_000), slots.as_nanos() as u64);
    }
}
