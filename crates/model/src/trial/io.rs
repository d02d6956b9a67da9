//! How messages get into and out of the kernel.

use crate::names::{UnknownName, named};
use std::fmt;
use std::str::FromStr;

named! {
    /// How messages get into and out of the kernel.
    pub enum Io("I/O path") {
        /// One call a message.
        Plain = "plain",
        /// Several messages a call (sendmmsg, recvmmsg), each going through the stack alone; those of a TCP flood in
        /// `message` framing with the word that more follow (MSG_MORE), so that they fill segments.
        Batch = "batch",
        /// One call a train of datagrams, cut below the IP layer (UDP_SEGMENT); UDP only.
        Segment = "segment",
        /// The kernel sends from the program's memory (MSG_ZEROCOPY); TCP only.
        Zerocopy = "zerocopy",
    }
}

/// How messages get into and out of the kernel, as a study says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IoChoice {
    /// `auto`: as the program chooses, as if the study did not say.
    Auto,
    /// In this way.
    Path(Io),
}

impl fmt::Display for IoChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoChoice::Auto => f.write_str("auto"),
            IoChoice::Path(io) => io.fmt(f),
        }
    }
}

impl FromStr for IoChoice {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" { Ok(IoChoice::Auto) } else { text.parse().map(IoChoice::Path) }
    }
}
