//! The send loop.

use crate::header::{Header, Phase};
use crate::outbox::Outbox;
use crate::pacer::Pacer;
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mailed {
    /// Messages.
    pub messages: u64,
    /// Calls refused for want of a buffer and repeated.
    pub refused: u64,
    /// The first send.
    pub first_ns: Nanos,
    /// After the last send.
    pub last_ns: Nanos,
    /// The longest after the schedule.
    pub max_late_ns: Option<Nanos>,
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
    while let Some(turn) = pacer.turn(mailed.messages, outbox.count()) {
        if mailed.messages == 0 {
            mailed.first_ns = turn.now;
        }
        let sent_ns = if mailing.stamp == Stamp::Intended { turn.due } else { turn.now };
        for place in 0..turn.messages {
            let sequence = mailed.messages + place as u64;
            Header { token: mailing.token, phase: mailing.phase, markers_left: 0, sequence, sent_ns }
                .write(outbox.slot(place));
        }
        mailed.refused += outbox.send(turn.messages)?;
        mailed.messages += turn.messages as u64;
        sent(mailed.messages - 1)?;
    }
    mailed.last_ns = sys::now_ns();
    mailed.max_late_ns = pacer.max_late_ns();
    Ok(mailed)
}
