//! Options of measurements with a peer that is no agent.

use crate::cli::quantities::time;
use clap::{Args, ValueEnum};

/// What answers, if no agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Peer {
    /// A STAMP session-reflector (RFC 8762), or one of TWAMP-Light
    Stamp,
}

/// Options of an echo with a peer that is no agent.
#[derive(Debug, Clone, Args)]
pub struct PeerOptions {
    /// What answers on HOST, if it is no agent. Packets leave on a schedule: 100 a second, or --pps. --key-file has the
    /// key of authenticated packets, as hexadecimal digits; -S asks for answers with the same code point
    #[arg(long, value_name = "PEER", conflicts_with_all = ["tcp", "at_interface", "against", "reverse", "tls", "poll", "warmup"])]
    peer: Option<Peer>,
    /// UDP port of the reflector
    #[arg(long, value_name = "PORT", default_value_t = stacklab_interop::stamp::PORT, requires = "peer")]
    stamp_port: u16,
    /// Number of the session, 1 to 65535; without it, a random one
    #[arg(long, value_name = "NUMBER", requires = "peer", value_parser = clap::value_parser!(u16).range(1..))]
    stamp_session: Option<u16>,
    /// Ask how the reflector's clock is synchronised and takes its times (the timestamp information TLV)
    #[arg(long, requires = "peer")]
    stamp_times: bool,
    /// By how much both hosts' clocks differ at most: 0 on one machine, 1us with PTP. Without it, what both say of
    /// their
    /// synchronisation decides, and else the offset is estimated from the delays
    #[arg(long, value_name = "TIME", requires = "peer", value_parser = time)]
    clock_error: Option<u64>,
}

/// What an echo with a STAMP reflector asks for.
#[derive(Debug, Clone)]
pub struct StampRequest {
    /// Its port.
    pub port: u16,
    /// The session; `None` for a random one.
    pub session: Option<u16>,
    /// Whether timestamp information is asked for.
    pub times: bool,
    /// By how much both clocks differ at most, nanoseconds.
    pub clock_error_ns: Option<u64>,
    /// Packets per second.
    pub per_second: f64,
}

impl PeerOptions {
    /// What a STAMP reflector is asked; `None` if the peer is an agent.
    pub fn stamp(&self, per_second: Option<f64>) -> Option<StampRequest> {
        /// Packets per second where nothing is said.
        const PER_SECOND: f64 = 100.0;
        self.peer.map(|Peer::Stamp| StampRequest {
            port: self.stamp_port,
            session: self.stamp_session,
            times: self.stamp_times,
            clock_error_ns: self.clock_error,
            per_second: per_second.unwrap_or(PER_SECOND),
        })
    }
}
