//! The slices of an arm that takes turns with others: its warm-up, how long a slice is, and when a turn ends.

use super::{END_LIMIT, POLL_INTERVAL, Sending, no_flood_rate};
use crate::engine::header::Phase;
use crate::engine::send_loop::SendReport;
use crate::engine::socket::MessageSocket;
use crate::engine::turns::Turn;
use crate::stats::slices::MAX_SLICES;
use crate::sys::{self, Nanos};
use stacklab_model::{ArmSchedule, Length, Pacing, Slice, Transport};
use std::io;
use std::time::Duration;

/// The shortest slice of arms of one sender.
const MIN_SLICE_NS: Nanos = 2_000_000;
/// Messages of a stream that a slice should hold.
pub const MIN_MESSAGES: u64 = 200;
/// Round trips of an echo that a slice should hold.
pub const MIN_ROUND_TRIPS: u64 = 20;
/// How long the receiver of a stream has to take what arrived, after a slice.
const PAUSE: Duration = Duration::from_micros(200);
/// A receiver may hold its acknowledgement of this many segments back, for 40 ms on Linux (RFC 9293, section 3.8.6.3:
/// one for at least every second full segment).
const MAX_HELD_BACK_SEGMENTS: u32 = 2;

/// What a part of the warm-up took.
struct WarmupPart {
    messages: u64,
    sent_ns: Nanos,
    emptied_ns: Nanos,
}

impl Sending<'_> {
    /// Warms up in the first turn, and sends a slice in each further one. Nothing is left on the path after a turn.
    pub(super) fn in_turns(
        &mut self,
        turn: &mut Turn<'_>,
        after_each: &mut impl FnMut(Phase, u32, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        turn.wait()?;
        let each_ns = self.warm_up(turn, after_each)?;
        turn.pass();
        let Length::Time(whole_ns) = self.spec.probe.length else {
            return Err(io::Error::other("slices need a length in time, not in messages"));
        };
        let began = sys::thread_cpu_parts();
        for round in 0.. {
            let in_time = turn.wait()?;
            // All arms have warmed up: the length of slices is known.
            let slice_ns = turn.slice_ns().max(1);
            if let Pacing::Share(share) = self.pacing {
                self.pacing = Pacing::Schedule(share * turn.flood_rate().ok_or_else(no_flood_rate)?);
            }
            if self.pacing == Pacing::Lockstep && turn.may_extend() {
                self.min_round_trips = (slice_ns / each_ns.max(1)).min(MIN_ROUND_TRIPS);
            }
            let is_last = (u64::from(round) + 1) * slice_ns >= whole_ns
                || self.done.slices.len() + 1 >= MAX_SLICES
                || turn.is_last_round(whole_ns);
            if in_time {
                self.slice(round, slice_ns, after_each)?;
            } else {
                let now_ns = sys::now_ns();
                self.done.slices.push(Slice { round, first_ns: now_ns, last_ns: now_ns, ..Slice::default() });
            }
            turn.pass();
            if is_last {
                break;
            }
        }
        self.done.cpu_parts = sys::thread_cpu_parts()
            .zip(began)
            .map(|(now, began)| (now.0.saturating_sub(began.0), now.1.saturating_sub(began.1)));
        Ok(())
    }

    /// Warms up, and says to the other arms what this one needs. Returns the time that a message takes.
    fn warm_up(
        &mut self,
        turn: &Turn<'_>,
        after_each: &mut impl FnMut(Phase, u32, u64) -> io::Result<()>,
    ) -> io::Result<Nanos> {
        let whole_ns = self.spec.probe.warmup_ns.max(MIN_SLICE_NS);
        // A time slot ends before the path of another part is empty.
        let part_ns = if turn.may_extend() { whole_ns / ArmSchedule::WARMUP_PARTS } else { whole_ns };
        let mut spent_ns = 0;
        let mut parts = Vec::new();
        while spent_ns < whole_ns {
            let part_began_ns = sys::now_ns();
            let sent = self.phase(Phase::Warmup, Length::Time(part_ns), 0, after_each)?;
            self.done.sent.warmup += sent.messages;
            let sent_ns = sent.last_ns.saturating_sub(part_began_ns);
            // It takes this long at the least.
            spent_ns += sent_ns.max(part_ns);
            let empty_ns = self.empty_path()?;
            parts.push(WarmupPart {
                messages: sent.messages,
                sent_ns,
                emptied_ns: empty_ns.saturating_sub(sent.last_ns),
            });
        }
        if let Pacing::Share(_) = self.pacing {
            let messages: u64 = parts.iter().map(|part| part.messages).sum();
            let took_ns: Nanos = parts.iter().map(|part| part.sent_ns + part.emptied_ns).sum();
            turn.tell_flood_rate(messages as f64 * 1e9 / took_ns.max(1) as f64);
        }
        let each_ns = fastest_message(&parts);
        turn.propose(self.slice_ns(each_ns, usual_emptying(&parts)));
        Ok(each_ns)
    }

    pub(super) fn slice(
        &mut self,
        round: u32,
        slice_ns: Nanos,
        after_each: &mut impl FnMut(Phase, u32, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let waited_began = self.run_delay.read();
        let began = sys::thread_cpu_ns();
        let sent = self.phase(Phase::Measured, Length::Time(slice_ns), round, after_each)?;
        let cpu_ns = sys::thread_cpu_ns().zip(began).map(|(now, began)| now.saturating_sub(began));
        let waited = self.run_delay.read().zip(waited_began);
        let waited_ns = waited.map(|(now, began)| now.saturating_sub(began));
        let SendReport { messages, last_ns, .. } = sent;
        // On a busy machine a slice may be over before its first message: then it took no time.
        let first_ns = if messages == 0 { last_ns } else { sent.first_ns };
        let counted = Slice { round, messages, first_ns, last_ns, cpu_ns, waited_ns, ..Slice::default() };
        self.done.slices.push(counted);
        self.count(sent);
        self.empty_path()?;
        Ok(())
    }

    /// The slice that this arm needs at the least: for enough messages, and not shorter than what empties the path.
    fn slice_ns(&self, each_ns: Nanos, emptying_ns: Nanos) -> Nanos {
        if let Some(slice_ns) = self.spec.schedule.slice_ns() {
            return slice_ns;
        }
        let min_messages = if self.spec.probe.probe.echoes() { MIN_ROUND_TRIPS } else { MIN_MESSAGES };
        // The slowest arm's proposal is the longest, and the schedule is its share.
        let each_ns = match self.pacing {
            Pacing::Share(share) => (each_ns as f64 / share) as Nanos,
            _ => each_ns,
        };
        let most_ns = match self.spec.probe.length {
            Length::Time(ns) => ns / ArmSchedule::MIN_SLICES,
            Length::Packets(_) => Nanos::MAX,
        };
        (min_messages * each_ns).max(emptying_ns).max(MIN_SLICE_NS).min(most_ns.max(1))
    }

    /// Waits until the path is empty, and the receiver has had time to take what came. Returns when the path was.
    fn empty_path(&mut self) -> io::Result<Nanos> {
        let until = sys::now_ns() + END_LIMIT.as_nanos() as Nanos;
        self.tx.wait_until(until);
        // In another arm's turn they would lengthen that arm's slice and this one.
        self.tx.flush()?;
        for channel in self.channels {
            while !is_empty(channel, self.spec.transport)? {
                if sys::now_ns() > until {
                    return Err(never_empty());
                }
                // Asleep: acknowledgements are worked on by this processor.
                sys::sleep(POLL_INTERVAL);
            }
        }
        let empty_ns = sys::now_ns();
        if !self.spec.probe.probe.echoes() {
            sys::sleep(PAUSE);
        }
        Ok(empty_ns)
    }
}

/// Whether all has left a socket, and for TCP all is acknowledged but for what a receiver may hold its acknowledgement
/// back for: to wait for that would take longer than the slice.
fn is_empty(channel: &MessageSocket, transport: Transport) -> io::Result<bool> {
    let bytes = sys::unsent_bytes(&channel.socket)?.unwrap_or(0);
    if bytes == 0 || transport == Transport::Udp {
        return Ok(bytes == 0);
    }
    let segments = sys::unacknowledged_segments(&channel.socket)?;
    Ok(segments.is_some_and(|segments| segments <= MAX_HELD_BACK_SEGMENTS))
}

fn never_empty() -> io::Error {
    let reason = format!(
        "after a slice the path did not empty within {} s: it is too slow for slices; set blocks.schedule = \
         \"sequential\", or a message_rate that it carries",
        END_LIMIT.as_secs()
    );
    io::Error::new(io::ErrorKind::TimedOut, reason)
}

/// What a message takes in the fastest part: another program may have held up the others.
fn fastest_message(parts: &[WarmupPart]) -> Nanos {
    parts.iter().map(|part| part.sent_ns / part.messages.max(1)).min().unwrap_or(0)
}

/// The lower median. Not the shortest: a part may end before it fills what a link holds.
fn usual_emptying(parts: &[WarmupPart]) -> Nanos {
    let mut emptied_ns: Vec<Nanos> = parts.iter().map(|part| part.emptied_ns).collect();
    emptied_ns.sort_unstable();
    emptied_ns.get((emptied_ns.len().max(1) - 1) / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_disturbed_part_changes_nothing() {
        const USUAL: WarmupPart = WarmupPart { messages: 100, sent_ns: 1000, emptied_ns: 50 };
        let sent_late = WarmupPart { messages: 2, sent_ns: 9000, ..USUAL };
        let emptied_late = WarmupPart { emptied_ns: 40_000, ..USUAL };
        for parts in [[USUAL, USUAL, USUAL, USUAL], [sent_late, emptied_late, USUAL, USUAL]] {
            assert_eq!((fastest_message(&parts), usual_emptying(&parts)), (10, 50));
        }
        let nothing = WarmupPart { messages: 0, sent_ns: 0, emptied_ns: 0 };
        assert_eq!(fastest_message(&[nothing]), 0);
    }
}
