//! The traffic engine and the agent that runs it on a host.
//!
//! From the wire upwards: [`header`] is what every message carries; `channel` is a connected socket with a message
//! size, `outbox` and `inbox` how messages get into and out of the kernel; `send` and `receive` are the one send loop and the one receive loop; `pacer` says when a message leaves and a
//! `Sink` says what is done with one that arrived (`account` counts it, `reflect` sends it back). `sender` and
//! `receiver` make probes of them and report a [`stacklab_model::HostReport`] each; [`agent`] does so on request,
//! [`client`] asks. [`conduct`] has two agents run one trial, [`proof`] compares what they observed with what was
//! planned, [`metrics`] turns it into figures. [`compare`] has them compare their clocks ([`clock`]). [`vantage`] says from where another host is seen.
//!
//! IPv4 and IPv6 are one code path: a family is an address, and only `sys` asks which.

pub mod agent;
pub mod client;
pub mod clock;
pub mod compare;
pub mod conduct;
pub mod header;
pub mod message;
pub mod metrics;
pub mod proof;
pub mod vantage;

mod abilities;
mod account;
mod at_interface;
mod channel;
mod connect;
mod counters;
mod cpu;
mod delay;
mod error;
mod exchange;
mod facts;
#[cfg(test)]
mod frugality_tests;
mod gather;
mod inbox;
mod legs;
mod lines;
mod memory;
mod noise;
mod observe;
mod outbox;
mod pacer;
mod receive;
mod receiver;
mod reflect;
mod rfc6349;
mod send;
mod sender;
mod sequence;
mod series;
mod sys;
mod threads;
mod tune;
mod tuned;
mod zerocopy;

pub use error::EngineError;
