//! Test packets: those of the session-sender, and its answers.

use crate::stamp::key::{CODE_BYTES, StampKey};
use crate::stamp::time::ErrorEstimate;
use crate::stamp::tlv::{self, Extensions};

/// Octets of an unauthenticated and of an authenticated packet without TLVs.
const OPEN_BYTES: usize = 44;
const AUTHENTICATED_BYTES: usize = 112;
/// The TTL, or hop limit, with which test packets are sent.
pub const SENDER_TTL: u8 = 255;

/// Where a packet has its fields (RFC 8762, sections 4.2 and 4.3; RFC 8972, section 3).
struct Layout {
    bytes: usize,
    /// Sequence number, timestamp, error estimate and session identifier; of a packet of the session-sender, zeros
    /// follow.
    front: [usize; 4],
    /// The time of arrival, and the sender's sequence number, timestamp, error estimate and TTL.
    answer: [usize; 5],
    /// The authentication code, which is of all before it.
    code: Option<usize>,
}

const OPEN: Layout =
    Layout { bytes: OPEN_BYTES, front: [0, 4, 12, 14], answer: [16, 24, 28, 36, 40], code: None };

const AUTHENTICATED: Layout = Layout {
    bytes: AUTHENTICATED_BYTES,
    front: [0, 16, 24, 26],
    answer: [32, 48, 64, 72, 80],
    code: Some(96),
};

/// A packet of the session-sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderPacket {
    /// Its number within the session, from 0.
    pub sequence: u32,
    /// T1, in the format that `error` names.
    pub timestamp: u64,
    /// Of the sender's clock.
    pub error: ErrorEstimate,
    /// The session identifier; 0 without one.
    pub session: u16,
}

/// A packet of the session-reflector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReflectorPacket {
    /// The reflector's own number (stateful), or that of the sender again (stateless).
    pub sequence: u32,
    /// T3, in the format that `error` names.
    pub timestamp: u64,
    /// Of the reflector's clock.
    pub error: ErrorEstimate,
    /// As in the sender's packet.
    pub session: u16,
    /// T2, in the same format as T3.
    pub received: u64,
    /// As in the sender's packet.
    pub sender_sequence: u32,
    /// T1, as in the sender's packet.
    pub sender_timestamp: u64,
    /// As in the sender's packet.
    pub sender_error: ErrorEstimate,
    /// The TTL, or hop limit, with which the sender's packet arrived.
    pub sender_ttl: u8,
}

/// Writes and reads packets of one session: unauthenticated, or authenticated with a key.
#[derive(Debug, Clone)]
pub struct Codec {
    pub(super) key: Option<StampKey>,
}

impl Codec {
    /// Without a key, packets are unauthenticated.
    pub fn new(key: Option<StampKey>) -> Self {
        Codec { key }
    }

    fn layout(&self) -> &'static Layout {
        if self.key.is_some() { &AUTHENTICATED } else { &OPEN }
    }

    pub(super) fn base_bytes(&self) -> usize {
        self.layout().bytes
    }

    pub(super) fn probe_bytes(&self, extensions: &Extensions) -> usize {
        self.base_bytes() + extensions.bytes(self.key.is_some())
    }

    /// These TLVs with padding, for a packet of this many octets; `None` if there is no such packet.
    pub(super) fn pad_to(&self, extensions: Extensions, octets: usize) -> Option<Extensions> {
        extensions.pad_to(octets, self.base_bytes(), self.key.is_some())
    }

    /// Octets of the shortest packet with these TLVs and padding.
    pub(super) fn least_padded_bytes(&self, extensions: &Extensions) -> usize {
        self.probe_bytes(&Extensions { padding: Some(0), ..*extensions })
    }

    /// Writes a packet of the session-sender with its TLVs into a message of [`Codec::probe_bytes`].
    pub(super) fn write_probe(&self, probe: &SenderPacket, extensions: &Extensions, message: &mut [u8]) {
        let (base, rest) = message.split_at_mut(self.base_bytes());
        self.write_front(probe, base);
        self.seal(base);
        extensions.write(self.key.as_ref(), base, rest);
    }

    /// Reads a packet of the session-sender. `None` if it is too short, or its code is wrong.
    pub fn read_probe(&self, message: &[u8]) -> Option<SenderPacket> {
        let layout = self.layout();
        let base = message.get(..layout.bytes)?;
        if let (Some(key), Some(at)) = (&self.key, layout.code)
            && !key.proves(&[&base[..at]], &base[at..at + CODE_BYTES])
        {
            return None;
        }
        let [sequence, timestamp, error, session] = layout.front;
        Some(SenderPacket {
            sequence: u32::from_be_bytes(take(base, sequence)),
            timestamp: u64::from_be_bytes(take(base, timestamp)),
            error: ErrorEstimate::from_bytes(take(base, error)),
            session: u16::from_be_bytes(take(base, session)),
        })
    }

    /// Whether a packet has the form of an answer. A session-sender of STAMP leaves zeros where the time of arrival is.
    /// One of TWAMP-Light may have any padding there and in the two octets behind the sender's error estimate, which an
    /// answer leaves zero.
    pub fn is_answer(&self, message: &[u8]) -> bool {
        let [received, _, _, error, _] = self.layout().answer;
        message.len() >= self.base_bytes()
            && take(message, received) != [0; 8]
            && take(message, error + 2) == [0; 2]
    }

    /// Writes an answer to the front of a message that has room for it. TLVs are not touched.
    pub(super) fn write_answer(&self, answer: &ReflectorPacket, message: &mut [u8]) {
        let layout = self.layout();
        let base = &mut message[..layout.bytes];
        let ReflectorPacket { sequence, timestamp, error, session, .. } = *answer;
        self.write_front(&SenderPacket { sequence, timestamp, error, session }, base);
        let [received, sequence, timestamp, error, ttl] = layout.answer;
        put(base, received, answer.received.to_be_bytes());
        put(base, sequence, answer.sender_sequence.to_be_bytes());
        put(base, timestamp, answer.sender_timestamp.to_be_bytes());
        put(base, error, answer.sender_error.to_bytes());
        base[ttl] = answer.sender_ttl;
        self.seal(base);
    }

    /// Reads an answer. `None` if it is too short, or its code is wrong.
    pub fn read_answer(&self, message: &[u8]) -> Option<ReflectorPacket> {
        let SenderPacket { sequence, timestamp, error, session } = self.read_probe(message)?;
        let [received, sender_sequence, sender_timestamp, sender_error, ttl] = self.layout().answer;
        Some(ReflectorPacket {
            sequence,
            timestamp,
            error,
            session,
            received: u64::from_be_bytes(take(message, received)),
            sender_sequence: u32::from_be_bytes(take(message, sender_sequence)),
            sender_timestamp: u64::from_be_bytes(take(message, sender_timestamp)),
            sender_error: ErrorEstimate::from_bytes(take(message, sender_error)),
            sender_ttl: message[ttl],
        })
    }

    /// The TLVs of an answer that [`Codec::read_answer`] could read: what was understood there. `None` if they are not
    /// well-formed, or their code is wrong.
    pub fn read_extensions(&self, message: &[u8]) -> Option<Extensions> {
        let (base, rest) = message.split_at_checked(self.base_bytes())?;
        tlv::read(self.key.as_ref(), base, rest)
    }

    /// Writes the fields that both kinds of packets have, and zeros after them.
    fn write_front(&self, front: &SenderPacket, base: &mut [u8]) {
        let [sequence, timestamp, error, session] = self.layout().front;
        base.fill(0);
        put(base, sequence, front.sequence.to_be_bytes());
        put(base, timestamp, front.timestamp.to_be_bytes());
        put(base, error, front.error.to_bytes());
        put(base, session, front.session.to_be_bytes());
    }

    fn seal(&self, base: &mut [u8]) {
        if let (Some(key), Some(at)) = (&self.key, self.layout().code) {
            let (covered, code) = base.split_at_mut(at);
            code[..CODE_BYTES].copy_from_slice(&key.code(&[covered]));
        }
    }
}

fn put<const N: usize>(base: &mut [u8], at: usize, bytes: [u8; N]) {
    base[at..at + N].copy_from_slice(&bytes);
}

/// Bytes of a packet that is long enough for its layout.
fn take<const N: usize>(base: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|place| base[at + place])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::stamp::time::TimeFormat;

    pub(crate) fn codecs() -> [Codec; 2] {
        let key = StampKey::from_hex(&"5a".repeat(16)).unwrap();
        [Codec::new(None), Codec::new(Some(key))]
    }

    pub(crate) fn probe() -> SenderPacket {
        let error = ErrorEstimate::new(TimeFormat::Ntp, Some(1_000));
        SenderPacket { sequence: 0x0102_0304, timestamp: 0x1112_1314_1516_1718, error, session: 0x2122 }
    }

    #[test]
    fn rfc_packets_have_44_and_112_octets_and_all_fields() {
        let [open, closed] = codecs();
        let none = Extensions::default();
        let mut message = [0xff; OPEN_BYTES];
        assert_eq!((open.probe_bytes(&none), closed.probe_bytes(&none)), (44, 112));
        open.write_probe(&probe(), &none, &mut message);
        assert_eq!(message[..12], [1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
        assert_eq!((&message[14..16], &message[16..]), (&[0x21, 0x22][..], &[0; 28][..]));
        let mut message = [0xff; AUTHENTICATED_BYTES];
        closed.write_probe(&probe(), &none, &mut message);
        assert_eq!((&message[..4], &message[4..16]), (&[1, 2, 3, 4][..], &[0; 12][..]));
        assert_eq!((message[16], message[23], message[27]), (0x11, 0x18, 0x22));
        assert_eq!(message[28..96], [0; 68]);
    }

    #[test]
    fn packets_read_back_and_changed_ones_do_not() {
        let answer = ReflectorPacket {
            sequence: 1,
            timestamp: 2,
            error: ErrorEstimate::new(TimeFormat::Ptp, None),
            session: 3,
            received: 4,
            sender_sequence: 5,
            sender_timestamp: 6,
            sender_error: ErrorEstimate::new(TimeFormat::Ntp, Some(70)),
            sender_ttl: 64,
        };
        for codec in codecs() {
            let mut message = vec![0; codec.base_bytes()];
            codec.write_probe(&probe(), &Extensions::default(), &mut message);
            assert_eq!(codec.read_probe(&message), Some(probe()));
            codec.write_answer(&answer, &mut message);
            assert_eq!(codec.read_answer(&message), Some(answer));
            assert_eq!(codec.read_answer(&message[..message.len() - 1]), None);
            for place in 0..message.len() {
                let mut changed = message.clone();
                changed[place] ^= 1;
                assert!(codec.key.is_none() || codec.read_answer(&changed).is_none(), "octet {place}");
            }
        }
    }

    #[test]
    fn answer_is_known_by_form_and_padding_is_no_answer() {
        for codec in codecs() {
            let mut message = vec![0; codec.base_bytes()];
            codec.write_probe(&probe(), &Extensions::default(), &mut message);
            assert!(!codec.is_answer(&message));
            let front = codec.layout().answer[0];
            message[front..].fill(0xa5);
            assert!(!codec.is_answer(&message), "padding");
            let error = probe().error;
            let times = ReflectorPacket {
                sequence: 0,
                timestamp: 0,
                error,
                session: 0,
                received: 1,
                sender_sequence: 0,
                sender_timestamp: 0,
                sender_error: error,
                sender_ttl: 0,
            };
            codec.write_answer(&times, &mut message);
            assert!(codec.is_answer(&message) && !codec.is_answer(&message[1..]));
        }
    }

    #[test]
    fn a_key_does_not_read_what_another_one_wrote() {
        let [open, closed] = codecs();
        let other = Codec::new(Some(StampKey::from_hex(&"5b".repeat(16)).unwrap()));
        let mut message = [0; AUTHENTICATED_BYTES];
        other.write_probe(&probe(), &Extensions::default(), &mut message);
        assert_eq!(closed.read_probe(&message), None);
        open.write_probe(&probe(), &Extensions::default(), &mut message[..OPEN_BYTES]);
        assert_eq!(closed.read_probe(&message[..OPEN_BYTES]), None);
    }
}
