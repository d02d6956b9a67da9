//! How messages enter and leave the kernel.

use crate::names::{UnknownName, named};
use std::fmt;
use std::str::FromStr;

named! {
    /// How messages enter and leave the kernel.
    pub enum Io("I/O path") {
        /// One system call per message.
        Send = "send",
        /// Several messages per system call (sendmmsg, recvmmsg); each passes through the stack alone. A TCP flood in
        /// A TCP flood with `size_of = write` sets MSG_MORE to fill segments.
        Sendmmsg = "sendmmsg",
        /// One system call per GSO batch: datagrams that are segmented below the IP layer (UDP_SEGMENT); UDP only.
        Gso = "gso",
        /// The kernel sends from the program's memory (MSG_ZEROCOPY); TCP only.
        Zerocopy = "zerocopy",
    }
}

/// A study's choice of how messages enter and leave the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IoChoice {
    /// `auto`: the program chooses, as if the study had no choice.
    Auto,
    /// In the given way.
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
