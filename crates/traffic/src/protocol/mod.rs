//! The control protocol between coordinator and agent: messages, and the coordinator's client.

pub(crate) mod client;
pub(crate) mod message;
pub(crate) mod ports;

pub use client::{AgentClient, Pending};
pub use message::{Answer, Numbered, Request, SendArm, Timetable, VERSIONS};
pub use ports::{AnswersToSend, MessagesToPorts, MessagesToTake, PortsToOpen, SentToPorts, TakenFromPorts};
pub use stacklab_model::printable_text;

use serde::Serialize;
use stacklab_model::is_control;
use std::borrow::Cow;
use std::io::{self, BufRead, Read};
use std::time::Duration;

/// Why an agent gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The host answered that it could not.
    #[error("{host} {reason}")]
    Failed {
        /// Name of the host.
        host: String,
        /// What was attempted and why it failed.
        reason: String,
    },
    /// The agent's byte stream ended.
    #[error(
        "{host} disconnected during the request to {asked}: check whether its agent was killed, or the path to it is down{end}"
    )]
    Gone {
        /// Name of the host.
        host: String,
        /// The request.
        asked: String,
        /// What is known of its end: empty, or the rest of the sentence.
        end: String,
    },
    /// The agent did not answer in time.
    #[error("{host} did not answer the request to {asked} within {} s: check whether it is overloaded, or the path to it is too slow or loses too much", limit.as_secs())]
    Silent {
        /// Name of the host.
        host: String,
        /// The request.
        asked: String,
        /// The time limit.
        limit: Duration,
    },
    /// The agent sent what is not an answer to a request under way.
    #[error("the agent on {host} sent {what}")]
    Faulty {
        /// Name of the host.
        host: String,
        /// Its answer, and what that may mean.
        what: String,
    },
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// Maximum request length, bytes: a trial specification takes less than two thousand.
pub const MAX_REQUEST_LENGTH: usize = 64 << 10;
/// Maximum answer length, bytes: a series of 4096 rows, two histograms and ten thousand flows take less than two
/// million.
pub const MAX_ANSWER_LENGTH: usize = 16 << 20;

/// Bytes that are read behind the last line that is understood, at most.
const MAX_DROPPED: u64 = 64 << 20;

/// A message as a line of JSON, to be written in one call: an agent's pipe or connection has no buffer, and a request
/// is hundreds of tokens.
pub fn json_line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// A control character that no reader of lines takes off.
fn is_raw_control(c: char) -> bool {
    is_control(c) && c != '\r'
}

/// A line of JSON without control characters in its texts: an agent's words go to terminals, which some of them change.
/// In their place is U+FFFD.
pub fn printable(line: &str) -> Cow<'_, str> {
    if !line.contains('\\') && !line.contains(is_raw_control) {
        return Cow::Borrowed(line);
    }
    let mut text = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.push(if is_raw_control(c) { char::REPLACEMENT_CHARACTER } else { c });
            continue;
        }
        match rest.next() {
            Some('b' | 'f' | 'n' | 'r' | 't') => text.push(char::REPLACEMENT_CHARACTER),
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                match u32::from_str_radix(&digits, 16).map(char::from_u32) {
                    Ok(Some(c)) if is_control(c) => text.push(char::REPLACEMENT_CHARACTER),
                    _ => text.extend(["\\u", &digits]),
                }
            }
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    Cow::Owned(text)
}

/// The lines of a byte stream, without line ends. A line that is too long is an error, and the last item.
pub struct Lines<R> {
    input: R,
    longest: usize,
    over: bool,
}

impl<R: BufRead> Lines<R> {
    /// Lines of at most this many bytes.
    pub fn new(input: R, longest: usize) -> Self {
        Lines { input, longest, over: false }
    }

    /// Reads and drops what still comes, up to a bound: to close a connection with unread data resets it, and the last
    /// answer is lost.
    pub fn drop_rest(&mut self) {
        // The peer has gone, or has ended: either way nothing more comes.
        let _ = io::copy(&mut self.input.by_ref().take(MAX_DROPPED), &mut io::sink());
    }

    fn read(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        // One extra byte for the line end: it shows that a line of maximum length is complete.
        let most = self.longest as u64 + 1;
        if self.input.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > self.longest {
            let text = format!("a line is longer than {} bytes", self.longest);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        // Invalid UTF-8 is not a message either; the message parser reports it.
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let line = self.read();
        self.over = !matches!(line, Ok(Some(_)));
        line.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn read_text(json: &str) -> String {
        serde_json::from_str(&printable(json)).unwrap()
    }

    #[test]
    fn no_control_character_is_left_in_a_text() {
        assert_eq!(
            read_text(r#""a\u001b]0;title\u0007\n\tb""#),
            "a\u{fffd}]0;title\u{fffd}\u{fffd}\u{fffd}b"
        );
        assert_eq!(read_text("\"a\u{9b}31mb\u{7f}\""), "a\u{fffd}31mb\u{fffd}");
        assert_eq!(read_text(r#""C:\\new \"x\" \u00e4 \ud83d\ude00""#), "C:\\new \"x\" \u{e4} \u{1f600}");
        assert_eq!(read_text(r#""lo\u202elive\u2028""#), "lo\u{fffd}live\u{fffd}");
        assert_eq!(read_text("\"lo\u{202e}live\u{2066}\""), "lo\u{fffd}live\u{fffd}");
        assert!(matches!(printable("{\"id\":1}"), Cow::Borrowed(_)));
        assert_eq!(printable("\\"), "\\");
    }

    fn read(input: &[u8], longest: usize) -> Vec<Result<String, String>> {
        Lines::new(input, longest).map(|line| line.map_err(|error| error.to_string())).collect()
    }

    #[test]
    fn lines_are_whole_even_the_last_without_an_end() {
        assert_eq!(read(b"ab\n\nc", 2), [Ok("ab".into()), Ok(String::new()), Ok("c".into())]);
        assert_eq!(read(b"", 2), []);
    }

    #[test]
    fn a_line_that_is_too_long_ends_them() {
        assert_eq!(read(b"ab\nabc\nd\n", 2), [Ok("ab".into()), Err("a line is longer than 2 bytes".into())]);
        assert_eq!(read(b"abc", 2), [Err("a line is longer than 2 bytes".into())]);
    }

    #[test]
    fn rest_of_a_too_long_line_is_read_up_to_a_bound() {
        let input = [&b"abc\n"[..], &[b'x'; 100_000]].concat();
        let mut lines = Lines::new(&input[..], 2);
        assert!(lines.next().unwrap().is_err());
        lines.drop_rest();
        assert!(lines.input.is_empty());
        Lines::new(io::BufReader::new(io::repeat(b'x')), 2).drop_rest();
    }

    #[test]
    fn memory_is_not_filled_by_a_line_without_end() {
        // Endless: reading it whole would not return.
        let mut lines = Lines::new(io::BufReader::new(io::repeat(b'x')), 1000);
        assert!(lines.next().unwrap().is_err());
        assert!(lines.next().is_none());
    }

    #[test]
    fn what_is_no_text_is_a_line_all_the_same() {
        assert_eq!(read(b"\xff\xfe\nb\n", 9).len(), 2);
    }

    static NEVER: AtomicBool = AtomicBool::new(false);

    /// A stream that ends with an error.
    struct FailingStream(&'static str);

    impl Read for FailingStream {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other(self.0))
        }
    }

    #[test]
    fn an_agent_that_has_gone_leaves_its_reason() {
        for (reason, end) in [
            ("Connection reset by peer", "the path to it is down (Connection reset by peer)"),
            (
                "; the end of its console output:\n    panic",
                "is down; the end of its console output:\n    panic",
            ),
        ] {
            let mut client = AgentClient::new("far", FailingStream(reason), io::sink(), &NEVER);
            let error = client.hello().unwrap_err().to_string();
            assert!(error.starts_with("far disconnected") && error.ends_with(end), "{error}");
        }
        let mut client = AgentClient::new("far", io::empty(), io::sink(), &NEVER);
        assert!(client.hello().unwrap_err().to_string().ends_with("the path to it is down"));
    }
}
