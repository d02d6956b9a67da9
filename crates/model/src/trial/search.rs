//! A search for the highest load of which a path loses no more than a given share.

use crate::names::named;
use crate::print_duration;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Shares are in millionths of one, so that a search in a record repeats exactly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SearchSpec {
    /// The share of a slice's messages that may be lost or late; with more of them the slice is bad.
    pub loss_ppm: u32,
    /// The share of slices that are bad at the load which is the answer.
    pub exceed_ppm: u32,
    /// Nanoseconds of a slice; `None`: chosen in each block.
    pub slice_ns: Option<u64>,
    /// Messages per second; `None`: [`SearchSpec::MAX_LOAD`].
    pub highest: Option<f64>,
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub device: SearchDevice,
}

named! {
    #[derive(Default)]
    pub enum SearchDevice("device") {
        /// A part of the testbed, which is built here.
        #[default]
        Testbed = "testbed",
        /// The network between two machines, of which nothing is known.
        Path = "path",
    }
}

impl SearchSpec {
    /// The least load, messages per second.
    pub const MIN_LOAD: f64 = 10.0;
    /// More than any generator here can send, messages per second.
    pub const MAX_LOAD: f64 = 5_000_000.0;

    pub fn highest_load(&self) -> f64 {
        self.highest.unwrap_or(SearchSpec::MAX_LOAD)
    }
}

/// `the highest load with at most 0.5 % loss`.
impl fmt::Display for SearchSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the highest load with at most {} % loss", f64::from(self.loss_ppm) / 10_000.0)?;
        match self.slice_ns {
            Some(slice_ns) => write!(f, " in slices of {}", print_duration(slice_ns)),
            None => Ok(()),
        }
    }
}

/// One slice of an arm in a search, as its row in the record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchSlice {
    /// Round of the block, from 1; 0 is the flood before.
    pub round: u32,
    /// Messages per second that were to be sent.
    pub load: f64,
    pub offered: u64,
    pub received: u64,
    /// Messages that the ring of a router's ingress had no room for.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub lost_at_routers: u64,
    /// Messages that the receiver's socket had no room for: the tester's own loss.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub lost_at_receiver: u64,
    /// Messages that arrived after the slice's end and the least delay of the path: they waited in a queue.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub waiting: u64,
    /// Nanoseconds by which the sender was late, in sum.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub late_ns: u64,
    /// Nanoseconds for which the sender's thread waited for a processor; `None` if the kernel does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
    /// The same of the routers' threads together, and their time on a processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routers_waited_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routers_ran_ns: Option<u64>,
    pub outcome: SearchOutcome,
}

/// What a slice says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchOutcome {
    #[default]
    Good,
    /// More was lost or late than may be.
    Bad,
    /// Less was sent than was to be, though the sender's thread could run: the path or the generator is at its limit.
    NotSent,
    /// Nothing: the tester itself disturbed it. It was repeated.
    Invalid(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_searched() {
        let spec = SearchSpec {
            loss_ppm: 5000,
            exceed_ppm: 500_000,
            slice_ns: None,
            highest: None,
            device: SearchDevice::Testbed,
        };
        assert_eq!(spec.to_string(), "the highest load with at most 0.5 % loss");
        let spec = SearchSpec { loss_ppm: 0, slice_ns: Some(1_000_000_000), ..spec };
        assert_eq!(spec.to_string(), "the highest load with at most 0 % loss in slices of 1 s");
    }
}
