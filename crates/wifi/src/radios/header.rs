//! What the MAC header of a frame says to the medium: how the frame is sent, and which block acknowledgement sessions
//! there are (IEEE 802.11-2020, 9.2.4, 9.3 and 9.6.4). Pure.

use crate::medium::FrameKind;
use crate::radios::netlink::{Address, Frame};
use stacklab_model::wifi::AccessCategory;
use std::collections::BTreeMap;

/// Frame types and subtypes, in the first byte without the protocol version.
const TYPE: u8 = 0x0c;
const MANAGEMENT: u8 = 0x00;
const DATA: u8 = 0x08;
const BLOCK_ACK_REQUEST: u8 = 0x84;
const ACTION: u8 = 0xd0;
const ASSOCIATIONS: [u8; 6] = [0x00, 0x10, 0x20, 0x30, 0xa0, 0xc0];
/// Of data frames: with QoS control, and without payload.
const QOS: u8 = 0x80;
const NULL: u8 = 0x40;
/// In the second byte: four addresses, and encrypted.
const FOUR_ADDRESSES: u8 = 0x03;
const PROTECTED: u8 = 0x40;
/// Where the QoS control field is behind three addresses, and the body of a management frame.
const BODY: usize = 24;
/// An action frame's category, and its actions.
const BLOCK_ACK: u8 = 3;
const ADDBA_RESPONSE: u8 = 1;
const DELBA: u8 = 2;
/// The bodies of an ADDBA request, of an ADDBA response, and of a DELBA, bytes (9.6.4), and what CCMP adds to them.
const ADDBA_BODY: usize = 9;
const DELBA_BODY: usize = 6;
const CCMP: usize = 16;
/// Where the sequence control field is, and in a BlockAckReq its control and its starting sequence control (9.3.1.7).
/// The number is above four bits of fragments.
const SEQUENCE: usize = 22;
const REQUEST_CONTROL: usize = 16;
const REQUEST_SEQUENCE: usize = 18;

fn tid(frame: &Frame) -> Option<u8> {
    let [control, flags] = [frame.bytes[0], frame.bytes[1]];
    let is_qos = control & TYPE == DATA && control & QOS != 0;
    let at = if flags & FOUR_ADDRESSES == FOUR_ADDRESSES { BODY + 6 } else { BODY };
    frame.bytes.get(at).filter(|_| is_qos).map(|control| control & 0x0f)
}

fn requested_tid(frame: &Frame) -> Option<u8> {
    let is_request = frame.bytes[0] == BLOCK_ACK_REQUEST;
    frame.bytes.get(REQUEST_CONTROL + 1).filter(|_| is_request).map(|control| control >> 4)
}

/// Whether a frame has the data rate: data to one receiver. All others have the lowest basic rate.
pub(super) fn has_data_rate(frame: &Frame) -> bool {
    frame.bytes[0] & (TYPE | NULL) == DATA && !frame.is_for_group()
}

/// The access category: of the TID's user priority (table 10-1); voice for management frames, as in mac80211; else best
/// effort.
pub(super) fn category(frame: &Frame) -> AccessCategory {
    match tid(frame) {
        Some(1 | 2) => AccessCategory::Background,
        Some(4 | 5) => AccessCategory::Video,
        Some(6 | 7) => AccessCategory::Voice,
        None if frame.bytes[0] & TYPE == MANAGEMENT => AccessCategory::Voice,
        _ => AccessCategory::BestEffort,
    }
}

#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// By originator, recipient and TID, how many of its frames were dropped before they were sent.
    open: BTreeMap<(Address, Address, u8), u16>,
    /// By originator and recipient, what is known of sessions whose frames are encrypted.
    hidden: BTreeMap<(Address, Address), Hidden>,
}

/// Sessions whose management frames are protected: only the frames' lengths are known. mac80211 asks for a session for
/// each TID of which it sends encrypted data, in this order, and accepts each that it is asked for.
#[derive(Debug, Default)]
struct Hidden {
    /// TIDs without a session of which data was sent, in this order.
    without: Vec<u8>,
    /// Requests without an answer.
    requests: usize,
}

impl Sessions {
    pub(super) fn kind(&mut self, frame: &Frame) -> FrameKind {
        let control = frame.bytes[0];
        if let Some(tid) = tid(frame).filter(|_| has_data_rate(frame) && frame.bytes[1] & PROTECTED != 0) {
            let ends = (frame.transmitter, frame.receiver());
            let hidden = self.hidden.entry(ends).or_default();
            if !self.open.contains_key(&(ends.0, ends.1, tid)) && !hidden.without.contains(&tid) {
                hidden.without.push(tid);
            }
        }
        match control & TYPE {
            DATA if has_data_rate(frame) => match tid(frame) {
                Some(tid) if self.open.contains_key(&(frame.transmitter, frame.receiver(), tid)) => {
                    FrameKind::Aggregated { tid }
                }
                _ => FrameKind::Single,
            },
            _ if control == BLOCK_ACK_REQUEST => FrameKind::BlockAckRequest,
            _ => FrameKind::Basic,
        }
    }

    /// Numbers a frame of a session as if those that were dropped before it had never been. The kernel has numbered
    /// them, for its simulated radios tell it of no full queue; a real access point's queue is before the numbers, and
    /// its recipients do not wait for what was dropped there. CCMP protects no sequence number (12.5.3.3.3).
    pub(super) fn number(&self, frame: &mut Frame) {
        let (tid, at) = match (tid(frame), requested_tid(frame)) {
            (Some(tid), _) => (tid, SEQUENCE),
            (_, Some(tid)) => (tid, REQUEST_SEQUENCE),
            _ => return,
        };
        let dropped = self.open.get(&(frame.transmitter, frame.receiver(), tid));
        let (Some(dropped), Some(control)) = (dropped, frame.bytes.get_mut(at..at + 2)) else { return };
        let numbered = u16::from_le_bytes([control[0], control[1]]);
        control.copy_from_slice(&numbered.wrapping_sub(dropped << 4).to_le_bytes());
    }

    pub(super) fn note_dropped_frame(&mut self, frame: &Frame) {
        let session = tid(frame).map(|tid| (frame.transmitter, frame.receiver(), tid));
        if let Some(dropped) = session.and_then(|session| self.open.get_mut(&session)) {
            *dropped = dropped.wrapping_add(1);
        }
    }

    /// Notes what a frame that was received opens or ends. Of an encrypted one only the length is known.
    pub(super) fn note(&mut self, frame: &Frame) {
        let from = frame.transmitter;
        let to = frame.receiver();
        if ASSOCIATIONS.contains(&frame.bytes[0]) {
            self.end([from, to]);
        }
        if frame.bytes[0] != ACTION {
            return;
        }
        if frame.bytes[1] & PROTECTED != 0 {
            match frame.bytes.len().checked_sub(BODY + CCMP) {
                Some(ADDBA_BODY) => self.note_hidden(from, to),
                Some(DELBA_BODY) => self.end([from, to]),
                _ => {}
            }
            return;
        }
        match frame.bytes.get(BODY..) {
            // Dialog token, status (success), parameters.
            Some([BLOCK_ACK, ADDBA_RESPONSE, _, 0, 0, parameters, ..]) => {
                self.open.insert((to, from, parameters >> 2 & 0x0f), 0);
            }
            // Parameters: the originator's flag, and the TID.
            Some([BLOCK_ACK, DELBA, _, parameters, ..]) => {
                let tid = parameters >> 4;
                let by_originator = parameters & 0x08 != 0;
                self.open.remove(&if by_originator { (from, to, tid) } else { (to, from, tid) });
            }
            _ => {}
        }
    }

    fn end(&mut self, [one, other]: [Address; 2]) {
        let pairs = [(one, other), (other, one)];
        self.open.retain(|(from, to, _), _| !pairs.contains(&(*from, *to)));
        pairs.iter().for_each(|pair| drop(self.hidden.remove(pair)));
    }

    /// Notes an encrypted response to a request, if there is one; else a request, if one is to come.
    fn note_hidden(&mut self, from: Address, to: Address) {
        let asked = self.hidden.entry((to, from)).or_default();
        if asked.requests > 0 && !asked.without.is_empty() {
            asked.requests -= 1;
            self.open.insert((to, from, asked.without.remove(0)), 0);
        }
        let own = self.hidden.entry((from, to)).or_default();
        if own.without.len() > own.requests {
            own.requests += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radios::netlink::{MAX_RATES, TxRate};

    const STATION: Address = [2, 0, 0, 0, 0, 1];
    const ACCESS_POINT: Address = [2, 0, 0, 0, 0, 3];

    fn frame(control: [u8; 2], from: Address, to: Address, rest: &[u8]) -> Frame {
        Frame {
            transmitter: from,
            bytes: [&control[..], &[0, 0], &to, &from, &ACCESS_POINT, &[0; 2], rest].concat(),
            wants_ack: true,
            frequency: 2412,
            rates: [TxRate::NONE; MAX_RATES],
            cookie: 1,
        }
    }

    fn data(tid: u8) -> Frame {
        frame([0x88, 0x41], STATION, ACCESS_POINT, &[tid, 0, 0xaa])
    }

    /// The access point accepts a session of the station; TID 5, 64 frames, immediate.
    const ACCEPTS: [u8; 9] = [3, 1, 7, 0, 0, 5 << 2 | 2, 0x10, 0, 0];

    fn action(body: &[u8]) -> Frame {
        frame([0xd0, 0], ACCESS_POINT, STATION, body)
    }

    /// Data from the access point to the station.
    fn data_back(tid: u8) -> Frame {
        frame([0x88, 0x42], ACCESS_POINT, STATION, &[tid, 0, 0xaa])
    }

    #[test]
    fn frames_are_aggregated_within_a_session_only() {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.kind(&data(5)), FrameKind::Single);
        let mut refused = ACCEPTS;
        refused[3] = 37;
        sessions.note(&action(&refused));
        assert_eq!(sessions.kind(&data(5)), FrameKind::Single);
        sessions.note(&action(&ACCEPTS));
        assert_eq!(sessions.kind(&data(5)), FrameKind::Aggregated { tid: 5 });
        assert_eq!(sessions.kind(&data(0)), FrameKind::Single, "of another TID");
        assert_eq!(sessions.kind(&data_back(5)), FrameKind::Single, "of the other direction");
        // The recipient of TID 4 ends its session, then the one of TID 5.
        sessions.note(&action(&[3, 2, 0, 4 << 4, 0, 0]));
        assert_eq!(sessions.kind(&data(5)), FrameKind::Aggregated { tid: 5 });
        sessions.note(&action(&[3, 2, 0, 5 << 4, 0, 0]));
        assert_eq!(sessions.kind(&data(5)), FrameKind::Single);
    }

    /// Encrypted frames of a length: only the flag says so.
    fn hidden(from: Address, to: Address, body: usize) -> Frame {
        frame([0xd0, 0x40], from, to, &vec![0x5a; body + CCMP])
    }

    #[test]
    fn protected_management_sessions_are_known_by_lengths() {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.kind(&data(0)), FrameKind::Single);
        assert_eq!(sessions.kind(&data(5)), FrameKind::Single);
        // Other action frames, and the station's request alone, open nothing.
        sessions.note(&hidden(ACCESS_POINT, STATION, 4));
        sessions.note(&hidden(STATION, ACCESS_POINT, ADDBA_BODY));
        assert_eq!(sessions.kind(&data(0)), FrameKind::Single);
        sessions.note(&hidden(ACCESS_POINT, STATION, ADDBA_BODY));
        assert_eq!(sessions.kind(&data(0)), FrameKind::Aggregated { tid: 0 });
        assert_eq!(sessions.kind(&data(5)), FrameKind::Single, "its session comes next");
        assert_eq!(sessions.kind(&data_back(0)), FrameKind::Single, "of the other direction");
        // Both ask at the same time, and both accept.
        for from in [STATION, ACCESS_POINT, STATION, ACCESS_POINT] {
            let to = if from == STATION { ACCESS_POINT } else { STATION };
            sessions.note(&hidden(from, to, ADDBA_BODY));
        }
        assert_eq!(sessions.kind(&data(5)), FrameKind::Aggregated { tid: 5 });
        assert_eq!(sessions.kind(&data_back(0)), FrameKind::Aggregated { tid: 0 });
        sessions.note(&hidden(STATION, ACCESS_POINT, DELBA_BODY));
        assert_eq!(sessions.kind(&data(0)), FrameKind::Single);
    }

    #[test]
    fn a_new_association_has_no_session() {
        let mut sessions = Sessions::default();
        sessions.note(&frame([0xd0, 0], ACCESS_POINT, STATION, &ACCEPTS));
        sessions.note(&frame([0x00, 0], [2, 0, 0, 0, 0, 2], ACCESS_POINT, &[0; 8]));
        assert_eq!(sessions.kind(&data(5)), FrameKind::Aggregated { tid: 5 });
        sessions.note(&frame([0x00, 0], STATION, ACCESS_POINT, &[0; 8]));
        assert_eq!(sessions.kind(&data(5)), FrameKind::Single);
    }

    /// A frame as the kernel has numbered it.
    fn number_data(from: Address, number: u16) -> Frame {
        let mut frame = data(5);
        frame.transmitter = from;
        frame.bytes[SEQUENCE..SEQUENCE + 2].copy_from_slice(&(number << 4 | 3).to_le_bytes());
        frame
    }

    /// The number that a frame is sent with.
    fn renumber(sessions: &Sessions, mut frame: Frame, at: usize) -> u16 {
        sessions.number(&mut frame);
        let control = u16::from_le_bytes([frame.bytes[at], frame.bytes[at + 1]]);
        assert_eq!(control & 0xf, 3, "its fragment");
        control >> 4
    }

    #[test]
    fn dropped_frame_leaves_no_gap_in_a_session() {
        let mut sessions = Sessions::default();
        // Outside of a session nobody waits for a number.
        sessions.note_dropped_frame(&number_data(STATION, 6));
        sessions.note(&action(&ACCEPTS));
        assert_eq!(renumber(&sessions, number_data(STATION, 7), SEQUENCE), 7);
        sessions.note_dropped_frame(&number_data(STATION, 8));
        sessions.note_dropped_frame(&number_data(STATION, 9));
        assert_eq!(renumber(&sessions, number_data(STATION, 10), SEQUENCE), 8);
        assert_eq!(renumber(&sessions, number_data(STATION, 1), SEQUENCE), 4095, "numbers have 12 bits");
        let other = number_data([2, 0, 0, 0, 0, 2], 10);
        assert_eq!(renumber(&sessions, other, SEQUENCE), 10, "of another station");
        let mut request = frame([BLOCK_ACK_REQUEST, 0], STATION, ACCESS_POINT, &[]);
        request.bytes[REQUEST_CONTROL..REQUEST_SEQUENCE + 2].copy_from_slice(&[4, 5 << 4, 0xa3, 0]);
        assert_eq!(renumber(&sessions, request, REQUEST_SEQUENCE), 8, "what a BlockAckReq begins with");
        // A new session begins with the kernel's number.
        sessions.note(&action(&ACCEPTS));
        assert_eq!(renumber(&sessions, number_data(STATION, 11), SEQUENCE), 11);
    }

    #[test]
    fn management_control_and_null_frames_have_basic_rate() {
        let mut sessions = Sessions::default();
        use AccessCategory::{BestEffort, Voice};
        for (control, kind, access, what) in [
            (0x40, FrameKind::Basic, Voice, "a probe request"),
            (0x48, FrameKind::Basic, BestEffort, "a null frame"),
            (0xc8, FrameKind::Basic, BestEffort, "a QoS null frame"),
            (0x84, FrameKind::BlockAckRequest, BestEffort, "a BlockAckReq"),
            (0xa4, FrameKind::Basic, BestEffort, "a PS-Poll"),
            (0x08, FrameKind::Single, BestEffort, "data without QoS"),
        ] {
            let frame = frame([control, 0], STATION, ACCESS_POINT, &[0; 8]);
            assert_eq!((sessions.kind(&frame), category(&frame)), (kind, access), "{what}");
        }
    }

    #[test]
    fn a_tid_has_its_category() {
        use AccessCategory::*;
        let expected = [BestEffort, Background, Background, BestEffort, Video, Video, Voice, Voice];
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|tid| category(&data(tid))), expected);
    }

    #[test]
    fn short_frames_are_no_fault() {
        let long = frame([0xd0, 0], ACCESS_POINT, STATION, &ACCEPTS);
        let mut sessions = Sessions::default();
        for control in 0..=255 {
            for length in 10..long.bytes.len() {
                let mut short = Frame { bytes: long.bytes[..length].to_vec(), ..long.clone() };
                short.bytes[0] = control;
                sessions.note(&short);
                let _ = (sessions.kind(&short), category(&short));
                sessions.note_dropped_frame(&short);
                sessions.number(&mut short);
            }
        }
    }
}
