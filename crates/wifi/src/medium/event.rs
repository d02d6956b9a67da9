//! What happens on the medium.

use crate::medium::frame::{FrameId, NodeId, Receiver};
use stacklab_model::wifi::Ppdu;

/// Something that happened, at a time in nanoseconds. Events come in the order of their times.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// An exchange begins.
    Exchange(Exchange),
    /// The PPDU with a frame has ended, and a node has the frame.
    Delivered {
        /// When.
        at_ns: u64,
        /// The frame.
        frame: FrameId,
        /// Its transmitter.
        from: NodeId,
        /// Who has it.
        to: NodeId,
    },
    /// The exchange has ended in which a frame was sent for the last time.
    Status {
        /// When.
        at_ns: u64,
        /// The frame.
        frame: FrameId,
        /// Its transmitter.
        transmitter: NodeId,
        /// Acknowledged; a frame to a group has been sent, and never is.
        acknowledged: bool,
        /// How often it was sent.
        attempts: u32,
    },
}

impl Event {
    /// When it happens.
    pub fn at_ns(&self) -> u64 {
        match self {
            Event::Exchange(exchange) => exchange.begin_ns,
            Event::Delivered { at_ns, .. } | Event::Status { at_ns, .. } => *at_ns,
        }
    }
}

/// An exchange: one transmission and its response, or several transmissions that collide.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Exchange {
    /// Its number, from zero; the A-MPDU reference of a capture.
    pub number: u64,
    /// When it begins.
    pub begin_ns: u64,
    /// When the channel is idle again: after the response, or after the time in which it did not come.
    pub end_ns: u64,
    /// What is sent, by all who begin in this slot.
    pub transmissions: Vec<Transmission>,
}

impl Exchange {
    /// Whether transmissions collide: nobody receives any of them.
    pub fn collides(&self) -> bool {
        self.transmissions.len() > 1
    }
}

/// One PPDU.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transmission {
    /// Who sends it.
    pub transmitter: NodeId,
    /// To whom.
    pub receiver: Receiver,
    /// Its time on air.
    pub ppdu: Ppdu,
    /// SIFS and the response; zero if none comes.
    pub response_ns: u64,
    /// Its frames, in order. More than one are an A-MPDU.
    pub frames: Vec<SentFrame>,
}

/// A frame in a PPDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SentFrame {
    /// The frame.
    pub id: FrameId,
    /// Bytes of the MPDU.
    pub bytes: u32,
    /// How often it has been sent, this time included.
    pub attempt: u32,
    /// What becomes of it.
    pub outcome: Reception,
}

/// What becomes of a frame that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reception {
    /// It is received, and acknowledged unless it was to a group.
    Received,
    /// It is lost, and will be sent again.
    Retried,
    /// It is lost, and will not be sent again.
    GivenUp,
}
