//! What goes between who enters a host and the guest that it is in: one JSON object a line.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::io::{self, Write};
use std::path::PathBuf;

/// How many commands can run in a guest at once.
pub const DOORS: usize = 8;

/// Towards the guest, by a door. What is asked goes over in small parts, each of which is waited for: user-mode Linux's serial
/// line, once it has more than its 4096 bytes of room, is not listened to any more.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Knock {
    /// The next bytes of what is asked.
    Part(Bytes),
    /// Nobody waits for the command any more: it is ended, where it has not. Last.
    HangUp,
}

/// Bytes in a part: with all that surrounds them those of all doors at once fit.
pub(super) const PART: usize = 256;

/// What is asked.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// Run this. First, and once.
    Run(Order),
    /// What the command is to read.
    Input(Bytes),
    /// There is no more of it.
    InputEnds,
    /// The terminal's size has changed.
    Resized(Window),
}

/// A command to be run on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    /// The host's place on the path: 0 is the sender, 3 the receiver.
    pub host: usize,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it starts.
    pub folder: PathBuf,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// The terminal that it is given, where it is to have one.
    pub terminal: Option<Window>,
}

/// A terminal's size in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Window {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// From the guest.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Tell {
    /// A part has been taken, and the next may come.
    Taken,
    /// What the command wrote to its output.
    Output(Bytes),
    /// The same of its errors.
    Errors(Bytes),
    /// It has ended with this exit code, 128 more than the signal where one has ended it. Last.
    Ended(i32),
    /// It could not be started. Last.
    Failed(String),
}

impl Tell {
    /// Whether nothing comes behind it.
    pub fn is_last(&self) -> bool {
        matches!(self, Tell::Ended(_) | Tell::Failed(_))
    }
}

/// Bytes, as text in base 64.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bytes(pub Vec<u8>);

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

/// Writes one object as a line, at once.
pub(super) fn put(out: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_all_kinds_go_over_in_one_line() {
        let all: Vec<u8> = (0..=255).collect();
        let mut line = Vec::new();
        put(&mut line, &Tell::Output(Bytes(all.clone()))).unwrap();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(serde_json::from_slice::<Tell>(&line).unwrap(), Tell::Output(Bytes(all)));
        assert!(serde_json::from_str::<Tell>(r#"{"output":"?"}"#).is_err());
    }
}
