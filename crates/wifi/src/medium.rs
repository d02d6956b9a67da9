//! The shared radio medium of IEEE 802.11n: frames and a clock in, deliveries and airtime out.
//!
//! A pure core: no I/O, no sockets, no clock. The same frames at the same times with the same seed give the
//! same events to the bit. Durations are those of [`stacklab_model::wifi`]; this module adds who sends when.
//!
//! ```text
//! submit(time, frame) -> queue -> contention -> exchange -> Exchange, Delivered, Status
//!                        (queue)  (contender)   (channel)
//! ```
//!
//! The caller keeps the time. It submits frames as they arrive, asks [`Medium::next_ns`] when something happens next,
//! and takes what has happened from [`Medium::poll`]:
//!
//! * [`Event::Exchange`] when an exchange begins: who sends which frames, until when, and what becomes of each
//! * [`Event::Delivered`] when a frame has arrived at a node
//! * [`Event::Status`] for the sender of a frame: acknowledged, or given up
//!
//! [`Medium::airtime`] says where the time went, [`Medium::find_use`] where that of windows went. The parts add up to
//! the time that has passed.

use stacklab_model::wifi::{AccessCategory, Edca, Ppdu, Radio, Role};

mod channel;
mod contender;
mod log;
mod loss;
mod queue;
#[cfg(test)]
mod tests;

pub(crate) use channel::Medium;

/// The settings of a medium. [`MediumSettings::new`] has the usual ones.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MediumSettings {
    pub radio: Radio,
    /// EDCA parameters of the access point, by [`AccessCategory`].
    pub access_point: [Edca; 4],
    /// EDCA parameters of stations.
    pub station: [Edca; 4],
    /// Most frames in a queue, of which each node and access category has one (tail drop).
    pub queue_frames: usize,
    /// How often a frame is sent before it is given up (dot11ShortRetryLimit).
    pub attempts: u32,
    /// Signal to noise ratio of all links, dB, by which frames are lost at random. None: by collisions only.
    pub snr_db: Option<f64>,
}

impl MediumSettings {
    /// A channel with the default parameters of EDCA, queues of 150 frames, 7 attempts, and no loss.
    pub(crate) fn new(radio: Radio) -> Self {
        MediumSettings {
            radio,
            access_point: list_edca(Role::AccessPoint),
            station: list_edca(Role::Station),
            queue_frames: 150,
            attempts: 7,
            snr_db: None,
        }
    }

    pub(crate) fn edca(&self, role: Role) -> &[Edca; 4] {
        match role {
            Role::AccessPoint => &self.access_point,
            Role::Station => &self.station,
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        for role in Role::ALL {
            for edca in self.edca(*role) {
                edca.check(*role)?;
            }
        }
        if self.queue_frames == 0 {
            return Err("a queue of 0 frames is not possible: expected at least 1".to_owned());
        }
        if self.attempts == 0 {
            return Err("0 transmissions of a frame are not possible: expected at least 1".to_owned());
        }
        Ok(())
    }
}

/// The default parameters of each category.
fn list_edca(role: Role) -> [Edca; 4] {
    std::array::from_fn(|index| Edca::default_of(role, AccessCategory::ALL[index]))
}

/// A node of the medium, by the order in which nodes were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub usize);

/// The caller's own number of a frame. The medium gives it back with each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FrameId(pub u64);

/// Address 1 of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Receiver {
    /// One node. One that was never added receives and answers nothing.
    Node(NodeId),
    /// All other nodes. Nobody acknowledges.
    Group,
}

/// How a frame to one node is sent. A frame to a group is sent alone at the group rate, whatever its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FrameKind {
    /// Data of a block acknowledgement session: joined with others of the same receiver and TID.
    Aggregated { tid: u8 },
    /// Data outside of a session: alone, at the data rate.
    Single,
    /// A management frame, or another one that has a basic rate: alone, at the group rate.
    Basic,
    /// A BlockAckReq: alone, at the group rate, answered by a BlockAck.
    BlockAckRequest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub id: FrameId,
    pub transmitter: NodeId,
    pub receiver: Receiver,
    /// Bytes of the MPDU, header and FCS included.
    pub bytes: u32,
    pub kind: FrameKind,
    pub category: AccessCategory,
}

/// Something that happened, at a time in nanoseconds. Events come in the order of their times.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    Exchange(Exchange),
    /// The PPDU with a frame has ended, and a node has the frame.
    Delivered {
        at_ns: u64,
        frame: FrameId,
        from: NodeId,
        to: NodeId,
    },
    /// The exchange has ended in which a frame was sent for the last time.
    Status {
        at_ns: u64,
        frame: FrameId,
        transmitter: NodeId,
        /// Acknowledged; a frame to a group has been sent, and never is.
        acknowledged: bool,
        attempts: u32,
    },
}

impl Event {
    pub(crate) fn at_ns(&self) -> u64 {
        match self {
            Event::Exchange(exchange) => exchange.begin_ns,
            Event::Delivered { at_ns, .. } | Event::Status { at_ns, .. } => *at_ns,
        }
    }
}

/// An exchange: one transmission and its response, or several transmissions that collide.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Exchange {
    /// Its number, from zero; the A-MPDU reference of a capture.
    pub number: u64,
    pub begin_ns: u64,
    /// When the channel is idle again: after the response, or after the time in which it did not come.
    pub end_ns: u64,
    pub transmissions: Vec<Transmission>,
}

/// One PPDU.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Transmission {
    pub transmitter: NodeId,
    pub receiver: Receiver,
    pub ppdu: Ppdu,
    /// SIFS and the response; zero if none comes.
    pub response_ns: u64,
    /// Its frames, in order. More than one are an A-MPDU.
    pub frames: Vec<SentFrame>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SentFrame {
    pub id: FrameId,
    pub bytes: u32,
    /// How often it has been sent, this time included.
    pub attempt: u32,
    pub outcome: Reception,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reception {
    /// It is received, and acknowledged unless it was to a group.
    Received,
    /// It is lost, and will be sent again.
    Retried,
    /// It is lost, and will not be sent again.
    GivenUp,
}
