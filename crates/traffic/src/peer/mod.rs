//! Exchanges with peers that speak another protocol: two-way measurements with four times, as of STAMP and TWAMP. What
//! is on the wire is the caller's ([`PacketFormat`]); sending, receiving, times and counts are the engine's.

mod count;
mod exchange;
mod figures;
mod format;
#[cfg(target_os = "linux")]
mod service;

pub use exchange::{ExchangeSpec, PeerError, exchange};
pub use figures::{Clock, ExchangeReport, LossByDirection, Ways};
pub use format::{PacketFormat, PeerAnswer};
#[cfg(target_os = "linux")]
pub use service::{Datagram, Service, clock_error_ns};
