//! The send loop.

use crate::header::{Header, Phase};
use crate::outbox::Outbox;
use crate::pacer::{Lateness, Pacer};
use crate::sys::{self, Nanos};
use stacklab_model::{Length, Pacing};
use std::io;

/// Which moment a message carries as its send time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// When it really was sent.
    Actual,
    /// When it should have been sent, so that waiting for a late sender counts as delay.
    Intended,
}

/// What the messages of one phase have in common.
pub struct Mailing {
    /// Token of the trial.
    pub token: u32,
    /// The phase.
    pub phase: Phase,
    /// When they leave.
    pub pacing: Pacing,
    /// When the phase ends.
    pub length: Length,
    /// Which send time they carry.
    pub stamp: Stamp,
}

/// What a phase sent.
#[derive(Default)]
pub struct Mailed {
    /// Messages.
    pub messages: u64,
    /// Calls refused for want of a buffer and repeated.
    pub refused: u64,
    /// The first send.
    pub first_ns: Nanos,
    /// After the last send.
    pub last_ns: Nanos,
    /// How long after the schedule each message left, where there was one.
    pub lateness: Option<Lateness>,
}

/// Sends the messages of one phase. `sent` is called after each call with the last sequence number that it took; in
/// lockstep it waits for the answer.
pub fn send(
    mailing: &Mailing,
    outbox: &mut Outbox<'_>,
    mut sent: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<Mailed> {
    let mut pacer = Pacer::start(mailing.pacing, mailing.length);
    let mut mailed = Mailed::default();
    outbox.begin_phase();
    loop {
        let flow = outbox.ready()?;
        outbox.await_room()?;
        let Some(turn) = pacer.turn(mailed.messages, outbox.count()) else {
            outbox.keep(flow);
            break;
        };
        let Some(flow) = flow else { continue };
        if mailed.messages == 0 {
            mailed.first_ns = turn.now;
        }
        let sent_ns = if mailing.stamp == Stamp::Intended { turn.due } else { turn.now };
        let header = Header {
            token: mailing.token,
            phase: mailing.phase,
            markers_left: 0,
            flow: 0,
            sequence: 0,
            sent_ns,
        };
        for place in 0..turn.messages {
            outbox.write(flow, place, header);
        }
        let taken = outbox.send(flow, turn.messages, header)?;
        mailed.refused += taken.refused;
        mailed.messages += taken.messages as u64;
        if taken.messages > 0 {
            pacer.left(turn);
            sent(mailed.messages - 1)?;
        }
    }
    mailed.last_ns = sys::now_ns();
    mailed.lateness = pacer.finish();
    Ok(mailed)
}
