//! The messages between a client that enters a host and the guest of that host: one JSON object per line.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::path::PathBuf;

/// The number of commands that can run in a guest at once.
pub const MOST_COMMANDS: usize = 8;

/// Messages to the guest over a command stream. A request is sent in small parts, and each part is
/// acknowledged: the serial line of user-mode Linux stops reading when more than its 4096 bytes of buffer are in use.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClientFrame {
    /// The next bytes of a request.
    Part(Bytes),
    /// The client is gone: end the command if it is still running. Last message.
    HangUp,
}

/// Bytes in a part. The parts of all command streams together fit into the buffer, including their overhead.
pub(crate) const PART: usize = 256;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Run this command. First message, sent once.
    Run(Order),
    Input(Bytes),
    InputEnds,
    Resized(Window),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The host's position on the path: 0 is the sender, 3 the receiver.
    pub host: usize,
    pub command: Vec<String>,
    pub folder: PathBuf,
    pub environment: Vec<(String, String)>,
    /// The size of its terminal, if it gets one.
    pub terminal: Option<Window>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Window {
    pub rows: u16,
    pub columns: u16,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GuestFrame {
    /// A part was received, and the next may be sent.
    Taken,
    Output(Bytes),
    Errors(Bytes),
    /// The command has ended with this exit code: 128 plus the signal's number if a signal ended it. Last message.
    Ended(i32),
    /// The command could not be started. Last message.
    Failed(String),
}

impl GuestFrame {
    pub(crate) fn is_last(&self) -> bool {
        matches!(self, GuestFrame::Ended(_) | GuestFrame::Failed(_))
    }
}

/// Bytes, encoded as base64 text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map(Bytes).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_testbed::host::streams::write_message;

    #[test]
    fn bytes_of_all_kinds_go_over_in_one_line() {
        let all: Vec<u8> = (0..=255).collect();
        let mut line = Vec::new();
        write_message(&mut line, &GuestFrame::Output(Bytes(all.clone()))).unwrap();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(serde_json::from_slice::<GuestFrame>(&line).unwrap(), GuestFrame::Output(Bytes(all)));
        assert!(serde_json::from_str::<GuestFrame>(r#"{"output":"?"}"#).is_err());
    }
}
