//! The testbed, its hosts and links.

use crate::page::document::facts::Fact;
use serde::Serialize;

/// The testbed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TestbedView {
    /// In a sentence.
    pub sentence: String,
    /// How hosts are joined: one row for all that are joined alike.
    pub rows: Vec<DrawingView>,
    /// The hosts, in the order in which they were asked.
    pub hosts: Vec<HostView>,
}

/// Hosts side by side, in the order of the traffic.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DrawingView {
    /// The hosts.
    pub hosts: Vec<DrawnHost>,
    /// The link after each host but the last.
    pub links: Vec<LinkView>,
}

/// A host's place in a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DrawnHost {
    /// Its name.
    pub name: String,
    /// Its system in a few words; empty if no host of that name reported it.
    pub system: String,
}

/// A link of a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LinkView {
    /// How packets cross it, one after another, where the study varies that.
    pub mechanisms: Vec<String>,
    /// What is known of it.
    pub facts: Vec<String>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HostView {
    /// Its name.
    pub name: String,
    /// Where it is: the kind of host, and with routers the mechanism.
    pub kind: String,
    /// Its system in a few words.
    pub system: String,
    /// Its facts.
    pub facts: Vec<Fact>,
    /// What it can do.
    pub abilities: Vec<Fact>,
}
