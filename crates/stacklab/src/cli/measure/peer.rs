//! Options of measurements with a peer that is not an agent.

use crate::cli::quantities::time;
use clap::{Args, ValueEnum};
use stacklab_protocols::stamp::TimeFormat;

/// What runs on the other host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// An agent of stacklab's.
    Agent,
    /// A server of iperf3.
    Iperf3,
    /// A STAMP session-reflector (RFC 8762), or one of TWAMP-Light.
    Stamp,
}

impl Peer {
    /// The port on which it listens, if no other one is said.
    pub(crate) fn port(self) -> u16 {
        match self {
            Peer::Agent => stacklab_agent::PORT,
            Peer::Iperf3 => stacklab_protocols::iperf3::PORT,
            Peer::Stamp => stacklab_protocols::stamp::PORT,
        }
    }
}

/// How 64 bits hold a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum StampFormat {
    /// Seconds since 1900 and a binary fraction
    Ntp,
    /// Seconds since 1970 and nanoseconds: the truncated format of PTPv2, as UTC
    Ptp,
}

/// Options of an echo with a STAMP reflector. Packets leave on a schedule: 100 a second, or --pps. --key-file has the
/// key of authenticated packets, as hexadecimal digits; -S asks for answers with the same code point.
#[derive(Debug, Clone, Args)]
pub(super) struct PeerOptions {
    /// Session identifier, 1 to 65535; default: random
    #[arg(long, value_name = "NUMBER", requires = "peer", value_parser = clap::value_parser!(u16).range(1..))]
    stamp_session: Option<u16>,
    /// Request the timestamp information TLV: the reflector's synchronisation and timestamping
    #[arg(long, requires = "peer")]
    stamp_times: bool,
    /// Format of timestamps, sent and requested
    #[arg(long, value_enum, value_name = "FORMAT", requires = "peer", default_value_t = StampFormat::Ntp)]
    stamp_format: StampFormat,
    /// Maximum difference of both hosts' clocks: 0 on one machine, 1us with PTP. Default: from both hosts'
    /// synchronisation, or else an offset estimated from the delays
    #[arg(long, value_name = "TIME", requires = "peer", value_parser = time)]
    clock_error: Option<u64>,
}

/// What an echo with a STAMP reflector asks for.
#[derive(Debug, Clone)]
pub(crate) struct StampRequest {
    /// The session; `None` for a random one.
    pub session: Option<u16>,
    /// Whether timestamp information is asked for.
    pub times: bool,
    /// How its timestamps are written.
    pub format: TimeFormat,
    /// By how much both clocks differ at most, nanoseconds.
    pub clock_error_ns: Option<u64>,
    /// Packets per second.
    pub per_second: f64,
}

impl PeerOptions {
    /// What a STAMP reflector is asked.
    pub(super) fn stamp(&self, per_second: Option<f64>) -> StampRequest {
        /// Packets per second where nothing is said.
        const PER_SECOND: f64 = 100.0;
        StampRequest {
            session: self.stamp_session,
            times: self.stamp_times,
            format: match self.stamp_format {
                StampFormat::Ntp => TimeFormat::Ntp,
                StampFormat::Ptp => TimeFormat::Ptp,
            },
            clock_error_ns: self.clock_error,
            per_second: per_second.unwrap_or(PER_SECOND),
        }
    }
}
