//! A session of the session-sender: its packets, and what the answers say: delays both ways, losses by direction, the
//! offset of the clocks.

use crate::stamp::packet::{Codec, SenderPacket};
use crate::stamp::time::ErrorEstimate;
use crate::stamp::tlv::Extensions;
use stacklab_model::Delays;
use stacklab_traffic::peer::{ExchangeResult, PacketFormat, PeerAnswer};
use stacklab_traffic::stats::delays;
use std::sync::{Mutex, PoisonError};

/// The packets of one session.
pub struct StampSession {
    codec: Codec,
    extensions: Extensions,
    number: u16,
    error: ErrorEstimate,
    said: Mutex<Option<Extensions>>,
}

impl StampSession {
    /// A session with these extensions, in packets of this many octets if a size is given. Without a number it has a
    /// random one. The error names the sizes that packets can have.
    pub fn new(
        codec: Codec,
        extensions: Extensions,
        octets: Option<usize>,
        number: Option<u16>,
        error: ErrorEstimate,
    ) -> Result<Self, String> {
        let least = codec.probe_bytes(&extensions);
        let octets = octets.unwrap_or(least);
        let extensions = codec.pad_to(extensions, octets).ok_or_else(|| {
            let padded = codec.least_padded_bytes(&extensions);
            format!("{octets} is not a size of these packets: use {least}, or at least {padded}")
        })?;
        let number = number.map_or_else(random_session, Ok)?;
        Ok(StampSession { codec, extensions, number, error, said: Mutex::new(None) })
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// What the last answer's TLVs said.
    pub fn last_extensions(&self) -> Option<Extensions> {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A random number of a session, which is never 0.
fn random_session() -> Result<u16, String> {
    let mut bytes = [0; 2];
    getrandom::fill(&mut bytes).map_err(|error| format!("could not get a random number: {error}"))?;
    Ok(u16::from_be_bytes(bytes).max(1))
}

impl PacketFormat for StampSession {
    fn bytes(&self) -> usize {
        self.codec.probe_bytes(&self.extensions)
    }

    fn write(&self, sequence: u32, sent_unix_ns: u64, message: &mut [u8]) {
        let timestamp = self.error.format.bits(sent_unix_ns);
        let probe = SenderPacket { sequence, timestamp, error: self.error, session: self.number };
        self.codec.write_probe(&probe, &self.extensions, message);
    }

    fn read(&self, message: &[u8], now_unix_ns: u64) -> Option<PeerAnswer> {
        let answer = self.codec.read_answer(message)?;
        // Reflectors of RFC 8762 and TWAMP-Light have zeros there.
        if ![0, self.number].contains(&answer.session) {
            return None;
        }
        let said = self.codec.read_extensions(message);
        if said.is_some() {
            *self.said.lock().unwrap_or_else(PoisonError::into_inner) = said;
        }
        let format = answer.error.format;
        Some(PeerAnswer {
            sequence: answer.sender_sequence,
            peer_sequence: answer.sequence,
            sent_unix_ns: self.error.format.unix_ns(answer.sender_timestamp, now_unix_ns)?,
            received_unix_ns: format.unix_ns(answer.received, now_unix_ns)?,
            answered_unix_ns: format.unix_ns(answer.timestamp, now_unix_ns)?,
            ttl: answer.sender_ttl,
            clock_error_ns: answer.error.synchronised.then(|| answer.error.error_ns()),
        })
    }
}

/// Both differences of an exchange, nanoseconds, each with the offset of the peer's clock in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DelaySample {
    /// T2 - T1, T4 - T3 and T3 - T2.
    forward_ns: i64,
    backward_ns: i64,
    residence_ns: u64,
}

impl DelaySample {
    /// `None` if the times contradict each other: an answer before its packet, or a peer that held the packet for
    /// longer than the round trip.
    fn of((answer, arrived_unix_ns): &(PeerAnswer, u64)) -> Option<Self> {
        let PeerAnswer { sent_unix_ns, received_unix_ns, answered_unix_ns, .. } = *answer;
        let forward_ns = subtract(received_unix_ns, sent_unix_ns)?;
        let backward_ns = subtract(*arrived_unix_ns, answered_unix_ns)?;
        let residence_ns = answered_unix_ns.checked_sub(received_unix_ns)?;
        forward_ns.checked_add(backward_ns).filter(|round_trip| *round_trip >= 0)?;
        Some(DelaySample { forward_ns, backward_ns, residence_ns })
    }
}

fn subtract(later: u64, earlier: u64) -> Option<i64> {
    i64::try_from(i128::from(later) - i128::from(earlier)).ok()
}

/// The latest packets with an answer, as a stateful reflector counts them, give the direction of each loss. `closing`
/// is an answer to a packet that was sent after a number had been left out.
fn losses(sent: u64, answers: &[(PeerAnswer, u64)], closing: Option<PeerAnswer>) -> LossByDirection {
    let answered = answers.len() as u64;
    let lost = sent.saturating_sub(answered);
    let unknown = |reason: &str| LossByDirection::Unknown { lost, reason: reason.to_owned() };
    let Some(closing) = closing else {
        return unknown(match answers {
            [] => "nothing was answered",
            _ => "the peer did not answer the packets that show how it counts",
        });
    };
    if closing.sequence == closing.peer_sequence {
        return unknown("the reflector is stateless: it repeats the sender's numbers");
    }
    // One that counts from 0 is never ahead of the sender.
    let is_counted = closing.peer_sequence < closing.sequence
        && answers.iter().all(|(answer, _)| answer.peer_sequence <= answer.sequence);
    let last = answers.iter().max_by_key(|(answer, _)| answer.sequence).filter(|_| is_counted);
    let Some((last, _)) = last else {
        return unknown("the reflector's numbers did not begin with this session");
    };
    // Of the packets up to the last one with an answer, the reflector has answered one more than its last number.
    let until = u64::from(last.sequence) + 1;
    let reflected = u64::from(last.peer_sequence) + 1;
    let (Some(forward), Some(backward)) = (until.checked_sub(reflected), reflected.checked_sub(answered))
    else {
        return unknown("the reflector's numbers contradict what was received here");
    };
    LossByDirection::Known { forward, backward, after: sent.saturating_sub(until) }
}

/// In which direction packets were lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LossByDirection {
    /// By the numbers of a stateful reflector. What is lost after the last packet with an answer may be lost in either
    /// direction.
    Known {
        forward: u64,
        backward: u64,
        after: u64,
    },
    Unknown {
        lost: u64,
        reason: String,
    },
}

/// The peer's clock beside the own one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerClock {
    /// How far the peer's clock is ahead.
    pub(super) offset_ns: i64,
    /// The largest error of the offset, and so of each one-way delay.
    pub(super) bound_ns: u64,
    /// Whether it follows from the delays alone: then the shortest delays of both ways are equal by assumption.
    pub(super) estimated: bool,
    /// Whether the delays contradict what was promised of the clocks.
    pub contradicted: bool,
}

impl PeerClock {
    /// No delay is negative: the offset is between the negative least backward difference and the least forward one,
    /// and at most `promised_ns` if the clocks are known to be so near to each other. `None` without samples.
    fn of(samples: &[DelaySample], promised_ns: Option<u64>) -> Option<Self> {
        let most = i128::from(samples.iter().map(|sample| sample.forward_ns).min()?);
        let least = -i128::from(samples.iter().map(|sample| sample.backward_ns).min()?);
        let promised = promised_ns.map(|ns| (least.max(-i128::from(ns)), most.min(i128::from(ns))));
        let contradicted = promised.is_some_and(|(least, most)| least > most);
        let kept = promised.filter(|_| !contradicted);
        let (least, most) = kept.unwrap_or((least, most));
        let offset_ns = least + (most - least) / 2;
        Some(PeerClock {
            offset_ns: offset_ns as i64,
            bound_ns: (most - offset_ns).max(offset_ns - least).max(0) as u64,
            estimated: kept.is_none(),
            contradicted,
        })
    }
}

/// Delays of an exchange. Those of both ways have the error of the clocks' offset; the round trip is without the time
/// in the peer, which is by its own clock.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ways {
    pub forward: Delays,
    pub backward: Delays,
    pub round_trip: Delays,
    pub residence: Delays,
}

/// The figures of an exchange.
#[derive(Debug)]
pub struct SessionFigures {
    /// Answers whose times contradict each other.
    pub(super) implausible: usize,
    /// TTL, or hop limit, with which the last packet reached the peer.
    pub(super) ttl: Option<u8>,
    pub(super) losses: LossByDirection,
    /// The clocks; as the delays, `None` without a plausible answer.
    pub clock: Option<PeerClock>,
    pub(super) ways: Option<Ways>,
}

impl SessionFigures {
    /// From an exchange. `promised_ns` is the maximum difference of both ends' clocks, if known; otherwise the errors
    /// of the own clock and of the peer's decide, where both are synchronised.
    pub fn of(exchange: &ExchangeResult, promised_ns: Option<u64>, own_error_ns: Option<u64>) -> Self {
        let answers = &exchange.answers;
        let last = answers.last().map(|(answer, _)| answer);
        let samples: Vec<DelaySample> = answers.iter().filter_map(DelaySample::of).collect();
        let peer_error_ns = last.and_then(|answer| answer.clock_error_ns);
        let both = own_error_ns.zip(peer_error_ns).map(|(own, peer)| own.saturating_add(peer));
        let clock = PeerClock::of(&samples, promised_ns.or(both));
        SessionFigures {
            implausible: answers.len() - samples.len(),
            ttl: last.map(|answer| answer.ttl).filter(|ttl| *ttl > 0),
            losses: losses(exchange.sent, answers, exchange.closing),
            ways: clock.and_then(|clock| ways(&samples, &clock)),
            clock,
        }
    }
}

/// The delays, free of the clocks' offset.
fn ways(samples: &[DelaySample], clock: &PeerClock) -> Option<Ways> {
    let forward = samples.iter().map(|sample| sample.forward_ns.saturating_sub(clock.offset_ns));
    let backward = samples.iter().map(|sample| sample.backward_ns.saturating_add(clock.offset_ns));
    let round_trip = samples.iter().map(|sample| sample.forward_ns.saturating_add(sample.backward_ns));
    Some(Ways {
        forward: delays(forward.map(cut_to_zero))?,
        backward: delays(backward.map(cut_to_zero))?,
        round_trip: delays(round_trip.map(cut_to_zero))?,
        residence: delays(samples.iter().map(|sample| sample.residence_ns.min(i64::MAX as u64)))?,
    })
}

fn cut_to_zero(delay_ns: i64) -> u64 {
    u64::try_from(delay_ns).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Delays of 3 and 8 ms, and 1 ms more in each further exchange, by a clock that is `offset_ns` ahead.
    fn samples(offset_ns: i64) -> Vec<DelaySample> {
        let mut samples = Vec::new();
        for extra in [0, 1_000_000, 2_000_000] {
            samples.push(DelaySample {
                forward_ns: 3_000_000 + extra + offset_ns,
                backward_ns: 8_000_000 + extra - offset_ns,
                residence_ns: 40_000,
            });
        }
        samples
    }

    #[test]
    fn offset_is_within_its_bound_and_not_in_round_trip() {
        for offset_ns in [0, -SECOND, 37 * SECOND, 30 * 365 * 86_400 * SECOND] {
            let clock = PeerClock::of(&samples(offset_ns), None).unwrap();
            assert!(clock.estimated && !clock.contradicted);
            assert_eq!((clock.offset_ns, clock.bound_ns), (offset_ns - 2_500_000, 5_500_000));
            let ways = ways(&samples(offset_ns), &clock).unwrap();
            assert_eq!(ways.round_trip.mean_ns, 13_000_000.0);
            assert_eq!((ways.forward.mean_ns, ways.backward.mean_ns), (6_500_000.0, 6_500_000.0));
            assert_eq!(ways.residence.mean_ns, 40_000.0);
        }
    }

    #[test]
    fn clocks_that_are_known_to_agree_tell_the_direction() {
        let clock = PeerClock::of(&samples(0), Some(0)).unwrap();
        assert_eq!(clock, PeerClock { offset_ns: 0, bound_ns: 0, estimated: false, contradicted: false });
        let ways = ways(&samples(0), &clock).unwrap();
        assert_eq!((ways.forward.mean_ns, ways.backward.mean_ns), (4_000_000.0, 9_000_000.0));
        // Delays bound the offset further than the promise does.
        let clock = PeerClock::of(&samples(0), Some(5_000_000)).unwrap();
        assert_eq!((clock.offset_ns, clock.bound_ns), (-1_000_000, 4_000_000));
    }

    #[test]
    fn a_promise_that_the_delays_contradict_is_not_kept() {
        let clock = PeerClock::of(&samples(SECOND), Some(1_000_000)).unwrap();
        assert!(clock.contradicted && clock.estimated);
        assert_eq!(clock.offset_ns, SECOND - 2_500_000);
        assert_eq!(PeerClock::of(&[], Some(0)), None);
    }

    fn answer((sequence, peer_sequence): (u32, u32)) -> PeerAnswer {
        PeerAnswer {
            sequence,
            peer_sequence,
            sent_unix_ns: 1_000,
            received_unix_ns: 1_500,
            answered_unix_ns: 1_700,
            ttl: 255,
            clock_error_ns: None,
        }
    }

    fn losses_of(sent: u64, answers: &[(u32, u32)], closing: Option<(u32, u32)>) -> LossByDirection {
        let answers: Vec<(PeerAnswer, u64)> =
            answers.iter().map(|numbers| (answer(*numbers), 2_000)).collect();
        losses(sent, &answers, closing.map(answer))
    }

    #[test]
    fn losses_have_the_direction_the_reflector_shows() {
        // Packets 1 and 4 did not arrive; the answers to 2 and 5 did not come back; nothing is known of 7.
        let both_ways = LossByDirection::Known { forward: 2, backward: 2, after: 1 };
        assert_eq!(losses_of(8, &[(0, 0), (3, 2), (6, 4)], Some((9, 5))), both_ways);
        let none = LossByDirection::Known { forward: 0, backward: 0, after: 0 };
        assert_eq!(losses_of(2, &[(0, 0), (1, 1)], Some((3, 2))), none);
        // All that were lost are answers: the numbers are alike until one is left out.
        let only_answers = LossByDirection::Known { forward: 0, backward: 2, after: 0 };
        assert_eq!(losses_of(4, &[(0, 0), (3, 3)], Some((5, 4))), only_answers);
    }

    #[test]
    fn direction_that_numbers_do_not_show_is_not_told() {
        let stateless = losses_of(4, &[(0, 0), (3, 3)], Some((5, 5)));
        assert!(
            matches!(&stateless, LossByDirection::Unknown { lost: 2, reason } if reason.contains("stateless"))
        );
        for (answers, closing) in [
            (&[(0, 7), (1, 8)][..], Some((3, 9))),
            (&[(0, 0), (1, 1)], None),
            (&[], None),
            // Fewer than were received.
            (&[(0, 0), (1, 0), (2, 0)], Some((4, 1))),
        ] {
            let losses = losses_of(3, answers, closing);
            assert!(matches!(losses, LossByDirection::Unknown { .. }), "{answers:?}: {losses:?}");
        }
    }

    /// Of a packet that was sent at 1000 ns, and its answer that arrived at 2000 ns.
    fn take_sample(received_unix_ns: u64, answered_unix_ns: u64) -> Option<DelaySample> {
        DelaySample::of(&(PeerAnswer { received_unix_ns, answered_unix_ns, ..answer((0, 0)) }, 2_000))
    }

    #[test]
    fn times_that_contradict_each_other_are_no_sample() {
        let sample = DelaySample { forward_ns: 500, backward_ns: 300, residence_ns: 200 };
        assert_eq!(take_sample(1_500, 1_700), Some(sample));
        assert_eq!(take_sample(1_700, 1_500), None, "answered before it arrived");
        assert_eq!(take_sample(0, 1_500), None, "held for longer than the round trip");
        assert_eq!(take_sample(u64::MAX, u64::MAX), None);
    }
}
