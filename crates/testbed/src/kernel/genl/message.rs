//! Generic netlink messages as bytes (linux/netlink.h, linux/genetlink.h). Pure: no socket, no clock.

/// `struct nlmsghdr`: length, type, flags, sequence number, port.
const HEADER: usize = 16;
/// `struct genlmsghdr`: command, version, reserved.
const COMMAND: usize = 4;
/// `struct nlattr`: length, type.
const ATTRIBUTE: usize = 4;
/// The bits of an attribute's type that are no flags (NLA_TYPE_MASK).
const TYPE_MASK: u16 = 0x3fff;

const NLMSG_NOOP: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Types from here on are families.
const NLMSG_MIN_TYPE: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;

/// The family of the controller, which knows all others.
pub(crate) const CONTROLLER: u16 = 16;
/// The controller's request for a family by its name, and the attributes with its number and name.
pub(crate) const GET_FAMILY: u8 = 3;
pub(crate) const FAMILY_ID: u16 = 1;
pub(crate) const FAMILY_NAME: u16 = 2;

/// A request to a family.
#[derive(Debug, Clone, Copy)]
pub struct GenlRequest {
    /// The family's number.
    pub family: u16,
    /// The family's command.
    pub command: u8,
    /// The number that answers repeat.
    pub sequence: u32,
    /// Whether success is answered too. Failure always is.
    pub acknowledge: bool,
}

/// Appends a request with these attributes to a buffer. A buffer with several requests is sent in one call.
pub fn write(out: &mut Vec<u8>, request: GenlRequest, attributes: &[u8]) {
    let length = (HEADER + COMMAND + attributes.len()) as u32;
    let flags = NLM_F_REQUEST | if request.acknowledge { NLM_F_ACK } else { 0 };
    out.extend(length.to_ne_bytes());
    out.extend(request.family.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out.extend(request.sequence.to_ne_bytes());
    // The port: the kernel knows the socket's.
    out.extend([0; 4]);
    out.extend([request.command, 1, 0, 0]);
    out.extend(attributes);
}

/// An attribute, padded to a multiple of four bytes. Panics if the value has more than 65,531 bytes.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(ATTRIBUTE + value.len()).expect("an attribute's length has 16 bits");
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An attribute with a number of 32 bits.
pub fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_ne_bytes())
}

/// An attribute with text and the zero at its end.
pub fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, &[value.as_bytes(), &[0]].concat())
}

/// A received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// The answer to a request: zero or a positive result, or an error number below zero.
    Answer {
        /// The request's number.
        sequence: u32,
        /// The kernel's answer.
        code: i32,
    },
    /// A family's message.
    Command {
        /// The family's number.
        family: u16,
        /// The number of the request that it answers. Zero for what the kernel sends by itself.
        sequence: u32,
        /// The family's command.
        command: u8,
        /// Its attributes, not yet checked.
        attributes: &'a [u8],
    },
    /// A message without content.
    Nothing,
}

/// The messages in a datagram, in order. `None`, which is the last, for one that is malformed.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = Option<Message<'_>>> {
    parts(datagram, first_message)
}

/// The types and values of attributes, in order. `None`, which is the last, for one that is malformed.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = Option<(u16, &[u8])>> {
    parts(bytes, first_attribute)
}

/// The value of the first attribute of a type before one that is malformed.
pub fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut found = attributes(bytes).map_while(|attribute| attribute);
    found.find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

/// Parts that follow each other at multiples of four bytes. `first` finds one and its length.
fn parts<'a, T>(
    mut rest: &'a [u8],
    first: fn(&'a [u8]) -> Option<(usize, T)>,
) -> impl Iterator<Item = Option<T>> {
    std::iter::from_fn(move || {
        let found = (!rest.is_empty()).then(|| first(rest))?;
        let next = found.as_ref().and_then(|(length, _)| rest.get(length.next_multiple_of(4)..));
        rest = next.unwrap_or_default();
        Some(found.map(|(_, part)| part))
    })
}

/// The first message, and its length without padding.
fn first_message(bytes: &[u8]) -> Option<(usize, Message<'_>)> {
    let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let content = bytes.get(HEADER..length)?;
    let kind = u16_at(bytes, 4)?;
    let sequence = u32_at(bytes, 8)?;
    let message = match kind {
        NLMSG_ERROR => Message::Answer { sequence, code: u32_at(content, 0)?.cast_signed() },
        NLMSG_NOOP | NLMSG_DONE => Message::Nothing,
        NLMSG_MIN_TYPE.. => Message::Command {
            family: kind,
            sequence,
            command: *content.first()?,
            attributes: content.get(COMMAND..)?,
        },
        _ => return None,
    };
    Some((length, message))
}

fn first_attribute(bytes: &[u8]) -> Option<(usize, (u16, &[u8]))> {
    let length = usize::from(u16_at(bytes, 0)?);
    Some((length, (u16_at(bytes, 2)? & TYPE_MASK, bytes.get(ATTRIBUTE..length)?)))
}

/// A number of 16 bits in the machine's order.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A number of 32 bits in the machine's order.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: GenlRequest = GenlRequest { family: 30, command: 2, sequence: 7, acknowledge: true };

    #[test]
    fn what_is_written_is_read_again() {
        let mut out = Vec::new();
        let all = [attribute(3, &[1, 2, 3, 4, 5]), attribute(9, &[]), number(6, 0xffff_ffce)].concat();
        write(&mut out, REQUEST, &all);
        write(&mut out, GenlRequest { command: 3, ..REQUEST }, &text(17, "ap"));
        assert_eq!((out.len() % 4, find(&all, 6), find(&all, 5)), (0, Some(&all[20..]), None));
        let all: Vec<_> = messages(&out).collect::<Option<_>>().unwrap();
        let [Message::Command { family: 30, sequence: 7, command: 2, attributes: first }, second] = all[..]
        else {
            panic!("{all:?}")
        };
        let read: Vec<_> = attributes(first).collect::<Option<_>>().unwrap();
        assert_eq!(read, [(3, &[1, 2, 3, 4, 5][..]), (9, &[]), (6, &0xffff_ffce_u32.to_ne_bytes()[..])]);
        let Message::Command { command: 3, attributes: text, .. } = second else { panic!("{second:?}") };
        assert_eq!(attributes(text).next(), Some(Some((17, &b"ap\0"[..]))));
    }

    #[test]
    fn a_request_is_what_the_kernel_reads() {
        let mut out = Vec::new();
        let get = GenlRequest { family: CONTROLLER, command: GET_FAMILY, sequence: 1, acknowledge: false };
        write(&mut out, get, &text(FAMILY_NAME, "nl80211"));
        // As strace shows it: {len=32, type=nlctrl, flags=NLM_F_REQUEST, seq=1, pid=0}, {cmd=3, version=1}, {len=12,
        // type=2}.
        let expected: &[u8] = b"\x20\0\0\0\x10\0\x01\0\x01\0\0\0\0\0\0\0\x03\x01\0\0\x0c\0\x02\0nl80211\0";
        assert_eq!(out, expected, "on a little-endian machine");
    }

    #[test]
    fn an_answer_has_a_code_below_zero_for_a_failure() {
        for code in [-22_i32, 2] {
            let head = [&36_u32.to_ne_bytes()[..], &NLMSG_ERROR.to_ne_bytes(), &[0; 2], &9_u32.to_ne_bytes()]
                .concat();
            let answer = [&head[..], &[0; 4], &code.to_ne_bytes(), &[0; 16]].concat();
            assert_eq!(messages(&answer).next(), Some(Some(Message::Answer { sequence: 9, code })));
        }
    }

    #[test]
    fn no_bytes_are_read_beyond_the_end() {
        let mut out = Vec::new();
        write(&mut out, REQUEST, &attribute(3, &[7; 40]));
        for end in 0..out.len() {
            assert!(messages(&out[..end]).all(|message| message.is_none()), "cut at {end}");
        }
        for at in 0..out.len() {
            for value in [0, 1, 3, 15, 16, 0x7f, 0xff] {
                let mut wrong = out.clone();
                wrong[at] = value;
                // Neither may it go on for ever.
                for message in messages(&wrong).take(64).flatten() {
                    if let Message::Command { attributes: all, .. } = message {
                        assert!(attributes(all).take(64).count() < 64);
                    }
                }
                assert!(messages(&wrong).count() < 64);
            }
        }
        let short = [3, 0, 1, 0];
        assert_eq!(attributes(&short).collect::<Vec<_>>(), [None], "shorter than its own head");
    }
}
