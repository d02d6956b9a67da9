//! What nodes hand to the medium.

use stacklab_model::wifi::AccessCategory;

/// A node of the medium, by the order in which nodes were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// The caller's own number of a frame. The medium gives it back with each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u64);

/// Address 1 of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Receiver {
    /// One node. One that was never added receives and answers nothing.
    Node(NodeId),
    /// All other nodes. Nobody acknowledges.
    Group,
}

/// How a frame to one node is sent. A frame to a group is sent alone at the group rate, whatever its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameKind {
    /// Data of a block acknowledgement session: joined with others of the same receiver and TID.
    Aggregated {
        /// Traffic identifier, 0 to 7.
        tid: u8,
    },
    /// Data outside of a session: alone, at the data rate.
    Single,
    /// A management frame, or another one that has a basic rate: alone, at the group rate.
    Basic,
    /// A BlockAckReq: alone, at the group rate, answered by a BlockAck.
    BlockAckRequest,
}

/// A frame to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The caller's number.
    pub id: FrameId,
    /// Who sends it.
    pub transmitter: NodeId,
    /// Who is to receive it.
    pub receiver: Receiver,
    /// Bytes of the MPDU, header and FCS included.
    pub bytes: u32,
    /// How it is sent.
    pub kind: FrameKind,
    /// Its access category.
    pub category: AccessCategory,
}
