//! Generic netlink messages as bytes (linux/netlink.h, linux/genetlink.h). Pure: no socket, no clock.

use std::fmt;

/// `struct nlmsghdr`: length, type, flags, sequence number, port.
const HEADER: usize = 16;
/// `struct genlmsghdr`: command, version, reserved.
const COMMAND: usize = 4;
/// `struct nlattr`: length, type.
const ATTRIBUTE: usize = 4;
/// The bits of an attribute's type that are no flags (NLA_TYPE_MASK).
const TYPE_MASK: u16 = 0x3fff;
/// The most bytes of an attribute's value: its length has 16 bits.
const MOST_VALUE: usize = u16::MAX as usize - ATTRIBUTE;

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

/// What a request is for, and whether it is to be acknowledged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// The family's number.
    pub family: u16,
    /// The family's command.
    pub command: u8,
    /// The number that answers repeat.
    pub sequence: u32,
    /// Whether success is answered too. Failure always is.
    pub acknowledge: bool,
}

/// Appends a request to a buffer. `fill` adds its attributes. A buffer with several requests is sent in one call.
pub(crate) fn write(out: &mut Vec<u8>, request: Request, fill: impl FnOnce(&mut Attributes<'_>)) {
    let begin = out.len();
    let flags = NLM_F_REQUEST | if request.acknowledge { NLM_F_ACK } else { 0 };
    out.extend([0; 4]);
    out.extend(request.family.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out.extend(request.sequence.to_ne_bytes());
    // The port: the kernel knows the socket's.
    out.extend([0; 4]);
    out.extend([request.command, 1, 0, 0]);
    fill(&mut Attributes(out));
    let length = (out.len() - begin) as u32;
    out[begin..begin + 4].copy_from_slice(&length.to_ne_bytes());
}

/// The attributes of a request that is being written.
pub(crate) struct Attributes<'a>(&'a mut Vec<u8>);

impl Attributes<'_> {
    /// Adds an attribute.
    ///
    /// # Panics
    /// The value is longer than an attribute can be (65,531 bytes).
    pub(crate) fn bytes(&mut self, kind: u16, value: &[u8]) {
        assert!(value.len() <= MOST_VALUE, "an attribute has at most {MOST_VALUE} bytes");
        self.0.extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Adds a number of 32 bits.
    pub(crate) fn number(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_ne_bytes());
    }

    /// Adds an attribute that is there and has no value.
    pub(crate) fn flag(&mut self, kind: u16) {
        self.bytes(kind, &[]);
    }

    /// Adds text with the zero at its end.
    pub(crate) fn text(&mut self, kind: u16, value: &str) {
        self.bytes(kind, &[value.as_bytes(), &[0]].concat());
    }
}

/// A received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message<'a> {
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

/// Bytes that are not a netlink message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed netlink message")
    }
}

impl std::error::Error for Malformed {}

/// The messages in a datagram, in order. Ends after one that is malformed.
pub(crate) fn messages(datagram: &[u8]) -> impl Iterator<Item = Result<Message<'_>, Malformed>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((length, message)) = message(rest) else {
            rest = &[];
            return Some(Err(Malformed));
        };
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Ok(message))
    })
}

/// The first message, and its length without padding.
fn message(bytes: &[u8]) -> Option<(usize, Message<'_>)> {
    let length = usize::try_from(number(bytes, 0)?).ok()?;
    let content = bytes.get(HEADER..length)?;
    let (kind, sequence) = (short(bytes, 4)?, number(bytes, 8)?);
    let message = match kind {
        NLMSG_ERROR => Message::Answer { sequence, code: number(content, 0)?.cast_signed() },
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

/// The types and values of attributes, in order. Ends after one that is malformed.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = Result<(u16, &[u8]), Malformed>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((length, attribute)) = attribute(rest) else {
            rest = &[];
            return Some(Err(Malformed));
        };
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Ok(attribute))
    })
}

fn attribute(bytes: &[u8]) -> Option<(usize, (u16, &[u8]))> {
    let length = usize::from(short(bytes, 0)?);
    Some((length, (short(bytes, 2)? & TYPE_MASK, bytes.get(ATTRIBUTE..length)?)))
}

/// A number of 16 bits in the machine's order.
pub(crate) fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A number of 32 bits in the machine's order.
pub(crate) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: Request = Request { family: 30, command: 2, sequence: 7, acknowledge: true };

    #[test]
    fn what_is_written_is_read_again() {
        let mut out = Vec::new();
        write(&mut out, REQUEST, |attributes| {
            attributes.bytes(3, &[1, 2, 3, 4, 5]);
            attributes.flag(9);
            attributes.number(6, 0xffff_ffce);
        });
        write(&mut out, Request { command: 3, ..REQUEST }, |attributes| attributes.text(17, "ap"));
        let all: Vec<_> = messages(&out).collect::<Result<_, _>>().unwrap();
        let [Message::Command { family: 30, sequence: 7, command: 2, attributes: first }, second] = all[..]
        else {
            panic!("{all:?}")
        };
        let read: Vec<_> = attributes(first).collect::<Result<_, _>>().unwrap();
        assert_eq!(read, [(3, &[1, 2, 3, 4, 5][..]), (9, &[]), (6, &0xffff_ffce_u32.to_ne_bytes()[..])]);
        let Message::Command { command: 3, attributes: text, .. } = second else { panic!("{second:?}") };
        assert_eq!(attributes(text).next(), Some(Ok((17, &b"ap\0"[..]))));
    }

    #[test]
    fn a_request_is_what_the_kernel_reads() {
        let mut out = Vec::new();
        let get = Request { family: CONTROLLER, command: GET_FAMILY, sequence: 1, acknowledge: false };
        write(&mut out, get, |attributes| attributes.text(FAMILY_NAME, "nl80211"));
        // As strace shows it: {len=32, type=nlctrl, flags=NLM_F_REQUEST, seq=1, pid=0}, {cmd=3, version=1}, {len=12,
        // type=2}.
        let expected: &[u8] = b"\x20\0\0\0\x10\0\x01\0\x01\0\0\0\0\0\0\0\x03\x01\0\0\x0c\0\x02\0nl80211\0";
        assert_eq!(out, expected, "on a little-endian machine");
    }

    #[test]
    fn an_answer_has_a_code_below_zero_for_a_failure() {
        let answer = |code: i32| {
            let head = [&36_u32.to_ne_bytes()[..], &NLMSG_ERROR.to_ne_bytes(), &[0; 2], &9_u32.to_ne_bytes()]
                .concat();
            [&head[..], &[0; 4], &code.to_ne_bytes(), &[0; 16]].concat()
        };
        for code in [-22, 2] {
            assert_eq!(messages(&answer(code)).next(), Some(Ok(Message::Answer { sequence: 9, code })));
        }
    }

    #[test]
    fn no_bytes_are_read_beyond_the_end() {
        let mut out = Vec::new();
        write(&mut out, REQUEST, |attributes| attributes.bytes(3, &[7; 40]));
        for end in 0..out.len() {
            assert!(messages(&out[..end]).all(|message| message.is_err()), "cut at {end}");
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
        assert_eq!(attributes(&short).collect::<Vec<_>>(), [Err(Malformed)], "shorter than its own head");
    }
}
