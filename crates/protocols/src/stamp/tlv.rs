//! TLVs behind a test packet (RFC 8972, section 4): flags, type, length and value each.

use crate::stamp::key::{CODE_BYTES, StampKey};

const HEAD: usize = 4;
const PADDING: u8 = 1;
const TIMESTAMP_INFO: u8 = 3;
const CLASS_OF_SERVICE: u8 = 4;
const CODE: u8 = 8;
/// The reflector does not know the type; set by the sender, and taken away by a reflector that knows it.
const UNRECOGNISED: u8 = 0x80;
/// The reflector could not read the TLV.
const MALFORMED: u8 = 0x40;
const INTEGRITY: u8 = 0x20;
/// Octets of the values of both TLVs that have fields.
const VALUE: usize = 4;

/// How a reflector synchronises its clock and takes its times (section 4.3), as IANA numbers them; 0 is not said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimestampInfo {
    /// Source of synchronisation of the clock of T2: 1 NTP, 2 PTP, 5 local and others.
    pub source_in: u8,
    /// How T2 was taken: 1 by hardware, 2 by software, 3 in the control plane.
    pub method_in: u8,
    /// As `source_in`, of T3.
    pub source_out: u8,
    /// As `method_in`, of T3.
    pub method_out: u8,
}

impl TimestampInfo {
    /// A clock of the system whose synchronisation is not known, and times taken by software.
    pub(super) const SOFTWARE: TimestampInfo =
        TimestampInfo { source_in: 5, method_in: 2, source_out: 5, method_out: 2 };
}

/// Differentiated services both ways (section 4.4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassOfService {
    /// The code point that the sender asks the reflector to answer with.
    pub asked: u8,
    /// The code point with which the packet reached the reflector.
    pub arrived: u8,
    /// The ECN bits with which it arrived.
    pub ecn: u8,
    /// 0: answered with what was asked; else the reflector may not, and answered with what arrived.
    pub refused: u8,
}

impl ClassOfService {
    fn bytes(self) -> [u8; VALUE] {
        let ClassOfService { asked, arrived, ecn, refused } = self;
        [asked << 2 | arrived >> 4, arrived << 4 | ecn << 2 | refused, 0, 0]
    }

    fn read([high, low, ..]: [u8; VALUE]) -> Self {
        let word = u16::from_be_bytes([high, low]);
        ClassOfService {
            asked: (word >> 10 & 0x3f) as u8,
            arrived: (word >> 4 & 0x3f) as u8,
            ecn: (word >> 2 & 3) as u8,
            refused: (word & 3) as u8,
        }
    }
}

/// What a packet has behind its base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extensions {
    /// The timestamp information; what a sender writes are zeros.
    pub timestamps: Option<TimestampInfo>,
    /// The class of service; a sender writes the asked code point.
    pub class: Option<ClassOfService>,
    /// Octets of extra padding, without its head.
    pub padding: Option<u16>,
}

impl Extensions {
    /// Padding that makes a packet of this many octets from a base without other TLVs. `None` if there is no room for
    /// the TLV's head, or too much.
    pub(super) fn pad_to(self, octets: usize, base: usize, authenticated: bool) -> Option<Self> {
        let without = Extensions { padding: None, ..self };
        let others = base + without.bytes(authenticated);
        if octets == others {
            return Some(without);
        }
        // The first TLV of an authenticated packet brings the code with it.
        let padded = Extensions { padding: Some(0), ..self };
        let padding = octets.checked_sub(base + padded.bytes(authenticated))?;
        Some(Extensions { padding: Some(u16::try_from(padding).ok()?), ..self })
    }

    /// Octets of all TLVs, with the authentication code.
    pub(super) fn bytes(&self, authenticated: bool) -> usize {
        let fields = usize::from(self.timestamps.is_some()) + usize::from(self.class.is_some());
        let padding = self.padding.map_or(0, |octets| HEAD + usize::from(octets));
        let all = fields * (HEAD + VALUE) + padding;
        if authenticated && all > 0 { all + HEAD + CODE_BYTES } else { all }
    }

    /// Writes what a session-sender sends into exactly as many octets.
    pub(super) fn write(&self, key: Option<&StampKey>, base: &[u8], all: &mut [u8]) {
        let mut rest = &mut *all;
        if let Some(class) = self.class {
            rest = put(rest, CLASS_OF_SERVICE, &class.bytes());
        }
        if self.timestamps.is_some() {
            rest = put(rest, TIMESTAMP_INFO, &[0; VALUE]);
        }
        if let Some(octets) = self.padding {
            head(rest, PADDING, octets);
            let (padding, after) = rest[HEAD..].split_at_mut(octets.into());
            // Not all zeros, in case something on the path compresses.
            padding.iter_mut().enumerate().for_each(|(place, byte)| *byte = (place * 167 % 251) as u8);
            rest = after;
        }
        if key.is_some() && !rest.is_empty() {
            head(rest, CODE, CODE_BYTES as u16);
            seal(key, base, all);
        }
    }
}

fn head(rest: &mut [u8], kind: u8, octets: u16) {
    let [high, low] = octets.to_be_bytes();
    rest[..HEAD].copy_from_slice(&[UNRECOGNISED, kind, high, low]);
}

fn put<'a>(rest: &'a mut [u8], kind: u8, value: &[u8; VALUE]) -> &'a mut [u8] {
    head(rest, kind, VALUE as u16);
    rest[HEAD..HEAD + VALUE].copy_from_slice(value);
    &mut rest[HEAD + VALUE..]
}

/// Seals the code's TLV, if there is one: its code is of the sequence number, and of all TLVs before it.
pub(super) fn seal(key: Option<&StampKey>, base: &[u8], rest: &mut [u8]) {
    if let Some(key) = key
        && let Some(place) = places(rest).iter().find(|place| place.kind == CODE && place.len == CODE_BYTES)
    {
        let (covered, code) = rest.split_at_mut(place.at);
        code[HEAD..HEAD + CODE_BYTES].copy_from_slice(&key.code(&[&base[..4], covered]));
    }
}

struct TlvPlace {
    at: usize,
    kind: u8,
    len: usize,
}

/// The TLVs that are whole, in order.
fn places(rest: &[u8]) -> Vec<TlvPlace> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some([_, kind, high, low]) = rest.get(at..).and_then(|rest| rest.first_chunk::<HEAD>()) {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        if at + HEAD + len > rest.len() {
            break;
        }
        found.push(TlvPlace { at, kind: *kind, len });
        at += HEAD + len;
    }
    found
}

/// What an answer says: TLVs that the reflector has understood. `None` if the code is wrong or missing.
pub(super) fn read(key: Option<&StampKey>, base: &[u8], rest: &[u8]) -> Option<Extensions> {
    let mut found = Extensions::default();
    let mut proved = key.is_none() || rest.is_empty();
    for TlvPlace { at, kind, len } in places(rest) {
        let value = &rest[at + HEAD..at + HEAD + len];
        if let (CODE, Some(key)) = (kind, key) {
            proved = key.proves(&[&base[..4], &rest[..at]], value);
        }
        if rest[at] & (UNRECOGNISED | MALFORMED | INTEGRITY) != 0 {
            continue;
        }
        match (kind, <[u8; VALUE]>::try_from(value)) {
            (PADDING, _) => found.padding = Some(len as u16),
            (CLASS_OF_SERVICE, Ok(value)) => found.class = Some(ClassOfService::read(value)),
            (TIMESTAMP_INFO, Ok([source_in, method_in, source_out, method_out])) => {
                found.timestamps = Some(TimestampInfo { source_in, method_in, source_out, method_out });
            }
            _ => {}
        }
    }
    proved.then_some(found)
}

/// Writes what a reflector says into the TLVs of a packet that arrived with this traffic class. Returns the code point
/// to answer with.
pub(super) fn reflect(
    key: Option<&StampKey>,
    base: &[u8],
    rest: &mut [u8],
    traffic_class: u8,
    info: TimestampInfo,
) -> u8 {
    let arrived = traffic_class >> 2;
    let mut answered = arrived;
    let places = places(rest);
    let proved = key.is_none_or(|key| {
        let code = places.iter().find(|place| place.kind == CODE);
        code.map_or(rest.is_empty(), |code| {
            key.proves(&[&base[..4], &rest[..code.at]], &rest[code.at + HEAD..code.at + HEAD + code.len])
        })
    });
    let end = places.last().map_or(0, |last| last.at + HEAD + last.len);
    for TlvPlace { at, kind, len } in places {
        if !proved {
            rest[at] = INTEGRITY;
            continue;
        }
        let (head, value) = rest[at..at + HEAD + len].split_at_mut(HEAD);
        head[0] = match (kind, <&mut [u8; VALUE]>::try_from(&mut *value)) {
            (PADDING, _) => 0,
            (CODE, _) if len == CODE_BYTES => 0,
            (CLASS_OF_SERVICE, Ok(value)) => {
                let ClassOfService { asked, .. } = ClassOfService::read(*value);
                let ecn = traffic_class & 3;
                *value = ClassOfService { asked, arrived, ecn, refused: 0 }.bytes();
                answered = asked;
                0
            }
            (TIMESTAMP_INFO, Ok(value)) => {
                *value = [info.source_in, info.method_in, info.source_out, info.method_out];
                0
            }
            (CODE | CLASS_OF_SERVICE | TIMESTAMP_INFO, _) => MALFORMED,
            _ => UNRECOGNISED,
        };
    }
    // What is left is shorter than it says.
    if let Some(flags) = rest.get_mut(end) {
        *flags = if proved { MALFORMED } else { INTEGRITY };
    }
    answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_padded_to_the_octets_asked_for() {
        let class = Some(ClassOfService { asked: 46, ..ClassOfService::default() });
        for extensions in [Extensions::default(), Extensions { class, ..Extensions::default() }] {
            for (base, closed) in [(44, false), (112, true)] {
                for octets in [200, 1_000, 1_472] {
                    let padded = extensions.pad_to(octets, base, closed).unwrap();
                    assert_eq!(base + padded.bytes(closed), octets);
                }
                assert_eq!(extensions.pad_to(base - 1, base, closed), None);
                let same = base + extensions.bytes(closed);
                assert_eq!(extensions.pad_to(same, base, closed), Some(extensions));
                assert_eq!(extensions.pad_to(same + 3, base, closed), None);
                assert_eq!(extensions.pad_to(70_000, base, closed), None);
            }
        }
    }

    #[test]
    fn the_class_of_service_has_the_bits_of_the_rfc() {
        let class = ClassOfService { asked: 0b101110, arrived: 0b001010, ecn: 0b10, refused: 0b01 };
        assert_eq!(class.bytes(), [0b1011_1000, 0b1010_1001, 0, 0]);
        assert_eq!(ClassOfService::read(class.bytes()), class);
    }

    #[test]
    fn what_a_reflector_does_not_know_is_said_so() {
        // Type 200, then padding, then one that says more than there is.
        let mut rest =
            vec![UNRECOGNISED, 200, 0, 1, 7, UNRECOGNISED, PADDING, 0, 2, 9, 9, UNRECOGNISED, PADDING, 1, 0];
        assert_eq!(reflect(None, &[0; 44], &mut rest, 46 << 2, TimestampInfo::SOFTWARE), 46);
        assert_eq!((rest[0], rest[5], rest[11]), (UNRECOGNISED, 0, MALFORMED));
        assert_eq!((rest[4], rest[9]), (7, 9));
    }
}
