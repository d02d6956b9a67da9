//! The medium between radios: which radios receive a frame, when, and whether its transmitter hears an
//! acknowledgement.

use super::hwsim::command::{Address, Frame};
use std::collections::VecDeque;

/// Whether frames take time on the medium of networks, and the clock may be virtual. [`Immediate`] has neither.
pub const HAS_AIRTIME: bool = false;

/// A medium. It has no clock and no socket: whoever runs it brings frames and time. Times are nanoseconds since its
/// beginning.
pub trait Medium: Send {
    /// Takes a frame that a radio hands over now. `id` is its number in events. `false` if the medium has no room for
    /// it: it is dropped, and there is no event of it.
    fn submit(&mut self, now_ns: u64, id: u64, frame: &Frame) -> bool;

    /// When the next event happens, if no other frame arrives before. `None` if there is nothing to send.
    fn next_ns(&self) -> Option<u64>;

    /// The next event that has happened by now.
    fn poll(&mut self, now_ns: u64) -> Option<Event>;
}

/// Something that happened to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A radio has received it.
    Delivered {
        /// The frame's number.
        id: u64,
        /// The radio.
        to: Address,
    },
    /// It is not sent again. The last event of a frame.
    Status {
        /// The frame's number.
        id: u64,
        /// Whether its transmitter got an acknowledgement.
        acknowledged: bool,
        /// How often it was sent.
        attempts: u8,
    },
}

/// The simplest medium: every frame arrives at once. It takes no airtime.
#[derive(Debug)]
pub struct Immediate {
    radios: Vec<Address>,
    /// The time of the last frame, when all of these events happened.
    now_ns: u64,
    events: VecDeque<Event>,
}

impl Immediate {
    /// A medium between these radios.
    pub fn new(radios: Vec<Address>) -> Self {
        Immediate { radios, now_ns: 0, events: VecDeque::new() }
    }
}

impl Medium for Immediate {
    fn submit(&mut self, now_ns: u64, id: u64, frame: &Frame) -> bool {
        let (receiver, to_all) = (frame.receiver(), frame.is_for_group());
        let others = self.radios.iter().filter(|radio| **radio != frame.transmitter);
        let receivers: Vec<Address> = others.filter(|radio| to_all || **radio == receiver).copied().collect();
        let acknowledged = !to_all && !receivers.is_empty();
        self.events.extend(receivers.into_iter().map(|to| Event::Delivered { id, to }));
        self.events.push_back(Event::Status { id, acknowledged, attempts: 1 });
        self.now_ns = now_ns;
        true
    }

    fn next_ns(&self) -> Option<u64> {
        self.events.front().map(|_| self.now_ns)
    }

    fn poll(&mut self, _now_ns: u64) -> Option<Event> {
        self.events.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::hwsim::command::{MOST_RATES, Rate};

    const RADIOS: [Address; 3] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 3]];

    fn events(transmitter: Address, receiver: Address) -> Vec<Event> {
        let frame = Frame {
            transmitter,
            bytes: [&[0x88, 1, 0, 0][..], &receiver, &transmitter, &[0; 16]].concat(),
            wants_ack: true,
            frequency: 2412,
            rates: [Rate::NONE; MOST_RATES],
            cookie: 1,
        };
        let mut medium = Immediate::new(RADIOS.to_vec());
        assert_eq!(medium.next_ns(), None);
        assert!(medium.submit(3_000, 7, &frame));
        assert_eq!(medium.next_ns(), Some(3_000));
        let events = std::iter::from_fn(|| medium.poll(3_000)).collect();
        assert_eq!(medium.next_ns(), None);
        events
    }

    const SENT: Event = Event::Status { id: 7, acknowledged: false, attempts: 1 };

    #[test]
    fn a_frame_goes_to_its_receiver_who_acknowledges_it() {
        let acknowledged = Event::Status { id: 7, acknowledged: true, attempts: 1 };
        assert_eq!(events(RADIOS[0], RADIOS[2]), [Event::Delivered { id: 7, to: RADIOS[2] }, acknowledged]);
    }

    #[test]
    fn a_group_receives_and_does_not_acknowledge() {
        let delivered = [0, 1].map(|place| Event::Delivered { id: 7, to: RADIOS[place] });
        assert_eq!(events(RADIOS[2], [0xff; 6]), [delivered[0], delivered[1], SENT]);
    }

    #[test]
    fn nobody_acknowledges_for_a_radio_that_is_not_there() {
        for receiver in [[2, 0, 0, 0, 0, 9], RADIOS[0]] {
            assert_eq!(events(RADIOS[0], receiver), [SENT]);
        }
    }
}
