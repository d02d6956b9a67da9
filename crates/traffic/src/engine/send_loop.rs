//! The send loop.

use crate::engine::header::{Header, Phase};
use crate::engine::pacer::{Pacer, PacingError};
use crate::engine::tx::TxBatch;
use crate::sys::{self, Nanos};
use stacklab_model::{Length, Pacing};
use std::io;
use std::sync::atomic::AtomicBool;

/// Which send time a message carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// The actual send time.
    Actual,
    /// The intended send time: a late sender then counts as delay.
    Intended,
}

/// How many times its length a phase may take to have enough messages.
const MAX_EXTENSION: Nanos = 16;

/// Parameters of one phase.
pub(crate) struct SendPhase<'a> {
    /// Token of the trial.
    pub token: u32,
    /// The phase.
    pub phase: Phase,
    /// When messages are sent.
    pub pacing: Pacing,
    /// When the phase ends.
    pub length: Length,
    /// Messages that the phase has at the least, though it may take [`MAX_EXTENSION`] times its length.
    pub min_messages: u64,
    /// Which send time messages carry.
    pub stamp: Stamp,
    /// The slice of an interleaved trial, from 0.
    pub slice: u32,
    /// Messages of this phase that earlier slices sent.
    pub sent_before: u64,
    /// On a schedule, when the first message is due after the beginning.
    pub offset_ns: Nanos,
    /// After this time the phase ends, though its length may be a number of messages.
    pub limit_ns: Nanos,
    /// Set by whoever ends the phase early.
    pub stop: Option<&'a AtomicBool>,
}

/// Result of one phase.
#[derive(Default)]
pub(crate) struct SendReport {
    /// Messages sent.
    pub messages: u64,
    /// Calls repeated after ENOBUFS.
    pub refused: u64,
    /// The first send.
    pub first_ns: Nanos,
    /// After the last send.
    pub last_ns: Nanos,
    /// Pacing error of each message, with a schedule.
    pub pacing_error: Option<PacingError>,
}

/// Sends the messages of one phase. `sent` is called after each call with the last sequence number that was sent; in
/// lockstep it waits for the answer.
pub(crate) fn send(
    send_phase: &SendPhase<'_>,
    tx: &mut TxBatch<'_>,
    mut sent: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<SendReport> {
    let mut pacer = Pacer::start(send_phase.pacing, send_phase.length).offset_by(send_phase.offset_ns);
    if let (Length::Time(ns), 1..) = (send_phase.length, send_phase.min_messages) {
        pacer = pacer.with_at_least(send_phase.min_messages, ns.saturating_mul(MAX_EXTENSION));
    }
    let mut pacer = pacer.within(send_phase.limit_ns).stopped_by(send_phase.stop);
    tx.wait_until(pacer.ends_ns());
    let mut report = SendReport::default();
    if send_phase.sent_before == 0 {
        tx.begin_phase();
    }
    loop {
        if let Some(due) = pacer.due(report.messages) {
            tx.send_rests(due)?;
        }
        let flow = tx.ready()?;
        tx.await_room()?;
        tx.await_allowance(send_phase.pacing, pacer.ends_ns(), send_phase.stop);
        let Some(slot) = pacer.next_slot(report.messages, tx.count()) else {
            tx.keep(flow);
            break;
        };
        let Some(flow) = flow else { continue };
        if report.messages == 0 {
            report.first_ns = slot.now;
        }
        let sent_ns = if send_phase.stamp == Stamp::Intended { slot.due } else { slot.now };
        let header = Header {
            token: send_phase.token,
            phase: send_phase.phase,
            slice: send_phase.slice as u8,
            sent_ns,
            ..Header::default()
        };
        for place in 0..slot.messages {
            tx.write(flow, place, header);
        }
        let taken = tx.send(flow, slot.messages, header)?;
        report.refused += taken.refused;
        report.messages += taken.messages as u64;
        if taken.messages > 0 {
            pacer.record_send(slot);
            sent(send_phase.sent_before + report.messages - 1)?;
        }
    }
    report.last_ns = sys::now_ns();
    report.pacing_error = pacer.finish();
    Ok(report)
}
