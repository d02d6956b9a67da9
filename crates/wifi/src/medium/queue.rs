//! The queue of one node and access category.

use crate::medium::{Frame, FrameKind, Receiver};
use stacklab_model::wifi::{Aggregate, FrameExchange, Radio};
use std::collections::{BTreeMap, VecDeque};

/// Frames that a compressed BlockAck can acknowledge, from the first that is missing.
const WINDOW: u64 = 64;

/// A frame was dropped, because the queue was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full: the frame was dropped")]
pub(crate) struct QueueFull;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    pub frame: Frame,
    pub attempts: u32,
    /// Its number among those of one receiver and kind.
    sequence: u64,
}

impl Waiting {
    /// The same frame, sent once more.
    pub(crate) fn add_attempt(self) -> Self {
        Waiting { attempts: self.attempts + 1, ..self }
    }

    fn flow(&self) -> (Receiver, FrameKind) {
        (self.frame.receiver, self.frame.kind)
    }
}

/// Frames in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    frames: VecDeque<Waiting>,
    sequences: BTreeMap<(Receiver, FrameKind), u64>,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn push(&mut self, frame: Frame) {
        let next = self.sequences.entry((frame.receiver, frame.kind)).or_default();
        self.frames.push_back(Waiting { frame, attempts: 0, sequence: *next });
        *next += 1;
    }

    /// Takes the frames of the next PPDU: the first, and those that can be joined with it. None if it is empty.
    pub(crate) fn take(&mut self, radio: &Radio) -> Option<(Vec<Waiting>, FrameExchange)> {
        let first = *self.frames.front()?;
        let mut aggregate = Aggregate::new(radio);
        let taken = match (first.frame.receiver, first.frame.kind) {
            (Receiver::Node(_), FrameKind::Aggregated { .. }) => self.take_same_flow(first, &mut aggregate),
            _ => {
                aggregate.push(first.frame.bytes);
                self.frames.drain(..1).collect()
            }
        };
        let exchange = match (first.frame.receiver, first.frame.kind) {
            (Receiver::Group, _) => radio.group(first.frame.bytes),
            (Receiver::Node(_), FrameKind::Basic) => radio.basic(first.frame.bytes),
            (Receiver::Node(_), FrameKind::BlockAckRequest) => radio.block_ack_request(first.frame.bytes),
            (Receiver::Node(_), _) => radio.data(&aggregate),
        };
        Some((taken, exchange))
    }

    fn take_same_flow(&mut self, first: Waiting, aggregate: &mut Aggregate<'_>) -> Vec<Waiting> {
        let mut taken = Vec::new();
        let mut left = VecDeque::with_capacity(self.frames.len());
        let mut full = false;
        for waiting in self.frames.drain(..) {
            let joins = !full && waiting.flow() == first.flow();
            if joins && waiting.sequence - first.sequence < WINDOW && aggregate.push(waiting.frame.bytes) {
                taken.push(waiting);
            } else {
                full |= joins;
                left.push_back(waiting);
            }
        }
        self.frames = left;
        taken
    }

    /// Puts frames back that will be sent again, in their order, before all others.
    pub(crate) fn put_back(&mut self, frames: Vec<Waiting>) {
        for waiting in frames.into_iter().rev() {
            self.frames.push_front(waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::{FrameId, NodeId};
    use stacklab_model::wifi::{AccessCategory, RadioSettings};

    const TO_1: Receiver = Receiver::Node(NodeId(1));
    const TO_2: Receiver = Receiver::Node(NodeId(2));
    const AGGREGATED: FrameKind = FrameKind::Aggregated { tid: 0 };

    fn queue(frames: &[(Receiver, FrameKind)]) -> Queue {
        let mut queue = Queue::default();
        for (number, (receiver, kind)) in frames.iter().enumerate() {
            queue.push(Frame {
                id: FrameId(number as u64),
                transmitter: NodeId(0),
                receiver: *receiver,
                bytes: 1490,
                kind: *kind,
                category: AccessCategory::BestEffort,
            });
        }
        queue
    }

    fn take_ids(queue: &mut Queue) -> Vec<u64> {
        let radio = Radio::new(RadioSettings::default()).unwrap();
        let (frames, _) = queue.take(&radio).unwrap();
        frames.iter().map(|waiting| waiting.frame.id.0).collect()
    }

    #[test]
    fn frames_of_one_receiver_and_tid_are_joined() {
        let other = FrameKind::Aggregated { tid: 5 };
        let mut queue = queue(&[
            (TO_1, AGGREGATED),
            (TO_2, AGGREGATED),
            (TO_1, other),
            (TO_1, AGGREGATED),
            (TO_1, FrameKind::Single),
            (Receiver::Group, AGGREGATED),
            (Receiver::Group, AGGREGATED),
            (TO_2, AGGREGATED),
        ]);
        assert_eq!(take_ids(&mut queue), [0, 3]);
        assert_eq!(take_ids(&mut queue), [1, 7]);
        for alone in [2, 4, 5, 6] {
            assert_eq!(take_ids(&mut queue), [alone]);
        }
        assert!(queue.is_empty());
    }

    #[test]
    fn lost_frames_come_first_and_bound_the_window() {
        let mut queue = queue(&[(TO_1, AGGREGATED); 120]);
        let radio = Radio::new(RadioSettings::default()).unwrap();
        let (frames, _) = queue.take(&radio).unwrap();
        assert_eq!(frames.len(), 43);
        // The first is lost, the other 42 are not: 21 more are in the window of 64.
        queue.put_back(frames[..1].to_vec());
        let next = take_ids(&mut queue);
        assert_eq!((next.len(), next[0], next[1], next[21]), (22, 0, 43, 63));
        assert_eq!(queue.len(), 120 - 64);
    }
}
